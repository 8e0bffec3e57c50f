"""Sections of documents and configuration, and splitting of any text into pieces at the most natural borders.

Every reader gives the borders at which a cut is natural, each with a level: level 0 is a border between top-level
definitions, higher levels lie deeper inside. A piece extends to the most natural border within the size limit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, pairwise
from typing import Final, NamedTuple

from satchel.models.block import BlockType
from satchel.models.outline import WHOLE_FILE, Outline, OutlineBlock, OutlinePiece

MOST_CHARS: Final = 1400
"""Maximum characters of a piece; only a piece of a single line is longer."""

# A piece shorter than this is not closed for the sake of a slightly better border.
_MIN_PIECE_CHARS: Final = 350


def line_starts(text: str) -> list[int]:
    """Start offsets of the lines, followed by the end offset."""
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    # The last line ends without a line feed: after a final line feed, there is no further line.
    starts.pop()
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def cut(
    text: str, starts: Sequence[int], borders: Mapping[int, int], blocks: Sequence[OutlineBlock]
) -> tuple[OutlinePiece, ...]:
    """The pieces of a text; `borders` maps rows (from 0) to the level of a natural cut before the row."""
    return tuple(_pieces(_Part(0, 0, len(text)), text, starts, borders, _Places(blocks)))


class _Part(NamedTuple):
    """Whole lines of a text: the row of the first line, and the start and end in the text."""

    row: int
    start: int
    end: int

    def of(self, text: str) -> str:
        """The lines of the part."""
        return text[self.start : self.end]


def _pieces(
    part: _Part, text: str, starts: Sequence[int], borders: Mapping[int, int], places: _Places
) -> Iterator[OutlinePiece]:
    """The pieces of a part; `text`, `starts` and `borders` are those of the part."""
    for run in _runs(starts, borders):
        first, after = _without_blank_ends(run, text, starts)
        if first < after:
            end = starts[after]
            if text[end - 1] == "\n":
                end -= 1
            first_line, last_line = part.row + first + 1, part.row + after
            block, defines = places.of(first_line, last_line)
            yield OutlinePiece(first_line, last_line, part.start + starts[first], part.start + end, block, defines)


def _without_blank_ends(run: tuple[int, int], text: str, starts: Sequence[int]) -> tuple[int, int]:
    first, after = run
    while first < after and not text[starts[first] : starts[first + 1]].strip():
        first += 1
    while after > first and not text[starts[after - 1] : starts[after]].strip():
        after -= 1
    return first, after


def _runs(starts: Sequence[int], borders: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    last = len(starts) - 1
    rows = sorted(row for row in borders if 0 < row < last)
    first = 0
    while first < last:
        after = _end_of_run(first, last, starts, rows, borders)
        yield first, after
        first = after


def _end_of_run(first: int, last: int, starts: Sequence[int], rows: Sequence[int], borders: Mapping[int, int]) -> int:
    limit = last
    if starts[last] - starts[first] > MOST_CHARS:
        limit = max(bisect_right(starts, starts[first] + MOST_CHARS) - 1, first + 1)
    window = rows[bisect_right(rows, first) : bisect_right(rows, limit)]
    # The rest of a definition that was cut ends with the definition, and is not joined with the next definition.
    level = borders.get(first, 0)
    outside = next((row for row in window if borders[row] // 2 < level // 2), None)
    if outside is not None:
        return outside
    if limit == last or not window:
        return limit
    long_enough = [row for row in window if starts[row] - starts[first] >= _MIN_PIECE_CHARS]
    # Of equally natural borders, the last makes fewer pieces.
    return min(long_enough or window, key=lambda row: (borders[row], -row))


class _Places:
    """Index of blocks by line: the block around a run of lines, and the blocks starting in the run."""

    def __init__(self, blocks: Sequence[OutlineBlock]) -> None:
        self._blocks = blocks
        self._order = sorted(range(len(blocks)), key=lambda i: (blocks[i].first_line, -blocks[i].last_line))
        self._first = [blocks[i].first_line for i in self._order]

    def of(self, first: int, last: int) -> tuple[int, tuple[int, ...]]:
        begin = bisect_right(self._first, first - 1)
        end = bisect_right(self._first, last)
        defines = tuple(self._order[begin:end])
        # The innermost block that contains the run: the nearest block before the first line, or a parent of that block.
        inner = self._order[end - 1] if end else WHOLE_FILE
        while inner != WHOLE_FILE and not self._holds(inner, first, last):
            inner = self._blocks[inner].parent
        outermost = [i for i in defines if self._blocks[i].parent not in defines]
        if len(outermost) == 1 and self._blocks[outermost[0]].parent == inner:
            # A run with a single definition and the lines around belongs to the definition.
            inner = outermost[0]
        return inner, defines

    def _holds(self, block: int, first: int, last: int) -> bool:
        return self._blocks[block].first_line <= first and self._blocks[block].last_line >= last


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_FRONT_MATTER: Final = frozenset({"---", "+++"})
"""The first and the last line of the metadata before a text."""
_FRONT_LINE: Final = re.compile(r"\s|[\w.\"'-]+ *[:=]|- |$")
_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_TABLE_HEAD: Final = re.compile(r"\s*\[{1,2}([^\]]+)\]{1,2}\s*(?:[#;].*)?$")
_YAML_KEY: Final = re.compile(r"([A-Za-z_][\w.\-/ ]*):(?:\s|$)")
_JSON_KEY: Final = re.compile(r"([ \t]+)\"([^\"]+)\"\s*:")
_MAX_TITLE_CHARS: Final = 120  # names of sections are part of citations; longer titles are cut
_MAX_HEADING_CHARS: Final = 500  # longer lines are no headings, and no pattern should run over a megabyte
_MAX_DOC_CHARS: Final = 160  # a summary of a line or two; longer lines are cut to save budget
_PARAGRAPH_LEVEL: Final = 20  # deeper than levels of headings, which are the better borders
PART_CHARS: Final = 1_000_000
"""A larger text is read in parts of so many characters (lists of lines and borders take many times the memory of the
text), and code is split by lines: a parser could need longer than its deadline."""
_MAX_LONG_LINE_CHARS: Final = 100_000  # in a large text, longer lines are data: nobody reads them, and ranking is slow
_MAX_SECTIONS: Final = (
    50_000  # ten times the headings of a long book; keys of data, a block each, would fill the memory
)
_MAX_INDENT_CHARS: Final = 12  # keeps indented paragraphs (up to 32) better borders than other lines (40)


class _Heading(NamedTuple):
    row: int
    level: int
    title: str


def read_sections(text: str, language: str | None) -> Outline:
    """The outline of a text without a source code grammar; a large text is read in parts."""
    parts = [*_parts(text)]
    headings = _headings(text, parts, language)
    blocks = _nested(headings, _PartLines(text, parts))
    places, rows = _Places(blocks), [heading.row for heading in headings]
    pieces: list[OutlinePiece] = []
    for part in parts:
        own = part.of(text)
        lines = own.split("\n")
        borders = paragraph_borders(lines)
        inside = slice(bisect_left(rows, part.row), bisect_left(rows, part.row + len(lines)))
        borders |= {heading.row - part.row: heading.level for heading in headings[inside]}
        pieces += _pieces(part, own, line_starts(own), borders, places)
    if len(parts) == 1:
        return Outline(language, blocks, tuple(pieces))
    short = tuple(piece for piece in pieces if piece.end - piece.start <= _MAX_LONG_LINE_CHARS)
    return Outline(language, blocks, short, note=_note_on(len(pieces) - len(short)))


def _note_on(long_lines: int) -> str:
    if not long_lines:
        return ""
    lines = "1 line is" if long_lines == 1 else f"{long_lines:,} lines are"
    return f"{lines} longer than {_MAX_LONG_LINE_CHARS:,} characters and not searched"


def _parts(text: str) -> Iterator[_Part]:
    """The parts of a text; only a part of a single line is longer than the limit."""
    row = start = 0
    while start < len(text):
        end = len(text)
        if end - start > PART_CHARS:
            limit = start + PART_CHARS
            end = text.rfind("\n", start, limit) + 1 or text.find("\n", limit) + 1 or end
        yield _Part(row, start, end)
        row, start = row + text.count("\n", start, end), end


class _PartLines:
    """The lines of a text by row; only the lines of one part are in memory."""

    def __init__(self, text: str, parts: Sequence[_Part]) -> None:
        self._text = text
        self._parts = parts
        self._rows = [part.row for part in parts]
        self._part: _Part | None = None
        self._lines: list[str] = []
        self.count = text.count("\n") + (text[-1:] not in ("", "\n"))

    def between(self, first: int, after: int) -> list[str]:
        """The lines from row `first` to the row before `after`, as far as they are in the same part."""
        part = self._parts[bisect_right(self._rows, first) - 1]
        if part is not self._part:
            self._part, self._lines = part, part.of(self._text).split("\n")
        return self._lines[first - part.row : after - part.row]


def _headings(text: str, parts: Sequence[_Part], language: str | None) -> list[_Heading]:
    """The headings of a text; none if there are too many for sections."""
    finder = _FINDERS.get(language or "")
    if finder is None:
        return []
    # The empty text after the line end of a part is no line.
    lines = chain.from_iterable(part.of(text).removesuffix("\n").split("\n") for part in parts)
    # Lines are shortened first: no pattern should run over a megabyte.
    headings = list(islice(finder(line[:_MAX_HEADING_CHARS] for line in lines), _MAX_SECTIONS + 1))
    return headings if len(headings) <= _MAX_SECTIONS else []


def with_own_names(outline: Outline) -> Outline:
    """The outline with a number after repeated names: overloads, setters, sections called Example."""
    seen: dict[str, int] = {}
    blocks = []
    for block in outline.blocks:
        own = block.qualified
        while own in seen:
            seen[block.qualified] += 1
            own = f"{block.qualified}~{seen[block.qualified]}"
        seen[own] = 1
        blocks.append(block if own == block.qualified else block._replace(qualified=own))
    return outline._replace(blocks=tuple(blocks))


def _nested(headings: list[_Heading], lines: _PartLines) -> tuple[OutlineBlock, ...]:
    blocks: list[OutlineBlock] = []
    open_: list[int] = []
    for i, (row, level, title) in enumerate(headings):
        while open_ and headings[open_[-1]].level >= level:
            open_.pop()
        parent = open_[-1] if open_ else WHOLE_FILE
        # A section ends at the next heading of the same or a higher level.
        below = (headings[j] for j in range(i + 1, len(headings)))
        end = next((heading.row for heading in below if heading.level <= level), lines.count)
        name = title[:_MAX_TITLE_CHARS]
        blocks.append(
            OutlineBlock(
                type=BlockType.SECTION.value,
                name=name,
                qualified=f"{blocks[parent].qualified[:_MAX_HEADING_CHARS]}/{name}" if open_ else name,
                parent=parent,
                first_line=row + 1,
                last_line=max(end, row + 1),
                signature=name,
                doc=_first_words(lines.between(row + 1, min(end, row + 12))),
            )
        )
        open_.append(i)
    return tuple(blocks)


def _first_words(lines: list[str]) -> str:
    for line in map(str.strip, lines):
        if len(line) > 3 and any(c.isalpha() for c in line) and not _FENCE.match(line):
            return line[:_MAX_DOC_CHARS]
    return ""


def paragraph_borders(lines: list[str]) -> dict[int, int]:
    """Rows that follow a blank line or are not indented, with the level of a cut before each row."""
    borders: dict[int, int] = {}
    is_after_blank = True
    for row, line in enumerate(lines):
        stripped = line.lstrip()
        if stripped:
            indent = min(len(line) - len(stripped), _MAX_INDENT_CHARS)
            if is_after_blank:
                borders[row] = _PARAGRAPH_LEVEL + indent
            elif not indent:
                borders[row] = 2 * _PARAGRAPH_LEVEL
        is_after_blank = not stripped
    return borders


def _with_line_above(lines: Iterable[str]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Each line with its row and the line above (empty above the first line)."""
    return enumerate(pairwise(chain(("",), lines)))


