"""The quotations in a text, and whether another text holds one.

What people and page layouts change does not count: white space, case, emphasis, quotation marks, dashes, ligatures and
other compatible forms of a letter, hidden characters, words broken at the end of a line, markers of lists.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from satchel.text.visible import make_visible

# Of one line and at most so long; without that bound many opening quotes would each look for their end.
# A straight one behind a digit is an inch, not the start of a quote.
_QUOTE: Final = re.compile(
    r"(?<!\d)\"([^\"\n]{0,2000})\"|„([^„“”\n]{0,2000})[“”]|“([^“”\n]{0,2000})”|«([^«»\n]{0,2000})»|「([^「」\n]{0,2000})」"
)
_QUOTED_LINES: Final = re.compile(r"(?:^[ ]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
# `> [!NOTE]` and `> **Note:** …` set something apart and quote nobody; `> — report.pdf` says who is quoted.
_CALLOUT: Final = re.compile(r"\s*>\s*(?:\[!\w+\]|(?:\*\*|__)[^*_\n]{1,40}(?:\*\*|__)|[^\w\s\"“„«]\ufe0f?\s)")
_ATTRIBUTION: Final = re.compile(r"^\s*>[\s>]*(?:[-–—―]+\s|$).*$", re.MULTILINE)
_QUOTE_MARKER: Final = re.compile(r"^\s*>[\s>]*", re.MULTILINE)
_MIN_QUOTE_CHARS: Final = 3

_LEFT_OUT: Final = re.compile(r"\s*(?:\[[^\]]*\]|\(\s*(?:…|\.{3,})\s*\)|…|\.(?:\s?\.){2,})\s*")
_END_MARKS: Final = ".,;:!?"
# What `make_visible` wrote for a soft hyphen, a zero-width space and the like: nobody quotes those.
_HIDDEN: Final = re.compile(r"⟦U\+[0-9A-F]{4,6}⟧")
_LINE_MARKER: Final = re.compile(r"^[ \t]*(?:[#>*+-]+|//+)[ \t]+", re.MULTILINE)
_DECORATION: Final = re.compile("[*_`\"'‘’‚‛“”„‟«»‹›「」]|\\\\(?=[^\\w\\s])")
_GAPS: Final = re.compile(r"<br\s*/?>|\|", re.IGNORECASE)
_MINUS: Final = re.compile("[\u2010\u2011\u2212\ufe63\uff0d]")
_RANGE: Final = re.compile("(?<=\\d)\\s?[-\u2012-\u2015]\\s?(?=\\d)")
_DASH: Final = re.compile("\\s*[\u2012-\u2015]\\s*|\\s+-{1,3}\\s+|\\s*-{2,3}\\s*")
# `coop-⏎eration`, and `well-known`, of which nobody can say whether a line once ended in it.
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
_WHITE_SPACE: Final = re.compile(r"\s+")


class Quotation(NamedTuple):
    """What is quoted, and where in the text it stands with its marks."""

    text: str
    start: int
    end: int


def quotations(text: str, prose: str) -> list[Quotation]:
    """The quotations in `prose`, which is `text` with blanks for what is not to be read; the words are the text's."""
    found = [Quotation(text[one.start() + 1 : one.end() - 1], one.start(), one.end()) for one in _QUOTE.finditer(prose)]
    return [one for one in found if len(one.text.strip()) >= _MIN_QUOTE_CHARS]


def block_quotations(text: str, prose: str) -> list[Quotation]:
    """Lines after `>` that quote: no callouts, and none that hold a quotation in marks, which is one by itself."""
    found = []
    for lines in _QUOTED_LINES.finditer(prose):
        if _CALLOUT.match(lines[0]) or _QUOTE.search(lines[0]):
            continue
        own = _ATTRIBUTION.sub(lambda line: " " * len(line[0]), lines[0])
        kept = "".join(a if b != " " else " " for a, b in zip(text[lines.start() : lines.end()], own, strict=True))
        quote = _QUOTE_MARKER.sub("", kept).strip()
        if len(quote) >= _MIN_QUOTE_CHARS:
            found.append(Quotation(quote, lines.start(), lines.end()))
    return found


class Quoted:
    """A text in which quotations are looked for."""

    def __init__(self, text: str) -> None:
        self._text = folded(text)

    def holds(self, quote: str) -> bool:
        """Whether the quotation stands in it; an ellipsis or a word in brackets stands for anything."""
        at = 0
        for part in _LEFT_OUT.split(quote):
            wanted = folded(part).strip(_END_MARKS + " ")
            found = self._text.find(wanted, at)
            if found < 0:
                return False
            at = found + len(wanted)
        return True


def folded(text: str) -> str:
    """The text without what people and page layouts change when a text is quoted."""
    text = _HIDDEN.sub("", make_visible(text.replace("\xad", "")).text)
    text = _GAPS.sub(" ", _LINE_MARKER.sub("", unicodedata.normalize("NFKC", text)))
    text = _MINUS.sub("-", _DECORATION.sub("", text))
    text = _HYPHEN.sub("", _DASH.sub(" - ", _RANGE.sub("-", text)))
    return _WHITE_SPACE.sub(" ", text).strip().casefold()
