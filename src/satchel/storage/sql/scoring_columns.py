"""The documents of a search as columns: which pieces and files there are, how long they are, and how they are read.

For every field there is an inverted index: for each term the documents that hold it and how often. The text and the
names of a piece are fields of the piece; the words of a path are fields of the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

TEXT, NAME, STEM, FOLDER = "text", "name", "stem", "folder"
"""The fields: what a piece says, what it is called; the file's own name, and the folders that it lies in."""

CODE, NOTE, PROSE, PAGED = range(4)
"""How a file is read: for what it defines, as a note of its own, as prose, page by page."""

PIECE_FIELDS: Final = (TEXT, NAME)
FILE_FIELDS: Final = (STEM, FOLDER)


class Postings(NamedTuple):
    """The documents that hold a term, and how often."""

    documents: NDArray[np.uint32]
    counts: NDArray[np.uint8]


NO_POSTINGS: Final = Postings(np.empty(0, np.uint32), np.empty(0, np.uint8))


def hash_of(term: str) -> int:
    """A term's hash: the same in every process and on every machine."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def among(values: NDArray[np.int64], wanted: Collection[int]) -> NDArray[np.bool_]:
    """Which of the values are wanted."""
    ids = np.array(sorted(wanted), np.int64)
    if not len(ids):
        return np.zeros(len(values), bool)
    return np.asarray(ids[np.minimum(np.searchsorted(ids, values), len(ids) - 1)] == values)


class Columns:
    """Files and their pieces, which stand together."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.files: NDArray[np.int64] = arrays["files"]
        self.reading: NDArray[np.uint8] = arrays["reading"]
        self.piece_ids: NDArray[np.int64] = arrays["piece_ids"]
        self.piece_files: NDArray[np.uint32] = arrays["piece_files"]
        self.lengths: Mapping[str, NDArray[np.uint32]] = {
            name: arrays[f"{name}.lengths"] for name in (*PIECE_FIELDS, *FILE_FIELDS)
        }

    @cached_property
    def one_to_one(self) -> bool:
        """Whether every file has exactly one piece, as blocks of a workspace mostly have."""
        return len(self.files) == len(self.piece_ids) and bool((np.diff(self.piece_files.astype(np.int64)) == 1).all())

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """Where the pieces of each file begin that has any, and one past the end: they stand together."""
        owner = self.piece_files
        starts = np.flatnonzero(np.diff(owner, prepend=owner[:1] + 1)) if len(owner) else np.empty(0, np.int64)
        return np.append(starts, len(owner))

    @cached_property
    def with_pieces(self) -> NDArray[np.uint32]:
        """The files that have pieces."""
        return self.piece_files[self.borders[:-1]]

    @cached_property
    def has_pieces(self) -> NDArray[np.bool_]:
        """Whether each file has pieces."""
        found = np.zeros(len(self.files), bool)
        found[self.with_pieces] = True
        return found

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Where in the borders each file is found."""
        found = np.full(len(self.files), -1)
        found[self.with_pieces] = np.arange(len(self.with_pieces))
        return found

    @cached_property
    def file_lengths(self) -> NDArray[np.float64]:
        """How many words each file has."""
        return np.bincount(self.piece_files, self.lengths[TEXT], len(self.files)).astype(np.float64)
