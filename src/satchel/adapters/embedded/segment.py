"""A segment: the words and vectors of some files, laid out so that a question is a handful of array operations.

For every field there is an inverted index: the sorted hashes of its terms, and for each term the documents that hold it
and how often. The text and the names of a piece are fields of the piece; the words of a path are fields of the file.
"""

from __future__ import annotations

from array import array
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from satchel.adapters.embedded.arrays import open_arrays, write_arrays
from satchel.model.file_kind import kind_of
from satchel.text.terms import terms_of
from satchel.text.words import IDENTIFIER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

TEXT, NAME, STEM, FOLDER = "text", "name", "stem", "folder"
"""The fields: what a piece says, what it is called; the file's own name, and the folders that it lies in."""

CODE, NOTE, PROSE, PAGED = range(4)
"""How a file is read: for what it defines, as a note of its own, as prose, page by page."""

_PIECE_FIELDS: Final = (TEXT, NAME)
_FILE_FIELDS: Final = (STEM, FOLDER)
_FLUSH_AT: Final = 1_000_000
_MOST_FREQUENT: Final = 255


class Postings(NamedTuple):
    """The documents that hold a term, and how often."""

    documents: NDArray[np.uint32]
    counts: NDArray[np.uint8]


_NOTHING: Final = Postings(np.empty(0, np.uint32), np.empty(0, np.uint8))


def hash_of(term: str) -> int:
    """A term's hash: the same in every process and on every machine."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def among(values: NDArray[np.int64], wanted: Collection[int]) -> NDArray[np.bool_]:
    """Which of the values are wanted."""
    ids = np.array(sorted(wanted), np.int64)
    if not len(ids):
        return np.zeros(len(values), bool)
    return np.asarray(ids[np.minimum(np.searchsorted(ids, values), len(ids) - 1)] == values)


class _Vocabulary:
    """Terms get numbers in the order in which they come; identifiers are taken apart once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._of_identifier: dict[str, tuple[int, ...]] = {}

    def of_identifiers(self, identifiers: Iterable[str]) -> list[int]:
        known = self._of_identifier
        numbers: list[int] = []
        for identifier in identifiers:
            found = known.get(identifier)
            if found is None:
                table = self.numbers
                found = tuple(table.setdefault(term, len(table)) for term in terms_of(identifier))
                known[identifier] = found
            numbers += found
        return numbers

    def hashes(self) -> NDArray[np.uint64]:
        return np.fromiter((hash_of(term) for term in self.numbers), np.uint64, len(self.numbers))


