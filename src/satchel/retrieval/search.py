"""From a question to the pieces that answer it, each as the file on disk has it now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import EmbedderMismatch, InvalidOption
from satchel.models.checks import as_count, as_text
from satchel.models.search import Filters, SearchHit, SearchResult
from satchel.ports.file_index import StoreQuery
from satchel.retrieval.proximity import with_closeness
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import Kind, Ranked, beside, learned_weights, rank

if TYPE_CHECKING:
    from satchel.indexing.walk import DocumentPolicy
    from satchel.ports.embedder import Embedder
    from satchel.ports.file_index import StoredPiece
    from satchel.ports.store import Store
    from satchel.retrieval.freshness import Disk, Elsewhere, Place

_FILES_LOOKED_AT: Final = 60
_FILES_LOOKED_AT_FOR_A_REPORT: Final = 100
_CACHED_QUESTIONS: Final = 256
_MONTH_SECONDS: Final = 30 * 86_400


class Folder(NamedTuple):
    """The folder that was indexed, and what of it is read."""

    root: Path
    max_file_bytes: int
    documents: DocumentPolicy
    is_here: bool = True
    """Whether it is on this machine; otherwise what is kept of it is all there is."""

    @contextmanager
    def opened(self) -> Iterator[Disk | Elsewhere]:
        """Its files as they are now."""
        from satchel.indexing.walk import opened_folder
        from satchel.retrieval.freshness import Disk, Elsewhere

        if not self.is_here:
            yield Elsewhere()
            return
        with opened_folder(self.root) as handle:
            yield Disk(handle, self.max_file_bytes, self.documents)


class Searcher:
    """Searches one workspace, and remembers what it has found until something changes."""

    def __init__(self, folder: Folder, store: Store, embedder: Embedder) -> None:
        self._folder = folder
        self._store = store
        self._embedder = embedder
        self._answered: OrderedDict[tuple[Any, ...], list[Ranked]] = OrderedDict()
        self._lock = Lock()
        self.cache_hits = 0
        self.cache_misses = 0

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The pieces that answer a question best; every one is checked against the file on disk."""
        filters = filters or Filters()
        as_count(InvalidOption, "top_k", top_k, 1)
        ranked, cached = self._ranked(question, filters)
        notes: list[str] = []
        hits: dict[str, SearchHit] = {}
        with self._folder.opened() as disk:
            # Some may turn out to be gone, or to have become one and the same: then the next are looked at.
            for first in range(0, len(ranked), top_k):
                by_id = {entry.piece: entry for entry in ranked[first : first + top_k]}
                for piece in self._store.pieces(list(by_id), filters):
                    hit = _fresh(piece, by_id[piece.id], disk, notes)
                    if hit is not None and len(hits) < top_k:
                        hits.setdefault(hit.id, hit)
                if len(hits) == top_k:
                    break
        return SearchResult(tuple(hits.values()), self._store.generation, tuple(dict.fromkeys(notes)), cached)

    def _ranked(self, question: str, filters: Filters) -> tuple[list[Ranked], bool]:
        """The candidates in their order, and whether they were known.

        They are known to whoever has the same rights, until anything changes; and not by anybody else, who could
        tell from the time it takes that another had asked.
        """
        question = as_text(InvalidOption, "question", question).strip()
        if not question:
            raise InvalidOption("question", question, "must not be empty")
        with self._store.snapshot():
            key = (
                question,
                replace(filters, readers=None),
                self._store.access_key(filters),
                self._store.search_version(),
            )
        with self._lock:
            known = self._answered.get(key)
            if known is not None:
                self._answered.move_to_end(key)
                self.cache_hits += 1
                return known, True
            self.cache_misses += 1
        held = self._store.embedder()
        if held and held != self._embedder.name:
            raise EmbedderMismatch(held, self._embedder.name)
        asked = understand(question)
        query = StoreQuery(terms=asked.terms, names=asked.names, vector=self._embedder.embed_query(question))
        most = _FILES_LOOKED_AT_FOR_A_REPORT if asked.is_long else _FILES_LOOKED_AT
        candidates = self._store.search(query, filters, top_k=most)
        files = [one.file for one in candidates]
        paths = self._store.paths(files, filters)
        whole = [one for one in candidates if not one.is_passage]
        ranked = rank(asked, whole, paths, recent=_recency(self._store.last_changes(files, filters)))
        passages = [one for one in candidates if one.is_passage]
        if passages:
            texts = {one.id: one.text for one in self._store.pieces([one.piece for one in passages], filters)}
            passages = with_closeness(asked, passages, texts)
            ranked += beside(rank(asked, passages, paths, weights=learned_weights(Kind.DOCUMENTS)), ranked)
            ranked.sort(key=lambda one: -one.relevance)
        titles = self._store.titles(files, filters)
        if titles:
            ranked += rank(asked, candidates, titles, weights=learned_weights(Kind.NOTES))
            ranked.sort(key=lambda one: -one.relevance)
        with self._lock:
            self._answered[key] = ranked
            while len(self._answered) > _CACHED_QUESTIONS:
                self._answered.popitem(last=False)
        return ranked, False


def _fresh(piece: StoredPiece, ranked: Ranked, disk: Disk | Elsewhere, notes: list[str]) -> SearchHit | None:
    """The hit as the file on disk has it, or None when it has it no more."""
    from satchel.retrieval.freshness import Place, Verdict, find_again

    if not piece.path:
        # A block that is kept here and nowhere else.
        own = Place(piece.first_line, piece.last_line, piece.text or piece.title)
        return _hit(piece, ranked, own, piece.block)
    now = disk.look(piece.path, piece.state)
    if now.verdict is Verdict.GONE:
        notes.append(f"{piece.path} is gone")
        return None
    indexed = Place(piece.first_line, piece.last_line, piece.text, piece.page)
    is_changed = now.verdict is Verdict.CHANGED
    place = find_again(piece.path, now, indexed, piece.title) if is_changed else indexed
    if is_changed:
        notes.append(f"{piece.path} has changed since it was indexed")
    if place is None:
        return None
    return _hit(piece, ranked, place, f"{piece.path}:{place.first_line}-{place.last_line}", is_changed=is_changed)


def _hit(piece: StoredPiece, ranked: Ranked, place: Place, hit_id: str, *, is_changed: bool = False) -> SearchHit:
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
        signals=ranked.told(),
        reanchored=is_changed,
        likeness=ranked.features.get("best_meaning", 0.0),
        page=place.page,
        is_passage=bool(piece.path) and ranked.is_passage,
    )


def _recency(changed: Mapping[int, int]) -> dict[int, float]:
    """How recently each file was changed, against the one that was changed last: halved every month."""
    newest = max(changed.values(), default=0)
    return {file: 0.5 ** ((newest - at) / _MONTH_SECONDS) for file, at in changed.items()}
