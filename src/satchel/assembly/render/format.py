"""The base class of all formats, with headings for pages and blocks that no piece can forge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

from satchel.assembly.render.guard import bracketed, file_name, guard_page, heading_text
from satchel.models.chunk import CandidateKind, Piece, Section, Trim
from satchel.models.files import page_words
from satchel.models.options import FORMATS, ContextBuildOptions, HeadingStyle
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.models.chunk import Piece, Section, Trim
    from satchel.models.context import ContextSource
    from satchel.models.options import ContextBuildOptions


Fields: TypeAlias = dict[str, str | int | None]

SYSTEM_SECTION: Final = "system"
"""The section of the caller's instructions, rendered without escaping."""

# Copies named in a heading: each costs as much as a line of text.
_MAX_COPIES: Final = 2

NOTHING_FOUND: Final = "_No relevant content found._"
"""The text of an empty workspace section."""


@dataclass(frozen=True, slots=True)
class Document:
    """A context before rendering: sections, listed sources, or the closing question."""

    sections: Sequence[Section]
    sources: Sequence[ContextSource] = ()
    query: str | None = None
    notice: str = ""
    """Satchel's own first line of a workspace context; a listing has it in its header."""


@dataclass(slots=True)
class Sheet:
    """The rendered text in parts, and the positions of the pieces among the parts."""

    parts: list[str] = field(default_factory=list)
    _pieces: list[tuple[int, int]] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Append a part."""
        self.parts.append(text)

    def add_pieces(
        self, format: Format, pieces: Sequence[Piece], separator: str | Callable[[Piece], str], end: str = ""
    ) -> None:
        """Append pieces with a separator between them and an end after the last piece."""
        for i, piece in enumerate(pieces, start=1):
            between = separator if isinstance(separator, str) else separator(piece)
            after = end if i == len(pieces) else between
            head, body = format.piece(piece, after)
            self._pieces.append((len(self.parts), len(body) - len(after)))
            self.parts += (head, body)

    def pieces(self) -> list[tuple[str, str]]:
        """The heading and the body of each piece."""
        return [(self.parts[i], self.parts[i + 1]) for i, _ in self._pieces]

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of each piece in the text, without the separator and the last line end."""
        offsets = [0, *accumulate(map(len, self.parts))]
        return [
            (offsets[i], offsets[i + 1] + len(self.parts[i + 1][:length].rstrip("\n"))) for i, length in self._pieces
        ]