def _markdown(lines: Iterable[str]) -> Iterator[_Heading]:
    fence = front = ""
    for row, (above, line) in _with_line_above(lines):
        if not row:
            front = line.rstrip() if line.rstrip() in _FRONT_MATTER else ""
        elif front and (line.rstrip() == front or not _FRONT_LINE.match(line)):
            front = ""
            continue
        if front:
            continue
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            continue
        elif atx := _ATX.match(line):
            yield _Heading(row, len(atx[1]), _without_closing(atx[2]))
        elif (under := _UNDERLINE.match(line)) and under[1] in "=-" and _can_be_title(above):
            yield _Heading(row - 1, 1 if under[1] == "=" else 2, above.strip())


def _without_closing(title: str) -> str:
    """A heading's text without the closing `##`."""
    title = title.rstrip()
    inner = title.rstrip("#")
    return inner.rstrip() if inner.endswith((" ", "\t")) or not inner else title


def _can_be_title(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(("    ", "\t", ">", "|", "- ", "* ", "#"))


def _rst(lines: Iterable[str]) -> Iterator[_Heading]:
    levels: dict[str, int] = {}
    for row, (above, line) in _with_line_above(lines):
        under = _UNDERLINE.match(line)
        title = above.rstrip()
        if under and title and not title[0].isspace() and len(line.rstrip()) >= len(title) and title[0].isalnum():
            yield _Heading(row - 1, levels.setdefault(under[1], len(levels) + 1), title)


def _matching(pattern: re.Pattern[str], lines: Iterable[str]) -> Iterator[_Heading]:
    for row, line in enumerate(lines):
        if key := pattern.match(line):
            yield _Heading(row, 1, key[1].strip())


def _tables(lines: Iterable[str]) -> Iterator[_Heading]:
    return _matching(_TABLE_HEAD, lines)


def _yaml(lines: Iterable[str]) -> Iterator[_Heading]:
    return _matching(_YAML_KEY, lines)


def _json(lines: Iterable[str]) -> Iterator[_Heading]:
    indent = None
    for row, line in enumerate(lines):
        if key := _JSON_KEY.match(line):
            indent = indent or key[1]
            if key[1] == indent:
                yield _Heading(row, 1, key[2])


_FINDERS: Final = {"markdown": _markdown, "rst": _rst, "toml": _tables, "ini": _tables, "yaml": _yaml, "json": _json}
