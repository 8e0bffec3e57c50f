"""What speaks for each piece: words, names, paths and meaning, gathered over whole segments at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satchel.adapters.embedded.segment import FOLDER, NAME, STEM, TEXT, Segment, among, hash_of
from satchel.ports.store import Candidate, StoreQuery

_K1: Final = 1.2
_B_PIECE: Final = 0.6
_B_FILE: Final = 0.75
_SCANNED_AT_ONCE: Final = 512
_BEST_OF_FILE: Final = 5

# How evidence is added up to choose which files are looked at; the ranker weighs it anew.
_FILE_MIX: Final = {
    "file_text": 1.0,
    "text": 1.0,
    "stem": 0.7,
    "stem_precision": 0.3,
    "folder": 0.15,
    "name": 0.7,
    "meaning": 1.0,
}
_PIECE_MIX: Final = {"text": 1.0, "name": 0.6, "meaning": 0.8}


class View(NamedTuple):
    """A segment and which of its files and pieces may be seen."""

    segment: Segment
    files: NDArray[np.bool_]
    pieces: NDArray[np.bool_] | None = None


class _Weights(NamedTuple):
    """The question's terms: their hashes, and how much each tells."""

    hashes: list[int]
    weights: NDArray[np.float64]
    total: float
    mean_piece: float
    mean_file: float


def gather(views: Sequence[View], query: StoreQuery, top_k: int, defining: Mapping[int, set[int]]) -> list[Candidate]:
    """The candidates of the files with the most evidence, best first.

    `defining` maps files to their pieces that define one of the question's names: they are always looked at.
    """
    weights = _weigh(views, query)
    found = []
    for view in views:
        if len(view.segment.piece_ids):
            found.append(_Evidence(view, query, weights))
    ranked: list[tuple[float, int, _Evidence, int]] = []
    for evidence in found:
        for index in evidence.best_files(top_k, defining):
            ranked.append(
                (-float(evidence.file_score[index]), int(evidence.view.segment.files[index]), evidence, index)
            )
    ranked.sort(key=lambda entry: entry[:2])
    kept = [entry for i, entry in enumerate(ranked) if i < top_k or entry[1] in defining]
    return [candidate for _, file, evidence, index in kept for candidate in evidence.of_file(index, file, defining)]


def _weigh(views: Sequence[View], query: StoreQuery) -> _Weights:
    terms = list(query.terms)
    hashes = [hash_of(term) for term in terms]
    frequency = np.zeros(len(terms))
    in_a_name = np.zeros(len(terms), bool)
    pieces = files = words = 0.0
    for view in views:
        segment = view.segment
        # Only what may be seen is counted: otherwise words in hidden files would show in the scores of others.
        seen = view.files[segment.piece_files]
        everything = bool(seen.all())
        pieces += float(seen.sum())
        files += float(view.files.sum())
        words += float(segment.lengths[TEXT][seen].sum())
        for i, found in enumerate(segment.postings(TEXT, hashes)):
            frequency[i] += len(found.documents) if everything else seen[found.documents].sum()
        for i, found in enumerate(segment.postings(STEM, hashes)):
            in_a_name[i] |= bool(view.files[found.documents].any())
    frequency += in_a_name
    asked = np.array([query.terms[term] for term in terms])
    # What no document holds cannot tell them apart.
    weights = np.where(frequency > 0, asked * np.log(1 + (pieces + 0.5) / (frequency + 0.5)), 0.0)
    return _Weights(hashes, weights, float(weights.sum()), words / max(pieces, 1), words / max(files, 1))


