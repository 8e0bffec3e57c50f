"""The store as a log of activity: who changed or viewed which block or file, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from satchel.models.block import Activity
    from satchel.models.search import Filters


class ActivityLog(Protocol):
    """Reads the activity on blocks and the version history of files."""

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """The commits of the version history that changed files, the newest first."""

    def recent(
        self,
        filters: Filters,
        *,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        actions: Sequence[str] = (),
        latest: bool = False,
        limit: int = 50,
    ) -> list[Activity]:
        """The activity on blocks and files, the newest first; with `latest` one entry for each block or file."""

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """When files last changed in the version history, in seconds since 1970, by the numbers in candidates."""

    def history_head(self) -> str:
        """The commit up to which the version history was read, or ""."""


class ActivityWriter(Protocol):
    """Replaces the version history; part of one commit."""

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Store the version history in place of the old; another `head` means it must be read again."""


class ActivityRecorder(Protocol):
    """Records activity on blocks; part of one commit."""

    def record(self, activity: Activity) -> None:
        """Add one activity on a block or file."""
