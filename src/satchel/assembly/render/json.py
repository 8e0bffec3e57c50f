"""Renders JSON: a single indented document, or the message content of a provider.

For Anthropic, a `search_result` block for each file with a text block for each piece: a citation by block index cites
a piece. For OpenAI, text parts; joined, the parts are exactly the context.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from satchel.assembly.render.format import Document, Format, Sheet, entity_fields, lines_of, page_of, receipt
from satchel.models.chunk import CandidateKind, Piece, Section
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from satchel.models.chunk import Piece, Section
    from satchel.models.context import ContextSource
    from satchel.models.options import ContextBuildOptions


class JsonFormat(Format):
    """Renders JSON."""

    block_separator = ",\n"

    def separator_for(self, separator: str) -> str:  # noqa: ARG002 - JSON prescribes the comma
        """The comma between two objects, whatever the options say."""
        return ",\n"

    def heading(self, piece: Piece) -> str:  # noqa: ARG002 - the number is in the object
        """Empty: a piece is a single object."""
        return ""

    def body(self, piece: Piece) -> str:
        """The piece as a JSON object."""
        if piece.lead.kind is CandidateKind.BLOCK:
            return _rendered(self._block(piece), None)
        fields = self._entity(piece) if piece.lead.kind is CandidateKind.ENTITY else self._chunk(piece)
        number = piece.number if self.options.include_citations else None
        # Line ends inside strings are escaped: every line end here belongs to the layout.
        margin = " " * (8 if self.options.group_by_type else 4)
        return margin + _rendered(_present({"id": number} | fields)).replace("\n", f"\n{margin}")

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The piece as a JSON object; never cached, because the object contains the number."""
        return "", self.body(piece) + after

    def title(self, title: str) -> str:
        """The object of an empty section, from which the section's overhead is counted."""
        return f'    {{\n      "section": {_rendered(title)},\n      "chunks": [\n      ]\n    }},\n'

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        return f"    {_rendered(_present(self.source_fields(source)), None)},\n"

    def listing(self, document: Document) -> Sheet:
        """A single object with the header, the pieces, the sources and the footer."""
        options = self.options
        sheet = Sheet()
        sheet.add("{\n")
        if options.context_header:
            sheet.add(f'  "header": {_rendered(self.wrapping(options.context_header))},\n')
        self._write_body(sheet, document.sections)
        if document.sources:
            rows = "".join(map(self.source, document.sources)).removesuffix(",\n")
            sheet.add(f',\n  "sources": [\n{rows}\n  ]')
        if options.context_footer:
            sheet.add(f',\n  "footer": {_rendered(self.wrapping(options.context_footer))}')
        sheet.add("\n}")
        return sheet

    def sections(self, document: Document, query: str) -> Sheet:
        """The sections of a workspace, each object on a separate line, and the question."""
        sheet = Sheet()
        sheet.add("{" + (f'"notice": {_rendered(document.notice)},\n' if document.notice else "") + '"context": [\n')
        for section in document.sections:
            self.add_section(sheet, section)
            sheet.add("\n" if section is document.sections[-1] else ",\n")
        sheet.add(f'],\n"query": {_rendered(make_visible(query).text)}}}')
        return sheet

    def section_title(self, section: Section) -> str:
        """The opening of a section's object."""
        return f'{{"type": "{section.name}", "title": {_rendered(section.title)}, "items": ['

    def add_section(self, sheet: Sheet, section: Section) -> None:
        """Append the object of a section."""
        sheet.add(self.section_title(section))
        if section.pieces:
            sheet.add("\n")
            self.add_blocks(sheet, section)
            sheet.add("\n")
        sheet.add("]}")

    def _block(self, piece: Piece) -> dict[str, Any]:
        block, trim, hints = piece.lead, piece.trim, self.metadata_hints
        return _present(
            {
                "n": piece.number if self.number_label(piece) else None,
                "blockId": make_visible_line(block.id).text,
                "blockType": block.type,
                "pageTitle": make_visible_line(block.name).text if block.name else None,
                "path": [make_visible_line(part).text for part in block.trail] if hints and block.trail else None,
                "lastModified": block.modified.isoformat() if hints and block.modified else None,
                "content": piece.text,
                "elided": block.elided or None,
                "truncated": {"lines": trim.missing_lines, "characters": trim.missing_characters} if trim else None,
            }
        )

    def _write_body(self, sheet: Sheet, sections: Sequence[Section]) -> None:
        if all(section.title is None for section in sections):
            sheet.add('  "chunks": [\n')
            pieces = [piece for section in sections for piece in section.pieces]
            sheet.add_pieces(self, pieces, self.separator, "\n")
            sheet.add("  ]")
            return
        sheet.add('  "sections": [\n')
        for section in sections:
            sheet.add(f'    {{\n      "section": {_rendered(section.title)},\n      "chunks": [\n')
            sheet.add_pieces(self, section.pieces, self.separator, "\n")
            sheet.add("      ]\n    }\n" if section is sections[-1] else "      ]\n    },\n")
        sheet.add("  ]")

    def _chunk(self, piece: Piece) -> dict[str, Any]:
        item = piece.lead
        lines = lines_of(piece) if self.options.include_line_numbers else None
        first, last = lines or (None, None)
        return {
            "file": item.path or item.name,
            "symbol": self.symbol(piece) or None,
            "content": piece.text,
            "startLine": first,
            "endLine": last,
            "elided": item.elided or None,
            "copies": list(item.copies) or None,
            "why": item.why or None,
            "page": item.page or None,
            "language": item.language or None,
            "relevance": piece.relevance if self.options.include_scores else None,
            "truncated": _truncated(piece),
        }

    def _entity(self, piece: Piece) -> dict[str, Any]:
        return {
            **entity_fields(piece),
            "summary": piece.lead.summary or None,
            "content": piece.text or None,
            "truncated": _truncated(piece) if piece.text else None,
            "relevance": piece.relevance if self.options.include_scores else None,
        }


