"""Searches a workspace: ranked pieces, checked against the files on disk, cut to excerpts for the budget."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from satchel.assembly.unit_packing import UnitPacker
from satchel.assembly.units import LineWorths, SourceText
from satchel.errors import EmbedderMismatch, InvalidOption
from satchel.models.checks import as_count, as_text
from satchel.models.files import PROSE, detect_language, kind_of
from satchel.models.options import Fill
from satchel.models.search import Filters, SearchHit, SearchResult
from satchel.ports.file_index import StoredPiece, StoreQuery
from satchel.retrieval.freshness import LineRange, Verdict, find_again, lines_of
from satchel.retrieval.intents import Intent
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import (
    Ranked,
    WeightSet,
    behind_originals,
    beside,
    in_the_background,
    learned_weights,
    rank,
    with_closeness,
)
from satchel.text.languages import is_written_in
from satchel.text.visible import make_visible_line
from satchel.text.words import terms

if TYPE_CHECKING:
    from satchel.models.files import FileState
    from satchel.ports.embedder import Embedder
    from satchel.ports.file_index import Candidate
    from satchel.ports.searched_store import SearchedStore
    from satchel.retrieval.freshness import DiskFile
    from satchel.retrieval.query import ParsedQuestion
    from satchel.tokens.counter import TokenCounter


# Files ranked for a question: more may find further answers, and cost time for each question.
_CANDIDATE_FILES: Final = 60

# Blocks ranked for a question in a workspace of blocks: a section has many, and its best are rarely among the first 60
# (of 96 questions over notes, the answering section has a ranked block for 93, for 87 with 60).
_CANDIDATE_BLOCKS: Final = 120

# Files ranked for a long report, whose many terms match more files; scripts/ranker/fit.py learns on as many.
_CANDIDATE_FILES_LONG: Final = 100

# Pieces with the most of a question's words, of which one is in the question's language if the workspace is.
_LANGUAGE_SAMPLE: Final = 8

# Rankings cached for repeated questions; each keeps all its ranked candidates in memory.
_CACHED_QUESTIONS: Final = 256

# Half-life of recency: a file of the last weeks differs from an old file, a file of today hardly from yesterday's.
_MONTH_SECONDS: Final = 30 * 86_400


class ComparesFiles(Protocol):
    """Compares indexed files with the disk: an open folder, or several."""

    def look(self, path: str, state: FileState) -> DiskFile:
        """Compare the file on disk with the indexed state; the changed text is included."""


class OpensFolder(Protocol):
    """A folder, or several, whose files can be compared with the disk."""

    def opened(self) -> AbstractContextManager[ComparesFiles]:
        """Open the folder to compare its files."""


@dataclass(eq=False)
class Searcher:
    """Searches a workspace and caches rankings until a commit that the caller can see."""

    folder: OpensFolder
    store: SearchedStore
    embedder: Embedder
    _answered: OrderedDict[tuple[Any, ...], list[Ranked]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The best hits for a question, each checked against the file on disk."""
        filters = filters or Filters()
        as_count(InvalidOption, "top_k", top_k, 1)
        ranked, cached = self._ranked(question, filters)
        notes: list[str] = []
        hits: dict[str, SearchHit] = {}
        with self.folder.opened() as disk:
            # Some pieces may be gone from disk or have become the same lines: then the next pieces are checked.
            for first in range(0, len(ranked), top_k):
                by_id = {entry.piece: entry for entry in ranked[first : first + top_k]}
                for piece in self.store.pieces(list(by_id), filters):
                    hit = _fresh(piece, by_id[piece.id], disk, notes)
                    if hit is not None and len(hits) < top_k:
                        hits.setdefault(hit.id, hit)
                if len(hits) == top_k:
                    break
        generation = self.store.generation_for(filters)
        return SearchResult(tuple(hits.values()), generation, tuple(dict.fromkeys(notes)), cached)

    def _ranked(self, question: str, filters: Filters) -> tuple[list[Ranked], bool]:
        """The ranked candidates, and True if they came from the cache.

        A cached ranking serves only callers with the same access, until a commit that they can see. A cache shared
        with more callers would leak through response times what another user has asked (timing side channel).
        """
        question = as_text(InvalidOption, "question", question).strip()
        if not question:
            raise InvalidOption("question", question, "must not be empty")
        with self.store.snapshot():
            rights, version = self.store.access_key(filters), self.store.search_version(filters)
        key = (question, replace(filters, readers=None), rights, version)
        with self._lock:
            known = self._answered.get(key)
            if known is not None:
                self._answered.move_to_end(key)
                return known, True
        ranked = self._rank(question, filters)
        with self._lock:
            self._answered[key] = ranked
            while len(self._answered) > _CACHED_QUESTIONS:
                self._answered.popitem(last=False)
        return ranked, False

    def _rank(self, text: str, filters: Filters) -> list[Ranked]:
        stored_embedder = self.store.embedder()
        if stored_embedder and stored_embedder != self.embedder.name:
            raise EmbedderMismatch(stored_embedder, self.embedder.name)
        question = understand(text)
        candidates = self._candidates(question, filters)
        weights = None
        if question.language and not self._is_written_in(question.language, candidates, filters):
            # Words of another language match by accident only: English text is found by meaning.
            question, weights = replace(question, terms={}), learned_weights(WeightSet.MEANING)
            candidates = self._candidates(question, filters)
        files = [candidate.file for candidate in candidates]
        paths = self.store.paths(files, filters)
        whole = [candidate for candidate in candidates if not candidate.is_passage]
        recent = _recency(self.store.last_changes(files, filters))
        ranked = rank(question, whole, paths, recent=recent, weights=weights)
        passages = [candidate for candidate in candidates if candidate.is_passage]
        if passages:
            pieces = self.store.pieces([passage.piece for passage in passages], filters)
            passages = with_closeness(question, passages, {piece.id: piece.text for piece in pieces})
            ranked += beside(rank(question, passages, paths, weights=learned_weights(WeightSet.DOCUMENTS)), ranked)
        titles = self.store.titles(files, filters)
        if titles:
            ranked += rank(question, candidates, titles, weights=learned_weights(WeightSet.NOTES))
        ranked = behind_originals(question, in_the_background(question, ranked, paths), paths)
        return sorted(ranked, key=lambda entry: -entry.relevance)

    def _candidates(self, question: ParsedQuestion, filters: Filters) -> list[Candidate]:
        vector = self.embedder.embed_query(question.text)
        query = StoreQuery(terms=question.terms, names=question.names, vector=vector)
        most_files = _CANDIDATE_FILES_LONG if question.is_long else _CANDIDATE_FILES
        if self.store.holds_blocks():
            most_files = max(most_files, _CANDIDATE_BLOCKS)
        return self.store.search(query, filters, top_k=most_files)

    def _is_written_in(self, language: str, candidates: Sequence[Candidate], filters: Filters) -> bool:
        """True if a piece with the question's words, outside of translations of messages, is in the language."""
        best = sorted(candidates, key=lambda candidate: -candidate.signals["text"])[:_LANGUAGE_SAMPLE]
        pieces = self.store.pieces([candidate.piece for candidate in best], filters)
        return any(is_written_in(piece.text, language) for piece in pieces if not kind_of(piece.path).locale)


