"""A format: Org mode, with a headline for each piece and its text in an example block."""

import re

from satchel.assembly.render.format import Format, line_words, lines_of, page_of, receipt
from satchel.models.chunk import Piece

# What would be Org inside a block gets a comma in front; Org takes the comma away again.
_ORG_LINE = re.compile(r"^([ \t]*)(?=,*(?:\*|#\+))", re.MULTILINE)


class OrgFormat(Format):
    """Renders Org mode."""

    has_one_body = True

    def title(self, title: str) -> str:
        """A headline above the pieces."""
        return f"* {title}"

    def heading(self, piece: Piece) -> str:
        """A headline that says where the piece is from."""
        lines = lines_of(piece)
        place = page_of(piece) or (line_words(*lines) if lines else piece.lead.type)
        name = piece.lead.path or piece.lead.name or piece.lead.id
        return f"** {self.number_label(piece)}{name} ({place})\n#+begin_example\n"

    def body(self, piece: Piece) -> str:
        """The text, in which nothing can end the block."""
        text = _ORG_LINE.sub(r"\1,", piece.text or piece.lead.summary)
        return f"{text}\n#+end_example\n" + (f"{receipt(piece.trim)}\n" if piece.trim else "")
