"""What embedders have in common whose model is a library's: it is loaded when the first text comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidOption
from satchel.text.visible import replace_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ModelEmbedder(ABC):
    """An embedder around a model: its name, for the library to load, or the library's own object."""

    library: ClassVar[str]
    """What it is called in `name`; also the extra that installs it."""
    loader: ClassVar[str]
    """The module and the class that load a model by its name."""

    def __init__(self, model: str | Any, name: str | None, own_name: str = "") -> None:
        self._model_name = name or (model if isinstance(model, str) else own_name)
        if not self._model_name:
            raise InvalidOption("name", name, "must say which model this is, for the index to know it again")
        self._source = model
        self._loaded: Any = None if isinstance(model, str) else model
        self._dimensions = 0

    @abstractmethod
    def _embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        """A vector of length 1 for each text."""

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                load = resolve_name(self.loader)
            except ImportError:
                reason = f"needs an extra: pip install '.[{self.library}]' in Satchel's checkout"
                raise EmbedderUnavailable(self._model_name, reason) from None
            try:
                self._loaded = load(self._source)
            except Exception as error:  # each file format and each transport has errors of its own
                raise EmbedderUnavailable(self._model_name, f"the model cannot be loaded ({error})") from error
        return self._loaded

    @property
    def name(self) -> str:
        """The model."""
        return f"{self.library}:{self._model_name}"

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
        return self._embed([replace_surrogates(text) for text in texts], is_query=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self._embed([replace_surrogates(text)], is_query=True)[0]
        return row
