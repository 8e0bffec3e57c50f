"""Whether what a tool cites stands where it says: path and lines against the file."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.scoreboard.evidence import Corpus
from satchel.assembly.units import elisions_in
from satchel.evaluation.judging import Shown
from satchel.text.visible import make_visible


def stands(piece: Shown, corpus: Corpus) -> bool | None:
    """Whether the piece's lines are the lines that it names; None when it names none.

    The first and the last line that say anything have to be the file's at just those lines, or be elision lines that
    begin or end there; between them something may be left out. A piece that a splitter cut within lines is right when all of it stands inside the lines that it names.
    """
    if piece.first is None or piece.last is None or not piece.text.strip():
        return None
    lines = corpus.lines(piece.path, piece.first, piece.last)
    if lines is None:
        return False
    if piece.text.strip() in "\n".join(lines):
        return True
    named = [line.strip() for line in lines if line.strip()]
    shown = [line.strip() for line in piece.text.split("\n") if line.strip()]
    begins, ends = elisions_in(shown[0]), elisions_in(shown[-1])
    is_first_right = begins[0].first == piece.first if begins else bool(named) and _same(shown[0], named[0])
    is_last_right = ends[0].last == piece.last if ends else bool(named) and _same(shown[-1], named[-1])
    return is_first_right and is_last_right


def _same(shown: str, named: str) -> bool:
    """Equal, or cut in the middle of a line as splitters by characters do; hidden characters may be written out."""
    return any(
        shown == line or line.endswith(shown) or line.startswith(shown) for line in (named, make_visible(named).text)
    )


def share_that_stands(pieces: Sequence[Shown], corpus: Corpus) -> tuple[int, int]:
    """How many pieces stand where they say, of how many that say where."""
    found = [verdict for piece in pieces if (verdict := stands(piece, corpus)) is not None]
    return sum(found), len(found)
