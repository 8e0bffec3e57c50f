"""Checks the Markdown of a PDF page against the places of its letters; where the two disagree, the places are right.

A layout reader may invent tables, merge rows, shuffle columns and lose words. A page of turned, vertical or
right-to-left text is written anew from its letters; a table whose rows mix lines of the page is rebuilt; a page that
lost words or their order becomes PDFium's plain lines; dashes at the ends of lines come back.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from satchel.indexing.documents.page_letters import (
    MAX_LETTERS,
    RIGHT_TO_LEFT,
    Letter,
    LineSegment,
    letters_on,
    segments_of,
    upright,
    words_of,
)

_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_UNUSABLE: Final = re.compile(r"[\x00-\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
_SYMBOL: Final = re.compile(r"[\u00a1-\u00ff\u0131\u02c6-\u02dd\u2020-\u2044\u2122-\u25ff\ufb01\ufb02]")
_MARKUP: Final = re.compile(r"[*`#]|\\(?=[^\w\s])|<br\s*/?>")
_TABLE: Final = re.compile(r"(?:^\|.*\|[ ]*$\n?)+", re.MULTILINE)
_TABLE_RULE: Final = re.compile(r"[|:\-\s]+")
_DASH: Final = re.compile(r"(?<!\w)(\w{1,60})(?:([\x02\ufffe])\n?|([-\u2010\u2013\u2014])[ ]?\n)(\w{1,60})")
_BROKEN_WORD: Final = re.compile(r"(?<!\w)([^\W\d_]{2,60})[\x02\ufffe]\n?([^\W\d_]{2,60})")
_LONG_DASHES: Final = "\u2013\u2014"
_HYPHEN_AT_END: Final = re.compile("[\x02\ufffe]\n?")

_MIN_INK: Final = 5  # fewer letters say nothing about a page
_MAX_UNUSABLE_SHARE: Final = 0.3  # of letters without a meaning: replacement, private and control characters
_MAX_SCRIPTS: Final = 4  # a page in more scripts has letters by chance
_SCRIPT_SHARE: Final = 0.02  # of the letters, that a script counts
_MAX_SYMBOL_SHARE: Final = 0.35  # a page of another script in a font without a table of its letters looks like symbols
_MAX_GUESSED_SHARE: Final = 0.3  # of letters that PDFium guesses ...
_MAX_CONTROL_SHARE: Final = 0.04  # ... on a page that has control characters for spaces
_MIN_TEXT_OBJECTS: Final = 20  # a page with fewer may be a picture with a stamp
_MIN_LETTERS_PER_OBJECT: Final = 0.5  # with fewer, most letters have no text at all
_MAX_FORM_LEVELS: Final = 4  # of nested form objects; bounds the count on hostile pages

_TURNED_SHARE: Final = 0.5  # of the letters: the text as a whole is turned
_RIGHT_TO_LEFT_SHARE: Final = 0.3  # of the letters: names and numbers in the text are of other scripts
_CJK_SHARE: Final = 0.3  # of the letters, that their direction says how the page is read
_MIN_CJK: Final = 8  # letters, as many as a title has

_MAX_MISORDERED_SHARE: Final = 0.10  # of pairs of words
_MAX_LOST_SHARE: Final = 0.25  # of the page's words
_CLEARLY_BETTER: Final = 0.7  # the plain lines have at most this share of the faults

_MAX_DASHES: Final = 200  # at line ends; a page has some forty lines
_MAX_PLACES: Final = 3  # a word that stands in more places does not say in which line a row is
_NUMERIC_SHARE: Final = 0.5  # of a cell's words
_MIN_SURE_WORDS: Final = 4  # that stand once on the page, to know where a table is
_TABLE_WORDS_SHARE: Final = 0.7  # of a segment's words: it belongs to the table
_NEARBY_LINES: Final = 4  # above and below the words that are sure
_MAX_LOST_BY_REBUILDING: Final = 0.05  # of the table's words
_FULL_ROW_SHARE: Final = 0.5  # of the longest row's cells: a shorter row may be a heading across columns
_SAME_BAND_SHARE: Final = 0.5  # of a column of vertical text, beside another column


class PageFault(Enum):
    """What makes the letters of a page useless: it has to be recognized instead."""

    UNUSABLE_LETTERS = auto()


class CheckedPage(NamedTuple):
    """The Markdown of a page, and what is wrong with its letters."""

    markdown: str
    fault: PageFault | None = None


def checked(markdown: str, page: Any) -> CheckedPage:
    """The Markdown of a page, corrected where the places of its letters contradict it."""
    text_page = page.get_textpage()
    letters = letters_on(page, text_page)
    ink = [letter for letter in letters if not letter.text.isspace()]
    if _lacks_letters(page, text_page) or (len(ink) >= _MIN_INK and _is_unusable(ink)):
        return CheckedPage(markdown, PageFault.UNUSABLE_LETTERS)
    if len(ink) < _MIN_INK:
        return CheckedPage(markdown)
    if sum(letter.turn != 0 for letter in ink) > _TURNED_SHARE * len(ink):
        return CheckedPage("\n\n".join(_as_text(segments_of(group)) for group in upright(letters)))
    if _is_vertical(ink):
        return CheckedPage(_vertical_text(letters))
    alphabetic = sum(letter.text.isalpha() for letter in ink)
    if sum(bool(RIGHT_TO_LEFT.match(letter.text)) for letter in ink) > _RIGHT_TO_LEFT_SHARE * alphabetic > 0:
        return CheckedPage(_as_text(segments_of(letters), is_leftward=True))
    return CheckedPage(_corrected(markdown, letters, text_page.get_text_bounded()[:MAX_LETTERS].replace("\r\n", "\n")))


def _corrected(markdown: str, letters: Sequence[Letter], text: str) -> str:
    """The Markdown of a page from left to right: PDFium's plain lines, or with tables rebuilt and dashes restored."""
    groups = [segments_of(group) for group in upright(letters)]
    everything = _Words([segment for group in groups for segment in group], _BROKEN_WORD.findall(text))
    misordered, lost = everything.faults(markdown)
    if misordered > _MAX_MISORDERED_SHARE or lost > _MAX_LOST_SHARE:
        plain = _HYPHEN_AT_END.sub("-", _BROKEN_WORD.sub(r"\1\2", text))
        if sum(everything.faults(plain)) < _CLEARLY_BETTER * (misordered + lost):
            return plain
    if "|" in markdown:
        is_upright = any(letter.turn == 0 for letter in letters)
        rebuilt = partial(_checked_table, words=_Words(groups[0] if is_upright else []))
        markdown = _TABLE.sub(lambda table: rebuilt(table[0]), markdown)
    return _with_dashes(markdown, text)


