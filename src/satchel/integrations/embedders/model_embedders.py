"""Embedders and a cross-encoder with models from libraries: fastembed (ONNX, no torch), sentence-transformers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidOption
from satchel.text.visible import replace_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ModelEmbedder(ABC):
    """An embedder around a model: a name for the library to load, or the library's own object."""

    library: ClassVar[str]
    """The library's prefix in `name`; also the name of the extra to install."""
    loader: ClassVar[str]
    """The module and class to load a model by name."""

    def __init__(self, model: str | Any, *, name: str | None = None) -> None:
        own_name: str = model if isinstance(model, str) else getattr(model, "model_name", "")
        self._model_name = name or own_name
        if not self._model_name:
            raise InvalidOption("name", name, "must name the model: the index stores this name")
        self.name = f"{self.library}:{self._model_name}"
        self._source = model

    @abstractmethod
    def _embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        """A vector of length 1 for each text."""

    @cached_property
    def _model(self) -> Any:
        if not isinstance(self._source, str):
            return self._source
        try:
            load = resolve_name(self.loader)
        except ImportError:
            reason = f"needs an extra: pip install 'satchel[{self.library}]'"
            raise EmbedderUnavailable(self._model_name, reason) from None
        try:
            return load(self._source)
        except Exception as error:  # each file format and each transport has errors of its own
            raise EmbedderUnavailable(self._model_name, f"the model cannot be loaded ({error})") from error

    @cached_property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        return len(self.embed_query("length"))

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of the texts to be searched."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return self._embed([replace_surrogates(text) for text in texts], is_query=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self._embed([replace_surrogates(text)], is_query=True)[0]
        return row


class FastembedEmbedder(ModelEmbedder):
    """Embedder with a fastembed model, loaded at the first text; a `TextEmbedding` object works in place of a name."""

    library = "fastembed"
    loader = "fastembed:TextEmbedding"

    def _embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        embed = self._model.query_embed if is_query else self._model.passage_embed
        rows = np.asarray(list(embed(texts)), np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), np.float32)


class SentenceTransformersEmbedder(ModelEmbedder):
    """Embedder with a sentence-transformers model, loaded at the first text; uses query and document prompts if the
    model has any.

    A `SentenceTransformer` of your own works in place of a name or a folder. It does not know what it is called, so
    say so with `name`: an index keeps it.
    """

    library = "sentence-transformers"
    loader = "sentence_transformers:SentenceTransformer"

    def __init__(self, model: str | Any, *, name: str | None = None, batch_size: int = 32) -> None:
        super().__init__(model, name=name)
        self._batch_size = batch_size

    def _embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        encode = getattr(self._model, "encode_query" if is_query else "encode_document", self._model.encode)
        vectors = encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, np.float32)


class SentenceTransformersCrossEncoder:
    """Relevance scores from a cross-encoder in a folder, or from the hub if the network is allowed."""

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 32) -> None:
        from sentence_transformers import CrossEncoder

        self._model: Any = CrossEncoder(model, device=device)
        self._batch_size = batch_size

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """A relevance from 0 to 1 for each text."""
        import torch

        if not texts:
            return []
        # Raw logits: models differ in their activation function, and ours must be monotone in 0..1.
        logits = self._model.predict(
            [(query, text) for text in texts],
            batch_size=self._batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )
        return [1 / (1 + math.exp(-max(-60.0, min(60.0, float(logit))))) for logit in logits]
