"""A cache of prepared files and vectors, shared by all workspaces of a user of the machine.

A cache may forget anything at any time, and never raises: without an entry, the work is done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.ports.workers import Prepared


class PreparedCache(Protocol):
    """Prepared files and vectors by keys that contain everything that determines them."""

    @property
    def problem(self) -> str:
        """Why the cache cannot be used, or ""."""

    def prepared(self, key: bytes) -> Prepared | None:
        """A prepared file, or None."""

    def vectors(self, text_hashes: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """The known vectors among those of the given texts, rounded as stores round them."""

    def add(self, prepared: Mapping[bytes, Prepared], vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Add prepared files by key, and vectors by the hashes of their texts."""

    def close(self) -> None:
        """Release the file; a later call opens the file again."""
