"""What keeps the blocks and finds them again.

A store holds one workspace. What was committed stays; a search sees only what its readers may see, and that before any
ranking or limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.models.access import DefaultAccess, Grant, Group
    from satchel.models.block import Activity, Block, Link, LinkKind
    from satchel.models.outline import Outline, OutlinePage
    from satchel.models.records import Record
    from satchel.ports.keeping import KeptReader, KeptWriter


class FileState(NamedTuple):
    """What tells whether a file has changed since it was read."""

    content_hash: bytes
    size: int
    modified_ns: int
    read_ns: int
    """When it was read: a file whose status changed later has to be looked at again, whatever its own time says."""


_CLOCK_TICK_NS = 20_000_000
"""A file system's clock may lag behind ours by a few milliseconds."""


def is_untouched(state: FileState, size: int, modified_ns: int, changed_ns: int) -> bool:
    """Whether nothing can have been written to a file since it was read.

    Its own time can be set at will; the time of its last change of any kind cannot, and has to lie before the reading.
    """
    return (state.size, state.modified_ns) == (size, modified_ns) and changed_ns + _CLOCK_TICK_NS < state.read_ns


SAME_AS = "same content as "
"""How the note of a document begins that is kept as another of the very same content; the other's path follows."""


class NewFile(NamedTuple):
    """A file to be kept, with all that reading it gave.

    `readers` are those who may see it; None leaves that as it is, which for a new file is everyone.
    """

    path: str
    state: FileState
    text: str
    outline: Outline
    readers: tuple[str, ...] | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreQuery:
    """A question as a store can answer it: weighted terms, names that may be defined here, and a vector.

    `terms` maps each term to its weight in the question; `names` are identifiers, as written.
    """

    terms: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    vector: NDArray[np.float32] | None = None


class Candidate(NamedTuple):
    """A piece that may answer, with the raw evidence for it by name."""

    piece: int
    file: int
    signals: Mapping[str, float]
    """What speaks for the piece."""
    of_file: Mapping[str, float]
    """What speaks for its file; one and the same for all of its pieces, unless it is a passage."""
    is_passage: bool = False
    """Whether it is a passage of a document, which is ranked by itself and not with its file's other pieces."""


class Step(NamedTuple):
    """A block on the way up from another: enough to name it."""

    id: str
    type: str
    title: str


def steps_from(block_id: str, trails: Mapping[str, Sequence[Step]]) -> dict[str, int]:
    """The steps from a block to each of the others through what both have above them; where there is nothing, none."""
    up = {step.id: i for i, step in enumerate(trails.get(block_id, ()))}
    found: dict[str, int] = {}
    for block, trail in trails.items():
        meeting = next(((i, step.id) for i, step in enumerate(trail) if step.id in up), None)
        if meeting is not None:
            found[block] = meeting[0] + up[meeting[1]]
    return found


class StoredPiece(NamedTuple):
    """A piece with its text and its place."""

    id: int
    path: str
    language: str | None
    block: str
    block_type: str
    title: str
    summary: str
    first_line: int
    last_line: int
    text: str
    state: FileState
    page: int | None = None


class StoredPage(NamedTuple):
    """A page of a document with its text, and where the document is."""

    path: str
    title: str
    page: OutlinePage
    text: str
    state: FileState


class StoreFacts(NamedTuple):
    """What a store holds, in figures."""

    generation: int
    files: int
    blocks: int
    pieces: int
    mentions: int
    bytes_on_disk: int
    embedder: str
    behind: int = 0


@runtime_checkable
class BlockWriter(Protocol):
    """Changes a workspace's blocks, links, grants and groups; part of one commit."""

    def put(self, block: Block, outline: Outline, origin: str = "") -> None:
        """Keep a block in place of what was kept under its id; its children, links and grants stay."""
        ...

    def move(self, block_id: str, parent: str | None, position: float | None = None) -> None:
        """Hang a block, with all that is below it, somewhere else."""
        ...

    def delete(self, block_id: str) -> int:
        """Remove a block and all that is below it; how many that were."""
        ...

    def remove(self, block_id: str) -> None:
        """Remove a block alone; what is below it becomes a root, and stays as closed as it was."""
        ...

    def is_closed(self, block_id: str) -> bool:
        """Whether somebody is kept out at a block who would get in through its parent."""
        ...

    def link(self, link: Link) -> None:
        """Join a block to another, or to a name that nothing here goes by."""
        ...

    def unlink(self, block_id: str, *, kind: LinkKind | None = None, target: str | None = None) -> int:
        """Take away links that start at a block; how many that were."""
        ...

    def record(self, activity: Activity) -> None:
        """Keep what somebody did to a block."""
        ...

    def grant(self, grant: Grant) -> None:
        """Let a principal in, or keep it out, at a block and below it."""
        ...

    def revoke(self, block_id: str, who: str) -> None:
        """Take back what was granted to a principal at this very block."""
        ...

    def set_inherits(self, block_id: str, inherits: bool) -> None:
        """Whether a block takes over who may read its parent."""
        ...

    def set_default(self, default: DefaultAccess) -> None:
        """Who may read what nothing was said about."""
        ...

    def put_group(self, group: Group) -> None:
        """Keep a group in place of what was kept under its name."""
        ...