class _Words:
    """The words of a page: where they stand, and which of them are beside each other."""

    def __init__(self, segments: Sequence[LineSegment], divided: Iterable[tuple[str, str]] = ()) -> None:
        self.segments = segments
        self._divided = {(one.casefold(), other.casefold()) for one, other in divided}
        self.counts = Counter(word for segment in segments for word in segment.words)
        self._pairs = {pair for segment in segments for pair in pairwise(segment.words)}
        self._firsts = {segment.words[0] for segment in segments if segment.words}
        self._lasts = {segment.words[-1] for segment in segments if segment.words}
        self.places: Mapping[str, list[LineSegment]] = defaultdict(list)
        for segment in segments:
            for word in dict.fromkeys(segment.words):
                self.places[word].append(segment)

    def faults(self, markdown: str) -> tuple[float, float]:
        """The share of neighbouring words that are no neighbours on the page, and the share of words that are lost."""
        wrong = total = 0
        got: Counter[str] = Counter()
        for cell in re.split(r"[\n|]", _MARKUP.sub("", markdown)):
            words = words_of(cell)
            got.update(words)
            for one, other in pairwise(words):
                if one in self.counts and other in self.counts:
                    total += 1
                    wrong += (one, other) not in self._pairs and not (one in self._lasts and other in self._firsts)
        for one, other in self._divided:
            joined = max(0, got[one + other] - self.counts[one + other])
            got.update({one: joined, other: joined})
        return wrong / max(total, 1), (self.counts - got).total() / max(self.counts.total(), 1)


def _is_unusable(ink: Sequence[Letter]) -> bool:
    """True for letters that mean nothing: without a meaning, of many scripts by chance, or mostly symbols."""
    if sum(bool(_UNUSABLE.match(letter.text)) for letter in ink) > _MAX_UNUSABLE_SHARE * len(ink):
        return True
    foreign = (letter.text for letter in ink if letter.text.isalpha() and letter.text > "\u024f")
    scripts = Counter(unicodedata.name(text[0], "?").split()[0] for text in foreign)
    if sum(count > _SCRIPT_SHARE * len(ink) for count in scripts.values()) > _MAX_SCRIPTS:
        return True
    return sum(bool(_SYMBOL.match(letter.text)) for letter in ink) > _MAX_SYMBOL_SHARE * len(ink)


