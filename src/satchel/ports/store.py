"""The store of a workspace: all roles together, and the life cycle from opening to closing.

Committed data is durable. A caller with need for a single role takes the protocol of the role: FileIndex, BlockTree,
AccessControl, ActivityLog or TransferSource.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from satchel.ports.access_control import AccessControl, AccessWriter
from satchel.ports.activity_log import ActivityLog, ActivityRecorder, ActivityWriter
from satchel.ports.block_tree import BlockTree, BlockTreeWriter
from satchel.ports.file_index import FileIndex, FileWriter
from satchel.ports.transfer import TransferSource, TransferTarget

if TYPE_CHECKING:
    from satchel.models.search import Filters


class StoreFacts(NamedTuple):
    """The size and state of a store."""

    generation: int
    files: int
    blocks: int
    pieces: int
    mentions: int
    bytes_on_disk: int
    embedder: str
    behind: int = 0


class BlockWriter(BlockTreeWriter, AccessWriter, ActivityRecorder, Protocol):
    """Changes a workspace's blocks, links, grants, groups and activity within a commit."""


class StoreWriter(FileWriter, ActivityWriter, TransferTarget, Protocol):
    """An open commit: atomic, either all changes become visible or none."""

    @property
    def blocks(self) -> BlockWriter:
        """The writer of the workspace's own blocks in this commit."""

    def set_fact(self, name: str, value: str | int) -> None:
        """Store a fact about the whole store."""


class Store(FileIndex, BlockTree, AccessControl, ActivityLog, TransferSource, Protocol):
    """Stores a workspace."""

    @property
    def many_writers(self) -> bool:
        """True if commits of several writers queue; False if a writer needs exclusive access for a whole run."""

    @property
    def generation(self) -> int:
        """The number of the last commit; grows with every commit."""

    def generation_for(self, filters: Filters) -> int:
        """The number of the last commit with an effect that these readers can see; every commit for the owner."""

    def search_version(self, filters: Filters) -> tuple[object, ...]:
        """A value that changes whenever search results for these readers could change."""

    def snapshot(self) -> AbstractContextManager[None]:
        """A context in which all reads of the calling thread see the same state."""

    def lock(self, *, wait: float = 0) -> AbstractContextManager[None]:
        """Hold exclusive write access over several commits.

        Another writer that still works after `wait` seconds raises IndexBusy.
        """

    def write(self) -> AbstractContextManager[StoreWriter]:
        """A commit. Raises IndexBusy if another writer is active."""

    def catch_up(self, *, partly: bool = False) -> bool:
        """Refresh the search data from the committed rows; True if there was anything to refresh.

        With `partly`, during an index run, data computed over all files are left for the end of the run.
        """

    def tidy(self) -> None:
        """Delete unused data."""

    def fact(self, name: str) -> Any:
        """A fact about the whole store, or None."""

    def facts(self) -> StoreFacts:
        """The size and state of the store."""

    def close(self) -> None:
        """Release files and connections."""
