"""Vectors from a fastembed model (ONNX, no torch)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidOption

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FastembedEmbedder:
    """The model is loaded when the first text comes; a `TextEmbedding` of your own works in place of a name."""

    def __init__(self, model: str | Any, *, name: str | None = None) -> None:
        called = name or (model if isinstance(model, str) else getattr(model, "model_name", ""))
        if not called:
            raise InvalidOption("name", name, "must say which model this is, for the index to know it again")
        self._given = model
        self._loaded: Any = None if isinstance(model, str) else model
        self._model_name = called
        self._dimensions = 0

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                from fastembed import TextEmbedding
            except ImportError:
                reason = "needs an extra: pip install '.[fastembed]' in Satchel's checkout"
                raise EmbedderUnavailable(self._model_name, reason) from None
            try:
                self._loaded = TextEmbedding(self._given)
            except Exception as error:  # onnxruntime and the downloads have errors of their own
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
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return _rows(self._model().passage_embed([_encodable(text) for text in texts]))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = _rows(self._model().query_embed([_encodable(text)]))[0]
        return row


def _encodable(text: str) -> str:
    # The tokenizers refuse a lone surrogate.
    return text.encode("utf-8", "replace").decode()


def _rows(vectors: Iterable[Any]) -> NDArray[np.float32]:
    rows = np.asarray(list(vectors), np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12), np.float32)
