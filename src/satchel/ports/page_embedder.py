"""The interface of an embedding model for pages of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PageView(NamedTuple):
    """A page to embed: the image (PNG or JPEG; empty unless `needs_images`), the text and the captions."""

    image: bytes = b""
    text: str = ""
    captions: tuple[str, ...] = ()


@runtime_checkable
class PageEmbedder(Protocol):
    """Turns each page into many unit vectors: a vector for every patch or line of the page.

    A question becomes many vectors too; the relevance of a page comes from the page's best match for each of them
    (MaxSim).
    """

    @property
    def name(self) -> str:
        """The model, the version and everything else with an effect on the vectors."""

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""

    @property
    def needs_images(self) -> bool:
        """True if the model uses the image of a page, False if only the text."""

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """For each page a matrix with a row for each vector; no rows for an empty page."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vectors of a question as rows."""
