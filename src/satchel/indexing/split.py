"""Sections of documents and configuration, and splitting of any text into pieces at the most natural borders.

Every reader gives the borders at which a cut is natural, each with a level: level 0 is a border between top-level
definitions, higher levels lie deeper inside. A piece extends to the most natural border within the size limit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from satchel.models.block import BlockType
from satchel.models.outline import WHOLE_FILE, Outline, OutlineBlock, OutlinePiece

MOST_CHARS: Final = 1400
"""Maximum characters of a piece; only a piece of a single line is longer."""

# A piece shorter than this is not closed for the sake of a slightly better border.
_MIN_PIECE_CHARS: Final = 350

_LINE_END: Final = re.compile("\n")


def line_starts(text: str) -> list[int]:
    """Start offsets of the lines, followed by the end offset."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def cut(
    text: str, starts: Sequence[int], borders: Mapping[int, int], blocks: Sequence[OutlineBlock]
) -> tuple[OutlinePiece, ...]:
    """The pieces of a text; `borders` maps rows (from 0) to the level of a natural cut before the row."""
    places = _Places(blocks)
    pieces = []
    for run in _runs(starts, borders):
        first, after = _without_blank_ends(run, text, starts)
        if first < after:
            end = starts[after]
            if text[end - 1] == "\n":
                end -= 1
            block, defines = places.of(first + 1, after)
            pieces.append(OutlinePiece(first + 1, after, starts[first], end, block, defines))
    return tuple(pieces)


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
_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_TABLE_HEAD: Final = re.compile(r"\s*\[{1,2}([^\]]+)\]{1,2}\s*(?:[#;].*)?$")
_YAML_KEY: Final = re.compile(r"([A-Za-z_][\w.\-/ ]*):(?:\s|$)")
_JSON_KEY: Final = re.compile(r"([ \t]+)\"([^\"]+)\"\s*:")
_MAX_TITLE_CHARS: Final = 120  # names of sections are part of citations; longer titles are cut
_MAX_HEADING_CHARS: Final = 500  # longer lines are no headings, and no pattern should run over a megabyte
_MAX_DOC_CHARS: Final = 160  # a summary of a line or two; longer lines are cut to save budget
_PARAGRAPH_LEVEL: Final = 20  # deeper than levels of headings, which are the better borders
_MAX_INDENT_CHARS: Final = 12  # keeps indented paragraphs (up to 32) better borders than other lines (40)


class _Heading(NamedTuple):
    row: int
    level: int
    title: str


def read_sections(text: str, language: str | None) -> Outline:
    """The outline of a text without a source code grammar."""
    starts = line_starts(text)
    lines = text.split("\n")
    finder = _FINDERS.get(language or "")
    # Lines are shortened first: no pattern should run over a megabyte.
    headings = list(finder([line[:_MAX_HEADING_CHARS] for line in lines])) if finder else []
    blocks = _nested(headings, lines)
    borders = paragraph_borders(lines)
    borders |= {heading.row: heading.level for heading in headings}
    return Outline(language, blocks, cut(text, starts, borders, blocks))


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


def _nested(headings: list[_Heading], lines: list[str]) -> tuple[OutlineBlock, ...]:
    last_line = len(lines) - (1 if lines and not lines[-1] else 0)
    blocks: list[OutlineBlock] = []
    open_: list[int] = []
    for i, (row, level, title) in enumerate(headings):
        while open_ and headings[open_[-1]].level >= level:
            open_.pop()
        parent = open_[-1] if open_ else WHOLE_FILE
        # A section ends at the next heading of the same or a higher level.
        below = (headings[j] for j in range(i + 1, len(headings)))
        end = next((heading.row for heading in below if heading.level <= level), last_line)
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
                doc=_first_words(lines[row + 1 : min(end, row + 12)]),
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


def _markdown(lines: list[str]) -> Iterator[_Heading]:
    fence = ""
    for row, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            continue
        elif atx := _ATX.match(line):
            yield _Heading(row, len(atx[1]), _without_closing(atx[2]))
        elif row and (under := _UNDERLINE.match(line)) and under[1] in "=-" and _can_be_title(lines[row - 1]):
            yield _Heading(row - 1, 1 if under[1] == "=" else 2, lines[row - 1].strip())


def _without_closing(title: str) -> str:
    """A heading's text without the closing `##`."""
    title = title.rstrip()
    inner = title.rstrip("#")
    return inner.rstrip() if inner.endswith((" ", "\t")) or not inner else title


def _can_be_title(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(("    ", "\t", ">", "|", "- ", "* ", "#"))


def _rst(lines: list[str]) -> Iterator[_Heading]:
    levels: dict[str, int] = {}
    for row in range(1, len(lines)):
        under = _UNDERLINE.match(lines[row])
        title = lines[row - 1].rstrip()
        if under and title and not title[0].isspace() and len(lines[row].rstrip()) >= len(title) and title[0].isalnum():
            yield _Heading(row - 1, levels.setdefault(under[1], len(levels) + 1), title)


def _matching(pattern: re.Pattern[str], lines: list[str]) -> Iterator[_Heading]:
    for row, line in enumerate(lines):
        if key := pattern.match(line):
            yield _Heading(row, 1, key[1].strip())


def _tables(lines: list[str]) -> Iterator[_Heading]:
    return _matching(_TABLE_HEAD, lines)


def _yaml(lines: list[str]) -> Iterator[_Heading]:
    return _matching(_YAML_KEY, lines)


def _json(lines: list[str]) -> Iterator[_Heading]:
    indent = None
    for row, line in enumerate(lines):
        if key := _JSON_KEY.match(line):
            indent = indent or key[1]
            if key[1] == indent:
                yield _Heading(row, 1, key[2])


_FINDERS: Final = {"markdown": _markdown, "rst": _rst, "toml": _tables, "ini": _tables, "yaml": _yaml, "json": _json}
