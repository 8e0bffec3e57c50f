"""The store as rows for transfer: everything as stored, for another store to import.

No read here checks access: the owner of a store owns everything in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from satchel.models.access import Grant
from satchel.models.block import Activity, Link

if TYPE_CHECKING:
    from satchel.models.access import Access
    from satchel.models.block import Block, Record
    from satchel.ports.file_index import NewFile

MOVING: Final = "moving"
"""The name of the fact in a store with an unfinished transfer; the value names the source of the transfer."""


class StoredFile(NamedTuple):
    """A file, or a block of the workspace, with all stored data.

    Equally good candidates are ordered by number, so the order of the numbers must be the same in every store.
    """

    number: int
    """Grows in insertion order; every store assigns its own numbers."""
    file: NewFile
    hashes: tuple[bytes, ...]
    """For each piece the hash of the embedded text, the key of the vector."""
    access: Access
    """The access list, computed from all grants."""
    has_own_readers: bool = False
    """True if the file brought its readers; grants at paths do not change them."""
    block: Block | None = None
    """The workspace's own block, without its text."""
    origin: str = ""
    """The source of the block."""

    @property
    def path(self) -> str:
        """The path in the store; the path of a block begins with a character forbidden in file names."""
        return self.file.path


class Member(NamedTuple):
    """A user who is in a group."""

    group: str
    user: str


class RowKind(StrEnum):
    """The kinds of rows beside files and blocks."""

    MEMBERS = "members"
    GRANTS = "grants"
    LINKS = "links"
    ACTIVITY = "activity"
    COMMITS = "commits"


TransferRow = Member | Grant | Link | Activity


class TransferReader(Protocol):
    """Reads stored rows in batches."""

    def count(self) -> int:
        """The number of files and blocks."""

    def files(self, *, after: int = 0, limit: int) -> list[StoredFile]:
        """The next files and blocks by number; fewer than `limit` if long, empty at the end."""

    def files_by_path(self, *, after: str = "", limit: int) -> list[StoredFile]:
        """The next files and blocks by the bytes of their paths; fewer than `limit` if long, empty at the end."""

    def files_at(self, paths: Sequence[str]) -> dict[str, StoredFile]:
        """The stored files and blocks with the given paths."""

    def paths(self, *, after: str = "", limit: int) -> list[str]:
        """The next paths in the order of their bytes."""

    def vectors(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors by the hashes of their texts, eight bits for each number."""

    def rows(self, kind: RowKind) -> Iterator[TransferRow]:
        """All rows of a kind, in insertion order or ordered by name."""

    def facts(self) -> dict[str, str]:
        """The facts with the same value in any store of the same content."""


class TransferWriter(Protocol):
    """Stores rows of another store unchanged, within a commit."""

    def put(self, files: Sequence[StoredFile], vectors: Mapping[bytes, bytes]) -> None:
        """Store files and blocks with their vectors, and replace any with the same paths."""

    def amend(self, stored: StoredFile) -> None:
        """Change the time, the readers or the place in the tree of a file or block with unchanged content."""

    def drop(self, paths: Iterable[str]) -> None:
        """Remove files and blocks; the rows beside them stay."""

    def put_rows(self, kind: RowKind, rows: Iterable[TransferRow]) -> None:
        """Append rows to the stored rows of a kind."""

    def clear_rows(self, kind: RowKind) -> None:
        """Remove all rows of a kind."""

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Store facts; the value None removes a fact."""


class TransferSource(Protocol):
    """Exports everything in a store to the store's owner."""

    @property
    def transfer(self) -> TransferReader:
        """All stored rows, for another store to import."""

    def records(self) -> Iterator[Record]:
        """Everything in the workspace except indexed files, as records for export."""


class TransferTarget(Protocol):
    """Imports the rows of another store within a commit."""

    @property
    def transfer(self) -> TransferWriter:
        """The writer of another store's rows."""
