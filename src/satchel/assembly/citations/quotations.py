"""Finds the quotations in a text, and looks for a quotation in a source text.

The comparison ignores changes made by people and page layouts: white space, case, emphasis, quotation marks, dashes,
ligatures and other compatible forms of a letter, hidden characters, words broken at the end of a line, list markers,
the space within a number and between a number and its unit.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import Final, NamedTuple

from satchel.text.visible import make_visible

# A line break within a paragraph: the next line is no list item, heading or table row.
_LINE_BREAK: Final = r"\n(?![ \t\r]*(?:\n|[#|]|[-*+•][ \t]|\d{1,3}[.)][ \t]))"


# Bounded length: without a bound each of many opening marks would search the whole text for its end (quadratic time).
_LINE: Final = r"[^MARKS\n]{0,2000}+"
_TWO_LINES: Final = rf"(?=\S)[^MARKS\n]{{1,1000}}+{_LINE_BREAK}[^MARKS\n]{{1,998}}+"


def _between(opening: str, closing: str, marks: str) -> str:
    """Regular expression for words between marks, on a single line or on two lines of a paragraph."""
    return f"{opening}(?:{_LINE}|{_TWO_LINES}){closing}".replace("MARKS", marks)


# A mark behind a word closes and does not open; a straight mark behind a digit means inches.
_OPENS: Final = r"(?<![^\s(\[{*_—–-])"
_QUOTE: Final = re.compile(
    "|".join(
        (
            rf'(?<!\d)(?:(?<!\S)"|"(?!\s)){_LINE}"|(?<![A-Za-z\d])"{_TWO_LINES}"(?![A-Za-z\d])'.replace("MARKS", '"'),
            _between("„", "[“”]", "„“”"),
            _between("“", "”", "“”"),
            _between("«", "»", "«»"),
            _between("‹", "›", "‹›"),
            _between("「", "」", "「」"),
            _between("『", "』", "『』"),
            _between(rf"{_OPENS}»(?=\S)", "[«»]", "«»"),
            _between(rf"{_OPENS}›(?=\S)", "[‹›]", "‹›"),
            _between(rf"{_OPENS}”(?=\S)", "”", "“”"),
        )
    )
)
# An apostrophe is inside a word, or at the beginning of a few shortened words ('tis, '90s).
_IN_SINGLE_MARKS: Final = re.compile(
    rf"{_OPENS}'(?=\S)(?!(?:\d\ds?|tis|twas|em|till?|cause|n|bout|round)\b)"
    r"(?:[^'\"“”\n]|(?<=\w)'(?=\w)){1,2000}+(?<=\S)'(?![\w'])"
    rf"|{_OPENS}‘(?=\S)(?:[^‘’\"“”\n]|(?<=\w)’(?=\w)){{1,2000}}+(?<=\S)’(?!\w)"
    rf"|{_OPENS}‚(?=\S)[^‚‘’\"“”\n]{{1,2000}}+[‘’](?!\w)",
    re.IGNORECASE,
)
_SEVERAL_WORDS: Final = re.compile(r"\w\W*\s\W*\w")
_QUOTED_LINES: Final = re.compile(r"(?:^[ ]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
# `> [!NOTE]` and `> **Note:** …` are callouts, not quotations; `> — report.pdf` is an attribution.
_CALLOUT: Final = re.compile(r"\s*>\s*(?:\[!\w+\]|(?:\*\*|__)[^*_\n]{1,40}(?:\*\*|__)|[^\w\s\"“„«]\ufe0f?\s)")
_ATTRIBUTION: Final = re.compile(r"^\s*>[\s>]*(?:[-–—―]+\s|$).*$", re.MULTILINE)
_QUOTE_MARKER: Final = re.compile(r"^\s*>[\s>]*", re.MULTILINE)
_MIN_QUOTE_CHARS: Final = 3  # marks around fewer characters hold letters and signs ("a", "->") and quote nobody

_ELLIPSIS: Final = r"\[\s*(?:(?:…|\.(?:\s?\.){2,})\s*)?\]|\(\s*(?:…|\.{3,})\s*\)|…|\.(?:\s?\.){2,}"
_LEFT_OUT: Final = re.compile(_ELLIPSIS)
_GAP: Final = re.compile(rf"(?P<left_out>{_ELLIPSIS})|\[(?P<own>[^\[\]]*)\]")
_BRACKETED: Final = re.compile(r"\[([^\[\]]*)\]")
# A citation or a remark inside a quotation: not part of the quoted words.
_REMARK: Final = re.compile(
    r"\[\s*(?:\^?\d[\d\s,;–-]*|sic!?|emphasis (?:added|mine|in (?:the )?original))\]", re.IGNORECASE
)
_WIDE_BRACKETS: Final = str.maketrans("［］", "[]")

# Room for a name in place of a pronoun; more would let a bracket replace a whole sentence (docs/citations.md).
_MAX_REPLACED_CHARS: Final = 50

# Brackets in one quotation; with more of them the words are mostly the quoter's.
_MAX_REPLACEMENTS: Final = 8

# Places of quoted phrases looked at in one text: bounds the time for hostile answers; beyond the bound nothing matches.
_MAX_PHRASE_PLACES: Final = 100_000
_LAST_WORD: Final = re.compile(r"\w\W*$")
_END_MARKS: Final = ".,;:!?"
# The output of `make_visible` for soft hyphens, zero-width spaces and the like, which nobody quotes.
_HIDDEN: Final = re.compile(r"⟦U\+[0-9A-F]{4,6}⟧")
_LINE_MARKER: Final = re.compile(r"^[ \t]*(?:[#>*+-]+|//+)[ \t]+", re.MULTILINE)
_DECORATION: Final = re.compile("[*_`\"'‘’‚‛“”„‟«»‹›「」]|\\\\(?=[^\\w\\s])")
_GAPS: Final = re.compile(r"<br\s*/?>|\|", re.IGNORECASE)
_MINUS: Final = re.compile("[\u2010\u2011\u2212\ufe63\uff0d]")
_RANGE: Final = re.compile("(?<=\\d)\\s?[-\u2012-\u2015]\\s?(?=\\d)")
_DASH: Final = re.compile("\\s*[\u2012-\u2015]\\s*|\\s+-{1,3}\\s+|\\s*-{2,3}\\s*")
# `coop-⏎eration`; also `well-known`, because the hyphen may stem from a line end.
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
_UNIT: Final = re.compile(r"(?<=\d)\s+(?=[^\W\d_]|[%‰°€$£¥])|(?<=[€$£¥])\s+(?=\d)")
_THOUSANDS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)")

# A blank between digits may be a space or a separator of thousands: `4 210` is quoted as `4,210` and as `4210`.
_SEPARATORS: Final = (" ", ",", "")
_WHITE_SPACE: Final = re.compile(r"\s+")


class Quotation(NamedTuple):
    """The quoted words, and their start and end in the text including the quotation marks."""

    text: str
    start: int
    end: int


def quotations(text: str, prose: str) -> list[Quotation]:
    """The quotations in `prose` (`text` with skipped parts replaced by blanks); the words are taken from `text`.

    Single marks stand around terms and letters too, hence only several words in single marks are a quotation.
    """
    spans = [marked.span() for marked in _QUOTE.finditer(prose)]
    starts = [start for start, _ in spans]
    for marked in _IN_SINGLE_MARKS.finditer(prose):
        before = bisect_right(starts, marked.start()) - 1
        is_inside = before >= 0 and marked.start() < spans[before][1]
        if not is_inside and _SEVERAL_WORDS.search(marked[0]):
            spans.append(marked.span())
    quoted = [Quotation(text[start + 1 : end - 1], start, end) for start, end in sorted(spans)]
    return [quotation for quotation in quoted if len(quotation.text.strip()) >= _MIN_QUOTE_CHARS]


def block_quotations(text: str, prose: str) -> list[Quotation]:
    """Block quotations (lines after `>`), except callouts and lines with quotation marks (see `quotations`)."""
    blocks = []
    for lines in _QUOTED_LINES.finditer(prose):
        if _CALLOUT.match(lines[0]) or _QUOTE.search(lines[0]):
            continue
        without_attribution = _ATTRIBUTION.sub(lambda line: " " * len(line[0]), lines[0])
        original = text[lines.start() : lines.end()]
        quoted_text = "".join(a if b != " " else " " for a, b in zip(original, without_attribution, strict=True))
        quote = _QUOTE_MARKER.sub("", quoted_text).strip()
        if len(quote) >= _MIN_QUOTE_CHARS:
            blocks.append(Quotation(quote, lines.start(), lines.end()))
    return blocks


class QuotationMatch(IntEnum):
    """Match of a quotation in a text: none, altered (the quoter put in a word), or full."""

    NONE = 0
    ALTERED = 1
    FULL = 2


class Quoted:
    """A source text prepared for quotation look-ups, with cached results."""

    def __init__(self, text: str) -> None:
        self._raw = text
        self._texts = {" ": folded(text)}
        self._has_thousands = bool(_THOUSANDS.search(self._texts[" "]))
        self._known: dict[str, QuotationMatch] = {}
        self._places_left = _MAX_PHRASE_PLACES

    def holds(self, quote: str) -> QuotationMatch:
        """The match of the quotation: an ellipsis matches any text, words in brackets match a few source words."""
        if quote not in self._known:
            self._known[quote] = self._looked_for(quote.translate(_WIDE_BRACKETS))
        return self._known[quote]

    def _looked_for(self, quote: str) -> QuotationMatch:
        separators = _SEPARATORS if self._has_thousands or _THOUSANDS.search(folded(quote)) else _SEPARATORS[:1]
        best = QuotationMatch.NONE
        for separator in separators:
            best = max(best, self._holds(quote, separator))
            if best is QuotationMatch.FULL:
                break
        return best

    def _holds(self, quote: str, separator: str) -> QuotationMatch:
        if separator not in self._texts:
            self._texts[separator] = folded(self._raw, separator)
        text = self._texts[separator]
        if _stands(_LEFT_OUT.split(quote), text, separator):
            return QuotationMatch.FULL
        quote = _REMARK.sub(" ", quote) if "[" in quote else ""
        words, gaps = _taken_apart(quote, separator)
        if not words:
            return QuotationMatch.NONE
        # `[T]he bank`: only the case of a letter was changed.
        plain = _BRACKETED.sub(lambda bracket: bracket[1] if bracket[1].strip(" .…") else bracket[0], quote)
        if _stands(_LEFT_OUT.split(plain), text, separator):
            return QuotationMatch.FULL
        self._places_left -= sum(text.count(phrase) for phrase in words)
        return _match_with_gaps(text, words, gaps) if self._places_left > 0 else QuotationMatch.NONE


def folded(text: str, thousands: str = " ") -> str:
    """The text normalized for comparison (see the module); `thousands` replaces the spaces in numbers like `4 210`."""
    text = _HIDDEN.sub("", make_visible(text.replace("\xad", "")).text)
    text = unicodedata.normalize("NFKC", text)
    if thousands != " ":
        text = _THOUSANDS.sub(lambda number: number[0].replace(" ", thousands), text)
    text = _GAPS.sub(" ", _LINE_MARKER.sub("", text))
    text = _MINUS.sub("-", _DECORATION.sub("", text))
    text = _HYPHEN.sub("", _DASH.sub(" - ", _RANGE.sub("-", text)))
    return _WHITE_SPACE.sub(" ", _UNIT.sub("", text)).strip().casefold()


def _words(part: str, separator: str) -> str:
    return folded(part, separator).strip(_END_MARKS + " ")


def _stands(parts: list[str], text: str, separator: str) -> bool:
    """True if the text contains the parts in order."""
    at = 0
    for part in parts:
        words = _words(part, separator)
        position = text.find(words, at)
        if position < 0:
            return False
        at = position + len(words)
    return True


@dataclass(slots=True)
class _GapInQuote:
    """The gap between two words of a source: `e` for an ellipsis, `b` for words in brackets, in order."""

    kinds: str = ""
    longest: int = 0

    def add(self, gap: re.Match[str]) -> None:
        kind = "e" if gap["left_out"] is not None else "b"
        self.kinds += kind if not self.kinds.endswith(kind) else ""
        self.longest = max(self.longest, len(gap["own"] or ""))


def _taken_apart(quote: str, separator: str) -> tuple[list[str], list[_GapInQuote]]:
    """The quoted words of the source, and the gaps before, between and after them."""
    words: list[str] = []
    gaps = [_GapInQuote()]
    at = 0
    for gap in (*_GAP.finditer(quote), None):
        if own := _words(quote[at : gap.start() if gap else None], separator):
            words.append(own)
            gaps.append(_GapInQuote())
        if gap:
            gaps[-1].add(gap)
            at = gap.end()
    return words, gaps


def _match_with_gaps(text: str, words: list[str], gaps: list[_GapInQuote]) -> QuotationMatch:
    """The match of words with gaps in a text: brackets replace few characters, ellipses any number.

    Brackets have to touch words of the source. Next to an ellipsis or at the end nothing shows what the brackets
    replace, and without a source word in their place the bracketed words were put in: the quotation is altered.
    """
    first, *inner, last = (gap.kinds for gap in gaps)
    if any("ebe" in sides for sides in (f"e{first}".replace("ee", "e"), *inner, f"{last}e".replace("ee", "e"))):
        return QuotationMatch.NONE
    if sum("b" in gap.kinds for gap in gaps) > _MAX_REPLACEMENTS or any(
        gap.longest > _MAX_REPLACED_CHARS for gap in gaps
    ):
        return QuotationMatch.NONE
    is_altered = "b" in last or any(len(kinds) > 1 for kinds in inner)
    ends = [(place + len(words[0]), QuotationMatch.FULL) for place in _places(words[0], text)]
    for phrase, kinds in zip(words[1:], inner, strict=True):
        follow = _after_brackets if kinds == "b" else _after_ellipsis
        ends = [(place + len(phrase), match) for place, match in follow(text, ends, list(_places(phrase, text)))]
    best = max((match for _, match in ends), default=QuotationMatch.NONE)
    return min(best, QuotationMatch.ALTERED) if is_altered else best


def _places(phrase: str, text: str) -> Iterator[int]:
    at = text.find(phrase)
    while at >= 0:
        yield at
        at = text.find(phrase, at + 1)


def _after_ellipsis(
    _: str, ends: list[tuple[int, QuotationMatch]], places: list[int]
) -> Iterator[tuple[int, QuotationMatch]]:
    """The places behind any of the ends."""
    for match in (QuotationMatch.FULL, QuotationMatch.ALTERED):
        nearest = min((end for end, end_match in ends if end_match is match), default=None)
        if nearest is not None:
            at = bisect_left(places, nearest)
            yield from ((place, match) for place in places[at:])
            places = places[:at]


def _after_brackets(
    text: str, ends: list[tuple[int, QuotationMatch]], places: list[int]
) -> Iterator[tuple[int, QuotationMatch]]:
    """The places at most `_MAX_REPLACED_CHARS` behind an end of the phrase before, each with its match.

    FULL if the text has a word between the place and a near FULL end: the brackets replace that word. Else ALTERED:
    the bracketed words were put in, or the quotation was altered before.
    """
    ends = sorted(ends)
    ends_at = [end for end, _ in ends]
    full_ends_before = [0, *accumulate(match is QuotationMatch.FULL for _, match in ends)]
    for place in places:
        start = max(place - _MAX_REPLACED_CHARS, 0)
        first_near, behind_near = bisect_left(ends_at, start), bisect_right(ends_at, place)
        word = _LAST_WORD.search(text[start:place])
        behind_replaced = bisect_right(ends_at, start + word.start()) if word else first_near
        if first_near < behind_near:
            replaces_a_word = full_ends_before[behind_replaced] > full_ends_before[first_near]
            yield place, QuotationMatch.FULL if replaces_a_word else QuotationMatch.ALTERED
