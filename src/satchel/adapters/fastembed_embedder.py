"""Vectors from a fastembed model (ONNX, no torch)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FastembedEmbedder:
    """The model is loaded when the first text comes; a `TextEmbedding` of your own works in place of a name."""

    def __init__(self, model: str | Any, *, name: str | None = None) -> None:
        self._loaded: Any = None if isinstance(model, str) else model
        self._model_name = name or (model if isinstance(model, str) else type(model).__name__)
        self._dimensions = 0

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                from fastembed import TextEmbedding
            except ImportError:
                reason = "needs an extra: pip install 'satchel[fastembed]'"
                raise EmbedderUnavailable(self._model_name, reason) from None
            try:
                self._loaded = TextEmbedding(self._model_name)
            except (OSError, ValueError) as error:
                raise EmbedderUnavailable(self._model_name, f"the model cannot be loaded ({error})") from error
        return self._loaded

    @property
    def name(self) -> str:
        """The model."""
        return f"fastembed:{self._model_name}"

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""
        if not self._dimensions:
            self._dimensions = len(self.embed_query("length"))
        return self._dimensions

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of things to be found."""
        return _rows(self._model().passage_embed(list(texts)))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = _rows(self._model().query_embed([text]))[0]
        return row


def _rows(vectors: Iterable[Any]) -> NDArray[np.float32]:
    rows = np.asarray(list(vectors), np.float32)
    if not len(rows):
        return rows.reshape(0, 0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12), np.float32)