class _Field:
    """One inverted index in the making."""

    def __init__(self, vocabulary: _Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._terms = array("I")
        self._lengths = array("I")
        self._first = 0
        self._done: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def add(self, text: str) -> None:
        """The next document."""
        numbers = self._vocabulary.of_identifiers(IDENTIFIER.findall(text))
        self._terms.extend(numbers)
        self._lengths.append(len(numbers))
        if len(self._terms) > _FLUSH_AT:
            self._flush()

    def _flush(self) -> None:
        lengths = np.frombuffer(self._lengths, np.uint32)[self._first :]
        if not len(self._terms):
            self._first = len(self._lengths)
            return
        documents = np.repeat(np.arange(self._first, self._first + len(lengths), dtype=np.uint64), lengths)
        keys = (documents << np.uint64(32)) | np.frombuffer(self._terms, np.uint32)
        distinct, counts = np.unique(keys, return_counts=True)
        self._done.append(
            (
                (distinct & np.uint64(0xFFFFFFFF)).astype(np.uint32),
                (distinct >> np.uint64(32)).astype(np.uint32),
                np.minimum(counts, _MOST_FREQUENT).astype(np.uint8),
            )
        )
        self._terms = array("I")
        self._first = len(self._lengths)

    def arrays(self, name: str, hashes: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
        self._flush()
        lengths = np.array(self._lengths, np.uint32)
        if not self._done:
            empty = np.empty(0, np.uint32)
            return {
                f"{name}.hashes": np.empty(0, np.uint64),
                f"{name}.offsets": np.zeros(1, np.uint32),
                f"{name}.documents": empty,
                f"{name}.counts": np.empty(0, np.uint8),
                f"{name}.lengths": lengths,
            }
        terms, documents, counts = (np.concatenate(parts) for parts in zip(*self._done, strict=True))
        self._done.clear()
        # Terms are renumbered in the order of their hashes: a term is then found by bisection.
        order = np.argsort(hashes, kind="stable")
        rank = np.empty(len(order), np.uint32)
        rank[order] = np.arange(len(order), dtype=np.uint32)
        terms = rank[terms]
        by_term = np.argsort(terms, kind="stable")
        present, sizes = np.unique(terms, return_counts=True)
        return {
            f"{name}.hashes": hashes[order][present],
            f"{name}.offsets": np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32),
            f"{name}.documents": documents[by_term],
            f"{name}.counts": counts[by_term],
            f"{name}.lengths": lengths,
        }


class SegmentBuilder:
    """Collects files and their pieces, and writes them as a segment."""

    def __init__(self, dimensions: int) -> None:
        vocabulary = _Vocabulary()
        self._vocabulary = vocabulary
        self._fields = {name: _Field(vocabulary) for name in (*_PIECE_FIELDS, *_FILE_FIELDS)}
        self._files = array("q")
        self._reading = array("B")
        self._piece_ids = array("q")
        self._piece_files = array("I")
        self._vectors: list[bytes] = []
        self._blank = bytes(dimensions)
        self._dimensions = dimensions

    def add_file(self, file: int, path: str, *, has_pages: bool = False, called: str = "") -> None:
        """The file that the next pieces belong to; a document with pages may have a title of its own."""
        folder, _, name = path.rpartition("/")
        stem = name.rpartition(".")[0] or name
        reading = PAGED if has_pages else PROSE if kind_of(path).prose else CODE
        self._files.append(file)
        self._reading.append(reading)
        # A document's name is made of words: the `3M` of `3M_2018_10K.pdf` is one of them.
        self._fields[STEM].add(stem if reading == CODE else f"{stem} {called}".replace("_", " "))
        self._fields[FOLDER].add(folder)

    def add_titled(self, file: int, title: str) -> None:
        """The block that the next pieces belong to; all that is known of its place is its own title."""
        self._files.append(file)
        self._reading.append(NOTE)
        self._fields[STEM].add(title)
        self._fields[FOLDER].add("")

    def add_piece(self, piece: int, text: str, names: str, vector: bytes | None) -> None:
        """A piece of the file that was added last."""
        self._piece_ids.append(piece)
        self._piece_files.append(len(self._files) - 1)
        self._fields[TEXT].add(text)
        self._fields[NAME].add(names)
        self._vectors.append(vector if vector and len(vector) == self._dimensions else self._blank)

    def write(self, path: Path) -> None:
        """Put everything into a file."""
        hashes = self._vocabulary.hashes()
        arrays: dict[str, NDArray[Any]] = {
            "files": np.array(self._files, np.int64),
            "reading": np.array(self._reading, np.uint8),
            "piece_ids": np.array(self._piece_ids, np.int64),
            "piece_files": np.array(self._piece_files, np.uint32),
            "vectors": np.frombuffer(b"".join(self._vectors), np.int8).reshape(-1, self._dimensions),
        }
        for name, field in self._fields.items():
            arrays |= field.arrays(name, hashes)
        write_arrays(path, arrays)


class Segment:
    """A segment as a search reads it."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        arrays = open_arrays(path)
        self.files: NDArray[np.int64] = arrays["files"]
        self.reading: NDArray[np.uint8] = arrays["reading"]
        self.piece_ids: NDArray[np.int64] = arrays["piece_ids"]
        self.piece_files: NDArray[np.uint32] = arrays["piece_files"]
        self.vectors: NDArray[np.int8] = arrays["vectors"]
        self.lengths: Mapping[str, NDArray[np.uint32]] = {
            name: arrays[f"{name}.lengths"] for name in (*_PIECE_FIELDS, *_FILE_FIELDS)
        }
        self._arrays = arrays

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

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each hash the documents of the field that hold its term."""
        known = self._arrays[f"{field}.hashes"]
        if not len(known):
            return [_NOTHING] * len(hashes)
        wanted = np.array(hashes, np.uint64)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        offsets = self._arrays[f"{field}.offsets"]
        documents, counts = self._arrays[f"{field}.documents"], self._arrays[f"{field}.counts"]
        found = []
        for position, there in zip(at.tolist(), (known[at] == wanted).tolist(), strict=True):
            first, last = (int(offsets[position]), int(offsets[position + 1])) if there else (0, 0)
            found.append(Postings(documents[first:last], counts[first:last]))
        return found