def _truncated(piece: Piece) -> dict[str, Any] | None:
    trim = piece.trim
    return trim and {"lines": trim.missing_lines, "characters": trim.missing_characters, "expand": trim.id}


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields without None values."""
    return {name: value for name, value in fields.items() if value is not None}


def _rendered(value: object, indent: int | None = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def anthropic_content(sections: Sequence[Section], options: ContextBuildOptions) -> list[dict[str, Any]]:
    """`search_result` blocks, with the header and footer as text blocks around them."""
    blocks: list[dict[str, Any]] = []
    if options.context_header and options.context_header.strip():
        blocks.append(_text(make_visible(options.context_header).text))
    for pieces in _by_source(sections):
        lead = pieces[0].lead
        blocks.append(
            {
                "type": "search_result",
                "source": lead.path or lead.id,
                "title": _title(pieces),
                "content": [_text(_body(piece)) for piece in pieces],
                "citations": {"enabled": True},
            }
        )
    if options.cache_breakpoints:
        # The header stays from question to question, the sources stay while one is answered; the footer may not.
        for place in {0, len(blocks) - 1} if blocks else ():
            blocks[place]["cache_control"] = {"type": "ephemeral"}
    if options.context_footer and options.context_footer.strip():
        blocks.append(_text(make_visible(options.context_footer).text))
    return blocks


def openai_content(parts: Sequence[str]) -> list[dict[str, Any]]:
    """A text part for each non-empty part of the rendered text."""
    return [_text(part) for part in parts if part]


def strings_of(blocks: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Every string of Anthropic's blocks read by the model, each with a line end."""
    for block in blocks:
        if block["type"] == "text":
            yield block["text"] + "\n"
        else:
            yield f"{block['source']}\n{block['title']}\n"
            for text in block["content"]:
                yield text["text"] + "\n"


def _by_source(sections: Sequence[Section]) -> Iterator[list[Piece]]:
    """Runs of consecutive pieces from the same file."""
    run: list[Piece] = []
    for piece in (piece for section in sections for piece in section.pieces):
        if run and not (piece.lead.path and piece.lead.path == run[-1].lead.path):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _title(pieces: Sequence[Piece]) -> str:
    """The name, with the pages or the lines if known."""
    pages = list(dict.fromkeys(filter(None, map(page_of, pieces))))
    if pages:
        return f"{pieces[0].lead.name} ({', '.join(pages)})"
    lines = [f"{piece.first_line}-{piece.last_line}" for piece in pieces if lines_of(piece)]
    return f"{pieces[0].lead.name} (lines {', '.join(lines)})" if lines else pieces[0].lead.name


def _body(piece: Piece) -> str:
    """The citable text of the piece; never empty, because the API refuses empty text blocks."""
    lead = piece.lead
    parts = [text for text in (lead.summary, piece.text) if text and text.strip()]
    fallback = next(text for text in (lead.name, lead.path, lead.id, "-") if text and text.strip())
    return "\n".join(("\n\n".join(parts) or fallback, *([receipt(piece.trim)] if piece.trim else [])))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