def _lacks_letters(page: Any, text_page: Any) -> bool:
    """True if PDFium guesses the letters of the page, or leaves most of them out."""
    from pypdfium2 import raw

    count = min(text_page.count_chars(), MAX_LETTERS)
    guessed = sum(raw.FPDFText_HasUnicodeMapError(text_page, at) == 1 for at in range(count))
    if guessed > _MAX_GUESSED_SHARE * count:
        codes = (raw.FPDFText_GetUnicode(text_page, at) for at in range(count))
        if sum(0 < code < 32 and code not in (2, 9, 10, 13) for code in codes) > _MAX_CONTROL_SHARE * count:
            return True
    things = page.get_objects(max_depth=_MAX_FORM_LEVELS)
    texts = sum(thing.type == raw.FPDF_PAGEOBJ_TEXT for thing in things)
    return bool(texts > _MIN_TEXT_OBJECTS and count < _MIN_LETTERS_PER_OBJECT * texts)


def _is_vertical(ink: Sequence[Letter]) -> bool:
    """True for Chinese or Japanese letters that follow each other downwards."""
    letters = [letter for letter in ink if _CJK.match(letter.text)]
    if len(letters) < max(_MIN_CJK, _CJK_SHARE * len(ink)):
        return False
    down = across = 0
    for one, other in pairwise(letters):
        size = max(one.height, one.x1 - one.x0)
        aside, below = abs((other.x0 + other.x1 - one.x0 - one.x1) / 2), one.middle - other.middle
        down += aside < 0.3 * size and 0.4 * size < below < 2.5 * size
        across += abs(below) < 0.3 * size and 0.4 * size < aside < 2.5 * size
    return down > across


def _vertical_text(letters: Sequence[Letter]) -> str:
    """Columns from right to left, band by band; a band ends where its columns do."""
    lying = [letter._replace(x0=-letter.y1, x1=-letter.y0, y0=letter.x0, y1=letter.x1, turn=0) for letter in letters]
    bands: list[list[LineSegment]] = []
    for column in sorted(segments_of(lying), key=lambda column: column.x0 - column.x1):  # longest first
        for band in bands:
            shared = min(band[0].x1, column.x1) - max(band[0].x0, column.x0)
            if shared > _SAME_BAND_SHARE * (column.x1 - column.x0):
                band.append(column)
                break
        else:
            bands.append([column])
    bands.sort(key=lambda band: band[0].x0)
    return "\n\n".join(
        "\n".join(column.text for column in sorted(band, key=lambda column: (column.row, column.x0))) for band in bands
    )


def _as_text(segments: Sequence[LineSegment], *, is_leftward: bool = False) -> str:
    """The lines of a page; lines of several segments below each other become a table."""
    rows: dict[int, list[LineSegment]] = defaultdict(list)
    for segment in segments:
        rows[segment.row].append(segment)
    blocks: list[list[list[LineSegment]]] = []
    for row in rows.values():
        row.sort(key=lambda segment: -segment.x1 if is_leftward else segment.x0)
        if blocks and (len(row) > 1) == (len(blocks[-1][0]) > 1):
            blocks[-1].append(row)
        else:
            blocks.append([row])
    return "\n\n".join(
        _as_table(block, is_leftward=is_leftward) if len(block) > 1 and len(block[0]) > 1 else _as_lines(block)
        for block in blocks
    )


def _as_lines(rows: Sequence[Sequence[LineSegment]]) -> str:
    return "\n".join(" ".join(segment.text for segment in row) for row in rows)


def _as_table(rows: Sequence[Sequence[LineSegment]], *, is_leftward: bool = False) -> str:
    """Rows of segments as a table in Markdown; columns are parted by the gaps that no row with many cells crosses."""
    columns: list[tuple[float, float]] = []
    most = max(map(len, rows))
    for segment in (segment for row in rows if len(row) >= _FULL_ROW_SHARE * most for segment in row):
        crossed = [column for column in columns if min(column[1], segment.x1) > max(column[0], segment.x0)]
        columns = [column for column in columns if column not in crossed]
        borders = [(segment.x0, segment.x1), *crossed]
        columns.append((min(x0 for x0, _ in borders), max(x1 for _, x1 in borders)))
    columns.sort(reverse=is_leftward)
    lines = []
    for row in rows:
        cells = [""] * len(columns)
        for segment in row:
            shared = [min(x1, segment.x1) - max(x0, segment.x0) for x0, x1 in columns]
            at = shared.index(max(shared))
            cells[at] = f"{cells[at]} {segment.text}".strip()
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def _checked_table(table: str, words: _Words) -> str:
    """The table; rebuilt from the places of its words if a row has values from different lines of the page."""
    rows = [
        [words_of(_MARKUP.sub("", cell)) for cell in line.strip().strip("|").split("|")]
        for line in table.strip().split("\n")
        if not _TABLE_RULE.fullmatch(line)
    ]
    if not any(_mixes_lines(row, words.places, is_head=not at) for at, row in enumerate(rows)):
        return table
    own = Counter(word for row in rows for cell in row for word in cell) & words.counts
    rebuilt = _lines_of_table(own, words)
    got = Counter(word for line in rebuilt for segment in line for word in segment.words)
    if not rebuilt or (own - got).total() > _MAX_LOST_BY_REBUILDING * own.total():
        return table
    return f"{_as_table(rebuilt)}\n"


