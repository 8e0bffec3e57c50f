"""Builds the inverted index of files: the arrays for a search, in place of texts."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from satchel.models.files import kind_of
from satchel.storage.sql import scoring
from satchel.storage.sql.file_reader import QUERIES
from satchel.storage.sql.rows import Database, batches, decoded, is_node
from satchel.text.word_families import families_of
from satchel.text.words import IDENTIFIER, terms_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Segment = TypeVar("_Segment")
_GROWTH: Final = 2.0
"""A segment stays if it is more than so many times as large as all smaller ones together: a search visits few segments,
and each piece is merged only while its segment grows by half at least. A larger factor merges more often."""
_GONE_SHARE: Final = 0.3
"""Of the files: with more of them deleted, a search would waste much time on masked rows."""
_FLUSH_TERMS: Final = 1_000_000  # bounds memory: terms are sorted and counted in runs of this length
_MAX_TERM_COUNT: Final = 255  # counts are stored in a byte; for BM25 a higher count hardly differs
_READ_BATCH_FILES: Final = 100  # larger batches save statements
_READ_BATCH_BYTES: Final = 20_000_000  # the texts of a batch are in memory at once
_FOLDER_FILES: Final = frozenset("__init__ index init lib main mod".split())
"""Names of files, without the suffix, that stand for their folder."""
_NOTHING: Final = (np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8))


class _Vocabulary(dict[str, tuple[int, ...]]):
    """Numbers the terms of identifiers in order of appearance; each distinct identifier is split only once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __missing__(self, identifier: str) -> tuple[int, ...]:
        table = self.numbers
        terms = tuple(table.setdefault(term, len(table)) for term in terms_of(identifier))
        self[identifier] = terms
        return terms

    def of_identifiers(self, identifiers: Iterable[str]) -> list[int]:
        """The numbers of the terms in these identifiers; without a step of Python for each, as texts repeat most."""
        return list(chain.from_iterable(map(self.__getitem__, identifiers)))

    def hashes(self) -> NDArray[np.uint64]:
        return np.fromiter((scoring.hash_of(term) for term in self.numbers), np.uint64, len(self.numbers))


