"""What a search may return, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which blocks a search may return.

    `readers` are the names under which the asking user may read: None for the owner of a workspace of one's own.
    """

    patterns: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    readers: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A piece of the workspace that may answer a question; a block of the workspace's own has no path."""

    id: str
    path: str
    start_line: int
    end_line: int
    relevance: float
    content: str
    language: str | None = None
    block_id: str = ""
    block_type: str = ""
    title: str = ""
    summary: str = ""
    signals: dict[str, float] = field(default_factory=dict)
    reanchored: bool = False
    likeness: float = 0.0
    """How like the question's its meaning is: a cosine, where `relevance` is a likelihood."""
    page: int | None = None
    """The page of a document, from 1; its lines are those of the text that was read from it."""
    is_passage: bool = False
    """Whether it is a passage of a document, which was ranked by itself."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and what the reader should know about them."""

    hits: tuple[SearchHit, ...]
    generation: int
    notes: tuple[str, ...] = ()
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Expansion:
    """The exact text behind an id, as the file says now; `stale` when the file is gone or says something else."""

    id: str
    path: str
    start_line: int
    end_line: int
    text: str
    language: str | None = None
    stale: bool = False
    page: int | None = None
