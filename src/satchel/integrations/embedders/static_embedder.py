"""The embedder inside the wheel: a table of word vectors, no network, no service, no download.

A text's vector is the sum of its words' vectors, so making one costs microseconds. How the table was made, on what, and
how good it is: docs/model-card.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.errors import EmbedderUnavailable
from satchel.text.words import IDENTIFIER, is_caseless, parts_of, runs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HERE: Final = Path(__file__).parent / "static_model"
_MAX_TEXT_CHARS: Final = 20_000  # later words are ignored, to bound the time for a single text
_BATCH_ROWS: Final = 40_000  # word vectors are summed in batches: larger ones need fewer numpy calls and more memory
_LONGEST_RUN_ENTRY: Final = 8  # letters: the vocabulary has no longer entry of a script without spaces


# Identifiers, and words, whose rows are kept before all are found anew: bounds the memory of a resident process.
_MAX_KNOWN: Final = 1 << 20


class _RowsByIdentifier(dict[str, tuple[int, ...]]):
    """The rows of each identifier, found at its first use."""

    def __init__(self, embedder: StaticEmbedder) -> None:
        self._embedder = embedder

    def __missing__(self, identifier: str) -> tuple[int, ...]:
        if len(self) >= _MAX_KNOWN:
            self.clear()
        rows = self[identifier] = tuple(self._embedder.rows_of_identifier(identifier))
        return rows


class StaticEmbedder:
    """Word vectors from a folder: `rows.i8`, `scales.f32`, `vocabulary.txt` and `model.json`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _HERE
        try:
            card = json.loads((self._folder / "model.json").read_bytes())
            self._name = str(card["name"])
            self._dimensions = int(card["dimensions"])
            self._logarithmic = card["count_weight"] == "log"
            rows = int(card["rows"])
            self._scales: NDArray[np.float32] = np.fromfile(self._folder / "scales.f32", "<f4", rows)
            table = np.memmap(self._folder / "rows.i8", np.int8, "r", shape=(rows, self._dimensions))
            self._rows: NDArray[np.int8] = np.asarray(table)
            if len(self._scales) != rows:
                raise ValueError(f"scales.f32 holds {len(self._scales)} of {rows} numbers")
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"its files cannot be read ({type(error).__name__}: {error})"
            raise EmbedderUnavailable(str(self._folder), reason) from error
        self._of_identifier = _RowsByIdentifier(self)
        self._of_word: dict[str, tuple[int, ...]] = {}

    @property
    def name(self) -> str:
        """The name and version of the model."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        return self._dimensions

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        try:
            pieces = (self._folder / "vocabulary.txt").read_text("utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise EmbedderUnavailable(str(self._folder), f"its vocabulary cannot be read ({error})") from error
        return {piece: row for row, piece in enumerate(pieces[: len(self._scales)])}

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self.embed_texts([text])[0]
        return row

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, a row for each text."""
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        waiting: list[int] = []
        lengths: list[int] = []
        first = 0
        for i, text in enumerate(texts):
            before = len(waiting)
            waiting += self._rows_of(text)
            lengths.append(len(waiting) - before)
            if len(waiting) > _BATCH_ROWS or i == len(texts) - 1:
                vectors[first : i + 1] = self._sums(np.array(waiting, np.int64), np.array(lengths))
                waiting, lengths, first = [], [], i + 1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(norms, 1e-12), np.float32)

    def _sums(self, rows: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        sums = np.zeros((len(lengths), self._dimensions), np.float32)
        if not len(rows):
            return sums
        owners = np.repeat(np.arange(len(lengths)), lengths)
        keys, counts = np.unique(owners * len(self._scales) + rows, return_counts=True)
        owners, rows = keys // len(self._scales), keys % len(self._scales)
        weights = ((1 + np.log(counts) if self._logarithmic else counts) * self._scales[rows]).astype(np.float32)
        borders = np.flatnonzero(np.diff(owners, prepend=-1, append=-1)).tolist()
        # Text by text, to keep the operands in the processor's cache; einsum starts no threads.
        for first, end in pairwise(borders):
            vectors = self._rows[rows[first:end]].astype(np.float32)
            np.einsum("i,ij->j", weights[first:end], vectors, out=sums[owners[first]])
        return sums

    def _rows_of(self, text: str) -> list[int]:
        # Without a step of Python for each word: texts have many, and few distinct ones.
        rows = map(self._of_identifier.__getitem__, IDENTIFIER.findall(text[:_MAX_TEXT_CHARS]))
        return list(chain.from_iterable(rows))

    def rows_of_identifier(self, identifier: str) -> Iterator[int]:
        """The rows of the words in an identifier."""
        if identifier.isascii():
            for word in parts_of(identifier):
                rows = self._of_word.get(word)
                if rows is None:
                    if len(self._of_word) >= _MAX_KNOWN:
                        self._of_word.clear()
                    rows = self._of_word[word] = self._rows_of_word(word)
                yield from rows
            return
        for run in runs_of(identifier):
            yield from self._rows_of_run(run) if is_caseless(run) else self._rows_of_word(run)

    def _rows_of_run(self, run: str) -> Iterator[int]:
        """The rows of the longest vocabulary entries in a run without spaces; unknown letters are passed over."""
        vocabulary = self._vocabulary
        at = 0
        while at < len(run):
            for end in range(min(at + _LONGEST_RUN_ENTRY, len(run)), at, -1):
                row = vocabulary.get(run[at:end])
                if row is not None:
                    yield row
                    at = end
                    break
            else:
                at += 1

    def _rows_of_word(self, word: str) -> tuple[int, ...]:
        """The rows of the longest vocabulary entries for the word (WordPiece); empty if a part is unknown."""
        vocabulary = self._vocabulary
        rows: list[int] = []
        at = 0
        while at < len(word):
            for end in range(len(word), at, -1):
                row = vocabulary.get(word[at:end] if not at else f"##{word[at:end]}")
                if row is not None:
                    rows.append(row)
                    at = end
                    break
            else:
                return ()
        return tuple(rows)