class _Field:
    """An inverted index under construction."""

    def __init__(self, vocabulary: _Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._terms = array("I")
        self._lengths = array("I")
        self._first = 0
        self._done: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []

    def add(self, text: str) -> None:
        """Add the next document."""
        numbers = self._vocabulary.of_identifiers(IDENTIFIER.findall(text))
        self._terms.extend(numbers)
        self._lengths.append(len(numbers))
        if len(self._terms) > _FLUSH_TERMS:
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
                np.minimum(counts, _MAX_TERM_COUNT).astype(np.uint8),
            )
        )
        self._terms = array("I")
        self._first = len(self._lengths)

    def arrays(self, name: str, hashes: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
        self._flush()
        lengths = np.array(self._lengths, np.uint32)
        terms, documents, counts = (np.concatenate(parts) for parts in zip(_NOTHING, *self._done, strict=True))
        self._done.clear()
        # Terms are renumbered in the order of their hashes: a term is then found by bisection.
        order = np.argsort(hashes, kind="stable")
        rank = np.empty(len(order), np.uint32)
        rank[order] = np.arange(len(order), dtype=np.uint32)
        return _by_term(name, hashes[order], (rank[terms], documents, counts), lengths)


class SearchArraysBuilder:
    """Collects files and pieces, and builds the arrays for a search."""

    def __init__(self, dimensions: int) -> None:
        self._vocabulary = _Vocabulary()
        self._fields = {name: _Field(self._vocabulary) for name in (*scoring.PIECE_FIELDS, *scoring.FILE_FIELDS)}
        self._files = array("q")
        self._reading = array("B")
        self._path_words: list[list[int]] = []
        self._piece_ids = array("q")
        self._piece_files = array("I")
        self._vectors: list[bytes] = []
        self._blank = bytes(dimensions)
        self._dimensions = dimensions

    def add_file(self, file: int, reading: int, stem: str, folder: str = "") -> None:
        """Begin a file or block for the next pieces: the way to read the file, and the words of name and folder."""
        self._path_words.append(_path_words(stem, folder) if reading != scoring.NOTE else [])
        self._files.append(file)
        self._reading.append(reading)
        self._fields[scoring.STEM].add(stem)
        self._fields[scoring.FOLDER].add(folder)

    def add_piece(self, piece: int, text: str, names: str, vector: bytes | None) -> None:
        """Add a piece to the file added last."""
        self._piece_ids.append(piece)
        self._piece_files.append(len(self._files) - 1)
        self._fields[scoring.TEXT].add(text)
        self._fields[scoring.NAME].add(names)
        self._vectors.append(vector if vector and len(vector) == self._dimensions else self._blank)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of everything added."""
        hashes = self._vocabulary.hashes()
        arrays: dict[str, NDArray[Any]] = {
            "files": np.array(self._files, np.int64),
            "reading": np.array(self._reading, np.uint8),
            scoring.PATH_WORDS: _as_matrix(self._path_words),
            "piece_ids": np.array(self._piece_ids, np.int64),
            "piece_files": np.array(self._piece_files, np.uint32),
            "vectors": np.frombuffer(b"".join(self._vectors), np.int8).reshape(-1, self._dimensions),
        }
        for name, field in self._fields.items():
            arrays |= field.arrays(name, hashes)
        return arrays


def _path_words(stem: str, folder: str) -> list[int]:
    """The hashes of the word families in a file's name, filled up with zeros, and of further ones in its folders."""
    inner = folder.rpartition("/")[2]
    # Such a file speaks for its folder: `retry/mod.rs` is about *retry*.
    name = inner if inner and stem.lower() in _FOLDER_FILES else stem
    names = _family_hashes(name)[: scoring.NAME_WIDTH]
    folders = [word for word in _family_hashes(folder) if word not in names]
    return [*names, *[0] * (scoring.NAME_WIDTH - len(names)), *folders[-scoring.FOLDER_WIDTH :]]


def _family_hashes(text: str) -> list[int]:
    families = dict.fromkeys(family for name in IDENTIFIER.findall(text) for family in families_of(name))
    return [scoring.word_hash(family) for family in families]


def _as_matrix(rows: Sequence[Sequence[int]]) -> NDArray[np.uint32]:
    matrix = np.zeros((len(rows), scoring.NAME_WIDTH + scoring.FOLDER_WIDTH), np.uint32)
    for place, row in enumerate(rows):
        matrix[place, : len(row)] = row
    return matrix


def lay_out(db: Database, files: Sequence[int], dimensions: int) -> dict[str, NDArray[Any]]:
    """The search arrays of stored files and blocks, in the given order."""
    layout = SearchArraysBuilder(dimensions)
    for batch in _batches_to_read(db, files):
        _add_files(layout, db, batch)
    return layout.arrays()


def _batches_to_read(db: Database, files: Sequence[int]) -> Iterator[Sequence[int]]:
    """The files in batches of a bounded number and length of texts; a longer text is a batch of its own."""
    statement = "SELECT file, length(text) FROM content WHERE workspace = ? AND file IN ({keys})"
    for numbered in batches(files, _READ_BATCH_FILES):
        sizes = dict(db.run_in(statement, numbered))
        batch: list[int] = []
        size = 0
        for file in numbered:
            size += sizes.get(file, 0)
            if batch and size > _READ_BATCH_BYTES:
                yield batch
                batch, size = [], sizes.get(file, 0)
            batch.append(file)
        yield batch


def _add_files(layout: SearchArraysBuilder, db: Database, files: Sequence[int]) -> None:
    numbers = ",".join(map(str, files))
    rows = db.run(QUERIES["files_to_lay_out"].format(files=numbers), db.workspace)
    stored = {row[0]: row[1:] for row in rows}
    statement = f"SELECT file, qualified FROM block WHERE workspace = ? AND file IN ({numbers}) ORDER BY file, place"
    names = db.rows_by_file(statement)
    pieces = db.rows_by_file(QUERIES["pieces_to_lay_out"].format(files=numbers))
    for file in files:
        if file in stored:
            _add_file(layout, file, stored[file], [name for (name,) in names.get(file, ())], pieces.get(file, ()))


def _add_file(
    layout: SearchArraysBuilder, file: int, row: Sequence[Any], names: Sequence[str], pieces: Sequence[Sequence[Any]]
) -> None:
    path, data, called, has_pages = row
    if is_node(path):
        # Only the block's own title counts: the titles of ancestors may be hidden from the reader.
        layout.add_file(file, scoring.NOTE, names[0])
    else:
        place = decoded(path)
        folder, _, name = place.rpartition("/")
        stem = name.rpartition(".")[0] or name
        reading = scoring.PAGED if has_pages else scoring.PROSE if kind_of(place).prose else scoring.CODE
        # A document's name consists of words: `3M` in `3M_2018_10K.pdf` is a word.
        words = stem if reading == scoring.CODE else f"{stem} {called}".replace("_", " ")
        layout.add_file(file, reading, words, folder)
    for piece, start, finish, block, defines, vector in pieces:
        defined = {*(int(place) for place in defines.split(",") if place), *([block] if block >= 0 else [])}
        text = decoded(data[start:finish])
        layout.add_piece(piece, text, " ".join(names[place] for place in sorted(defined)), vector)


def segments_to_merge(sizes: Mapping[_Segment, int], *, gone: int, files: int) -> list[_Segment]:
    """The segments to merge into one, by numbers of pieces: those of similar size, or all if much is gone."""
    if gone > _GONE_SHARE * max(files, 1):
        return list(sizes)
    by_size = sorted(sizes, key=lambda segment: sizes[segment])
    totals = list(accumulate(sizes[segment] for segment in by_size))
    similar = [i for i in range(1, len(by_size)) if sizes[by_size[i]] <= _GROWTH * totals[i - 1]]
    return by_size[: similar[-1] + 1] if similar else []


@dataclass(frozen=True)
class SegmentPart:
    """The arrays of a segment to merge, and a mask of the files to take over."""

    arrays: Mapping[str, NDArray[Any]]
    kept: NDArray[np.bool_]

    @cached_property
    def kept_pieces(self) -> NDArray[np.bool_]:
        """A mask of the pieces to take over."""
        return np.asarray(self.kept[self.arrays["piece_files"]])


def merge(parts: Sequence[SegmentPart]) -> dict[str, NDArray[Any]]:
    """The arrays of several segments as those of a single one, in this order; no text is read again."""
    arrays = {name: _joined(parts, name, of_pieces=False) for name in ("files", "reading", scoring.PATH_WORDS)}
    arrays |= {name: _joined(parts, name, of_pieces=True) for name in ("piece_ids", "vectors")}
    arrays["piece_files"] = np.concatenate(
        [
            numbers[part.arrays["piece_files"][part.kept_pieces]]
            for part, numbers in zip(parts, _renumbered([part.kept for part in parts]), strict=True)
        ]
    )
    for name in (*scoring.PIECE_FIELDS, *scoring.FILE_FIELDS):
        arrays |= _merged_field(parts, name, of_pieces=name in scoring.PIECE_FIELDS)
    return arrays


def _joined(parts: Sequence[SegmentPart], name: str, *, of_pieces: bool) -> NDArray[Any]:
    return np.concatenate([part.arrays[name][part.kept_pieces if of_pieces else part.kept] for part in parts])


def _renumbered(masks: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.uint32]]:
    """For each row of each part its number among all rows taken over."""
    starts = [0, *accumulate(int(np.count_nonzero(mask)) for mask in masks)]
    return [(np.cumsum(mask) - 1 + start).astype(np.uint32) for mask, start in zip(masks, starts, strict=False)]