def _fresh(piece: StoredPiece, ranked: Ranked, disk: ComparesFiles, notes: list[str]) -> SearchHit | None:
    """The hit with the current lines on disk, or None if the lines are gone."""
    hit = current_hit(piece, disk, notes)
    return hit and replace(
        hit,
        relevance=ranked.relevance,
        signals=ranked.signals(),
        likeness=ranked.features.get("best_meaning", 0.0),
        is_passage=bool(piece.path) and ranked.is_passage,
    )


def current_hit(piece: StoredPiece, disk: ComparesFiles, notes: list[str]) -> SearchHit | None:
    """A hit, not ranked yet, with the lines of a piece as they are on disk now; None if the lines are gone."""
    is_changed = False
    place: LineRange | None
    if not piece.path:
        # A block that exists only in the store.
        place, hit_id = LineRange(piece.first_line, piece.last_line, piece.text or piece.title), piece.block
    else:
        now = disk.look(piece.path, piece.state)
        place = LineRange(piece.first_line, piece.last_line, piece.text, piece.page)
        is_changed = now.verdict is Verdict.CHANGED
        if now.verdict is not Verdict.SAME:
            notes.append(f"{piece.path} {'has changed since it was indexed' if is_changed else 'is missing'}")
            place = find_again(piece.path, now, place, piece.title) if is_changed else None
        if place is None:
            return None
        hit_id = f"{piece.path}:{place.first_line}-{place.last_line}"
    return SearchHit(
        id=hit_id,
        path=piece.path,
        start_line=place.first_line,
        end_line=place.last_line,
        relevance=0.0,
        content=place.text,
        language=piece.language,
        block_id=piece.block,
        block_type=piece.block_type,
        title=piece.title,
        summary="" if is_changed else piece.summary,
        reanchored=is_changed,
        page=place.page,
    )


