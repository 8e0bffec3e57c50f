"""The same pieces as a provider's message content.

For Anthropic, a `search_result` block for each file with one text block for each piece, so that a citation by block
index is a citation of a piece. For OpenAI, text parts that joined are exactly the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satchel.assembly.render.format import lines_of, page_of, receipt
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from satchel.models.chunk import Piece, Section
    from satchel.models.options import ContextBuildOptions


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
    if options.context_footer and options.context_footer.strip():
        blocks.append(_text(make_visible(options.context_footer).text))
    return blocks


def openai_content(parts: Sequence[str]) -> list[dict[str, Any]]:
    """Text parts, one for each part of the finished text."""
    return [_text(part) for part in parts if part]


def strings_of(blocks: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Every string that the model is given to read in Anthropic's blocks, one line end apart."""
    for block in blocks:
        if block["type"] == "text":
            yield block["text"] + "\n"
        else:
            yield f"{block['source']}\n{block['title']}\n"
            for text in block["content"]:
                yield text["text"] + "\n"


def _by_source(sections: Sequence[Section]) -> Iterator[list[Piece]]:
    """Runs of pieces that follow each other and come from one file."""
    run: list[Piece] = []
    for piece in (piece for section in sections for piece in section.pieces):
        if run and not (piece.lead.path and piece.lead.path == run[-1].lead.path):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _title(pieces: Sequence[Piece]) -> str:
    """The name, with the pages or the lines where they are known."""
    pages = list(dict.fromkeys(filter(None, map(page_of, pieces))))
    if pages:
        return f"{pieces[0].lead.name} ({', '.join(pages)})"
    lines = [f"{piece.first_line}-{piece.last_line}" for piece in pieces if lines_of(piece)]
    return f"{pieces[0].lead.name} (lines {', '.join(lines)})" if lines else pieces[0].lead.name


def _body(piece: Piece) -> str:
    """What can be cited of the piece. The API refuses empty text blocks."""
    lead = piece.lead
    parts = [text for text in (lead.summary, piece.text) if text and text.strip()]
    named = next(text for text in (lead.name, lead.path, lead.id, "-") if text and text.strip())
    return "\n".join(("\n\n".join(parts) or named, *([receipt(piece.trim)] if piece.trim else [])))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
