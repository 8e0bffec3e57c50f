"""JSON: one document, indented as a reader likes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from satchel.assembly.render.document import Document, Sheet, lines_of
from satchel.models.item import ItemKind
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.citation import ContextSource
    from satchel.models.item import Piece, Section
    from satchel.models.options import ContextBuildOptions


class JsonWriter:
    """Writes JSON."""

    def __init__(self, options: ContextBuildOptions) -> None:
        self._options = options
        self._depth = 8 if options.group_by_type else 4

    separator = ",\n"

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """Nothing, and the object as it stands in the list."""
        fields = self._entity(piece) if piece.lead.kind is ItemKind.ENTITY else self._chunk(piece)
        number = {"id": piece.number} if self._options.include_citations else {}
        return "", _indented(_written(number | fields), self._depth) + after

    def title(self, title: str) -> str:
        """What a section costs beside its pieces."""
        return f'    {{\n      "section": {_written(title)},\n      "chunks": [\n      ]\n    }},\n'

    def source(self, source: ContextSource) -> str:
        """A source as it stands in the list."""
        fields: dict[str, Any] = {"id": source.number} if self._options.include_citations else {}
        fields |= {"name": source.name, "type": source.type}
        if source.file:
            fields["file"] = source.file
        if source.page:
            fields["page"] = source.page
        elif source.line:
            fields["line"] = source.line
        return f"    {json.dumps(fields, ensure_ascii=False)},\n"

    def write(self, document: Document) -> Sheet:
        """The whole document."""
        options = self._options
        sheet = Sheet()
        sheet.add("{\n")
        if options.context_header:
            sheet.add(f'  "header": {_written(make_visible(options.context_header).text)},\n')
        self._write_body(sheet, document.sections)
        if document.sources:
            rows = "".join(map(self.source, document.sources)).removesuffix(",\n")
            sheet.add(f',\n  "sources": [\n{rows}\n  ]')
        if options.context_footer:
            sheet.add(f',\n  "footer": {_written(make_visible(options.context_footer).text)}')
        sheet.add("\n}")
        return sheet

    def _write_body(self, sheet: Sheet, sections: Sequence[Section]) -> None:
        if all(section.title is None for section in sections):
            sheet.add('  "chunks": [\n')
            self._write_rows(sheet, [piece for section in sections for piece in section.pieces])
            sheet.add("  ]")
            return
        sheet.add('  "sections": [\n')
        for section in sections:
            sheet.add(f'    {{\n      "section": {_written(section.title)},\n      "chunks": [\n')
            self._write_rows(sheet, section.pieces)
            sheet.add("      ]\n    }\n" if section is sections[-1] else "      ]\n    },\n")
        sheet.add("  ]")

    def _write_rows(self, sheet: Sheet, pieces: Sequence[Piece]) -> None:
        for i, piece in enumerate(pieces, start=1):
            sheet.add_piece(self, piece, "\n" if i == len(pieces) else self.separator)

    def _chunk(self, piece: Piece) -> dict[str, Any]:
        options, item = self._options, piece.lead
        fields: dict[str, Any] = {"file": item.path or item.name, "content": piece.text}
        lines = lines_of(piece) if options.include_line_numbers else None
        if lines:
            fields |= {"startLine": lines[0], "endLine": lines[1]}
        if item.page:
            fields["page"] = item.page
        if item.language:
            fields["language"] = item.language
        if options.include_scores:
            fields["relevance"] = piece.relevance
        return fields | _trim_field(piece)

    def _entity(self, piece: Piece) -> dict[str, Any]:
        item = piece.lead
        fields: dict[str, Any] = {"name": item.name, "type": item.type}
        if item.path:
            fields["file"] = item.path
        if item.first_line:
            fields["line"] = item.first_line
        if item.summary:
            fields["summary"] = item.summary
        if piece.text:
            fields |= {"content": piece.text} | _trim_field(piece)
        if self._options.include_scores:
            fields["relevance"] = piece.relevance
        return fields


def _trim_field(piece: Piece) -> dict[str, Any]:
    trim = piece.trim
    if trim is None:
        return {}
    return {"truncated": {"lines": trim.missing_lines, "characters": trim.missing_characters, "expand": trim.id}}


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _indented(text: str, depth: int) -> str:
    # Line ends inside strings are escaped, so every line end here is one of the layout's.
    margin = " " * depth
    return margin + text.replace("\n", f"\n{margin}")
