"""What is to be written, and what every writer can do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from satchel.models.document import page_words
from satchel.models.item import ItemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.models.citation import ContextSource
    from satchel.models.item import Piece, Section, Trim
    from satchel.models.options import ContextBuildOptions


@dataclass(frozen=True, slots=True)
class Document:
    """A context before it is text: its sections, and the sources to list."""

    sections: Sequence[Section]
    sources: Sequence[ContextSource] = ()


class Sheet:
    """The finished text in parts, and which of the parts are pieces."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._pieces: list[tuple[int, int]] = []

    def add(self, text: str) -> None:
        """Put a part at the end."""
        self.parts.append(text)

    def add_piece(self, writer: Writer, piece: Piece, after: str) -> None:
        """Put a piece at the end, with what comes between it and the next."""
        head, body = writer.piece(piece, after)
        self._pieces.append((len(self.parts), len(body) - len(after)))
        self.parts += (head, body)

    def pieces(self) -> list[tuple[str, str]]:
        """The two parts of each piece."""
        return [(self.parts[i], self.parts[i + 1]) for i, _ in self._pieces]

    def spans(self) -> list[tuple[int, int]]:
        """Where in the text each piece begins and ends, without the separator and the last line end."""
        offsets = [0, *accumulate(map(len, self.parts))]
        return [
            (offsets[i], offsets[i + 1] + len(self.parts[i + 1][:length].rstrip("\n"))) for i, length in self._pieces
        ]


class Writer(Protocol):
    """Writes pieces and whole documents in one format."""

    def __init__(self, options: ContextBuildOptions) -> None: ...

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The piece with its heading and wrapper, in two parts, and what comes between it and the next.

        The second part depends on the text alone, so that it is made and counted once, whatever heads it.
        """
        ...

    @property
    def separator(self) -> str:
        """What comes between two pieces."""
        ...

    def title(self, title: str) -> str:
        """What a section costs beside its pieces."""
        ...

    def source(self, source: ContextSource) -> str:
        """A line of the list of sources."""
        ...

    def write(self, document: Document) -> Sheet:
        """The finished text."""
        ...


class Bodies:
    """Remembers what was made of a text, so that a piece that is tried in several places is written once."""

    def __init__(self, make: Callable[[Piece], str]) -> None:
        self._make = make
        self._made: dict[tuple[ItemKind, str, str, str | None, Trim | None, str], str] = {}

    def of(self, piece: Piece, after: str) -> str:
        """The body of the piece, with what comes after it."""
        lead = piece.lead
        key = (lead.kind, piece.text, lead.summary, lead.language, piece.trim, after)
        body = self._made.get(key)
        if body is None:
            body = self._made[key] = self._make(piece) + after
        return body


def lines_of(piece: Piece) -> tuple[int, int] | None:
    """The lines that the piece shows, if it has lines that a reader could open: a page's are only those of its text."""
    if piece.first_line is None or piece.last_line is None or piece.lead.kind is ItemKind.ENTITY or piece.lead.page:
        return None
    return piece.first_line, piece.last_line


def page_of(piece: Piece) -> str:
    """`page 3`, where the piece stands on a page."""
    return page_words(piece.lead.path, piece.lead.page) if piece.lead.page else ""


def line_words(first: int, last: int) -> str:
    """`line 5` or `lines 5-8`."""
    return f"line {first}" if first == last else f"lines {first}-{last}"


def percent(relevance: float) -> str:
    """A relevance as whole percent, halves up."""
    return f"{int(relevance * 100 + 0.5)}%"


def receipt(trim: Trim) -> str:
    """What is missing from a trimmed piece, and how to get it."""
    lines = "1 line" if trim.missing_lines == 1 else f"{trim.missing_lines} lines"
    return f'[truncated: {lines}, {trim.missing_characters} characters not shown; expand("{trim.id}")]'


def between(piece: Piece, separator: str) -> str:
    """The separator after a piece, with a blank line before it where the piece ends in a paragraph."""
    wanted = 2 if piece.lead.kind is ItemKind.ENTITY else int(piece.trim is not None)
    has = len(separator) - len(separator.lstrip("\n"))
    return "\n" * max(0, wanted - has) + separator


def blank_line_after(text: str) -> str:
    """The line ends that make one blank line after the text."""
    return "\n" if text.endswith("\n") else "\n\n"


def write_text(
    writer: Writer,
    document: Document,
    *,
    header: str,
    footer: str,
    sources: str,
    section_break: str,
) -> Sheet:
    """A document whose sections simply follow each other."""
    sheet = Sheet()
    parts = sheet.parts
    if header:
        sheet.add(header + "\n\n")
    for section in document.sections:
        if section is not document.sections[0]:
            parts[-1] += blank_line_after(parts[-1])
            sheet.add(section_break + "\n\n")
        if section.title is not None:
            sheet.add(writer.title(section.title) + "\n\n")
        last = len(section.pieces) - 1
        for i, piece in enumerate(section.pieces):
            sheet.add_piece(writer, piece, "" if i == last else between(piece, writer.separator))
    for tail in filter(None, (sources, footer)):
        if parts:
            parts[-1] += blank_line_after(parts[-1])
        sheet.add(tail)
    for i in reversed(range(len(parts))):
        parts[i] = parts[i].rstrip()
        if parts[i]:
            break
    return sheet
