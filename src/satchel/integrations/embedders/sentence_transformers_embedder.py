"""Vectors from a sentence-transformers model: a folder on disk, or a name that the library knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.integrations.embedders.model_embedder import ModelEmbedder

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SentenceTransformersEmbedder(ModelEmbedder):
    """The model is loaded when the first text comes; prompts for queries and documents are used where it has them.

    A `SentenceTransformer` of your own works in place of a name or a folder. It does not know what it is called, so
    say so with `name`: an index keeps it.
    """

    library = "sentence-transformers"
    loader = "sentence_transformers:SentenceTransformer"

    def __init__(self, model: str | Any, *, name: str | None = None, batch_size: int = 32) -> None:
        super().__init__(model, name)
        self._batch_size = batch_size

    def _embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        model = self._model()
        encode = getattr(model, "encode_query" if is_query else "encode_document", model.encode)
        vectors = encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, np.float32)