class _Evidence:
    """The evidence in one segment, as arrays over its pieces and files."""

    def __init__(self, view: View, query: StoreQuery, weights: _Weights) -> None:
        self.view = view
        segment = view.segment
        n_pieces, n_files = len(segment.piece_ids), len(segment.files)
        self._of_piece: dict[str, NDArray[Any]] = {}
        self._of_file: dict[str, NDArray[Any]] = {}
        self._words(weights, n_pieces, n_files)
        self._names(weights, n_pieces)
        self._paths(weights, n_files)
        self._meaning(query, n_pieces)
        self._settle(n_files)

    def _words(self, weights: _Weights, n_pieces: int, n_files: int) -> None:
        segment = self.view.segment
        lengths = segment.lengths[TEXT]
        piece_norm = _K1 * (1 - _B_PIECE + _B_PIECE * lengths / max(weights.mean_piece, 1))
        file_lengths = np.bincount(segment.piece_files, weights=lengths, minlength=n_files)
        file_norm = _K1 * (1 - _B_FILE + _B_FILE * file_lengths / max(weights.mean_file, 1))
        text, coverage = np.zeros(n_pieces), np.zeros(n_pieces)
        file_text, file_coverage = np.zeros(n_files), np.zeros(n_files)
        for found, weight in zip(segment.postings(TEXT, weights.hashes), weights.weights, strict=True):
            if not weight or not len(found.documents):
                continue
            counts = found.counts.astype(np.float64)
            text[found.documents] += weight * counts / (counts + piece_norm[found.documents])
            coverage[found.documents] += weight
            in_file = np.bincount(segment.piece_files[found.documents], weights=counts, minlength=n_files)
            file_text += weight * in_file / (in_file + file_norm)
            file_coverage += weight * (in_file > 0)
        scale = weights.total or 1.0
        self._of_piece |= {"text": text / scale, "coverage": coverage / scale}
        self._of_file |= {
            "file_text": file_text / scale,
            "file_coverage": file_coverage / scale,
            "file_size": np.log1p(file_lengths),
        }

    def _names(self, weights: _Weights, n_pieces: int) -> None:
        segment = self.view.segment
        covered, matched = np.zeros(n_pieces), np.zeros(n_pieces)
        for found, weight in zip(segment.postings(NAME, weights.hashes), weights.weights, strict=True):
            covered[found.documents] += weight
            matched[found.documents] += weight > 0
        lengths = segment.lengths[NAME]
        self._of_piece |= {
            "name": covered / (weights.total or 1.0),
            "name_precision": matched / np.maximum(lengths, 1),
            "named": (lengths > 0).astype(np.float64),
        }

    def _paths(self, weights: _Weights, n_files: int) -> None:
        segment = self.view.segment
        for field in (STEM, FOLDER):
            covered, matched = np.zeros(n_files), np.zeros(n_files)
            for found, weight in zip(segment.postings(field, weights.hashes), weights.weights, strict=True):
                covered[found.documents] += weight
                matched[found.documents] += weight > 0
            self._of_file[field] = covered / (weights.total or 1.0)
            self._of_file[f"{field}_precision"] = matched / np.maximum(segment.lengths[field], 1)

    def _meaning(self, query: StoreQuery, n_pieces: int) -> None:
        if query.vector is None or not query.vector.any():
            self._of_piece["meaning"] = np.zeros(n_pieces)
            return
        vectors, asked = self.view.segment.vectors, query.vector.astype(np.float32)
        likeness = np.empty(n_pieces, np.float32)
        # Small strips stay in the processor's cache while they are widened.
        strip = np.empty((_SCANNED_AT_ONCE, vectors.shape[1]), np.float32)
        for first in range(0, n_pieces, _SCANNED_AT_ONCE):
            part = vectors[first : first + _SCANNED_AT_ONCE]
            np.copyto(strip[: len(part)], part)
            np.dot(strip[: len(part)], asked, out=likeness[first : first + len(part)])
        self._of_piece["meaning"] = np.maximum(likeness / 127.0, 0.0)

    def _settle(self, n_files: int) -> None:
        segment, view = self.view.segment, self.view
        self.piece_score = np.zeros(len(segment.piece_ids))
        for name, weight in _PIECE_MIX.items():
            self.piece_score += weight * self._of_piece[name]
        if view.pieces is not None:
            self.piece_score = np.where(view.pieces, self.piece_score, -1.0)
        owner = segment.piece_files
        # The pieces of a file stand together: their maxima are one pass over the borders.
        borders = np.flatnonzero(np.diff(owner, prepend=owner[0] + 1))
        self._borders = np.append(borders, len(owner))
        self._with_pieces = owner[borders]
        for name in ("text", "coverage", "name", "name_precision", "meaning"):
            best = np.zeros(n_files)
            best[self._with_pieces] = np.maximum.reduceat(self._of_piece[name], borders)
            self._of_file[f"best_{name}"] = best
        mixed = np.zeros(n_files)
        for name, weight in _FILE_MIX.items():
            mixed += weight * self._of_file[name if name in self._of_file else f"best_{name}"]
        visible = view.files.copy()
        if view.pieces is not None:
            reachable = np.zeros(n_files, bool)
            reachable[owner[view.pieces]] = True
            visible &= reachable
        has_pieces = np.zeros(n_files, bool)
        has_pieces[self._with_pieces] = True
        self.file_score = np.where(visible & has_pieces, mixed, -1.0)
        self._place = np.full(n_files, -1)
        self._place[self._with_pieces] = np.arange(len(self._with_pieces))

    def best_files(self, top_k: int, defining: Mapping[int, set[int]]) -> list[int]:
        score = self.file_score
        count = min(top_k, len(score))
        best = np.argpartition(-score, count - 1)[:count] if count < len(score) else np.arange(len(score))
        # Ties fall to the file that was read first, whatever the partition did with them.
        chosen = {int(i) for i in best if score[i] > 0}
        if defining:
            named = among(self.view.segment.files, defining)
            chosen |= {int(i) for i in np.flatnonzero(named) if score[i] >= 0}
        return sorted(chosen)

    def of_file(self, index: int, file: int, defining: Mapping[int, set[int]]) -> list[Candidate]:
        place = int(self._place[index])
        first, last = int(self._borders[place]), int(self._borders[place + 1])
        score = self.piece_score[first:last]
        chosen = set((np.argsort(-score, kind="stable")[:_BEST_OF_FILE] + first).tolist())
        ids = self.view.segment.piece_ids
        wanted = defining.get(file)
        if wanted:
            chosen |= {i for i in range(first, last) if int(ids[i]) in wanted}
        of_file = {name: values.item(index) for name, values in self._of_file.items()}
        return [
            Candidate(
                int(ids[i]),
                file,
                {
                    **{name: values.item(i) for name, values in self._of_piece.items()},
                    "defines": 1.0 if wanted and int(ids[i]) in wanted else 0.0,
                },
                of_file,
            )
            for i in sorted(chosen)
            if self.piece_score[i] >= 0
        ]
