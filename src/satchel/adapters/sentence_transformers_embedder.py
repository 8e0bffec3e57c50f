"""Vectors from a sentence-transformers model: a folder on disk, or a name that the library knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SentenceTransformersEmbedder:
    """The model is loaded when the first text comes; prompts for queries and documents are used where it has them."""

    def __init__(self, model: str | Any, *, batch_size: int = 32) -> None:
        self._given = model
        self._batch_size = batch_size
        self._loaded: Any = None if isinstance(model, str) else model

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError:
                reason = "needs an extra: pip install 'satchel[sentence-transformers]'"
                raise EmbedderUnavailable(str(self._given), reason) from None
            try:
                self._loaded = SentenceTransformer(self._given)
            except (OSError, ValueError) as error:
                raise EmbedderUnavailable(str(self._given), f"the model cannot be loaded ({error})") from error
        return self._loaded

    @property
    def name(self) -> str:
        """The model."""
        given = self._given if isinstance(self._given, str) else type(self._given).__name__
        return f"sentence-transformers:{given}"

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""
        return int(self._model().get_sentence_embedding_dimension())

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of things to be found."""
        return self._encoded(texts, "encode_document")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self._encoded([text], "encode_query")[0]
        return row

    def _encoded(self, texts: Sequence[str], method: str) -> NDArray[np.float32]:
        model = self._model()
        encode = getattr(model, method, model.encode)
        vectors = encode(
            list(texts),
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, np.float32)
