"""A hit on its way through the stages: its text made safe, its place known.

These are tuples rather than dataclasses because a build makes several for each hit, and a tuple is made in a third of
the time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.chunk import KnowledgeChunk
    from satchel.models.entity import EntityResult


class ItemKind(StrEnum):
    """A chunk of a file, or an entity with a name and a summary."""

    CHUNK = "chunk"
    ENTITY = "entity"


class Item(NamedTuple):
    """One hit: what will be shown of it, and everything a stage may ask of it.

    `place` is where it stood among the hits. `path`, `name` and `type` are safe on one line; `text` and `summary` hide
    nothing. `whole_lines` says that `text` has exactly one line for each number from `first_line` to `last_line`.
    """

    place: int
    id: str
    kind: ItemKind
    path: str
    name: str
    type: str
    category: str
    text: str
    summary: str
    language: str | None
    first_line: int | None
    last_line: int | None
    whole_lines: bool
    relevance: float
    modified: datetime | None
    made_visible: int
    origin: KnowledgeChunk | EntityResult
    page: int | None = None


class Trim(NamedTuple):
    """The receipt of a cut: how much is missing, and the id by which to get it."""

    id: str
    missing_lines: int
    missing_characters: int


class Piece(NamedTuple):
    """What is written under one citation number: an item, several joined, or part of one.

    `continues_file` says that the piece before it has the same file, so the heading need not say it again.
    """

    items: tuple[Item, ...]
    text: str
    first_line: int | None
    last_line: int | None
    relevance: float
    number: int = 0
    continues_file: bool = False
    trim: Trim | None = None

    @property
    def lead(self) -> Item:
        """The item that names the piece."""
        return self.items[0]


class Section(NamedTuple):
    """Pieces under one title, or under none."""

    title: str | None
    pieces: tuple[Piece, ...]