def _merged_field(parts: Sequence[SegmentPart], name: str, *, of_pieces: bool) -> dict[str, NDArray[Any]]:
    """The inverted lists of a field over the rows taken over."""
    masks = [part.kept_pieces if of_pieces else part.kept for part in parts]
    hashes = np.unique(np.concatenate([part.arrays[f"{name}.hashes"] for part in parts]))
    terms, documents, counts = [], [], []
    for part, mask, numbers in zip(parts, masks, _renumbered(masks), strict=True):
        places = np.searchsorted(hashes, part.arrays[f"{name}.hashes"]).astype(np.uint32)
        kept = mask[part.arrays[f"{name}.documents"]]
        terms.append(np.repeat(places, np.diff(part.arrays[f"{name}.offsets"]))[kept])
        documents.append(numbers[part.arrays[f"{name}.documents"][kept]])
        counts.append(part.arrays[f"{name}.counts"][kept])
    lengths = _joined(parts, f"{name}.lengths", of_pieces=of_pieces)
    return _by_term(name, hashes, [np.concatenate(column) for column in (terms, documents, counts)], lengths)


def _by_term(
    name: str,
    hashes: NDArray[np.uint64],
    postings: Sequence[NDArray[Any]],
    lengths: NDArray[np.uint32],
) -> dict[str, NDArray[Any]]:
    """The arrays of a field; a posting is the place of its term among the sorted hashes, its document and its count."""
    terms, documents, counts = postings
    order = np.argsort(terms, kind="stable")
    present, sizes = np.unique(terms, return_counts=True)
    return {
        f"{name}.hashes": hashes[present],
        f"{name}.offsets": np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32),
        f"{name}.documents": documents[order],
        f"{name}.counts": counts[order],
        f"{name}.lengths": lengths,
    }
