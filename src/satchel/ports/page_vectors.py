"""What keeps the vectors of pages: derived from the documents by content, so that they are never stale."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PageKey(NamedTuple):
    """A page of a document that is known by its content."""

    doc_id: str
    page: int


@runtime_checkable
class PageVectors(Protocol):
    """Keeps for each page one vector for a first look, and all of them for a second."""

    def documents(self) -> set[str]:
        """The documents whose pages are all in it."""

    def put(self, doc_id: str, pages: Mapping[int, NDArray[np.float32]]) -> None:
        """Keep all pages of a document, in one commit."""

    def drop(self, doc_ids: Collection[str]) -> None:
        """Forget documents."""

    def pooled(self, doc_ids: Collection[str]) -> tuple[list[PageKey], NDArray[np.float32]]:
        """The pages of these documents, and one vector for each."""

    def fetch(self, keys: Sequence[PageKey]) -> list[NDArray[np.float32]]:
        """All vectors of pages."""

    def close(self) -> None:
        """Let go of files."""
