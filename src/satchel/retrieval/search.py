"""Searches a workspace: ranked pieces, checked against the files on disk, cut to excerpts for the budget."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import EmbedderMismatch, InvalidOption
from satchel.models.checks import as_count, as_text
from satchel.models.search import Filters, SearchHit, SearchResult
from satchel.ports.file_index import StoredPiece, StoreQuery
from satchel.retrieval.freshness import Disk, Folder, LineRange, Verdict, find_again, lines_of, widened
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import Ranked, WeightSet, beside, learned_weights, rank, with_closeness
from satchel.text.words import terms

if TYPE_CHECKING:
    from satchel.models.options import ContextBuildOptions
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store


# Files ranked for a question: more may find further answers, and cost time for each question.
_CANDIDATE_FILES: Final = 60

# Files ranked for a long report, whose many terms match more files; scripts/ranker/fit.py learns on as many.
_CANDIDATE_FILES_LONG: Final = 100

# Rankings cached for repeated questions; each keeps all its ranked candidates in memory.
_CACHED_QUESTIONS: Final = 256

# Half-life of recency: a file of the last weeks differs from an old file, a file of today hardly from yesterday's.
_MONTH_SECONDS: Final = 30 * 86_400


@dataclass(eq=False)
class Searcher:
    """Searches a workspace and caches rankings until the store changes."""

    folder: Folder
    store: Store
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
        return SearchResult(tuple(hits.values()), self.store.generation, tuple(dict.fromkeys(notes)), cached)

    def _ranked(self, question: str, filters: Filters) -> tuple[list[Ranked], bool]:
        """The ranked candidates, and True if they came from the cache.

        A cached ranking serves only callers with the same access, until the store changes. A cache shared with more
        callers would leak through response times what another user has asked (timing side channel).
        """
        question = as_text(InvalidOption, "question", question).strip()
        if not question:
            raise InvalidOption("question", question, "must not be empty")
        with self.store.snapshot():
            rights, version = self.store.access_key(filters), self.store.search_version()
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
        query = StoreQuery(terms=question.terms, names=question.names, vector=self.embedder.embed_query(text))
        most_files = _CANDIDATE_FILES_LONG if question.is_long else _CANDIDATE_FILES
        candidates = self.store.search(query, filters, top_k=most_files)
        files = [candidate.file for candidate in candidates]
        paths = self.store.paths(files, filters)
        whole = [candidate for candidate in candidates if not candidate.is_passage]
        ranked = rank(question, whole, paths, recent=_recency(self.store.last_changes(files, filters)))
        passages = [candidate for candidate in candidates if candidate.is_passage]
        if passages:
            pieces = self.store.pieces([passage.piece for passage in passages], filters)
            passages = with_closeness(question, passages, {piece.id: piece.text for piece in pieces})
            ranked += beside(rank(question, passages, paths, weights=learned_weights(WeightSet.DOCUMENTS)), ranked)
        titles = self.store.titles(files, filters)
        if titles:
            ranked += rank(question, candidates, titles, weights=learned_weights(WeightSet.NOTES))
        return sorted(ranked, key=lambda entry: -entry.relevance)


def _fresh(piece: StoredPiece, ranked: Ranked, disk: Disk, notes: list[str]) -> SearchHit | None:
    """The hit with the current lines on disk, or None if the lines are gone."""
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
        relevance=ranked.relevance,
        content=place.text,
        language=piece.language,
        block_id=piece.block,
        block_type=piece.block_type,
        title=piece.title,
        summary="" if is_changed else piece.summary,
        signals=ranked.signals(),
        reanchored=is_changed,
        likeness=ranked.features.get("best_meaning", 0.0),
        page=place.page,
        is_passage=bool(piece.path) and ranked.is_passage,
    )


def _recency(changed: Mapping[int, int]) -> dict[int, float]:
    """The recency of each file relative to the newest change, halved every month."""
    newest = max(changed.values(), default=0)
    return {file: 0.5 ** ((newest - at) / _MONTH_SECONDS) for file, at in changed.items()}


# The usual rule of thumb for English and code; only sizes excerpts, the budget itself is counted exactly.
_CHARS_PER_TOKEN: Final = 4

# An excerpt gets an eighth of the budget, so that a small context still shows several files (docs/decisions/0017).
_EXCERPTS_PER_BUDGET: Final = 8

# About eight lines of code; a shorter excerpt rarely shows what its lines belong to.
_MIN_EXCERPT_CHARS: Final = 320

# Three or four sentences: an answer is a sentence with its neighbours. Longer excerpts show fewer passages.
_PASSAGE_EXCERPT_CHARS: Final = 400

# Share of the budget for whole passages; the rest is left for headings and for excerpts of further passages.
_PASSAGES_BUDGET_SHARE: Final = 0.85

# Share of the budget for the best passage if too long to be whole; the rest shows alternatives.
_BEST_PASSAGE_BUDGET_SHARE: Final = 0.6


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


def as_shown(
    question: str, hits: Sequence[SearchHit], options: ContextBuildOptions, text_of: Callable[[str], str]
) -> list[SearchHit]:
    """The hits as shown: some whole, the rest as excerpts for several to fit; `text_of` returns a file's text."""
    whole, terms_asked = _shown_whole(hits, options), understand(question).terms
    lines = cache(lambda path: lines_of(text_of(path)))
    room = options.max_tokens * _CHARS_PER_TOKEN
    handful = max(_MIN_EXCERPT_CHARS, room // _EXCERPTS_PER_BUDGET)
    hits_shown = []
    for place, hit in enumerate(hits):
        if place in whole:
            hits_shown.append(_rounded(hit, lines))
            continue
        most_chars = handful
        if hit.is_passage:
            most_chars = min(handful, _PASSAGE_EXCERPT_CHARS) if place else int(room * _BEST_PASSAGE_BUDGET_SHARE)
        part = excerpt(hit.content, terms_asked, most_chars)
        if hit.is_passage and place and _is_headings(part.text):
            continue  # a heading without its text answers nothing
        first = hit.start_line + part.before
        hits_shown.append(hit if part.text == hit.content else _cut(hit, first, first + part.lines - 1, part.text))
    return hits_shown


def _shown_whole(hits: Sequence[SearchHit], options: ContextBuildOptions) -> frozenset[int]:
    """The positions of hits shown whole: the best hit, separate blocks, and passages for most of the room."""
    room = options.max_tokens * _CHARS_PER_TOKEN * _PASSAGES_BUDGET_SHARE
    # The answer may be at the end of a passage, where the budget would cut.
    whole = set() if hits and hits[0].is_passage else {0}
    for i, hit in enumerate(hits):
        if not hit.path:
            whole.add(i)  # a stored block is short, and its id has no lines to cut
        elif hit.is_passage:
            room -= len(hit.content)
            if room >= 0:
                whole.add(i)
    return frozenset(whole)


def _rounded(hit: SearchHit, lines: Callable[[str], Sequence[str]]) -> SearchHit:
    """The hit; a passage is widened by a line on each side, where its sentences begin and end."""
    if not hit.is_passage or hit.reanchored:
        return hit
    return _cut(hit, *widened(lines(hit.path), hit.start_line, hit.end_line, 1))


def _cut(hit: SearchHit, first: int, last: int, text: str) -> SearchHit:
    return replace(hit, id=f"{hit.path}:{first}-{last}", start_line=first, end_line=last, content=text)


def _is_headings(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.split("\n"))