class Format(ABC):
    """Renders pieces of every kind, and whole documents, in a format.

    A custom format is a subclass and an entry point of the group `satchel.formats`. Only `heading` and `body` have to
    be implemented; the content of a piece must not be able to end the piece or to look like another piece's heading.
    """

    block_separator: ClassVar[str] = "\n\n"
    """The separator between two blocks of a section."""
    nothing_found: ClassVar[str] = NOTHING_FOUND
    """The text of an empty workspace section."""
    section_end: ClassVar[str] = "\n\n"
    """The text after a workspace section."""
    sources_title: ClassVar[str] = "Sources:"
    """The title of the list of sources."""
    has_one_body: ClassVar[bool] = False
    """True if an entity is rendered with its summary or its content, not both."""
    cuts_entities: ClassVar[bool] = True
    """True if entities are cut to `entity_content_chars` of the options."""

    def __init__(self, options: ContextBuildOptions, *, metadata_hints: bool = True) -> None:
        self.options = options
        self.metadata_hints = metadata_hints
        self.separator = self.separator_for(make_visible(options.chunk_separator).text)
        self._bodies: dict[tuple[object, ...], str] = {}

    @abstractmethod
    def heading(self, piece: Piece) -> str:
        """The heading before the text of the piece: number, origin, type."""

    @abstractmethod
    def body(self, piece: Piece) -> str:
        """The escaped text of the piece, with a receipt if the piece was trimmed."""

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The heading and the body of the piece; the body ends with the separator `after`.

        The body does not depend on the number, hence each body is rendered and counted once.
        """
        lead = piece.lead
        key = (lead.kind, lead.section, piece.text, lead.summary, lead.language, piece.trim, after)
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = self.body(piece) + after
        return self.heading(piece), body

    def separator_for(self, separator: str) -> str:
        """The rendered form of the separator from the options."""
        return separator

    def wrapping(self, text: str | None) -> str:
        """The caller's header or footer, with hidden characters made visible."""
        return make_visible(text or "").text

    def title(self, title: str) -> str:
        """The rendered title of a section, from which the section's overhead is counted."""
        return title

    def section_title(self, section: Section) -> str:
        """The title above a section of a workspace."""
        return f"{self.title(section.title or '')}\n"

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        return f"- {self.number_label(source)}{source.label}\n"

    def source_fields(self, source: ContextSource) -> Fields:
        """The fields of a source; None for unknown values."""
        return {
            "id": source.number if self.options.include_citations else None,
            "name": source.name,
            "type": source.type,
            "file": source.file or None,
            "page": source.page or None,
            "line": None if source.page else source.line or None,
        }

    def document(self, document: Document) -> Sheet:
        """The rendered document."""
        return self.listing(document) if document.query is None else self.sections(document, document.query)

    def listing(self, document: Document) -> Sheet:
        """A document without a question, with a rule between sections."""
        sheet = Sheet()
        parts = sheet.parts
        if header := self.wrapping(self.options.context_header):
            sheet.add(header + "\n\n")
        for section in document.sections:
            if section is not document.sections[0]:
                parts[-1] += blank_line_after(parts[-1])
                sheet.add("---\n\n")
            if section.title is not None:
                sheet.add(self.title(section.title) + "\n\n")
            sheet.add_pieces(self, section.pieces, partial(between, separator=self.separator))
        rows = "".join(map(self.source, document.sources))
        footer = self.wrapping(self.options.context_footer).rstrip()
        for tail in filter(None, (f"{self.sources_title}\n{rows}" if rows else "", footer)):
            if parts:
                parts[-1] += blank_line_after(parts[-1])
            sheet.add(tail)
        for i in reversed(range(len(parts))):
            parts[i] = parts[i].rstrip()
            if parts[i]:
                break
        return sheet

    def sections(self, document: Document, query: str) -> Sheet:
        """The sections of a workspace, followed by the question."""
        sheet = Sheet()
        if document.notice:
            sheet.add(f"{document.notice}\n\n")
        for section in document.sections:
            self.add_section(sheet, section)
        sheet.add(f"---\n\nUser Query: {make_visible(query).text}")
        return sheet

    def add_section(self, sheet: Sheet, section: Section) -> None:
        """Append a section of a workspace with its title."""
        sheet.add(self.section_title(section))
        self.add_blocks(sheet, section)
        sheet.add(self.section_end)

    def add_blocks(self, sheet: Sheet, section: Section) -> None:
        """Append the blocks of a section, or the words for an empty section."""
        sheet.add_pieces(self, section.pieces, self.block_separator)
        if not section.pieces:
            sheet.add(self.nothing_found)

    def block_hint(self, piece: Piece) -> str:
        """The path of a block within its page, and its date."""
        if not self.metadata_hints:
            return ""
        block = piece.lead
        # The page's own title stands before this already.
        trail = [make_visible_line(part).text for part in block.trail if part != block.name]
        return ", ".join(filter(None, (" › ".join(trail), block.modified.date().isoformat() if block.modified else "")))

    @property
    def is_named(self) -> bool:
        """True if headings name the symbol or the section."""
        return self.options.heading_style is HeadingStyle.NAMED

    def symbol(self, piece: Piece) -> str:
        """The symbol or the heading trail of a chunk, where headings name it."""
        lead = piece.lead
        return lead.name if self.is_named and lead.path and lead.name != lead.path else ""

    def number_label(self, piece: Piece | ContextSource) -> str:
        """`[3] ` where pieces are numbered."""
        return f"[{piece.number}] " if self.options.include_citations and piece.number else ""


