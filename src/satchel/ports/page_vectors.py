"""Storage of page vectors, keyed by document content; a changed document has a new key, hence no stale vectors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PageKey(NamedTuple):
    """A page of a document; `doc_id` is derived from the content."""

    doc_id: str
    page: int


@runtime_checkable
class PageVectors(Protocol):
    """Stores for each page a pooled vector for the first search stage, and all vectors for the second (MaxSim)."""

    def documents(self) -> set[str]:
        """The ids of the documents with vectors for all pages."""

    def put(self, doc_id: str, pages: Mapping[int, NDArray[np.float32]]) -> None:
        """Store the vectors of all pages of a document in a single commit."""

    def drop(self, doc_ids: Collection[str]) -> None:
        """Remove the vectors of documents."""

    def pooled(self, doc_ids: Collection[str]) -> tuple[list[PageKey], NDArray[np.float32]]:
        """The pages of these documents, and a pooled vector for each page."""

    def fetch(self, keys: Sequence[PageKey]) -> list[NDArray[np.float32]]:
        """All vectors of each page, in the order of the keys."""

    def close(self) -> None:
        """Release files."""