def _recency(changed: Mapping[int, int]) -> dict[int, float]:
    """The recency of each file relative to the newest change, halved every month."""
    newest = max(changed.values(), default=0)
    return {file: 0.5 ** ((newest - at) / _MONTH_SECONDS) for file, at in changed.items()}


class Excerpt(NamedTuple):
    """A run of lines of a piece: the number of lines before the run, the number of lines in the run, and the text."""

    before: int
    lines: int
    text: str


def excerpt(text: str, terms_asked: Mapping[str, float], most_chars: int) -> Excerpt:
    """The run of lines within `most_chars` with the most weight of query terms; at least one line, only whole lines."""
    lines = text.split("\n")
    if len(text) <= most_chars:
        return Excerpt(0, len(lines), text)
    worth = [_worth(line, terms_asked) for line in lines]
    best, best_value = (0, 1), -1.0
    first = size = 0
    value = 0.0
    for last, line in enumerate(lines):
        size += len(line) + 1
        value += worth[last]
        while size > most_chars and first < last:
            size -= len(lines[first]) + 1
            value -= worth[first]
            first += 1
        # The first of equal runs wins: a run at the top shows what the piece is.
        if value > best_value + 1e-9:
            best, best_value = (first, last + 1), value
    first, after = _whole(best, lines, most_chars)
    return Excerpt(first, after - first, "\n".join(lines[first:after]))


def _worth(line: str, terms_asked: Mapping[str, float]) -> float:
    return sum(terms_asked[term] for term in {*terms(line)} & terms_asked.keys()) + 0.01 * bool(line.strip())


def _whole(run: tuple[int, int], lines: list[str], most_chars: int) -> tuple[int, int]:
    """Extend the run up to its enclosing head and down into spare room, and strip blank lines at the ends."""
    first, after = run
    size = sum(len(line) + 1 for line in lines[first:after])
    indent = min((_indent(line) for line in lines[first:after] if line.strip()), default=0)
    # Spare room goes to the lines above, up to the head of the enclosing block.
    while first > 0 and size + len(lines[first - 1]) + 1 <= most_chars:
        first -= 1
        size += len(lines[first]) + 1
        if lines[first].strip() and _indent(lines[first]) < indent:
            break
    while after < len(lines) and size + len(lines[after]) + 1 <= most_chars:
        size += len(lines[after]) + 1
        after += 1
    while first < after - 1 and not lines[first].strip():
        first += 1
    while after > first + 1 and not lines[after - 1].strip():
        after -= 1
    return first, after


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text_at(lines: Sequence[str], hit: SearchHit) -> str:
    return "\n".join(lines[hit.start_line - 1 : hit.end_line])


def unit_packer(
    question: str, hits: Sequence[SearchHit], store: SearchedStore, filters: Filters, fill: Fill = Fill.USEFUL
) -> Callable[[TokenCounter, int], UnitPacker]:
    """Return the maker of a packer (counter, tokens) for the units around the hits of a question."""
    by_path: dict[str, list[SearchHit]] = {}
    for hit in hits:
        by_path.setdefault(make_visible_line(hit.path).text, []).append(hit)

    def source_of(shown_path: str) -> SourceText | None:
        found = by_path[shown_path]
        (path, *others) = {hit.path for hit in found}
        if not path or others:
            return None
        with store.snapshot():
            text = store.text_of(path, filters)
            spans = store.outline_of(path, filters) if text else ()
        lines = lines_of(text or "")
        # A file may have been changed since it was indexed, or indexed again since it was searched.
        if any(hit.reanchored or _text_at(lines, hit) != hit.content for hit in found):
            return None
        is_prose = detect_language(path) in PROSE or any(hit.is_passage or hit.page for hit in found)
        return SourceText(lines, spans, is_prose=is_prose)

    asked = understand(question)
    symbol = asked.text.strip().removesuffix("()") if asked.is_symbol else ""
    worths, fill_all = LineWorths(asked.terms), fill is Fill.ALL
    is_list = Intent.LIST_ALL in asked.intents
    return partial(UnitPacker, sources=source_of, worths=worths, symbol=symbol, fill_all=fill_all, is_list=is_list)
