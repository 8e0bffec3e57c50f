"""Words to vocabulary pieces to a vector: the model's definition, plain enough to check the product's loader with."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from satchel.text.words import IDENTIFIER, is_caseless, runs_of, words

Vector = np.ndarray


LONGEST_RUN_ENTRY = 8
"""Letters of the longest vocabulary entry of a script without spaces."""


class Pieces:
    """Greedy longest-match WordPiece over a vocabulary; continuations carry ``##``."""

    def __init__(self, vocabulary: list[str]) -> None:
        self.row: Mapping[str, int] = {piece: row for row, piece in enumerate(vocabulary)}
        self._known: dict[str, tuple[int, ...]] = {}

    def of_word(self, word: str) -> tuple[int, ...]:
        """The rows of the word's pieces; none at all when some part of it is not in the vocabulary."""
        found = self._known.get(word)
        if found is None:
            caseless = bool(word) and is_caseless(word)
            found = self._known[word] = self._split_run(word) if caseless else self._split(word)
        return found

    def _split_run(self, run: str) -> tuple[int, ...]:
        """Pieces of a run without spaces: no ``##``, and unknown letters are passed over."""
        rows: list[int] = []
        start = 0
        while start < len(run):
            ends = range(min(start + LONGEST_RUN_ENTRY, len(run)), start, -1)
            end = next((end for end in ends if run[start:end] in self.row), 0)
            if end:
                rows.append(self.row[run[start:end]])
            start = end or start + 1
        return tuple(rows)

    def _split(self, word: str) -> tuple[int, ...]:
        rows: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                row = self.row.get(prefix + word[start:end])
                if row is not None:
                    break
            else:
                return ()
            rows.append(row)
            start = end
        return tuple(rows)

    def counts(self, text: str) -> Counter[int]:
        """How often every row occurs in the text."""
        return Counter(row for word in runs(text) for row in self.of_word(word))


def runs(text: str) -> list[str]:
    """Every word of the text; runs without spaces stay whole."""
    if text.isascii():
        return words(text)
    return [run for name in IDENTIFIER.findall(text) for run in runs_of(name)]


def weight(counts: Vector, how: str) -> Vector:
    """What a piece that occurs so often counts for."""
    return 1 + np.log(counts) if how == "log" else np.asarray(counts, dtype=np.float32)


def embed(text: str, pieces: Pieces, rows: Vector, scales: Vector, how: str) -> Vector:
    """The text's unit vector from the exported files; zeros when no word of it is known."""
    counts = pieces.counts(text)
    if not counts:
        return np.zeros(rows.shape[1], dtype=np.float32)
    chosen = np.fromiter(counts.keys(), dtype=np.int64)
    weights = weight(np.fromiter(counts.values(), dtype=np.float32), how) * scales[chosen]
    vector = weights @ rows[chosen].astype(np.float32)
    return (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)


def read_vocabulary(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
