"""Documents and configuration: sections by their headings, keys and blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from satchel.indexing.split import cut, line_starts
from satchel.models.block import BlockType
from satchel.models.outline import WHOLE_FILE, Outline, OutlineBlock

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_TABLE_HEAD: Final = re.compile(r"\s*\[{1,2}([^\]]+)\]{1,2}\s*(?:[#;].*)?$")
_YAML_KEY: Final = re.compile(r"([A-Za-z_][\w.\-/ ]*):(?:\s|$)")
_JSON_KEY: Final = re.compile(r"([ \t]+)\"([^\"]+)\"\s*:")
_MAX_TITLE_CHARS: Final = 120
_MAX_HEADING_CHARS: Final = 500
_MAX_DOC_CHARS: Final = 160
_PARAGRAPH: Final = 20
_DEEPEST_INDENT: Final = 12


class _Heading(NamedTuple):
    row: int
    level: int
    title: str


def read_sections(text: str, language: str | None) -> Outline:
    """The outline of a text that is no source code."""
    starts = line_starts(text)
    lines = text.split("\n")
    finder = _FINDERS.get(language or "")
    # What is longer than this is no heading; and no pattern is to be tried on a megabyte.
    headings = list(finder([line[:_MAX_HEADING_CHARS] for line in lines])) if finder else []
    blocks = _nested(headings, lines)
    borders = paragraph_borders(lines)
    borders |= {heading.row: heading.level for heading in headings}
    return Outline(language, blocks, cut(text, starts, borders, blocks))


def paragraph_borders(lines: list[str]) -> dict[int, int]:
    """The rows before which a cut is natural, and how natural."""
    return dict(_paragraphs(lines))


def _nested(headings: list[_Heading], lines: list[str]) -> tuple[OutlineBlock, ...]:
    ends = _ends(headings, len(lines) - (1 if lines and not lines[-1] else 0))
    blocks: list[OutlineBlock] = []
    open_: list[int] = []
    for i, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            open_.pop()
        parent = open_[-1] if open_ else WHOLE_FILE
        name = heading.title[:_MAX_TITLE_CHARS]
        qualified = f"{blocks[parent].qualified[:_MAX_HEADING_CHARS]}/{name}" if parent != WHOLE_FILE else name
        doc = _first_words(lines, heading.row + 1, min(ends[i], heading.row + 12))
        last = max(ends[i], heading.row + 1)
        blocks.append(
            OutlineBlock(
                type=BlockType.SECTION.value,
                name=name,
                qualified=qualified,
                parent=parent,
                first_line=heading.row + 1,
                last_line=last,
                signature=name,
                doc=doc,
            )
        )
        open_.append(i)
    return tuple(blocks)


def _ends(headings: list[_Heading], last_line: int) -> list[int]:
    """For each heading the row of the next one that is not below it."""
    ends = [last_line] * len(headings)
    open_: list[int] = []
    for i, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            ends[open_.pop()] = heading.row
        open_.append(i)
    return ends


def _first_words(lines: list[str], first: int, after: int) -> str:
    for row in range(first, after):
        line = lines[row].strip()
        if len(line) > 3 and any(c.isalpha() for c in line) and not _FENCE.match(line):
            return line[:_MAX_DOC_CHARS]
    return ""


def _paragraphs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """A cut before what follows a blank line, the better the less it is indented."""
    blank = True
    for row, line in enumerate(lines):
        stripped = line.lstrip()
        if not stripped:
            blank = True
            continue
        indent = min(len(line) - len(stripped), _DEEPEST_INDENT)
        if blank:
            yield row, _PARAGRAPH + indent
        elif not indent:
            yield row, 2 * _PARAGRAPH
        blank = False


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
    """A heading's text without the `##` that may close it."""
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


def _tables(lines: list[str]) -> Iterator[_Heading]:
    for row, line in enumerate(lines):
        if head := _TABLE_HEAD.match(line):
            yield _Heading(row, 1, head[1].strip())


def _yaml(lines: list[str]) -> Iterator[_Heading]:
    for row, line in enumerate(lines):
        if key := _YAML_KEY.match(line):
            yield _Heading(row, 1, key[1].strip())


def _json(lines: list[str]) -> Iterator[_Heading]:
    indent = None
    for row, line in enumerate(lines):
        if key := _JSON_KEY.match(line):
            indent = indent or key[1]
            if key[1] == indent:
                yield _Heading(row, 1, key[2])


_FINDERS: Final = {
    "markdown": _markdown,
    "rst": _rst,
    "toml": _tables,
    "ini": _tables,
    "yaml": _yaml,
    "json": _json,
}