@runtime_checkable
class StoreWriter(Protocol):
    """One commit in the making: all of it becomes visible, or nothing."""

    def put(self, file: NewFile) -> None:
        """Keep a file in place of what was kept under its path."""
        ...

    def touch(self, path: str, state: FileState) -> None:
        """The same content with another time."""
        ...

    def drop(self, path: str) -> None:
        """Forget a file."""
        ...

    def set_fact(self, name: str, value: str | int) -> None:
        """Keep a fact about the whole."""
        ...

    def settle_embedder(self, name: str, dimensions: int) -> None:
        """Record who makes the vectors; a second one raises EmbedderMismatch."""
        ...

    def lacking(self, text_hashes: Iterable[bytes]) -> set[bytes]:
        """Those of the hashed texts that have no vector yet."""
        ...

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of texts, by the texts' hashes."""
        ...

    @property
    def blocks(self) -> BlockWriter:
        """What can be done to the workspace's own blocks in this commit."""
        ...

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Keep what history says, in place of what was kept; `head` tells when it must be read again."""
        ...

    @property
    def kept(self) -> KeptWriter:
        """What takes over from another store."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps one workspace."""

    @property
    def many_writers(self) -> bool:
        """Whether commits of several writers may come one after the other, without either being the only one."""
        ...

    @property
    def generation(self) -> int:
        """Grows with every commit."""
        ...

    def seen(self) -> tuple[object, ...]:
        """What changes whenever a search could answer differently."""
        ...

    def rights(self, filters: Filters) -> object:
        """What the readers may see: equal for two readers who may see the same, and for no others."""
        ...

    def notes(self) -> dict[str, str]:
        """What there is to say of files, by path."""
        ...

    def files(self) -> dict[str, FileState]:
        """Every file that is kept, by path."""
        ...

    def lock(self, *, wait: float = 0) -> AbstractContextManager[None]:
        """Be the one writer for as long as several commits take.

        Another writer who is still at work after `wait` seconds raises IndexBusy.
        """
        ...

    def write(self) -> AbstractContextManager[StoreWriter]:
        """One commit. Another writer at work raises IndexBusy."""
        ...

    def catch_up(self) -> bool:
        """Bring what is derived from the truth up to it; whether there was anything to do."""
        ...

    def tidy(self) -> None:
        """Drop what nothing uses any more."""
        ...

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The pieces with the most evidence, of what the readers may see, in a stable order."""
        ...

    def paths(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The paths of files by the numbers that candidates carry; the workspace's own blocks have none."""
        ...

    def titles(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The titles of the workspace's own blocks by the numbers that candidates carry."""
        ...

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """These pieces, in this order, without those that the readers may not see."""
        ...

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""
        ...

    def pages_of(self, path: str, filters: Filters, *, number: int | None = None) -> list[StoredPage]:
        """The pages of a document from first to last, or that one of them; none of what has no pages."""
        ...

    def documents(self, filters: Filters) -> dict[str, bytes]:
        """The documents that have pages, by path, with the hashes of their content."""
        ...

    def paths_of(self, content_hash: bytes, filters: Filters) -> list[str]:
        """The files of that very content."""
        ...

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as it was read, or None."""
        ...

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""
        ...

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""
        ...

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, without their content, from top to bottom."""
        ...

    def children(self, block_id: str, filters: Filters, *, limit: int) -> list[Block]:
        """The first children of a block."""
        ...

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and as many after it, the nearest first."""
        ...

    def descendants(self, block_id: str, filters: Filters, *, limit: int, deepest: int) -> list[Block]:
        """What is below a block in reading order."""
        ...

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each block that may be read the way up from itself, as far as that may be read."""
        ...

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """How many steps through the readable tree lead from a block to others; where none do, nothing."""
        ...

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """What a block refers to, resolved by name where the workspace defines it."""
        ...

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """What refers to a block's name."""
        ...

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """When history says that files were changed last, in seconds since 1970, by their numbers."""
        ...

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """What happened, the newest first."""
        ...

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
        """What was done to blocks and files, by one or by anybody, the newest first; with `latest` once for each."""
        ...

    def tasks(
        self,
        filters: Filters,
        *,
        done: bool | None = None,
        due_before: datetime | None = None,
        due_after: datetime | None = None,
        limit: int = 50,
    ) -> list[Block]:
        """Blocks with a due date, the longest due first."""
        ...

    def groups_of(self, user: str) -> frozenset[str]:
        """The groups that a user is in."""
        ...

    def default_access(self) -> DefaultAccess:
        """Who may read what nothing was said about."""
        ...

    def holds_blocks(self) -> bool:
        """Whether there are blocks that were not read from files."""
        ...

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks that came from a source."""
        ...

    def fact(self, name: str) -> Any:
        """A fact about the whole, or None."""
        ...

    def records(self) -> Iterator[Record]:
        """Everything in the workspace that is not read from files, for whoever owns it."""
        ...

    @property
    def kept(self) -> KeptReader:
        """Everything that is kept, for another store to take over."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Whatever the calling thread reads meanwhile is of one moment."""
        ...

    def embedder(self) -> str:
        """Who made the vectors, or nothing while there are none."""
        ...

    def history_head(self) -> str:
        """The commit up to which history was read, or nothing."""
        ...

    def facts(self) -> StoreFacts:
        """What is in it."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...
