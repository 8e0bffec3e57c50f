"""What turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """Texts in, one unit vector for each out.

    `name` says which model made the vectors: an index keeps it, and refuses vectors of another.
    """

    @property
    def name(self) -> str:
        """The model, its version and whatever else changes the vectors."""

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of things to be found, one row each; a row of zeros for a text without meaning to the model."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
