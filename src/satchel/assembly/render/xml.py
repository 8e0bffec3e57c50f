"""XML: one root; a `code-context` for a chunk, an `entity` for an entity, everything from outside escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.assembly.render.document import Bodies, Document, Sheet, lines_of
from satchel.models.item import ItemKind
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.models.citation import ContextSource
    from satchel.models.item import Piece
    from satchel.models.options import ContextBuildOptions


class XmlWriter:
    """Writes XML."""

    def __init__(self, options: ContextBuildOptions) -> None:
        self._options = options
        self.separator = escaped(make_visible(options.chunk_separator).text)
        self._bodies = Bodies(_body)

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The opening tag, and the text with the closing one."""
        number = {"id": str(piece.number)} if self._options.include_citations else {}
        if piece.lead.kind is ItemKind.ENTITY:
            return opening("entity", number | self._entity_attributes(piece)), self._bodies.of(piece, after)
        return opening("code-context", number | self._chunk_attributes(piece)), self._bodies.of(piece, after)

    def title(self, title: str) -> str:
        """What opens and closes a section."""
        return f'<section name="{escaped_attribute(title)}">\n</section>\n'

    def source(self, source: ContextSource) -> str:
        """A `source` element."""
        number = f'id="{source.number}" ' if self._options.include_citations else ""
        file = f' file="{escaped_attribute(source.file)}"' if source.file else ""
        line = f' line="{source.line}"' if source.line else ""
        line = f' page="{source.page}"' if source.page else line
        name, kind = escaped_attribute(source.name), escaped_attribute(source.type)
        return f'  <source {number}name="{name}" type="{kind}"{file}{line} />\n'

    def write(self, document: Document) -> Sheet:
        """The whole document."""
        options = self._options
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

    def _chunk_attributes(self, piece: Piece) -> dict[str, str]:
        options, item = self._options, piece.lead
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
        if self._options.include_scores:
            attributes["relevance"] = f"{piece.relevance:.2f}"
        return attributes | _trim_attributes(piece)


def _trim_attributes(piece: Piece) -> dict[str, str]:
    trim = piece.trim
    if trim is None:
        return {}
    return {
        "truncated": f"{trim.missing_lines} lines, {trim.missing_characters} characters",
        "expand": trim.id,
    }


def opening(name: str, attributes: dict[str, str]) -> str:
    """An opening tag on a line of its own."""
    told = " ".join(f'{key}="{escaped_attribute(value)}"' for key, value in attributes.items())
    return f"<{name} {told}>\n"


def _body(piece: Piece) -> str:
    if piece.lead.kind is ItemKind.ENTITY:
        return f"{escaped(piece.lead.summary or piece.text)}\n</entity>"
    return f"{escaped(piece.text)}\n</code-context>"


def escaped(text: str) -> str:
    """Text between tags; what XML cannot hold at all was made visible before."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_attribute(text: str) -> str:
    """Text between double quotes."""
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
