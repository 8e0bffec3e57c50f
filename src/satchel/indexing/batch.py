"""What goes into one commit: changes, and the vectors of their pieces as far as they are made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from satchel.indexing.loading import Loaded
from satchel.indexing.work import texts_of
from satchel.models.outline import Outline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.ports.workers import Prepared, Vectors


class Change(NamedTuple):
    """A file as it is to be kept, or to be forgotten."""

    loaded: Loaded
    outline: Outline
    hashes: tuple[bytes, ...] = ()
    """Those of the texts whose vectors it is found by."""
    texts: dict[bytes, str] | None = None
    vectors: Vectors | None = None

    @classmethod
    def of(cls, loaded: Loaded, prepared: Prepared) -> Change:
        """A file that was prepared."""
        if prepared.vectors is not None:
            return cls(loaded, prepared.outline, prepared.vectors.hashes, None, prepared.vectors)
        texts = texts_of(prepared.outline, loaded.text)
        return cls(loaded, prepared.outline, tuple(texts), texts)


class Batch:
    """What goes into one commit."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.missing: list[str] = []
        self.chars = 0
        self.begun = time.monotonic()
        self.unembedded: dict[bytes, str] = {}
        """Texts whose vectors the store may lack."""
        self.rows: dict[bytes, NDArray[np.float32]] = {}
        """Vectors that the store may lack."""

    def add(self, change: Change) -> None:
        """One more change."""
        self.chars += len(change.loaded.text)
        if change.texts is not None:
            self.unembedded.update(one for one in change.texts.items() if one[0] not in self.rows)
        if change.vectors is not None:
            self.keep(change.vectors.hashes, change.vectors.as_array())
        self.changes.append(change._replace(texts=None, vectors=None))

    def keep(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Vectors that were made."""
        self.rows.update(zip(keys, vectors, strict=True))

    def vectors(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """The vectors of these texts, one row each."""
        import numpy as np

        return np.stack([self.rows[key] for key in keys])
