"""The evidence for each piece: BM25 of words, matches in names and paths, and vector similarity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from satchel.ports.file_index import Candidate, StoreQuery, WordCounts
from satchel.text.word_families import family_of_term

TEXT, NAME, STEM, FOLDER = "text", "name", "stem", "folder"
"""The indexed fields: text and name of a piece; name (stem) and folders of the file."""

CODE, NOTE, PROSE, PAGED = range(4)
"""How a file is read: as code, as a note (workspace block), as prose, or as a document with pages."""

PATH_WORDS: Final = "path_words"
"""The column with the hashes of the distinct word families in a file's path: the name's, then the folders' others."""
NAME_WIDTH: Final = 6  # longer names are rare, and their first words tell most
FOLDER_WIDTH: Final = 10  # the innermost words: of a deeper path the outer folders say least

PIECE_FIELDS: Final = (TEXT, NAME)
FILE_FIELDS: Final = (STEM, FOLDER)


class Postings(NamedTuple):
    """The documents with a term, and the term's count in each."""

    documents: NDArray[np.uint32]
    counts: NDArray[np.uint8]


NO_POSTINGS: Final = Postings(np.empty(0, np.uint32), np.empty(0, np.uint8))


def hash_of(term: str) -> int:
    """A term's hash: the same in every process and on every machine."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def word_hash(family: str) -> int:
    """The short hash of a word family, for the column of path words; never 0, which stands for no word."""
    return (hash_of(family) & 0xFFFFFFFF) or 1


def among(values: NDArray[np.int64], numbers: Collection[int]) -> NDArray[np.bool_]:
    """A mask of the values contained in these numbers."""
    ids = np.array(sorted(numbers), np.int64)
    if not len(ids):
        return np.zeros(len(values), bool)
    return np.asarray(ids[np.minimum(np.searchsorted(ids, values), len(ids) - 1)] == values)


class Columns:
    """Files and their pieces as parallel arrays; the pieces of a file are adjacent."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self.files: NDArray[np.int64] = arrays["files"]
        self.reading: NDArray[np.uint8] = arrays["reading"]
        self.path_words: NDArray[np.uint32] = arrays[PATH_WORDS]
        self.piece_ids: NDArray[np.int64] = arrays["piece_ids"]
        self.piece_files: NDArray[np.uint32] = arrays["piece_files"]
        self.lengths: Mapping[str, NDArray[np.uint32]] = {
            name: arrays[f"{name}.lengths"] for name in (*PIECE_FIELDS, *FILE_FIELDS)
        }

    @cached_property
    def one_to_one(self) -> bool:
        """True if every file has exactly one piece, the usual case for blocks of a workspace."""
        return len(self.files) == len(self.piece_ids) and bool((np.diff(self.piece_files.astype(np.int64)) == 1).all())

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """The start of each file's run of pieces, for files with pieces, followed by the total number of pieces."""
        owner = self.piece_files
        starts = np.flatnonzero(np.diff(owner, prepend=owner[:1] + 1)) if len(owner) else np.empty(0, np.int64)
        return np.append(starts, len(owner))

    @cached_property
    def with_pieces(self) -> NDArray[np.uint32]:
        """The indexes of the files with pieces."""
        return self.piece_files[self.borders[:-1]]

    @cached_property
    def has_pieces(self) -> NDArray[np.bool_]:
        """A mask of the files with pieces."""
        has_pieces = np.zeros(len(self.files), bool)
        has_pieces[self.with_pieces] = True
        return has_pieces

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """The index of each file in `borders`; -1 for a file without pieces."""
        place = np.full(len(self.files), -1)
        place[self.with_pieces] = np.arange(len(self.with_pieces))
        return place

    @cached_property
    def path_vocabulary(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The distinct path words in order, and for each word of each path its place among them."""
        distinct, places = np.unique(self.path_words, return_inverse=True)
        return distinct, places.reshape(self.path_words.shape)

    @cached_property
    def file_lengths(self) -> NDArray[np.float64]:
        """The number of words in each file."""
        return np.bincount(self.piece_files, self.lengths[TEXT], len(self.files)).astype(np.float64)


_BM25_K1: Final = 1.2  # the usual value of BM25's k1: how soon repeating a word stops counting
_BM25_B_PIECE: Final = 0.6  # below the usual 0.75: length counts less among pieces than among whole files
_BM25_B_FILE: Final = 0.75  # the usual value of BM25's b: how much the length of a document counts
_MAX_PIECES_PER_FILE: Final = 5  # bounds the candidates of one long file; the ranker sees no further piece of it
# Of the pieces: with fewer visible, copying them out costs less than comparing the hidden ones too.
_GATHER_SHARE: Final = 0.6
STEPS: Final = 2047
"""The scale of a question's quantized vector: below 2,048 every whole number is exact in half precision (`halfvec`)."""

# Weights for the choice of candidate files; the ranker then applies its own weights.
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
_PASSAGE_MIX: Final = {"text": 1.0, "coverage": 0.6, "meaning": 0.4, "file_text": 0.3, "title": 0.5}
_BEST: Final = ("text", "coverage", "name", "name_precision", "meaning")
"""The evidence of a file's best piece that also counts as evidence for the file."""
_OF_PATHS: Final = ("file_name", "file_name_rarity", "file_name_precision", "path_words")
"""The evidence of a file's path, by word families and their rarity."""
_MAX_PASSAGES: Final = 60
"""Candidates for the ranker from all documents together, with no limit for a single document."""


class View:
    """Columns with masks of the visible files and pieces; reusable while the visible set stays the same."""

    def __init__(self, segment: Columns, files: NDArray[np.bool_], pieces: NDArray[np.bool_] | None = None) -> None:
        self.segment = segment
        self.files = files
        self.pieces = pieces
        seen = files if segment.one_to_one else files[segment.piece_files]
        self.everything = bool(seen.all())
        self.seen = seen
        self.piece_count = float(np.count_nonzero(seen))
        self.few = np.flatnonzero(seen) if self.piece_count < _GATHER_SHARE * len(seen) else None
        """The indexes of the visible pieces if they are few enough for copying them out to pay; else None."""
        self.file_count = float(np.count_nonzero(files))
        self.word_count = float(segment.lengths[TEXT].sum(where=seen, dtype=np.float64))
        askable = files & segment.has_pieces
        self.prose_count = float(np.count_nonzero(askable & (segment.reading >= PROSE)))
        self.code_count = float(np.count_nonzero(askable & (segment.reading == CODE)))
        if pieces is not None:
            reachable = np.zeros(len(files), bool)
            reachable[segment.piece_files[pieces]] = True
            askable &= reachable
        self.askable = askable

    @cached_property
    def path_word_counts(self) -> NDArray[np.int64]:
        """For each word of the path vocabulary two numbers: the visible files with it in the name, and in the path."""
        distinct, places = self.segment.path_vocabulary
        names = np.bincount(places[self.files, :NAME_WIDTH].ravel(), minlength=len(distinct))
        return np.stack([names, np.bincount(places[self.files].ravel(), minlength=len(distinct))])


class EvidenceSource(Protocol):
    """A source of evidence: postings and vector similarity under a view."""

    view: View
    """The visible part of the source."""

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each term hash the documents with the term in the field."""

    def likeness(self, vector: NDArray[np.float32]) -> NDArray[Any]:
        """The similarity of each piece to the question."""


def in_steps(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """A question's vector scaled to whole numbers.

    The numbers are small enough to make every dot product with a piece's vector exact: otherwise the last bit of a
    result would depend on the number of neighbouring rows, and leak the presence of hidden rows.
    """
    return np.rint(np.nan_to_num(vector, posinf=1.0, neginf=-1.0) * STEPS).astype(np.float32)


class _PathWords(NamedTuple):
    """The words of all visible paths, in order: the rarity of each in names and in paths, and whether it was asked."""

    words: NDArray[np.uint32]
    in_names: NDArray[np.float64]
    in_paths: NDArray[np.float64]
    asked: NDArray[np.bool_]

    @property
    def totals(self) -> tuple[float, float]:
        """The rarity of all words asked for, in names and in paths."""
        # Words of hidden files have no rarity. They are left out of the sums, whose last bit depends on their length.
        names, paths = (rarity[self.asked & (rarity > 0)] for rarity in (self.in_names, self.in_paths))
        return float(names.sum()) or 1.0, float(paths.sum()) or 1.0


class _Weights(NamedTuple):
    """The question's terms: their hashes, and the weight of each, in a text and in a document's name."""

    hashes: list[int]
    shares: NDArray[np.float64]
    naming: NDArray[np.float64]
    mean_piece: float
    mean_file: float
    path_words: _PathWords


PathLookup = Callable[[Collection[int]], Mapping[int, bytes]]
"""The stored paths of files, by number."""


def gather(
    sources: Sequence[EvidenceSource],
    query: StoreQuery,
    top_k: int,
    defining: Mapping[int, set[int]],
    paths_of: PathLookup,
) -> list[Candidate]:
    """The candidates of the files with the most evidence, best first.

    `defining` maps files to the pieces with a definition of a name in the question: these pieces are always candidates.
    Equal evidence is ordered by path: the result depends neither on the order of indexing nor on the segments.
    """
    weights = _weigh(sources, query)
    views = [source.view for source in sources]
    # Beside code, prose describes the code and is ranked by file; in a mostly prose folder, prose is ranked by passage.
    mostly_prose = sum(view.prose_count for view in views) > sum(view.code_count for view in views)
    reading = PROSE if mostly_prose else PAGED
    filled = [source for source in sources if len(source.view.segment.piece_ids)]
    segments = [_Evidence(source, query, weights, reading) for source in filled]
    passages = [_Ranked(score, e.file_of(i), i, e) for e in segments for score, i in e.best_passages()]
    files = [
        _Ranked(float(evidence.file_score[index]), int(evidence.view.segment.files[index]), index, evidence)
        for evidence in segments
        for index in evidence.best_files(top_k, defining)
    ]
    ranked = [entry for i, entry in enumerate(_in_order(files, paths_of)) if i < top_k or entry.file in defining]
    candidates = [c for entry in ranked for c in entry.evidence.of_file(entry.place, entry.file, defining)]
    best_passages = _in_order(passages, paths_of)[:_MAX_PASSAGES]
    return [*candidates, *(entry.evidence.passage(entry.place) for entry in best_passages)]


class _Ranked(NamedTuple):
    """A file or a passage with its score; `place` is its index in the segment."""

    score: float
    file: int
    place: int
    evidence: _Evidence


def _in_order(entries: Sequence[_Ranked], paths_of: PathLookup) -> list[_Ranked]:
    """The entries by score; those of equal score by path, and within a file from top to bottom."""
    scores = Counter(entry.score for entry in entries)
    tied = {entry.file for entry in entries if scores[entry.score] > 1}
    paths = paths_of(tied) if len(tied) > 1 else {}
    return sorted(entries, key=lambda entry: (-entry.score, paths.get(entry.file, b""), entry.file, entry.place))


def count_words(sources: Sequence[EvidenceSource], terms: Sequence[str]) -> WordCounts:
    """The number of visible pieces, and of those with each term; a term only in the name of a file counts once."""
    hashes = [hash_of(term) for term in terms]
    counts, named = np.zeros(len(terms), np.int64), np.zeros(len(terms), bool)
    for source in sources:
        view = source.view
        for i, postings in enumerate(source.postings(TEXT, hashes)):
            documents = postings.documents
            counts[i] += len(documents) if view.everything else np.count_nonzero(view.seen[documents])
        for field in FILE_FIELDS:
            for i, postings in enumerate(source.postings(field, hashes)):
                named[i] |= bool(view.files[postings.documents].any())
    with_term = np.maximum(counts, named).tolist()
    return WordCounts(int(sum(source.view.piece_count for source in sources)), dict(zip(terms, with_term, strict=True)))


def with_use(candidates: Sequence[Candidate], central: Mapping[int, float]) -> list[Candidate]:
    """The candidates with the centrality of their files added."""
    of_files: dict[int, Mapping[str, float]] = {}
    for c in candidates:
        if id(c.of_file) not in of_files:
            of_files[id(c.of_file)] = {**c.of_file, "central": central.get(c.file, 0.0)}
    # `_replace` is three times as slow, and there are hundreds.
    return [Candidate(c.piece, c.file, c.signals, of_files[id(c.of_file)], c.is_passage) for c in candidates]


def _weigh(sources: Sequence[EvidenceSource], query: StoreQuery) -> _Weights:
    terms = list(query.terms)
    hashes = [hash_of(term) for term in terms]
    frequency = np.zeros(len(terms))
    naming_files = np.zeros(len(terms))
    # Only visible documents are counted: otherwise words in hidden files would leak through the scores.
    views = [source.view for source in sources]
    for source, view in zip(sources, views, strict=True):
        for i, postings in enumerate(source.postings(TEXT, hashes)):
            documents = postings.documents
            frequency[i] += len(documents) if view.everything else np.count_nonzero(view.seen[documents])
        for i, postings in enumerate(source.postings(STEM, hashes)):
            naming_files[i] += np.count_nonzero(view.files[postings.documents])
    pieces = sum(view.piece_count for view in views)
    files = sum(view.file_count for view in views)
    words = sum(view.word_count for view in views)
    frequency += naming_files > 0
    total_pieces = pieces
    if query.counts is not None:
        # Stores that are searched together: a word that is rare in all of them is rare, also where it is frequent.
        total_pieces, frequency = query.counts.pieces, np.array([query.counts.with_term[term] for term in terms], float)
    in_question = np.array([query.terms[term] for term in terms])
    # A term in no document cannot distinguish documents.
    weights = np.where(frequency > 0, in_question * np.log(1 + (total_pieces + 0.5) / (frequency + 0.5)), 0.0)
    # Rarity is counted separately in names: a word may be common in names and rare in texts, or the reverse.
    rarity = np.log(1 + (files - naming_files + 0.5) / (naming_files + 0.5))
    naming = np.where(naming_files > 0, in_question * rarity, 0.0)
    mean_piece, mean_file = words / max(pieces, 1), words / max(files, 1)
    shares = weights / (float(weights.sum()) or 1.0)
    return _Weights(hashes, shares, naming, mean_piece, mean_file, _weigh_path_words(views, query))


def _weigh_path_words(views: Sequence[View], query: StoreQuery) -> _PathWords:
    """Weigh the words of paths by their rarity among the visible files: a project's own name counts for nothing."""
    words = np.unique(np.concatenate([np.zeros(1, np.uint32), *(view.segment.path_vocabulary[0] for view in views)]))
    counts = np.zeros((2, len(words)))
    for view in views:
        counts[:, np.searchsorted(words, view.segment.path_vocabulary[0])] += view.path_word_counts
    files = sum(view.file_count for view in views)
    rarity = np.where(counts > 0, np.log(1 + (files - counts + 0.5) / (counts + 0.5)), 0.0)
    rarity[:, 0] = 0.0  # no word
    hashes = [word_hash(family_of_term(term)) for term in query.terms]
    return _PathWords(words, rarity[0], rarity[1], np.isin(words, np.array(hashes, np.uint32)))


class _Evidence:
    """The evidence in a segment, as arrays over the segment's pieces and files.

    Only the evidence for choosing files is computed for all files; the rest is computed for the chosen files.
    """

    def __init__(self, source: EvidenceSource, query: StoreQuery, weights: _Weights, reading: int) -> None:
        self._source = source
        self.view = view = source.view
        self._in_passages = view.segment.reading >= reading
        """A mask of the files ranked by passage."""
        self._segment = view.segment
        self._weights = weights
        n_pieces, n_files = len(self._segment.piece_ids), len(self._segment.files)
        self._of_piece: dict[str, NDArray[Any]] = {}
        self._of_file: dict[str, NDArray[Any]] = {}
        self._words(n_pieces, n_files)
        self._matches(self._of_piece, NAME, n_pieces)
        for field in (STEM, FOLDER):
            self._matches(self._of_file, field, n_files)
        self._path_matches()
        self._of_piece["meaning"] = self._meaning(query, n_pieces)
        self.file_score = self._score(n_files)

    def _words(self, n_pieces: int, n_files: int) -> None:
        """Compute BM25 of pieces and of whole files, and the covered share of the question."""
        segment, weights = self._segment, self._weights
        lengths, file_lengths = segment.lengths[TEXT], segment.file_lengths
        text, coverage = np.zeros(n_pieces), np.zeros(n_pieces)
        file_text, file_coverage = np.zeros(n_files), np.zeros(n_files)
        for postings, weight in zip(self._source.postings(TEXT, weights.hashes), weights.shares, strict=True):
            documents = postings.documents
            if not weight or not len(documents):
                continue
            counts = postings.counts.astype(np.float64)
            text[documents] += weight * counts / (counts + _norm(lengths[documents], _BM25_B_PIECE, weights.mean_piece))
            coverage[documents] += weight
            files = segment.piece_files[documents]
            if not segment.one_to_one:
                # The pieces of a file are adjacent, and so are their counts.
                first = np.flatnonzero(np.diff(files, prepend=files[0] + 1))
                files, counts = files[first], np.add.reduceat(counts, first)
            file_text[files] += weight * counts / (counts + _norm(file_lengths[files], _BM25_B_FILE, weights.mean_file))
            file_coverage[files] += weight
        self._of_piece |= {"text": text, "coverage": coverage}
        self._of_file |= {"file_text": file_text, "file_coverage": file_coverage}

    def _matches(self, into: dict[str, NDArray[Any]], field: str, size: int) -> None:
        """Compute for each name the covered share of the question, and the number of matching words."""
        weights = self._weights
        covered, matched = np.zeros(size), np.zeros(size)
        for postings, weight in zip(self._source.postings(field, weights.hashes), weights.shares, strict=True):
            if weight:
                covered[postings.documents] += weight
                matched[postings.documents] += 1
        into[field] = covered
        into[f"{field}_matched"] = matched

    def _path_matches(self) -> None:
        """Compute for each file the rarity of the words of its name, of those asked for, and of those in its path."""
        words = self._weights.path_words
        distinct, places = self._segment.path_vocabulary
        here = np.searchsorted(words.words, distinct)
        in_names, in_paths, asked = words.in_names[here], words.in_paths[here], words.asked[here]
        names = places[:, :NAME_WIDTH]
        matched = (in_names * asked)[names].sum(axis=1)
        own = in_names[names].sum(axis=1)
        total_names, total_paths = words.totals
        self._of_file |= {
            "file_name": matched / total_names,
            "file_name_rarity": matched,
            "file_name_precision": matched / np.maximum(own, 1e-9),
            "path_words": (in_paths * asked)[places].sum(axis=1) / total_paths,
        }

    def _meaning(self, query: StoreQuery, n_pieces: int) -> NDArray[Any]:
        if query.vector is None or not query.vector.any():
            return np.zeros(n_pieces, np.float32)
        likeness = self._source.likeness(query.vector)
        return np.asarray(np.maximum(likeness, 0.0, out=likeness))

    def _score(self, n_files: int) -> NDArray[Any]:
        """The weighted sum of the evidence for each file; -1 for hidden files and for files ranked by passage."""
        segment = self._segment
        mixed = np.zeros(n_files)
        for name, weight in _FILE_MIX.items():
            if name == "stem_precision":
                values = self._of_file["stem_matched"] / np.maximum(segment.lengths[STEM], 1)
            else:
                values = self._of_file[name] if name in self._of_file else self._best(name, n_files)
            mixed += weight * values
        return np.where(self.view.askable & ~self._in_passages, mixed, -1.0)

    def _best(self, name: str, n_files: int) -> NDArray[Any]:
        """For each file the maximum over the file's pieces."""
        segment, values = self._segment, self._of_piece[name]
        if segment.one_to_one:
            return values
        best = np.zeros(n_files)
        best[segment.with_pieces] = np.maximum.reduceat(values, segment.borders[:-1])
        return best

    def best_files(self, top_k: int, defining: Mapping[int, set[int]]) -> list[int]:
        """The files with the most evidence, with all ties at the limit, and the files with a definition."""
        score = self.file_score
        least = np.partition(score, -top_k)[-top_k] if top_k < len(score) else 0.0
        chosen = set(np.flatnonzero((score >= least) & (score > 0)).tolist())
        if defining:
            is_defining = among(self._segment.files, defining)
            chosen |= {int(i) for i in np.flatnonzero(is_defining) if score[i] >= 0}
        return sorted(chosen)

    def best_passages(self) -> list[tuple[float, int]]:
        """The best pieces of documents, each with a score, with all ties at the limit."""
        if not self._in_passages.any():
            return []
        segment = self._segment
        owner = segment.piece_files
        seen = (self._in_passages & self.view.askable)[owner]
        if self.view.pieces is not None:
            seen = seen & self.view.pieces
        self._of_file["title"] = self._titles()
        score = np.zeros(len(seen))
        for name, weight in _PASSAGE_MIX.items():
            score += weight * (self._of_piece[name] if name in self._of_piece else self._of_file[name][owner])
        best = np.flatnonzero(seen & (score > 0))
        if len(best) > _MAX_PASSAGES:
            best = best[score[best] >= np.partition(score[best], -_MAX_PASSAGES)[-_MAX_PASSAGES]]
        return [(score.item(i), i) for i in best.tolist()]

    def file_of(self, piece: int) -> int:
        """The number of a piece's file."""
        return self._segment.files.item(self._segment.piece_files.item(piece))

    def _titles(self) -> NDArray[Any]:
        """For each document the share of the question's naming terms in the document's name."""
        weights = self._weights
        titles = np.zeros(len(self._segment.files))
        for postings, weight in zip(self._source.postings(STEM, weights.hashes), weights.naming, strict=True):
            if weight:
                titles[postings.documents] += weight
        return titles / (float(weights.naming.sum()) or 1.0)

    def passage(self, piece: int) -> Candidate:
        """The candidate for a passage, with the passage's own evidence in place of the best piece's."""
        index = self._segment.piece_files.item(piece)
        candidate = self._candidate(piece, index, set())
        of_file = {**candidate.of_file, "title": self._of_file["title"].item(index)}
        return candidate._replace(of_file=of_file, is_passage=True)

    def of_file(self, index: int, file: int, defining: Mapping[int, set[int]]) -> list[Candidate]:
        """The candidates of a file: the best pieces, and the pieces with a definition of a name in the question."""
        segment = self._segment
        if segment.one_to_one:
            return [self._candidate(index, index, defining.get(file, set()))]
        place = int(segment.place[index])
        first, last = int(segment.borders[place]), int(segment.borders[place + 1])
        of_piece = self._pieces(slice(first, last))
        score = np.zeros(last - first)
        for name, weight in _PIECE_MIX.items():
            score += weight * of_piece[name]
        if self.view.pieces is not None:
            score = np.where(self.view.pieces[first:last], score, -1.0)
        ids = segment.piece_ids[first:last].tolist()
        definitions = defining.get(file, set())
        chosen = set(np.argsort(-score, kind="stable")[:_MAX_PIECES_PER_FILE].tolist())
        chosen |= {i for i, piece in enumerate(ids) if piece in definitions}
        of_file = self._file(index, {name: max(0.0, float(of_piece[name].max())) for name in _BEST})
        candidates = []
        for i in sorted(chosen):
            if score[i] >= 0:
                signals = {name: values.item(i) for name, values in of_piece.items()}
                signals["defines"] = 1.0 if ids[i] in definitions else 0.0
                candidates.append(Candidate(ids[i], file, signals, of_file))
        return candidates

    def _candidate(self, place: int, index: int, definitions: set[int]) -> Candidate:
        """The candidate for a single piece, with the piece itself as the file's best piece."""
        segment, of_piece = self._segment, self._of_piece
        piece = segment.piece_ids.item(place)
        name_length = segment.lengths[NAME].item(place)
        signals = {name: of_piece[name].item(place) for name in ("text", "coverage", NAME, "meaning")}
        signals["name_precision"] = of_piece[f"{NAME}_matched"].item(place) / max(name_length, 1)
        signals["named"] = float(name_length > 0)
        signals["defines"] = 1.0 if piece in definitions else 0.0
        return Candidate(piece, segment.files.item(index), signals, self._file(index, signals))

    def _pieces(self, part: slice) -> dict[str, NDArray[Any]]:
        lengths = self._segment.lengths[NAME][part]
        return {
            "text": self._of_piece["text"][part],
            "coverage": self._of_piece["coverage"][part],
            "name": self._of_piece[NAME][part],
            "name_precision": self._of_piece[f"{NAME}_matched"][part] / np.maximum(lengths, 1),
            "named": (lengths > 0).astype(np.float64),
            "meaning": self._of_piece["meaning"][part],
        }

    def _file(self, index: int, best: Mapping[str, float]) -> dict[str, float]:
        """The evidence for a file; `best` is the evidence of the best piece."""
        segment = self._segment
        signals = {name: self._of_file[name].item(index) for name in ("file_text", "file_coverage", STEM, FOLDER)}
        for name in _OF_PATHS:
            signals[name] = self._of_file[name].item(index)
        for field in (STEM, FOLDER):
            length = max(1, segment.lengths[field].item(index))
            signals[f"{field}_precision"] = self._of_file[f"{field}_matched"].item(index) / length
        signals["file_size"] = math.log1p(segment.file_lengths.item(index))
        for name in _BEST:
            signals[f"best_{name}"] = best[name]
        return signals


def _norm(lengths: NDArray[Any], share: float, mean: float) -> NDArray[Any]:
    """BM25's length normalization: in a longer document, a word counts less."""
    damped: NDArray[Any] = _BM25_K1 * (1 - share + share * lengths / max(mean, 1))
    return damped
