"""Vectors from a fastembed model (ONNX, no torch)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.integrations.embedders.model_embedder import ModelEmbedder

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FastembedEmbedder(ModelEmbedder):
    """The model is loaded when the first text comes; a `TextEmbedding` of your own works in place of a name."""

    library = "fastembed"
    loader = "fastembed:TextEmbedding"

    def __init__(self, model: str | Any, *, name: str | None = None) -> None:
        super().__init__(model, name, own_name=getattr(model, "model_name", ""))

    def _embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        model = self._model()
        rows = np.asarray(list(model.query_embed(texts) if is_query else model.passage_embed(texts)), np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), np.float32)
