"""A store of one workspace: all roles together, and its life from opening to closing.

What was committed stays. A caller that needs one role asks for that role: FileIndex, BlockTree, AccessControl,
ActivityLog or TransferSource.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from satchel.ports.access_control import AccessControl, AccessWriter
from satchel.ports.activity_log import ActivityLog, ActivityRecorder, ActivityWriter
from satchel.ports.block_tree import BlockTree, BlockTreeWriter
from satchel.ports.file_index import FileIndex, FileWriter
from satchel.ports.transfer import TransferSource, TransferTarget


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
    """Changes a workspace's blocks, links, grants, groups and activity; part of one commit."""


class StoreWriter(FileWriter, ActivityWriter, TransferTarget, Protocol):
    """One commit in the making: all of it becomes visible, or nothing."""

    @property
    def blocks(self) -> BlockWriter:
        """The writer of the workspace's own blocks in this commit."""

    def set_fact(self, name: str, value: str | int) -> None:
        """Store a fact about the whole store."""


class Store(FileIndex, BlockTree, AccessControl, ActivityLog, TransferSource, Protocol):
    """Stores one workspace."""

    @property
    def many_writers(self) -> bool:
        """True if commits of several writers queue; False if a writer must be the only one for its whole run."""

    @property
    def generation(self) -> int:
        """Grows with every commit."""

    def search_version(self) -> tuple[object, ...]:
        """A value that changes whenever a search could answer differently."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything that the calling thread reads inside is of one moment."""

    def lock(self, *, wait: float = 0) -> AbstractContextManager[None]:
        """Be the only writer for as long as several commits take.

        Another writer that still works after `wait` seconds raises IndexBusy.
        """

    def write(self) -> AbstractContextManager[StoreWriter]:
        """One commit. Another writer at work raises IndexBusy."""

    def catch_up(self) -> bool:
        """Refresh the search data from the committed rows; True if anything was to do."""

    def tidy(self) -> None:
        """Delete what nothing uses any more."""

    def fact(self, name: str) -> Any:
        """A fact about the whole store, or None."""

    def facts(self) -> StoreFacts:
        """The size and state of the store."""

    def close(self) -> None:
        """Release files and connections."""
