"""What turns the look of a page into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PageView(NamedTuple):
    """A page as it is seen: its picture (PNG or JPEG; empty unless `needs_images`), and what is written on it."""

    image: bytes = b""
    text: str = ""
    captions: tuple[str, ...] = ()


@runtime_checkable
class PageEmbedder(Protocol):
    """Pages in, many unit vectors for each out: one for every patch or line that can be looked at.

    A question becomes many vectors too; a page answers it as well as its best patch for each of them does.
    """

    @property
    def name(self) -> str:
        """The model, its version and whatever else changes the vectors."""

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""

    @property
    def needs_images(self) -> bool:
        """Whether it looks at the picture, or only at what is written there."""

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """For each page its vectors, one row each; no row for a page on which there is nothing."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vectors of a question, one row each."""
