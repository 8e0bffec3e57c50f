"""Renders plain text: a heading and a rule above each piece, and nothing else.

Plain text has no containers. A content line that looks like a heading of this format gets a backslash in front, also
if the line already begins with backslashes. Removing a backslash gives the exact line back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from satchel.assembly.render.format import TextFormat, receipt
from satchel.models.options import HeadingStyle

if TYPE_CHECKING:
    from satchel.models.chunk import Piece
    from satchel.models.context import ContextSource

RULE: Final = "-" * 40

# Every kind of line rendered before, between or after pieces.
OUR_LINES: Final = (
    r"(?:\[\d+\] ?)?(?:File: |--- .* ---$|[Ll]ines? \d+(?:-\d+)?$)"
    r"|\[\d+\](?: .*)?$|-{40,}$|=== .* ===$|Sources:$|\[truncated: "
    # The lookahead checks the end of the line first: a long line is not searched again for each bracket.
    r"|(?=[^\n]*\]$)[^\n]* \["
)
_LOOKS_LIKE_OURS: Final = re.compile(rf"^(?=\\*(?:{OUR_LINES}))", re.MULTILINE)
# Lines rendered around the blocks of a workspace.
_LOOKS_LIKE_A_BLOCK: Final = re.compile(
    r"^(?=\\*[^\S\n]*(?:=== .* ===[^\S\n]*$|\[|-{3,}[^\S\n]*$|User Query:|_No relevant))", re.MULTILINE | re.IGNORECASE
)


class PlainFormat(TextFormat):
    """Renders plain text, with a backslash before content lines that look like headings of this format."""

    has_one_body = True
    cuts_entities = False
    """Entities are rendered whole, as specified."""

    def title(self, title: str) -> str:
        """The title of a section between equals signs."""
        return f"=== {title} ==="

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        return f"  {super().source(source)}"

    def chunk_heading(self, piece: Piece, number: str, lines: tuple[int, int] | None) -> str:
        """The number, the file and the lines, with a rule below."""
        where = self.place(piece, lines)
        if piece.continues_file:
            symbol = self.symbol(piece)
            heading = " ".join(filter(None, (number, f"{symbol} ({where})" if symbol else where.capitalize())))
            return f"{heading}\n{RULE}\n" if heading else f"{RULE}\n"
        symbol = self.symbol(piece)
        name, place = piece.lead.path or piece.lead.name, f" ({where})" if where else ""
        name = f"{name} · {symbol}" if symbol else name
        before = f"{number} " if number else ""
        if self.options.heading_style is HeadingStyle.COMPACT:
            return f"{before}--- {name}{place} ---\n"
        if not self.is_named:
            place = f" (lines {lines[0]}-{lines[1]})" if lines else place
        return f"{before}File: {name}{place}\n{RULE}\n"

    def chunk_body(self, piece: Piece) -> str:
        """The lines and the receipt."""
        return f"{guarded(piece.text)}\n" + (f"{receipt(piece.trim)}\n" if piece.trim else "")

    def entity_heading(self, piece: Piece) -> str:
        """The number, the name and the place on a single line."""
        item = piece.lead
        place = f"{item.path}:{item.first_line or 0}" if item.path else item.type
        return f"{self.number_label(piece)}{item.name} [{place}]\n"

    def entity_body(self, piece: Piece) -> str:
        """The summary, or the content if the summary is empty."""
        return guarded(piece.lead.summary or piece.text)

    def block_body(self, piece: Piece) -> str:
        """The text of a block."""
        return _LOOKS_LIKE_A_BLOCK.sub(r"\\", piece.text)


def guarded(text: str) -> str:
    """The text with a backslash before every line that looks like a heading of this format."""
    return _LOOKS_LIKE_OURS.sub(r"\\", text)
