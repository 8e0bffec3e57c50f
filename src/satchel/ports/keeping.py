"""What a store keeps, as it keeps it: for whoever carries all of it to another store.

Nothing here asks who may read. Whoever holds a store holds all that is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from satchel.models.access import Grant
from satchel.models.block import Activity, Link

if TYPE_CHECKING:
    from satchel.models.access import Access
    from satchel.models.block import Block
    from satchel.ports.store import NewFile

MOVING: Final = "moving"
"""The fact that says that a store is still being filled from another, and from which."""


class KeptFile(NamedTuple):
    """A file, or a block of the workspace's own, with everything that is kept of it.

    What is found to be equally good is shown in the order of the numbers: it must be the same elsewhere.
    """

    number: int
    """Grows with the order in which files and blocks were put; another store gives its own."""
    file: NewFile
    hashes: tuple[bytes, ...]
    """For each of its pieces, under which hash the vector is kept."""
    access: Access
    """Who may read it, worked out from all that was granted."""
    has_own_readers: bool = False
    """Whether its readers were named with it, so that grants at paths do not change them."""
    block: Block | None = None
    """What the workspace says of its own block, without its text."""
    origin: str = ""
    """The source that the block came from."""

    @property
    def path(self) -> str:
        """Under which it is kept; a block's begins with what no file's name can hold."""
        return self.file.path


class Member(NamedTuple):
    """A user who is in a group."""

    group: str
    user: str


class RowKind(StrEnum):
    """What is kept beside files and blocks, one thing after the other."""

    MEMBERS = "members"
    GRANTS = "grants"
    LINKS = "links"
    DEEDS = "deeds"
    COMMITS = "commits"


KeptRow = Member | Grant | Link | Activity


class KeptReader(Protocol):
    """Gives out what a store keeps, some at a time."""

    def count(self) -> int:
        """How many files and blocks there are."""
        ...

    def files(self, *, after: int = 0, limit: int) -> list[KeptFile]:
        """The next in the order of their numbers; fewer than `limit` where they are long, none at the end."""
        ...

    def files_by_path(self, *, after: str = "", limit: int) -> list[KeptFile]:
        """The next in the order of their paths' bytes; fewer than `limit` where they are long, none at the end."""
        ...

    def files_at(self, paths: Sequence[str]) -> dict[str, KeptFile]:
        """Those that are kept under these paths."""
        ...

    def paths(self, *, after: str = "", limit: int) -> list[str]:
        """The next paths in the order of their bytes."""
        ...

    def vectors(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors by the hashes of their texts, eight bits for each number."""
        ...

    def rows(self, kind: RowKind) -> Iterator[KeptRow]:
        """All of a kind, in the order in which they were put, or of their names."""
        ...

    def facts(self) -> dict[str, str]:
        """The facts that are as true of the same things elsewhere."""
        ...


class KeptWriter(Protocol):
    """Takes over what another store keeps, as it is kept there; part of one commit."""

    def put(self, files: Sequence[KeptFile], vectors: Mapping[bytes, bytes]) -> None:
        """Keep files and blocks, with vectors, in place of what was kept under their paths."""
        ...

    def amend(self, kept: KeptFile) -> None:
        """The same text, read the same way: with another time, other readers, or another place in the tree."""
        ...

    def drop(self, paths: Iterable[str]) -> None:
        """Forget files and blocks; what is kept beside them stays."""
        ...

    def put_rows(self, kind: RowKind, rows: Iterable[KeptRow]) -> None:
        """Keep these after those that are kept already."""
        ...

    def clear_rows(self, kind: RowKind) -> None:
        """Forget all of a kind."""
        ...

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Keep facts; None takes one away."""
        ...
