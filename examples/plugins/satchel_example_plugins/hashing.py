"""An embedder: each word is hashed to a place in the vector. No model and no network, and always the same vectors."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from satchel.service.settings import Settings

DIMENSIONS = 256


class HashingEmbedder:
    """Vectors of the length given in the name (`hashing:512`), by default 256."""

    def __init__(self, model: str, settings: Settings) -> None:
        self.dimensions = int(model or DIMENSIONS)
        self.name = f"hashing-{self.dimensions}"

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit vector for each text."""
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A unit vector, or zeros for a text without words."""
        vector = np.zeros(self.dimensions, np.float32)
        for word in text.lower().split():
            number = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())
            vector[number % self.dimensions] += 1 if number >> 63 else -1
        return vector / (np.linalg.norm(vector) or np.float32(1))
