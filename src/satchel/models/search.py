"""Search filters and search results."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters for the blocks of a search.

    `readers` are the principals of the requesting user; None (no limit) for the owner of a single-user workspace.
    """

    patterns: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    readers: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A search hit: a piece of a file, or a workspace block (without a path)."""

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
    """Cosine similarity of the vectors of hit and question (`relevance` is a probability)."""
    page: int | None = None
    """The page of a document, from 1; line numbers refer to the extracted text."""
    is_passage: bool = False
    """True if the hit is a passage of a document, ranked on its own."""
    why: str = ""
    """What speaks for a hit of a change: `calls Session.send`."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, with notes for the reader."""

    hits: tuple[SearchHit, ...]
    generation: int
    notes: tuple[str, ...] = ()
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Expansion:
    """The current exact text for an id; `stale` if the file is gone or has changed."""

    id: str
    path: str
    start_line: int
    end_line: int
    text: str
    language: str | None = None
    stale: bool = False
    page: int | None = None
