"""JSON: one document, indented as a reader likes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from satchel.assembly.render.format import Document, Format, Sheet, lines_of
from satchel.models.chunk import CandidateKind
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.chunk import Piece, Section
    from satchel.models.context import ContextSource
    from satchel.models.options import ContextBuildOptions


class JsonFormat(Format):
    """Renders JSON."""

    block_separator = ",\n"

    def __init__(self, options: ContextBuildOptions, *, metadata_hints: bool = True) -> None:
        super().__init__(options, metadata_hints=metadata_hints)
        self.separator = ",\n"
        self._depth = 8 if options.group_by_type else 4

    def heading(self, piece: Piece) -> str:  # noqa: ARG002 - the number is in the object
        """Nothing: a piece is one object."""
        return ""

    def body(self, piece: Piece) -> str:
        """The object."""
        if piece.lead.kind is CandidateKind.BLOCK:
            return json.dumps(self._block(piece), ensure_ascii=False)
        fields = self._entity(piece) if piece.lead.kind is CandidateKind.ENTITY else self._chunk(piece)
        number = {"id": piece.number} if self.options.include_citations else {}
        return _indented(_rendered(number | fields), self._depth)

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The object, which is not remembered: its number is in it."""
        return "", self.body(piece) + after

    def title(self, title: str) -> str:
        """What a section costs beside its pieces."""
        return f'    {{\n      "section": {_rendered(title)},\n      "chunks": [\n      ]\n    }},\n'

    def source(self, source: ContextSource) -> str:
        """A source as it stands in the list."""
        fields: dict[str, Any] = {"id": source.number} if self.options.include_citations else {}
        fields |= {"name": source.name, "type": source.type}
        if source.file:
            fields["file"] = source.file
        if source.page:
            fields["page"] = source.page
        elif source.line:
            fields["line"] = source.line
        return f"    {json.dumps(fields, ensure_ascii=False)},\n"

    def document(self, document: Document) -> Sheet:
        """The finished text."""
        if document.query is not None:
            return self.sections(document, document.query)
        options = self.options
        sheet = Sheet()
        sheet.add("{\n")
        if options.context_header:
            sheet.add(f'  "header": {_rendered(make_visible(options.context_header).text)},\n')
        self._write_body(sheet, document.sections)
        if document.sources:
            rows = "".join(map(self.source, document.sources)).removesuffix(",\n")
            sheet.add(f',\n  "sources": [\n{rows}\n  ]')
        if options.context_footer:
            sheet.add(f',\n  "footer": {_rendered(make_visible(options.context_footer).text)}')
        sheet.add("\n}")
        return sheet

    def sections(self, document: Document, query: str) -> Sheet:
        """The sections of a workspace, each object on a line of its own, and the question."""
        sheet = Sheet()
        sheet.add('{"context": [\n')
        for section in document.sections:
            self.add_section(sheet, section)
            sheet.add("\n" if section is document.sections[-1] else ",\n")
        sheet.add(f'],\n"query": {json.dumps(make_visible(query).text, ensure_ascii=False)}}}')
        return sheet

    def section_title(self, section: Section) -> str:
        """What opens the object of a section."""
        return f'{{"type": "{section.name}", "title": {json.dumps(section.title, ensure_ascii=False)}, "items": ['

    def add_section(self, sheet: Sheet, section: Section) -> None:
        """The object of a section."""
        sheet.add(self.section_title(section))
        if section.pieces:
            sheet.add("\n")
            self.add_blocks(sheet, section)
            sheet.add("\n")
        sheet.add("]}")

    def _block(self, piece: Piece) -> dict[str, Any]:
        block = piece.lead
        fields: dict[str, Any] = {"n": piece.number} if self.number_label(piece) else {}
        fields |= {"blockId": make_visible_line(block.id).text, "blockType": block.type}
        if block.name:
            fields["pageTitle"] = make_visible_line(block.name).text
        if self.metadata_hints and block.trail:
            fields["path"] = [make_visible_line(part).text for part in block.trail]
        if self.metadata_hints and block.modified:
            fields["lastModified"] = block.modified.isoformat()
        fields["content"] = piece.text
        if piece.trim:
            fields["truncated"] = {"lines": piece.trim.missing_lines, "characters": piece.trim.missing_characters}
        return fields

    def _write_body(self, sheet: Sheet, sections: Sequence[Section]) -> None:
        if all(section.title is None for section in sections):
            sheet.add('  "chunks": [\n')
            self._write_rows(sheet, [piece for section in sections for piece in section.pieces])
            sheet.add("  ]")
            return
        sheet.add('  "sections": [\n')
        for section in sections:
            sheet.add(f'    {{\n      "section": {_rendered(section.title)},\n      "chunks": [\n')
            self._write_rows(sheet, section.pieces)
            sheet.add("      ]\n    }\n" if section is sections[-1] else "      ]\n    },\n")
        sheet.add("  ]")

    def _write_rows(self, sheet: Sheet, pieces: Sequence[Piece]) -> None:
        for i, piece in enumerate(pieces, start=1):
            sheet.add_piece(self, piece, "\n" if i == len(pieces) else self.separator)

    def _chunk(self, piece: Piece) -> dict[str, Any]:
        options, item = self.options, piece.lead
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
        if self.options.include_scores:
            fields["relevance"] = piece.relevance
        return fields


def _trim_field(piece: Piece) -> dict[str, Any]:
    trim = piece.trim
    if trim is None:
        return {}
    return {"truncated": {"lines": trim.missing_lines, "characters": trim.missing_characters, "expand": trim.id}}


def _rendered(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _indented(text: str, depth: int) -> str:
    # Line ends inside strings are escaped, so every line end here is one of the layout's.
    margin = " " * depth
    return margin + text.replace("\n", f"\n{margin}")
