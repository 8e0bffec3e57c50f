"""Vectors from a sentence-transformers model: a folder on disk, or a name that the library knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidOption

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SentenceTransformersEmbedder:
    """The model is loaded when the first text comes; prompts for queries and documents are used where it has them.

    A `SentenceTransformer` of your own works in place of a name or a folder. It does not know what it is called, so
    say so with `name`: an index keeps it.
    """

    def __init__(self, model: str | Any, *, name: str | None = None, batch_size: int = 32) -> None:
        called = name or (model if isinstance(model, str) else "")
        if not called:
            raise InvalidOption("name", name, "must say which model this is, for the index to know it again")
        self._model_name = called
        self._given = model
        self._batch_size = batch_size
        self._loaded: Any = None if isinstance(model, str) else model
        self._dimensions = 0

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError:
                reason = "needs an extra: pip install '.[sentence-transformers]' in Satchel's checkout"
                raise EmbedderUnavailable(self._model_name, reason) from None
            try:
                self._loaded = SentenceTransformer(self._given)
            except Exception as error:  # each file format and each transport of the library has errors of its own
                raise EmbedderUnavailable(self._model_name, f"the model cannot be loaded ({error})") from error
        return self._loaded

    @property
    def name(self) -> str:
        """The model."""
        return f"sentence-transformers:{self._model_name}"

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
        return self._encoded(texts, "encode_document")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self._encoded([text], "encode_query")[0]
        return row

    def _encoded(self, texts: Sequence[str], method: str) -> NDArray[np.float32]:
        model = self._model()
        encode = getattr(model, method, model.encode)
        vectors = encode(
            # The tokenizers refuse a lone surrogate.
            [text.encode("utf-8", "replace").decode() for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, np.float32)
