"""What might be shown, on its way through the stages, and the pieces that are made of it.

These are tuples rather than dataclasses because a build makes several for each hit, and a tuple is made in a third of
the time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


class CandidateKind(StrEnum):
    """What a candidate is: lines of a file, a named entity, a page of a document, or a block of a workspace."""

    CHUNK = "chunk"
    ENTITY = "entity"
    PAGE = "page"
    BLOCK = "block"


class Candidate(NamedTuple):
    """Something that might be shown, and everything a stage may need to know about it.

    `place` is its position among everything that was gathered, and its key in every mapping of the pipeline. `path`,
    `name` and `type` are safe on one line; `text` and `summary` hide nothing. `whole_lines` says that `text` has
    exactly one line for each number from `first_line` to `last_line`. `trail` names what a block stands in, from the
    outside in.
    """

    place: int
    id: str
    kind: CandidateKind
    path: str = ""
    name: str = ""
    type: str = ""
    section: str = ""
    text: str = ""
    summary: str = ""
    language: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    whole_lines: bool = False
    relevance: float = 0.0
    modified: datetime | None = None
    made_visible: int = 0
    origin: object = None
    page: int | None = None
    trail: tuple[str, ...] = ()


class Trim(NamedTuple):
    """The receipt of a cut: how much is missing, and the id by which to get it."""

    id: str
    missing_lines: int
    missing_characters: int


class Shortened(NamedTuple):
    """Candidates cut to what is ever shown of them, whatever the budget is, and the receipts of those cuts."""

    candidates: Sequence[Candidate]
    trims: Mapping[int, Trim]


class Piece(NamedTuple):
    """What is written under one citation number: a candidate, several joined, or part of one.

    `continues_file` says that the piece before it has the same file, so the heading need not say it again. Number 0 is
    for what cannot be cited.
    """

    candidates: tuple[Candidate, ...]
    text: str
    first_line: int | None
    last_line: int | None
    relevance: float
    number: int = 0
    continues_file: bool = False
    trim: Trim | None = None

    @property
    def lead(self) -> Candidate:
        """The candidate that names the piece."""
        return self.candidates[0]


class Section(NamedTuple):
    """Pieces under one title, or under none."""

    title: str | None
    pieces: tuple[Piece, ...]
    name: str = ""


def alone(candidate: Candidate, number: int, trim: Trim | None = None) -> Piece:
    """The candidate as a piece of its own."""
    return Piece(
        candidates=(candidate,),
        text=candidate.text,
        first_line=candidate.first_line,
        last_line=candidate.last_line,
        relevance=candidate.relevance,
        number=number,
        trim=trim,
    )
