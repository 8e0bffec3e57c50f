"""What keeps the blocks and finds them again.

A store holds one workspace. What was committed stays; a search sees only what its readers may see, and that before any
ranking or limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.model.block import Activity, Block, Link, LinkKind
    from satchel.model.outline import Outline


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
    """What speaks for its file; one and the same for all of its pieces."""


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

    def settle_embedder(self, name: str, dimensions: int) -> None:
        """Record who makes the vectors; a second one raises EmbedderMismatch."""
        ...

    def lacking(self, text_hashes: Iterable[bytes]) -> set[bytes]:
        """Those of the hashed texts that have no vector yet."""
        ...

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of texts, by the texts' hashes."""
        ...

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Keep what history says, in place of what was kept; `head` tells when it must be read again."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps one workspace."""

    @property
    def generation(self) -> int:
        """Grows with every commit."""
        ...

    def seen(self) -> tuple[object, ...]:
        """What changes whenever a search could answer differently."""
        ...

    def notes(self) -> dict[str, str]:
        """What there is to say of files, by path."""
        ...

    def files(self) -> dict[str, FileState]:
        """Every file that is kept, by path."""
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Be the one writer for as long as several commits take. Another writer at work raises IndexBusy."""
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

    def paths(self, files: Sequence[int]) -> dict[int, str]:
        """The paths of files by the numbers that candidates carry."""
        ...

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """These pieces, in this order, without those that the readers may not see."""
        ...

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""
        ...

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as it was read, or None."""
        ...

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""
        ...

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, without their content, from top to bottom."""
        ...

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """What a block refers to, resolved by name where the workspace defines it."""
        ...

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """What refers to a block's name."""
        ...

    def last_changes(self, files: Sequence[int]) -> dict[int, int]:
        """When history says that files were changed last, in seconds since 1970, by their numbers."""
        ...

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """What happened, the newest first."""
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
