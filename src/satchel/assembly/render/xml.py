"""Renders XML: a single root; a `code-context` for a chunk, an `entity` for an entity, all content escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.assembly.render.format import NOTHING_FOUND, Document, Fields, Format, Sheet, entity_fields, lines_of
from satchel.models.chunk import CandidateKind, Piece, Section, Trim
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from satchel.models.chunk import Piece, Section, Trim
    from satchel.models.context import ContextSource


class XmlFormat(Format):
    """Renders XML."""

    has_one_body = True
    block_separator = "\n"
    nothing_found = f"<empty>{NOTHING_FOUND}</empty>"
    section_end = "\n</section>\n"

    def separator_for(self, separator: str) -> str:
        """The separator, escaped as text between tags."""
        return escaped(separator)

    def heading(self, piece: Piece) -> str:
        """The opening tag."""
        if piece.lead.kind is CandidateKind.BLOCK:
            return _opening("item", self._block_attributes(piece))
        is_entity, trim = piece.lead.kind is CandidateKind.ENTITY, piece.trim
        fields: Fields = {
            "id": piece.number if self.options.include_citations else None,
            **(entity_fields(piece) if is_entity else self._chunk_attributes(piece)),
            "relevance": f"{piece.relevance:.2f}" if self.options.include_scores else None,
            "truncated": _trim_words(trim) if trim else None,
            "expand": trim.id if trim else None,
        }
        return _opening("entity" if is_entity else "code-context", fields)

    def body(self, piece: Piece) -> str:
        """The text, escaped, and the closing tag."""
        match piece.lead.kind:
            case CandidateKind.ENTITY:
                return f"{escaped(piece.lead.summary or piece.text)}\n</entity>"
            case CandidateKind.BLOCK:
                return f"{escaped(piece.text)}\n</item>"
        return f"{escaped(piece.text)}\n</code-context>"

    def title(self, title: str) -> str:
        """The opening and closing tag of a section, from which the section's overhead is counted."""
        return f'<section name="{escaped_attribute(title)}">\n</section>\n'

    def source(self, source: ContextSource) -> str:
        """A `source` element."""
        fields = self.source_fields(source)
        if source.is_entity:
            fields = {name: fields[name] for name in ("id", "name", "type")}  # S2's own
        return f"  <source{_attributes(fields)} />\n"

    def listing(self, document: Document) -> Sheet:
        """A single root with the header, the pieces, the sources and the footer."""
        options = self.options
        sheet = Sheet()
        sheet.add("<context>\n")
        if options.context_header:
            sheet.add(f"<header>{escaped(self.wrapping(options.context_header))}</header>\n")
        for section in document.sections:
            if section.title is not None:
                sheet.add(f'<section name="{escaped_attribute(section.title)}">\n')
            sheet.add_pieces(self, section.pieces, self.separator, "\n")
            if section.title is not None:
                sheet.add("</section>\n")
        if document.sources:
            sheet.add("<sources>\n" + "".join(map(self.source, document.sources)) + "</sources>\n")
        if options.context_footer:
            sheet.add(f"<footer>{escaped(self.wrapping(options.context_footer))}</footer>\n")
        sheet.add("</context>")
        return sheet

    def sections(self, document: Document, query: str) -> Sheet:
        """The sections of a workspace, and the question at the end."""
        sheet = Sheet()
        sheet.add("<context>\n")
        if document.notice:
            sheet.add(f"<notice>{escaped(document.notice)}</notice>\n")
        for section in document.sections:
            self.add_section(sheet, section)
        sheet.add(f"<query>{escaped(make_visible(query).text)}</query>\n</context>")
        return sheet

    def section_title(self, section: Section) -> str:
        """The opening tag of a section."""
        return _opening("section", {"type": section.name, "title": section.title or ""})

    def _block_attributes(self, piece: Piece) -> Fields:
        block = piece.lead
        fields: Fields = {
            "n": piece.number if self.number_label(piece) else None,
            "id": make_visible_line(block.id).text,
            "type": block.type,
            "page": make_visible_line(block.name).text,
        }
        if self.metadata_hints:
            fields["path"] = " › ".join(make_visible_line(part).text for part in block.trail)
            fields["modified"] = block.modified.isoformat() if block.modified else None
        fields["elided"] = block.elided
        if piece.trim:
            fields["truncated"] = _trim_words(piece.trim)
        return {name: value or None for name, value in fields.items()}

    def _chunk_attributes(self, piece: Piece) -> Fields:
        item = piece.lead
        lines = lines_of(piece) if self.options.include_line_numbers else None
        return {
            "file": item.path or item.name,
            "symbol": self.symbol(piece) or None,
            "lines": f"{lines[0]}-{lines[1]}" if lines else None,
            "elided": item.elided or None,
            "copies": ", ".join(item.copies) or None,
            "why": item.why or None,
            "page": item.page or None,
            "language": item.language or None,
        }


def _trim_words(trim: Trim) -> str:
    return f"{trim.missing_lines} lines, {trim.missing_characters} characters"


def _opening(name: str, fields: Fields) -> str:
    """An opening tag on a separate line."""
    return f"<{name}{_attributes(fields)}>\n"


def _attributes(fields: Fields) -> str:
    """The attributes of a tag, without None values."""
    present = ((name, value) for name, value in fields.items() if value is not None)
    return "".join(f' {name}="{escaped_attribute(str(value))}"' for name, value in present)


def escaped(text: str) -> str:
    """Text escaped for use between tags; characters illegal in XML were made visible before."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_attribute(text: str) -> str:
    """Text escaped for an attribute in double quotes."""
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
