"""What prepares files for the store: parses or reads them, cuts them into pieces, and may make the pieces' vectors.

Whoever does the work, the same job gives the same result; it may be done twice, and done again elsewhere.
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
    """Whether vectors are wanted; what the store probably has already need not be made again."""


class Vectors(NamedTuple):
    """The vectors of texts, by the texts' hashes: plain bytes, which cross process borders as they are."""

    hashes: tuple[bytes, ...]
    rows: bytes
    """Little-endian float32, one vector after the other."""

    def as_array(self) -> NDArray[np.float32]:
        """One row for each hash."""
        import numpy as np

        count = len(self.hashes)
        return np.frombuffer(self.rows, "<f4").reshape(count, len(self.rows) // (4 * max(count, 1)))


class Prepared(NamedTuple):
    """A file as the store keeps it."""

    path: str
    outline: Outline
    text: str = ""
    """What was read from a document; of a source, whoever gave the job has the text."""
    unreadable: str = ""
    """Why a document could not be read."""
    vectors: Vectors | None = None
    """Of its pieces; None where whoever gave the job makes them."""


class Load(NamedTuple):
    """How much there is to prepare, in bytes."""

    sources: int
    documents: int


@runtime_checkable
class Workers(Protocol):
    """Those who prepare files."""

    @property
    def count(self) -> int:
        """How many work at once."""

    @property
    def notes(self) -> Sequence[str]:
        """What there is to say about how the work went."""

    def prepare(self, jobs: Iterable[Job]) -> Iterator[Prepared]:
        """The files of the jobs, in their order; only so many jobs are taken as are worked at."""


WorkersMaker = Callable[[Load], AbstractContextManager[Workers]]
"""Who finds workers for a load; they are let go with the context."""