def _lines_of_table(own: Mapping[str, int], words: _Words) -> list[list[LineSegment]]:
    """The lines of the page with the words of a table, where the words that stand once on the page are."""
    sure = [words.places[word][0] for word in own if len(words.places[word]) == 1]
    if len(sure) < _MIN_SURE_WORDS:
        return []
    top, bottom = max(segment.y1 for segment in sure), min(segment.y0 for segment in sure)
    lines: dict[int, list[LineSegment]] = defaultdict(list)
    for segment in words.segments:
        share = sum(word in own for word in segment.words) / max(len(segment.words), 1)
        middle, reach = (segment.y0 + segment.y1) / 2, _NEARBY_LINES * (segment.y1 - segment.y0)
        is_inside = bottom <= middle <= top and share >= _TABLE_WORDS_SHARE
        if is_inside or (bottom - reach <= middle <= top + reach and share == 1):
            lines[segment.row].append(segment)
    return [sorted(lines[row], key=lambda segment: segment.x0) for row in sorted(lines)]


def _mixes_lines(row: Sequence[Sequence[str]], places: Mapping[str, list[LineSegment]], *, is_head: bool) -> bool:
    """True if the numbers of a cell stand in several lines that another cell is in, too, or beside no other cell."""
    cells = [[word for word in cell if 0 < len(places[word]) <= _MAX_PLACES] for cell in row]
    cells = [cell for cell in cells if cell]
    if len(cells) < 2:
        return False
    lines = Counter(segment.row for cell in cells for segment in _distinct(cell, places))
    home = lines.most_common(1)[0][0]
    middle = next(_middle(segment) for cell in cells for segment in _distinct(cell, places) if segment.row == home)
    placed = [
        [(word, min(places[word], key=lambda segment: abs(_middle(segment) - middle))) for word in cell]
        for cell in cells
    ]
    for at, cell in enumerate(placed):
        beside = [segment for other, members in enumerate(placed) if other != at for _, segment in members]
        low, high = min(segment.y0 for _, segment in cell), max(segment.y1 for _, segment in cell)
        is_alone = not any(min(high, segment.y1) > max(low, segment.y0) for segment in beside)
        numbers = [segment.row for word, segment in cell if word[0].isdigit()]
        if is_alone and numbers and not is_head:
            return True
        if len(numbers) >= _NUMERIC_SHARE * len(cell):
            others = [{segment.row for _, segment in members} for other, members in enumerate(placed) if other != at]
            if any(len(on.intersection(numbers)) > 1 for on in others):
                return True
    return False


def _distinct(cell: Sequence[str], places: Mapping[str, list[LineSegment]]) -> list[LineSegment]:
    return list({id(segment): segment for word in cell for segment in places[word]}.values())


def _middle(segment: LineSegment) -> float:
    return (segment.y0 + segment.y1) / 2


def _with_dashes(markdown: str, text: str) -> str:
    """The Markdown with the dashes at line ends that were taken for hyphens of division."""
    for before, hyphen, dash, after in islice(dict.fromkeys(_DASH.findall(text)), _MAX_DASHES):
        is_long = not hyphen and dash in _LONG_DASHES
        if is_long or _keeps_hyphen(before, after):
            eaten = re.compile(rf"(?<!\w){re.escape(before)}{re.escape(after)}(?!\w)")
            markdown = eaten.sub(f"{before}{dash if is_long else '-'}{after}", markdown)
    return markdown


def _keeps_hyphen(before: str, after: str) -> bool:
    """True beside a number, an abbreviation in capitals, or a name: words are divided between small letters."""
    is_abbreviation = (len(before) > 1 and before.isupper()) != (len(after) > 1 and after.isupper())
    is_name = after[0].isupper() and before[-1].islower()
    return is_abbreviation or is_name or before[-1].isdigit() or after[0].isdigit()
