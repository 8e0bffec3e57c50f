"""Chosen candidates become pieces, in the order in which they are written.

Chunks of one file that touch or overlap become one piece. Pieces are grouped by type and by file as asked; groups go
by their best score, and within a file pieces go by line.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from satchel.models.chunk import CATEGORY_ORDER, CATEGORY_TITLES, Candidate, CandidateKind, Piece, Section, Trim, alone
from satchel.models.options import Ordering

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.models.options import ContextBuildOptions

T = TypeVar("T")


def arrange(
    items: Sequence[Candidate],
    options: ContextBuildOptions,
    scores: Mapping[int, float],
    trims: Mapping[int, Trim],
) -> list[Section]:
    """The sections to write, their pieces numbered from 1."""
    pieces = _joined(items, trims) if options.merge_adjacent else [_piece(item, trims) for item in items]
    ranked = _Ranked(scores, options)
    if not options.group_by_type:
        sections = [Section(None, tuple(ranked.in_order(pieces)))]
    else:
        sections = [
            Section(CATEGORY_TITLES[category], tuple(ranked.in_order(members)), category)
            for category in CATEGORY_ORDER
            if (members := [piece for piece in pieces if piece.lead.section == category])
        ]
    return _numbered(sections, options)


class _Ranked:
    """Orders pieces by the score of their best item."""

    def __init__(self, scores: Mapping[int, float], options: ContextBuildOptions) -> None:
        self._scores = scores
        self._group_by_file = options.group_by_file
        self._ordering = options.ordering

    def in_order(self, pieces: Sequence[Piece]) -> list[Piece]:
        groups = self._groups(pieces)
        if self._ordering is Ordering.GIVEN or (self._ordering is None and self._keeps_given_order(pieces)):
            return [piece for group in sorted(groups, key=_given) for piece in group]
        groups.sort(key=lambda group: (-max(map(self._score, group)), _given(group)))
        if self._ordering is Ordering.EDGES:
            groups = best_at_the_edges(groups)
        return [piece for group in groups for piece in group]

    def _groups(self, pieces: Sequence[Piece]) -> list[list[Piece]]:
        if not self._group_by_file:
            return [[piece] for piece in pieces]
        groups: dict[object, list[Piece]] = {}
        for piece in pieces:
            lead = piece.lead
            in_file = lead.kind is CandidateKind.CHUNK and lead.path
            groups.setdefault(lead.path if in_file else lead.place, []).append(piece)
        for group in groups.values():
            group.sort(key=lambda piece: (piece.first_line or 0, piece.lead.place))
        return list(groups.values())

    def _keeps_given_order(self, pieces: Sequence[Piece]) -> bool:
        """Chunks that are not grouped stay as they came; entities always go by score."""
        return not self._group_by_file and all(piece.lead.kind is CandidateKind.CHUNK for piece in pieces)

    def _score(self, piece: Piece) -> float:
        if len(piece.candidates) == 1:
            return self._scores[piece.candidates[0].place]
        return max(self._scores[item.place] for item in piece.candidates)


def _given(group: Sequence[Piece]) -> int:
    if len(group) == len(group[0].candidates) == 1:
        return group[0].candidates[0].place
    return min(item.place for piece in group for item in piece.candidates)


def best_at_the_edges(ranked: Sequence[T]) -> list[T]:
    """The best first, the second best last, and so on inwards: models read the middle of a long context least."""
    return [*ranked[0::2], *reversed(ranked[1::2])]


def _numbered(sections: Sequence[Section], options: ContextBuildOptions) -> list[Section]:
    numbered = []
    number = 0
    for section in sections:
        pieces: list[Piece] = []
        before = None
        for piece in section.pieces:
            number += 1
            lead = piece.lead
            in_file = options.group_by_file and lead.kind is CandidateKind.CHUNK and bool(lead.path)
            continues = in_file and before == lead.path
            before = lead.path if in_file else None
            pieces.append(piece._replace(number=number, continues_file=continues))
        numbered.append(section._replace(pieces=tuple(pieces)))
    return numbered


def _piece(item: Candidate, trims: Mapping[int, Trim]) -> Piece:
    return alone(item, 0, trims.get(item.place))


def _joined(items: Sequence[Candidate], trims: Mapping[int, Trim]) -> list[Piece]:
    """A piece for each item, those joined that touch or overlap in one file."""
    pieces: list[Piece] = []
    by_file: dict[str, list[Candidate]] = {}
    for item in items:
        if item.whole_lines and item.path and item.place not in trims:
            by_file.setdefault(item.path, []).append(item)
        else:
            pieces.append(_piece(item, trims))
    for members in by_file.values():
        members.sort(key=attrgetter("first_line", "last_line", "place"))
        run = _Run(members[0])
        for item in members[1:]:
            if not run.takes(item):
                pieces.append(run.piece())
                run = _Run(item)
        pieces.append(run.piece())
    pieces.sort(key=lambda piece: piece.lead.place)
    return pieces


class _Run:
    """Items of one file that touch or overlap, and their lines once each."""

    def __init__(self, item: Candidate) -> None:
        assert item.first_line is not None
        assert item.last_line is not None
        self._items = [item]
        self._first = item.first_line
        self._last = item.last_line
        self._lines: list[str] | None = None

    def takes(self, item: Candidate) -> bool:
        """Add the item, unless it does not touch or disagrees on the lines it shares."""
        assert item.first_line is not None
        assert item.last_line is not None
        lead = self._items[0]
        if item.first_line > self._last + 1 or (item.language, item.type, item.page) != (
            lead.language,
            lead.type,
            lead.page,
        ):
            return False
        if self._lines is None:
            self._lines = lines_of_text(lead.text, self._first, self._last)
        more = lines_of_text(item.text, item.first_line, item.last_line)
        start = item.first_line - self._first
        shared = min(self._last, item.last_line) - item.first_line + 1
        if shared > 0 and self._lines[start : start + shared] != more[:shared]:
            return False
        self._lines += more[max(shared, 0) :]
        self._last = max(self._last, item.last_line)
        self._items.append(item)
        return True

    def piece(self) -> Piece:
        """What is written of the run."""
        lead = self._items[0]
        text = lead.text if self._lines is None else "\n".join(self._lines)
        return Piece(
            candidates=tuple(self._items),
            text=text,
            first_line=self._first,
            last_line=self._last,
            relevance=max(item.relevance for item in self._items),
        )


def lines_of_text(text: str, first: int, last: int) -> list[str]:
    """The lines from `first` to `last`; a line end after the last one is not a line of its own."""
    return text.split("\n")[: last - first + 1]


def touches(piece: Piece, item: Candidate) -> bool:
    """Whether the item could be joined to the piece."""
    if (piece.lead.path, piece.lead.page) != (item.path, item.page):
        return False
    if not item.whole_lines or not piece.lead.whole_lines:
        return False
    assert piece.first_line is not None
    assert piece.last_line is not None
    assert item.first_line is not None
    assert item.last_line is not None
    return item.first_line <= piece.last_line + 1 and piece.first_line <= item.last_line + 1


def shows(piece: Piece, item: Candidate) -> bool:
    """Whether the piece already shows every line of the item."""
    if piece.trim is not None or not touches(piece, item):
        return False
    assert piece.first_line is not None
    assert piece.last_line is not None
    assert item.first_line is not None
    assert item.last_line is not None
    if item.first_line < piece.first_line or item.last_line > piece.last_line:
        return False
    start = item.first_line - piece.first_line
    lines = lines_of_text(item.text, item.first_line, item.last_line)
    return lines_of_text(piece.text, piece.first_line, piece.last_line)[start : start + len(lines)] == lines


def lines_not_shown(piece: Piece, item: Candidate) -> Candidate | None:
    """The item from the first line after the piece, where the piece shows the lines before that; else None."""
    if piece.trim is not None or not touches(piece, item):
        return None
    assert piece.first_line is not None
    assert piece.last_line is not None
    assert item.first_line is not None
    assert item.last_line is not None
    if not piece.first_line <= item.first_line <= piece.last_line < item.last_line:
        return None
    lines = lines_of_text(item.text, item.first_line, item.last_line)
    shared = piece.last_line - item.first_line + 1
    start = item.first_line - piece.first_line
    if lines_of_text(piece.text, piece.first_line, piece.last_line)[start:] != lines[:shared]:
        return None
    return item._replace(text="\n".join(lines[shared:]), first_line=piece.last_line + 1)
