"""What a format is, and what the formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Final, cast

from satchel.models.chunk import CandidateKind
from satchel.models.files import page_words
from satchel.models.options import FORMATS
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.models.chunk import Piece, Section, Trim
    from satchel.models.context import ContextSource
    from satchel.models.options import ContextBuildOptions


SYSTEM_SECTION: Final = "system"
"""The section of the caller's instructions, which are rendered as they are."""

NOTHING_FOUND: Final = "_No relevant content found._"
"""What a section of a workspace says that has no blocks."""


@dataclass(frozen=True, slots=True)
class Document:
    """A context before it is text: its sections, the sources to list, or the question to close with."""

    sections: Sequence[Section]
    sources: Sequence[ContextSource] = ()
    query: str | None = None


class Sheet:
    """The finished text in parts, and which of the parts are pieces."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._pieces: list[tuple[int, int]] = []

    def add(self, text: str) -> None:
        """Put a part at the end."""
        self.parts.append(text)

    def add_piece(self, format: Format, piece: Piece, after: str) -> None:
        """Put a piece at the end, with what comes between it and the next."""
        head, body = format.piece(piece, after)
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


class Format(ABC):
    """Renders pieces of every kind, and whole documents, in one format.

    A format of your own is a subclass and an entry point of the group `satchel.formats`. Only `heading` and `body` have
    to be written; whatever stands in a piece must not be able to end it or to look like the head of another.
    """

    block_separator: ClassVar[str] = "\n\n"
    """What comes between two blocks of a section."""
    section_end: ClassVar[str] = "\n\n"
    """What comes behind a section of a workspace."""
    has_one_body: ClassVar[bool] = False
    """Whether an entity is rendered by its summary or its content, not by both."""
    cuts_entities: ClassVar[bool] = True
    """Whether entities are cut to the length that the options give them."""

    def __init__(self, options: ContextBuildOptions, *, metadata_hints: bool = True) -> None:
        self.options = options
        self.metadata_hints = metadata_hints
        self.separator = make_visible(options.chunk_separator).text
        self._bodies = RenderedBodies(self.body)

    @abstractmethod
    def heading(self, piece: Piece) -> str:
        """What stands before the text of the piece: its number, where it is from, what it is."""

    @abstractmethod
    def body(self, piece: Piece) -> str:
        """The text of the piece, made safe, and its receipt if it was cut."""

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The piece in two parts, with what comes between it and the next.

        The second part depends on the text alone, so that it is made and counted once, whatever heads it.
        """
        return self.heading(piece), self._bodies.get(piece, after)

    def title(self, title: str) -> str:
        """What the title of a section costs beside its pieces."""
        return title

    def section_title(self, section: Section) -> str:
        """The title above a section of a workspace."""
        return f"{self.title(section.title or '')}\n"

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        number = f"[{source.number}] " if self.options.include_citations else ""
        return f"- {number}{source.label}\n"

    def document(self, document: Document) -> Sheet:
        """The finished text."""
        if document.query is not None:
            return self.sections(document, document.query)
        rows = "".join(map(self.source, document.sources))
        return join_sections(
            self,
            document,
            header=make_visible(self.options.context_header or "").text,
            footer=make_visible(self.options.context_footer or "").text.rstrip(),
            sources=f"Sources:\n{rows}" if rows else "",
        )

    def sections(self, document: Document, query: str) -> Sheet:
        """The sections of a workspace, one below the other, and the question at the end."""
        sheet = Sheet()
        for section in document.sections:
            self.add_section(sheet, section)
        sheet.add(f"---\n\nUser Query: {make_visible(query).text}")
        return sheet

    def add_section(self, sheet: Sheet, section: Section) -> None:
        """A section of a workspace with its title."""
        sheet.add(self.section_title(section))
        self.add_blocks(sheet, section)
        sheet.add(self.section_end)

    def add_blocks(self, sheet: Sheet, section: Section) -> None:
        """The blocks of a section, or that there are none."""
        last = len(section.pieces) - 1
        for i, piece in enumerate(section.pieces):
            sheet.add_piece(self, piece, "" if i == last else self.block_separator)
        if not section.pieces:
            sheet.add(NOTHING_FOUND)

    def block_hint(self, piece: Piece) -> str:
        """Where a block stands, and of when it is."""
        if not self.metadata_hints:
            return ""
        block = piece.lead
        # The page's own title stands before this already.
        trail = [make_visible_line(part).text for part in block.trail if part != block.name]
        return ", ".join(filter(None, (" › ".join(trail), block.modified.date().isoformat() if block.modified else "")))

    def number_label(self, piece: Piece) -> str:
        """`[3] ` where pieces are numbered."""
        return f"[{piece.number}] " if self.options.include_citations and piece.number else ""


class RenderedBodies:
    """Bodies by their text, so that a piece that is tried in several places is rendered once."""

    def __init__(self, make: Callable[[Piece], str]) -> None:
        self._make = make
        self._made: dict[tuple[object, ...], str] = {}

    def get(self, piece: Piece, after: str) -> str:
        """The body of the piece, with what comes after it."""
        lead = piece.lead
        key = (lead.kind, lead.section, piece.text, lead.summary, lead.language, piece.trim, after)
        body = self._made.get(key)
        if body is None:
            body = self._made[key] = self._make(piece) + after
        return body


def lines_of(piece: Piece) -> tuple[int, int] | None:
    """The lines that the piece shows, if it has lines that a reader could open: a page's are only those of its text."""
    if (
        piece.first_line is None
        or piece.last_line is None
        or piece.lead.kind is CandidateKind.ENTITY
        or piece.lead.page
    ):
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
    wanted = 2 if piece.lead.kind is CandidateKind.ENTITY else int(piece.trim is not None)
    has = len(separator) - len(separator.lstrip("\n"))
    return "\n" * max(0, wanted - has) + separator


def blank_line_after(text: str) -> str:
    """The line ends that make one blank line after the text."""
    return "\n" if text.endswith("\n") else "\n\n"


def join_sections(format: Format, document: Document, *, header: str, footer: str, sources: str) -> Sheet:
    """A document whose sections follow each other with a rule between them."""
    sheet = Sheet()
    parts = sheet.parts
    if header:
        sheet.add(header + "\n\n")
    for section in document.sections:
        if section is not document.sections[0]:
            parts[-1] += blank_line_after(parts[-1])
            sheet.add("---\n\n")
        if section.title is not None:
            sheet.add(format.title(section.title) + "\n\n")
        last = len(section.pieces) - 1
        for i, piece in enumerate(section.pieces):
            sheet.add_piece(format, piece, "" if i == last else between(piece, format.separator))
    for tail in filter(None, (sources, footer)):
        if parts:
            parts[-1] += blank_line_after(parts[-1])
        sheet.add(tail)
    for i in reversed(range(len(parts))):
        parts[i] = parts[i].rstrip()
        if parts[i]:
            break
    return sheet


def format_for(options: ContextBuildOptions, *, metadata_hints: bool = True) -> Format:
    """The format that the options name."""
    entry = FORMATS.get(options.format)
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        entry = getattr(import_module(module), name)
    return cast("Format", entry(options, metadata_hints=metadata_hints))
