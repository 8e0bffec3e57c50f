"""Pages found by what is written on them: no picture is looked at, no weights are needed beyond an embedder's.

Each caption and each line of a page has a vector of its own, so the label of an axis counts as much as a paragraph: a
chart or a scan is found by the words that stand on it. What only a picture shows is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.text.words import IDENTIFIER, STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satchel.ports.embedder import Embedder
    from satchel.ports.page_embedder import PageView

MOST_VECTORS: Final = 256
"""For a page: a dense page of a report has 50 to 90 lines; beyond this, neighbouring lines share a vector."""

_MOST_CAPTIONS: Final = 64
_MOST_WORDS: Final = 24
"""Of a question; a longer one is a text, and its first words and its whole say what it is about."""

_LONGEST_LINE: Final = 400
_LONGEST_TEXT: Final = 400_000
_DRAWING: Final = re.compile(r"[|#*_`>~=\-:.\s]+")


class WrittenPageEmbedder:
    """Looks at what is written on a page, line by line, with the vectors of an `Embedder`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """Says that only writing is looked at, and whose vectors these are."""
        return f"written/{self._embedder.name}"

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""
        return self._embedder.dimensions

    @property
    def needs_images(self) -> bool:
        """It never looks at the picture."""
        return False

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """For each page the vectors of its captions and lines; none for a page on which nothing is written."""
        written = [regions(page) for page in pages]
        vectors = self._embedder.embed_texts([region for page in written for region in page])
        parts = np.split(vectors, np.cumsum([len(page) for page in written])[:-1]) if written else []
        return [part[part.any(axis=1)] for part in parts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The question as a whole, then each of its words that say something."""
        asked = text[:_LONGEST_TEXT]
        content = dict.fromkeys(word for word in IDENTIFIER.findall(asked) if word.lower() not in STOP_WORDS)
        words = list(content)[:_MOST_WORDS]
        whole = self._embedder.embed_query(asked)[np.newaxis]
        if len(words) < 2:
            return whole
        vectors = np.concatenate([whole, *(self._embedder.embed_query(word)[np.newaxis] for word in words)])
        kept: NDArray[np.float32] = vectors[vectors.any(axis=1)]
        return kept if len(kept) else whole


def regions(page: PageView) -> list[str]:
    """What has a vector of its own: each caption, and each line, or as many neighbouring lines as make 256 in all."""
    captions = [caption.strip()[:_LONGEST_LINE] for caption in page.captions[:_MOST_CAPTIONS] if caption.strip()]
    lines = [part for line in page.text[:_LONGEST_TEXT].splitlines() for part in _parts(line)]
    room = MOST_VECTORS - len(captions)
    if len(lines) > room:
        size, more = divmod(len(lines), room)
        borders = [i * size + min(i, more) for i in range(room + 1)]
        lines = [" ".join(lines[a:b]) for a, b in pairwise(borders)]
    return captions + lines


def _parts(line: str) -> list[str]:
    """A line without what only draws (table bars, marks of a heading), in pieces of a line's usual length."""
    if not _DRAWING.sub("", line):
        return []
    plain = line.strip().strip("|#*>").strip()
    return [plain[i : i + _LONGEST_LINE] for i in range(0, len(plain), _LONGEST_LINE)]
