"""The store as a log of activity: who changed or viewed a block or file, and when."""

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
        """The commits in the version history with changes to files, newest first."""

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
        """The activity on blocks and files, newest first; with `latest` only the newest for each block or file."""

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """When files last changed in the version history, in seconds since 1970, by the numbers in candidates."""

    def history_head(self) -> str:
        """The last commit of the version history in the store, or ""."""


class ActivityWriter(Protocol):
    """Replaces the version history within a commit."""

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Replace the stored version history; a changed `head` means the history must be read again."""


class ActivityRecorder(Protocol):
    """Records activity on blocks within a commit."""

    def record(self, activity: Activity) -> None:
        """Add an activity on a block or file."""
