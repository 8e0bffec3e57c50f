"""The interface of a text embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """Turns each text into a unit vector.

    `name` identifies the model behind the vectors: an index stores the name and refuses vectors of another model.
    """

    @property
    def name(self) -> str:
        """The model, the version and everything else with an effect on the vectors."""

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts to be found, a row for each; a row of zeros for a text without meaning to the model."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