class TextFormat(Format):
    """Base of the text formats: a heading above each piece; look-alike headings in the content are escaped."""

    @abstractmethod
    def chunk_heading(self, piece: Piece, number: str, lines: tuple[int, int] | None) -> str:
        """The number (`[3]`) and the lines of a chunk, with the file unless the previous piece names the same file."""

    @abstractmethod
    def chunk_body(self, piece: Piece) -> str:
        """The lines of a chunk, with the receipt."""

    @abstractmethod
    def entity_heading(self, piece: Piece) -> str:
        """The number, the name and the place of an entity."""

    @abstractmethod
    def entity_body(self, piece: Piece) -> str:
        """The summary or content of an entity."""

    @abstractmethod
    def block_body(self, piece: Piece) -> str:
        """The text of a block."""

    def heading(self, piece: Piece) -> str:
        """The heading of a chunk or an entity; a single line for a page or a block."""
        match piece.lead.kind:
            case CandidateKind.CHUNK:
                number = f"[{piece.number}]" if self.options.include_citations else ""
                if not self.options.include_file_headers:
                    return f"{number}\n" if number else ""
                lines = lines_of(piece) if self.options.include_line_numbers else None
                return self.chunk_heading(piece, number, lines)
            case CandidateKind.ENTITY:
                return self.entity_heading(piece)
            case CandidateKind.PAGE:
                return page_heading(piece)
            case CandidateKind.BLOCK:
                return self._block_heading(piece)

    def body(self, piece: Piece) -> str:
        """The escaped text of the piece, with a receipt if trimmed; system instructions are not escaped."""
        match piece.lead.kind:
            case CandidateKind.CHUNK:
                return self.chunk_body(piece)
            case CandidateKind.ENTITY:
                return self.entity_body(piece)
            case CandidateKind.PAGE:
                return guard_page(piece.text)
            case CandidateKind.BLOCK:
                text = piece.text if piece.lead.section == SYSTEM_SECTION else self.block_body(piece)
                return f"{text}\n{bracketed_receipt(piece.trim)}" if piece.trim else text

    def place(self, piece: Piece, lines: tuple[int, int] | None) -> str:
        """`page 3`, `line 5` or `lines 5-8`; `lines 5-8 of 20` for a part of a file without a name of its own."""
        if not lines:
            return ", ".join(filter(None, (page_of(piece), heading_text(piece.lead.why))))
        words, lead = line_words(*lines), piece.lead
        if self.is_named and lead.of_lines:
            words += f" of {lead.of_lines}"
        facts = (words, elided_words(lead.elided), copies_words(lead.copies), heading_text(lead.why))
        return ", ".join(filter(None, facts))

    def _block_heading(self, piece: Piece) -> str:
        """`[3] [page title] [type] (path, date)`: the line above a block."""
        block = piece.lead
        if block.section == SYSTEM_SECTION:
            return ""
        title = f"[{bracketed(block.name)}] " if block.name else ""
        hint = ", ".join(filter(None, (heading_text(self.block_hint(piece)), elided_words(block.elided))))
        return f"{self.number_label(piece)}{title}[{bracketed(block.type)}]{f' ({hint})' if hint else ''}\n"


def elided_words(count: int) -> str:
    """`12 not shown`: the number of lines that elision lines stand for; empty for none."""
    return f"{count} not shown" if count else ""


def copies_words(paths: Sequence[str]) -> str:
    """`much the same in win/pipe.c`: the files whose text is shown once; empty for none."""
    named = [*map(heading_text, paths[:_MAX_COPIES]), *["…"] * (len(paths) > _MAX_COPIES)]
    return f"much the same in {', '.join(named)}" if paths else ""


def entity_fields(piece: Piece) -> Fields:
    """Name, type, file and line of an entity; None for unknown values."""
    entity = piece.lead
    return {"name": entity.name, "type": entity.type, "file": entity.path or None, "line": entity.first_line or None}


def lines_of(piece: Piece) -> tuple[int, int] | None:
    """The first and last line of the piece in its file; None if unknown, for entities and for pages."""
    if (
        piece.first_line is None
        or piece.last_line is None
        or piece.lead.kind is CandidateKind.ENTITY
        or piece.lead.page
    ):
        return None
    return piece.first_line, piece.last_line


def page_of(piece: Piece) -> str:
    """`page 3` if the piece is from a page, else empty."""
    return page_words(piece.lead.path, piece.lead.page) if piece.lead.page else ""


def line_words(first: int, last: int) -> str:
    """`line 5` or `lines 5-8`."""
    return f"line {first}" if first == last else f"lines {first}-{last}"


def receipt(trim: Trim) -> str:
    """The receipt of a trimmed piece: how much is missing, and the `expand` call for the rest."""
    lines = "1 line" if trim.missing_lines == 1 else f"{trim.missing_lines} lines"
    return f'[truncated: {lines}, {trim.missing_characters} characters not shown; expand("{trim.id}")]'


def between(piece: Piece, separator: str) -> str:
    """The separator after a piece, preceded by a blank line where the piece ends in a paragraph."""
    return _led_by(separator, 2 if piece.lead.kind is CandidateKind.ENTITY else int(piece.trim is not None))


@lru_cache
def _led_by(separator: str, line_ends: int) -> str:
    """The separator with at least `line_ends` line ends at its beginning."""
    has = len(separator) - len(separator.lstrip("\n"))
    return "\n" * max(0, line_ends - has) + separator


def blank_line_after(text: str) -> str:
    """The line ends needed for a blank line after the text."""
    return "\n" if text.endswith("\n") else "\n\n"


def bracketed_receipt(trim: Trim) -> str:
    """The receipt with an escaped id: a bracket could turn the line into a link definition, which Markdown hides."""
    return receipt(trim._replace(id=bracketed(trim.id)))


def page_heading(piece: Piece) -> str:
    """`[Document 1: crisis.pdf, Page 3]`, on a single line for any file name."""
    return f"[Document {piece.number}: {file_name(piece.lead.name)}, Page {piece.lead.page}]\n"


def format_for(options: ContextBuildOptions, *, metadata_hints: bool = True) -> Format:
    """The format named in the options."""
    entry = FORMATS.get(options.format)
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        entry = getattr(import_module(module), name)
    return cast("Format", entry(options, metadata_hints=metadata_hints))
