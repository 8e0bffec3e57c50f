"""A segment: the words and vectors of some files in a file that is mapped into memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.storage.sql.scoring import STEPS, View, in_steps
from satchel.storage.sql.scoring_columns import NO_POSTINGS, Columns, Postings
from satchel.storage.sqlite.arrays import open_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SCANNED_AT_ONCE: Final = 1024


class Segment(Columns):
    """A segment as a search reads it."""

    def __init__(self, path: Path) -> None:
        arrays = open_arrays(path)
        super().__init__(arrays)
        self.name = path.name
        self.vectors: NDArray[np.int8] = arrays["vectors"]
        self._arrays = arrays

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each hash the documents of the field that hold its term."""
        known = self._arrays[f"{field}.hashes"]
        if not len(known):
            return [NO_POSTINGS] * len(hashes)
        wanted = np.array(hashes, np.uint64)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        offsets = self._arrays[f"{field}.offsets"]
        documents, counts = self._arrays[f"{field}.documents"], self._arrays[f"{field}.counts"]
        found = []
        for position, there in zip(at.tolist(), (known[at] == wanted).tolist(), strict=True):
            first, last = (int(offsets[position]), int(offsets[position + 1])) if there else (0, 0)
            found.append(Postings(documents[first:last], counts[first:last]))
        return found


class SegmentSource:
    """A segment as one may see it, to gather evidence from."""

    def __init__(self, segment: Segment, view: View) -> None:
        self.view = view
        self._segment = segment

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each hash the documents of the field that hold its term."""
        return self._segment.postings(field, hashes)

    def likeness(self, vector: NDArray[np.float32]) -> NDArray[Any]:
        """How near each piece is in meaning; nothing is said of what may not be seen."""
        vectors, asked = self._segment.vectors, in_steps(vector)
        likeness = np.zeros(len(vectors), np.float32)
        few = self.view.few
        # Small strips stay in the processor's cache while they are widened.
        strip = np.empty((_SCANNED_AT_ONCE, vectors.shape[1]), np.float32)
        picked = np.empty(strip.shape, np.int8)
        found = likeness if few is None else np.empty(len(few), np.float32)
        for first in range(0, len(found), _SCANNED_AT_ONCE):
            where = slice(first, first + _SCANNED_AT_ONCE)
            part = vectors[where]
            if few is not None:
                part = np.take(vectors, few[where], axis=0, out=picked[: len(few[where])], mode="clip")
            np.copyto(strip[: len(part)], part)
            np.dot(strip[: len(part)], asked, out=found[where])
        if few is not None:
            likeness[few] = found
        likeness /= 127.0 * STEPS
        return likeness
