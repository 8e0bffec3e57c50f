"""Judge the pieces of a context by the outlines of their files: bodies, cuts, marks, fragments, shown lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from satchel.assembly.units import ELISION_MARK, elisions_in
from satchel.models.context import Context
from satchel.models.outline import OutlineBlock
from satchel.tokens.counter import TokenCounter

FRAGMENT_TOKENS: Final = 12
"""A single line with fewer tokens says nothing by itself."""

_SECTIONS: Final = frozenset({"section", "document", "page"})
"""Types of blocks that are headings of prose, not definitions."""

_OF_LINES: Final = re.compile(r"\blines? \d+(?:-\d+)? of \d+", re.IGNORECASE)
_NOT_SHOWN: Final = re.compile(r"\b\d+ not shown\b")
_RECEIPT: Final = "[truncated: "


@dataclass(frozen=True)
class SourceFile:
    """The lines of a file, and the definitions or sections in it."""

    lines: Sequence[str]
    blocks: Sequence[OutlineBlock] = ()

    @cached_property
    def named(self) -> list[OutlineBlock]:
        """The blocks with a name."""
        return [block for block in self.blocks if block.name]

    @cached_property
    def has_definitions(self) -> bool:
        """True for code: some blocks are more than sections."""
        return any(block.type not in _SECTIONS for block in self.named)

    def has_text(self, first: int, last: int) -> bool:
        """True if one of the lines (numbered from 1) is not blank."""
        return any(line.strip() for line in self.lines[first - 1 : last])

    def begins_inside(self, line: int) -> list[OutlineBlock]:
        """The blocks that began before the line and contain it; none if a block begins at the line."""
        if any(block.first_line == line for block in self.named):
            return []
        return [block for block in self.named if block.first_line < line <= block.last_line]


@dataclass(frozen=True)
class ShownPiece:
    """A numbered piece of a context: what is shown of a source, and what is rendered around it."""

    text: str
    """The shown text, with its elision lines."""
    heading: str = ""
    receipt: str = ""
    """What is rendered below the text."""
    path: str = ""
    first: int | None = None
    last: int | None = None

    @cached_property
    def elision_lines(self) -> frozenset[str]:
        """The elision lines: only a heading that says so has elisions below it, and they have the longest mark."""
        if not _NOT_SHOWN.search(self.heading):
            return frozenset()
        found = {line: _mark_length(line) for line in self.text.split("\n") if elisions_in(line)}
        longest = max(found.values(), default=0)
        return frozenset(line for line, length in found.items() if length == longest)

    @cached_property
    def source_text(self) -> str:
        """The shown text without elision lines."""
        return "\n".join(line for line in self.text.split("\n") if line not in self.elision_lines)

    @property
    def is_part_of_lines(self) -> bool:
        """True if the heading says how many lines the file has: `lines 5-8 of 20`."""
        return bool(_OF_LINES.search(self.heading))

    @property
    def is_marked(self) -> bool:
        """True if the piece says that it is an excerpt: by elision lines, a receipt, or its heading."""
        return bool(self.elision_lines) or _RECEIPT in self.receipt or self.is_part_of_lines

    @property
    def begins_with_mark(self) -> bool:
        """True if a reader sees that there is something before the first line."""
        return self.is_part_of_lines or self.text.split("\n", 1)[0] in self.elision_lines


def pieces_of(context: Context) -> list[ShownPiece]:
    """The pieces of a context with their headings and receipts."""
    return [
        _piece(context.text[start:end], source.text, source.path or "", source.line, source.end_line)
        for source, (start, end) in zip(context.sources, context.spans, strict=True)
    ]


def _piece(rendered: str, text: str, path: str, first: int | None, last: int | None) -> ShownPiece:
    heading, found, below = rendered.partition(text)
    if not found:  # prose is escaped where it would be more than text: then the ends are the lines at the ends
        heading, _, below = rendered.partition("\n")
        below = below.rstrip().rpartition("\n")[2]
    return ShownPiece(text=text, heading=heading, receipt=below, path=path, first=first, last=last)


def _mark_length(line: str) -> int:
    return len(line) - len(line.lstrip(ELISION_MARK))


def begins_inside_body(piece: ShownPiece, file: SourceFile) -> bool:
    """True if the first line is inside a definition, and no mark says so."""
    if piece.first is None or not file.has_definitions or piece.begins_with_mark:
        return False
    return bool(file.begins_inside(piece.first))


def is_cut(piece: ShownPiece, file: SourceFile) -> bool:
    """True if the piece shows a definition or section in part; without any, if it shows the file in part."""
    if piece.first is None:
        return False
    first, last = piece.first, piece.last or piece.first
    if not file.named:
        return file.has_text(1, first - 1) or file.has_text(last + 1, len(file.lines))
    if file.begins_inside(first):
        return True
    begun = (block for block in file.named if first <= block.first_line <= last < block.last_line)
    return any(file.has_text(last + 1, block.last_line) for block in begun)


def is_unmarked_cut(piece: ShownPiece, file: SourceFile) -> bool:
    """True if something is shown in part and nothing says so."""
    return not piece.is_marked and is_cut(piece, file)


def is_fragment(piece: ShownPiece, counter: TokenCounter) -> bool:
    """True if the piece has a single short line."""
    shown = [line for line in piece.source_text.split("\n") if line.strip()]
    return len(shown) <= 1 and counter.count(piece.source_text) < FRAGMENT_TOKENS


def shown_lines(piece: ShownPiece, lines: Sequence[str]) -> set[int]:
    """The numbers of the lines of the file that a piece shows in full: its lines, looked up in order."""
    return set(_shown(piece, lines))


def _shown(piece: ShownPiece, lines: Sequence[str]) -> Iterator[int]:
    place = (piece.first or 1) - 1
    end = min(piece.last or len(lines), len(lines))
    for line in piece.text.split("\n"):
        if line in piece.elision_lines:
            # The last elided line may be shown in part: it is not equal to any whole line, and is passed over.
            place = max(place, elisions_in(line)[0].last - 1)
        elif wanted := line.strip():
            found = next((number for number in range(place, end) if lines[number].strip() == wanted), None)
            if found is not None:
                yield found + 1
                place = found + 1
