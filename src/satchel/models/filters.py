"""Which files and blocks a read may return."""

from __future__ import annotations

from dataclasses import dataclass
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
