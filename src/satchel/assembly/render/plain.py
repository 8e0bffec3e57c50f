"""Plain text: a heading and a rule above each piece, and nothing else.

Plain text has no containers, so a line of content that looks like one of our headings gets a backslash in front (and
one that already has backslashes before such a heading gets one more). Taking one away gives the line back exactly.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from satchel.assembly.render.document import Bodies, Document, Sheet, line_words, lines_of, page_of, receipt, write_text
from satchel.models.item import ItemKind
from satchel.models.options import HeadingStyle
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.models.citation import ContextSource
    from satchel.models.item import Piece
    from satchel.models.options import ContextBuildOptions

RULE: Final = "-" * 40

# Every line that this writer may put in front of, between or after pieces.
_OURS: Final = (
    r"(?:\[\d+\] ?)?(?:File: |--- .* ---$|[Ll]ines? \d+(?:-\d+)?$)"
    r"|\[\d+\](?: .*)?$|-{40,}$|=== .* ===$|Sources:$|\[truncated: "
    # The end of the line is looked at first, so that a long line is not searched again for each bracket.
    r"|(?=[^\n]*\]$)[^\n]* \["
)
_LOOKS_LIKE_OURS: Final = re.compile(rf"^(?=\\*(?:{_OURS}))", re.MULTILINE)
_GUARDED: Final = re.compile(rf"^\\(?=\\*(?:{_OURS}))", re.MULTILINE)


class PlainWriter:
    """Writes plain text."""

    def __init__(self, options: ContextBuildOptions) -> None:
        self._options = options
        self.separator = make_visible(options.chunk_separator).text
        self._bodies = Bodies(_body)

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The heading, and the text under it."""
        heading = self._entity_heading if piece.lead.kind is ItemKind.ENTITY else self._heading
        return heading(piece), self._bodies.of(piece, after)

    def title(self, title: str) -> str:
        """A section's title between signs."""
        return f"=== {title} ==="

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        number = f"[{source.number}] " if self._options.include_citations else ""
        return f"  - {number}{source.label}\n"

    def write(self, document: Document) -> Sheet:
        """The whole document."""
        rows = "".join(map(self.source, document.sources))
        return write_text(
            self,
            document,
            header=make_visible(self._options.context_header or "").text,
            footer=make_visible(self._options.context_footer or "").text.rstrip(),
            sources=f"Sources:\n{rows}" if rows else "",
            section_break="---",
        )

    def _heading(self, piece: Piece) -> str:
        options = self._options
        number = f"[{piece.number}]" if options.include_citations else ""
        if not options.include_file_headers:
            return f"{number}\n" if number else ""
        lines = lines_of(piece) if options.include_line_numbers else None
        name = piece.lead.path or piece.lead.name
        where = page_of(piece) or (line_words(*lines) if lines else "")
        if piece.continues_file:
            told = where.capitalize()
            heading = " ".join(filter(None, (number, told)))
            return f"{heading}\n{RULE}\n" if heading else f"{RULE}\n"
        told = f" ({where})" if where else ""
        before = f"{number} " if number else ""
        if options.heading_style is HeadingStyle.COMPACT:
            return f"{before}--- {name}{told} ---\n"
        told = f" (lines {lines[0]}-{lines[1]})" if lines else told
        return f"{before}File: {name}{told}\n{RULE}\n"

    def _entity_heading(self, piece: Piece) -> str:
        item = piece.lead
        number = f"[{piece.number}] " if self._options.include_citations else ""
        place = f"{item.path}:{item.first_line or 0}" if item.path else item.type
        return f"{number}{item.name} [{place}]\n"


def _body(piece: Piece) -> str:
    if piece.lead.kind is ItemKind.ENTITY:
        return guarded(piece.lead.summary or piece.text)
    tail = f"{receipt(piece.trim)}\n" if piece.trim else ""
    return f"{guarded(piece.text)}\n{tail}"


def guarded(text: str) -> str:
    """The text with a backslash before every line that looks like one of this writer's own."""
    return _LOOKS_LIKE_OURS.sub(r"\\", text)


def unguarded(text: str) -> str:
    """The text as it was before `guarded`."""
    return _GUARDED.sub("", text)
