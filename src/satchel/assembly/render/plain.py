"""Plain text: a heading and a rule above each piece, and nothing else.

Plain text has no containers, so a line of content that looks like one of our headings gets a backslash in front (and
one that already has backslashes before such a heading gets one more). Taking one away gives the line back exactly.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from satchel.assembly.render.format import SYSTEM_SECTION, Format, line_words, lines_of, page_of, receipt
from satchel.assembly.render.markdown import block_heading, block_receipt
from satchel.assembly.render.pages import guard_page, page_heading
from satchel.models.chunk import CandidateKind
from satchel.models.options import HeadingStyle

if TYPE_CHECKING:
    from satchel.models.chunk import Piece
    from satchel.models.context import ContextSource

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
# The same for what stands around the blocks of a workspace.
_LOOKS_LIKE_A_BLOCK: Final = re.compile(
    r"^(?=\\*[^\S\n]*(?:=== .* ===[^\S\n]*$|\[|-{3,}[^\S\n]*$|User Query:|_No relevant))", re.MULTILINE | re.IGNORECASE
)


class PlainFormat(Format):
    """Renders plain text."""

    has_one_body = True
    cuts_entities = False
    """An entity is rendered whole, as its specification has it."""

    def heading(self, piece: Piece) -> str:
        """The line above a piece, and a rule below that of a chunk."""
        match piece.lead.kind:
            case CandidateKind.CHUNK:
                return self._chunk_heading(piece)
            case CandidateKind.ENTITY:
                return self._entity_heading(piece)
            case CandidateKind.PAGE:
                return page_heading(piece)
            case CandidateKind.BLOCK:
                return block_heading(self, piece)

    def body(self, piece: Piece) -> str:
        """The text, with a backslash before every line that looks like one of ours."""
        match piece.lead.kind:
            case CandidateKind.CHUNK:
                return f"{guarded(piece.text)}\n" + (f"{receipt(piece.trim)}\n" if piece.trim else "")
            case CandidateKind.ENTITY:
                return guarded(piece.lead.summary or piece.text)
            case CandidateKind.PAGE:
                return guard_page(piece.text)
            case CandidateKind.BLOCK:
                if piece.lead.section == SYSTEM_SECTION:
                    return piece.text
                return _LOOKS_LIKE_A_BLOCK.sub(r"\\", piece.text) + block_receipt(piece)

    def title(self, title: str) -> str:
        """A section's title between signs."""
        return f"=== {title} ==="

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        return f"  {super().source(source)}"

    def _chunk_heading(self, piece: Piece) -> str:
        options = self.options
        number = f"[{piece.number}]" if options.include_citations else ""
        if not options.include_file_headers:
            return f"{number}\n" if number else ""
        lines = lines_of(piece) if options.include_line_numbers else None
        name = piece.lead.path or piece.lead.name
        where = page_of(piece) or (line_words(*lines) if lines else "")
        if piece.continues_file:
            heading = " ".join(filter(None, (number, where.capitalize())))
            return f"{heading}\n{RULE}\n" if heading else f"{RULE}\n"
        place = f" ({where})" if where else ""
        before = f"{number} " if number else ""
        if options.heading_style is HeadingStyle.COMPACT:
            return f"{before}--- {name}{place} ---\n"
        place = f" (lines {lines[0]}-{lines[1]})" if lines else place
        return f"{before}File: {name}{place}\n{RULE}\n"

    def _entity_heading(self, piece: Piece) -> str:
        item = piece.lead
        number = f"[{piece.number}] " if self.options.include_citations else ""
        place = f"{item.path}:{item.first_line or 0}" if item.path else item.type
        return f"{number}{item.name} [{place}]\n"


def guarded(text: str) -> str:
    """The text with a backslash before every line that looks like one of this writer's own."""
    return _LOOKS_LIKE_OURS.sub(r"\\", text)


def unguarded(text: str) -> str:
    """The text as it was before `guarded`."""
    return _GUARDED.sub("", text)
