"""XML: one root; a `code-context` for a chunk, an `entity` for an entity, everything from outside escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.assembly.render.format import NOTHING_FOUND, Document, Format, Sheet, lines_of
from satchel.models.chunk import CandidateKind
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from satchel.models.chunk import Piece, Section, Trim
    from satchel.models.context import ContextSource
    from satchel.models.options import ContextBuildOptions


class XmlFormat(Format):
    """Renders XML."""

    has_one_body = True
    block_separator = "\n"
    section_end = "\n</section>\n"

    def __init__(self, options: ContextBuildOptions, *, metadata_hints: bool = True) -> None:
        super().__init__(options, metadata_hints=metadata_hints)
        self.separator = escaped(self.separator)

    def heading(self, piece: Piece) -> str:
        """The opening tag."""
        if piece.lead.kind is CandidateKind.BLOCK:
            return opening("item", self._block_attributes(piece))
        number = {"id": str(piece.number)} if self.options.include_citations else {}
        if piece.lead.kind is CandidateKind.ENTITY:
            return opening("entity", number | self._entity_attributes(piece))
        return opening("code-context", number | self._chunk_attributes(piece))

    def body(self, piece: Piece) -> str:
        """The text, escaped, and the closing tag."""
        match piece.lead.kind:
            case CandidateKind.ENTITY:
                return f"{escaped(piece.lead.summary or piece.text)}\n</entity>"
            case CandidateKind.BLOCK:
                return f"{escaped(piece.text)}\n</item>"
        return f"{escaped(piece.text)}\n</code-context>"

    def title(self, title: str) -> str:
        """What opens and closes a section."""
        return f'<section name="{escaped_attribute(title)}">\n</section>\n'

    def source(self, source: ContextSource) -> str:
        """A `source` element."""
        number = f'id="{source.number}" ' if self.options.include_citations else ""
        file = f' file="{escaped_attribute(source.file)}"' if source.file else ""
        line = f' line="{source.line}"' if source.line else ""
        line = f' page="{source.page}"' if source.page else line
        name, kind = escaped_attribute(source.name), escaped_attribute(source.type)
        return f'  <source {number}name="{name}" type="{kind}"{file}{line} />\n'

    def document(self, document: Document) -> Sheet:
        """The finished text."""
        if document.query is not None:
            return self.sections(document, document.query)
        options = self.options
        sheet = Sheet()
        sheet.add("<context>\n")
        if options.context_header:
            sheet.add(f"<header>{escaped(make_visible(options.context_header).text)}</header>\n")
        for section in document.sections:
            if section.title is not None:
                sheet.add(f'<section name="{escaped_attribute(section.title)}">\n')
            last = len(section.pieces) - 1
            for i, piece in enumerate(section.pieces):
                sheet.add_piece(self, piece, self.separator if i < last else "\n")
            if section.title is not None:
                sheet.add("</section>\n")
        if document.sources:
            sheet.add("<sources>\n" + "".join(map(self.source, document.sources)) + "</sources>\n")
        if options.context_footer:
            sheet.add(f"<footer>{escaped(make_visible(options.context_footer).text)}</footer>\n")
        sheet.add("</context>")
        return sheet

    def sections(self, document: Document, query: str) -> Sheet:
        """The sections of a workspace, and the question at the end."""
        sheet = Sheet()
        sheet.add("<context>\n")
        for section in document.sections:
            self.add_section(sheet, section)
        sheet.add(f"<query>{escaped(make_visible(query).text)}</query>\n</context>")
        return sheet

    def section_title(self, section: Section) -> str:
        """The opening tag of a section."""
        return opening("section", {"type": section.name, "title": section.title or ""})

    def add_blocks(self, sheet: Sheet, section: Section) -> None:
        """The blocks of a section, or that there are none."""
        if section.pieces:
            super().add_blocks(sheet, section)
        else:
            sheet.add(f"<empty>{NOTHING_FOUND}</empty>")

    def _block_attributes(self, piece: Piece) -> dict[str, str]:
        block = piece.lead
        fields = {
            "n": str(piece.number) if self.number_label(piece) else "",
            "id": make_visible_line(block.id).text,
            "type": block.type,
            "page": make_visible_line(block.name).text,
        }
        if self.metadata_hints:
            fields["path"] = " › ".join(make_visible_line(part).text for part in block.trail)
            fields["modified"] = block.modified.isoformat() if block.modified else ""
        if piece.trim:
            fields["truncated"] = _trim_words(piece.trim)
        return {name: value for name, value in fields.items() if value}

    def _chunk_attributes(self, piece: Piece) -> dict[str, str]:
        options, item = self.options, piece.lead
        attributes = {"file": item.path or item.name}
        lines = lines_of(piece) if options.include_line_numbers else None
        if lines:
            attributes["lines"] = f"{lines[0]}-{lines[1]}"
        if item.page:
            attributes["page"] = str(item.page)
        if item.language:
            attributes["language"] = item.language
        if options.include_scores:
            attributes["relevance"] = f"{piece.relevance:.2f}"
        return attributes | _trim_attributes(piece)

    def _entity_attributes(self, piece: Piece) -> dict[str, str]:
        item = piece.lead
        attributes = {"name": item.name, "type": item.type}
        if item.path:
            attributes["file"] = item.path
        if item.first_line:
            attributes["line"] = str(item.first_line)
        if self.options.include_scores:
            attributes["relevance"] = f"{piece.relevance:.2f}"
        return attributes | _trim_attributes(piece)


def _trim_attributes(piece: Piece) -> dict[str, str]:
    return {"truncated": _trim_words(piece.trim), "expand": piece.trim.id} if piece.trim else {}


def _trim_words(trim: Trim) -> str:
    return f"{trim.missing_lines} lines, {trim.missing_characters} characters"


def opening(name: str, attributes: dict[str, str]) -> str:
    """An opening tag on a line of its own."""
    written = "".join(f' {key}="{escaped_attribute(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>\n"


def escaped(text: str) -> str:
    """Text between tags; what XML cannot hold at all was made visible before."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_attribute(text: str) -> str:
    """Text between double quotes."""
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
