"""Workers prepare files for the store: parse files, split them into pieces, and optionally embed the pieces.

Jobs are deterministic and may be repeated: every worker returns the same result for the same job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from satchel.models.outline import Outline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Job(NamedTuple):
    """A file to be prepared: the text of a source, or the bytes of a document."""

    path: str
    text: str = ""
    data: bytes | None = None
    embed: bool = True
    """True to embed the pieces; False if the store probably has the vectors already."""
    prepared: Prepared | None = None
    """The prepared file, if an earlier run has made it: then only passed on, in its place among the others."""


class Vectors(NamedTuple):
    """The vectors of texts with the texts' hashes, as plain bytes for transport between processes."""

    hashes: tuple[bytes, ...]
    rows: bytes
    """Little-endian float32, vector after vector."""

    def as_array(self) -> NDArray[np.float32]:
        """The vectors as an array with a row for each hash."""
        import numpy as np

        count = len(self.hashes)
        return np.frombuffer(self.rows, "<f4").reshape(count, len(self.rows) // (4 * max(count, 1)))


class Prepared(NamedTuple):
    """A file prepared for the store."""

    path: str
    outline: Outline
    text: str = ""
    """The text read from a document; empty for a source, as the caller has the text."""
    unreadable: str = ""
    """Why a document could not be read."""
    vectors: Vectors | None = None
    """The vectors of the pieces; None if the caller makes them."""


class Load(NamedTuple):
    """The amount of work to prepare, in bytes."""

    sources: int
    documents: int


@runtime_checkable
class Workers(Protocol):
    """A group of workers for the preparation of files."""

    @property
    def count(self) -> int:
        """The number of parallel workers."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for the user on the run."""

    def prepare(self, jobs: Iterable[Job]) -> Iterator[Prepared]:
        """The prepared files in the order of the jobs; no more jobs are taken than are in work."""


WorkersMaker = Callable[[Load], AbstractContextManager[Workers]]
"""Returns workers for a load; the end of the context releases them."""
