"""The engine: a workspace that can be indexed, searched and packed into a context.

engine = satchel.open_engine("path/to/repository")
engine.index()
print(engine.build("where is the retry backoff computed").context)
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from satchel.errors import EmbedderMismatch, InvalidOption, UnknownBlock, WorkspaceMissing
from satchel.model.access import DefaultAccess, readers_for
from satchel.model.block import BlockType
from satchel.model.chunk import KnowledgeChunk
from satchel.model.context_config import DEFAULT_CONTEXT_CONFIG, ContextConfig
from satchel.model.options import ContextBuildOptions, OverflowPolicy, RerankingStrategy, TokenEstimationMethod
from satchel.model.request import ContextRequest
from satchel.model.search import Expansion, SearchHit, SearchResult
from satchel.pipeline.build import assemble
from satchel.pipeline.retrieve.excerpt import excerpt
from satchel.pipeline.retrieve.question import understand
from satchel.pipeline.retrieve.rank import Kind, Ranked, learned_weights, rank
from satchel.ports.store import Filters, StoreQuery

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from satchel.ingest.freshness import DiskFile, Place
    from satchel.ingest.indexer import Changes, Indexer, IndexReport, Watcher
    from satchel.ingest.workspace import Workspace
    from satchel.model.block import Block
    from satchel.model.citation import CitationReport
    from satchel.model.payload import ContextPayload, ContextValidationResult
    from satchel.model.request import User
    from satchel.model.result import ContextBuildResult
    from satchel.pipeline.collect import Sight
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.ports.embedder import Embedder
    from satchel.ports.language_model import LanguageModel
    from satchel.ports.store import Store, StoredPiece, StoreFacts
    from satchel.tokens.counter import TokenCounter

_FILES_LOOKED_AT: Final = 60
_FILES_LOOKED_AT_FOR_A_REPORT: Final = 100
_CACHED_QUESTIONS: Final = 256
_COLLECTORS_AT_ONCE: Final = 5
_LONGEST_NUMBER: Final = 9
_LEAST_HITS: Final = 20
_MOST_HITS: Final = 150
_TOKENS_PER_HIT: Final = 100
_SYMBOL_CHARS: Final = 6000
_MONTH_SECONDS: Final = 30 * 86_400
_CHARS_PER_TOKEN: Final = 4
_HANDFUL: Final = 8
_LEAST_EXCERPT_CHARS: Final = 320

ENGINE_OPTIONS: Final = ContextBuildOptions(
    max_chunks=_MOST_HITS,
    min_relevance=0.0,
    reranking=RerankingStrategy.NONE,
    token_estimation=TokenEstimationMethod.TOKENIZER,
    overflow=OverflowPolicy.TRUNCATE,
    expand_context=False,
    include_citations=True,
)
"""How a context is built from an index when nobody says otherwise: exact counts, everything that fits."""


class _Found(NamedTuple):
    piece: StoredPiece
    ranked: Ranked


class ContextEngine:
    """One workspace: its folder, its store, and the model that made the store's vectors."""

    def __init__(
        self,
        root: Path,
        store: Store,
        embedder: Embedder,
        *,
        max_file_bytes: int,
        workers: int | None = None,
        history_commits: int = 0,
        cross_encoder: CrossEncoder | None = None,
        without: str = "",
        context_config: ContextConfig = DEFAULT_CONTEXT_CONFIG,
        language_model: LanguageModel | None = None,
        clock: Callable[[], datetime] | None = None,
        model: str = "gpt-4o",
    ) -> None:
        self._without = without
        self._context_config = context_config
        self._language_model = language_model
        self._clock = clock or _now
        self._model = model
        self._executor: ThreadPoolExecutor | None = None
        self._root = root
        self._store = store
        self._embedder = embedder
        self._max_file_bytes = max_file_bytes
        self._workers = workers
        self._history_commits = history_commits
        self._cross_encoder = cross_encoder
        self._answered: OrderedDict[tuple[Any, ...], list[Ranked]] = OrderedDict()
        self._lock = Lock()
        self.cache_hits = 0
        self.cache_misses = 0

    def __enter__(self) -> ContextEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def root(self) -> Path:
        """The workspace's folder."""
        return self._root

    @property
    def store(self) -> Store:
        """Where it is kept."""
        return self._store

    def close(self) -> None:
        """Let go of the store."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
        self._store.close()

    @property
    def workspace(self) -> Workspace:
        """The blocks that are not read from files: put, move, link, grant."""
        from satchel.ingest.workspace import Workspace

        return Workspace(self._store, self._embedder)

    # -- the write path

    def changes(self) -> Changes:
        """What an index run would look at."""
        return self._indexer().changes()

    def index(self, watcher: Watcher | None = None, *, changes: Changes | None = None) -> IndexReport:
        """Bring the store up to the folder: only what has changed is read."""
        report = self._indexer().run(changes, watcher)
        if self._history_commits:
            self._read_history(report)
        return report

    def _indexer(self) -> Indexer:
        from satchel.ingest.indexer import Indexer

        return Indexer(
            self._root,
            self._store,
            self._embedder,
            max_file_bytes=self._max_file_bytes,
            workers=self._workers,
            without=self._without,
        )

    def _read_history(self, report: IndexReport) -> None:
        from satchel.ingest.history import head_of, read_history

        head = head_of(self._root)
        if not head or head == self._store.history_head():
            return
        history = read_history(self._root, most_commits=self._history_commits)
        with self._store.write() as writer:
            writer.put_activity(history.activities, history.head)
        if history.note:
            report.notes.append(history.note)

    # -- the read path

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The pieces that answer a question best; every one is checked against the file on disk."""
        filters = filters or Filters()
        ranked, cached = self._ranked(question, filters)
        notes: list[str] = []
        hits: dict[str, SearchHit] = {}
        with self._opened() as folder:
            disk: dict[str, DiskFile] = {}
            # Some may turn out to be gone, or to have become one and the same: then the next are looked at.
            for first in range(0, len(ranked), top_k):
                for found in self._pieces(ranked[first : first + top_k], filters):
                    hit = self._fresh(found, folder, disk, notes)
                    if hit is not None and len(hits) < top_k:
                        hits.setdefault(hit.id, hit)
                if len(hits) == top_k:
                    break
        return SearchResult(tuple(hits.values()), self._store.generation, _told(notes), cached)

    @overload
    def build(self, question: ContextRequest, *, counter: TokenCounter | None = None) -> ContextPayload: ...

    @overload
    def build(
        self,
        question: str,
        options: ContextBuildOptions | None = None,
        *,
        filters: Filters | None = None,
        expand_to_symbol: bool = False,
        counter: TokenCounter | None = None,
    ) -> ContextBuildResult: ...

    def build(
        self,
        question: str | ContextRequest,
        options: ContextBuildOptions | None = None,
        *,
        filters: Filters | None = None,
        expand_to_symbol: bool = False,
        counter: TokenCounter | None = None,
    ) -> ContextBuildResult | ContextPayload:
        """The context for a question: the best pieces of the workspace, inside the budget.

        A `ContextRequest` says also who asks and from where, and gives a payload of sections.
        """
        if isinstance(question, ContextRequest):
            return self._build_payload(question, counter)
        return self._build_result(question, options, filters, expand_to_symbol, counter)

    def _build_result(
        self,
        question: str,
        options: ContextBuildOptions | None,
        filters: Filters | None,
        expand_to_symbol: bool,
        counter: TokenCounter | None,
    ) -> ContextBuildResult:
        options = self._settled(options)
        filters = _with_options(filters or Filters(), options)
        most = max(_LEAST_HITS, min(options.max_tokens // _TOKENS_PER_HIT, _MOST_HITS))
        found = self.search(question, top_k=most, filters=filters)
        shown = found.hits if options.expand_context or expand_to_symbol else _excerpts(question, found.hits, options)
        hits = [self._chunk(hit, options, expand_to_symbol, filters) for hit in shown]
        # The store has heeded the patterns; it alone knows every file.
        options = replace(options, file_patterns=None, languages=None)
        result = assemble(hits, options, query=question, counter=counter, cross_encoder=self._cross_encoder)
        return replace(result, notes=(*found.notes, *result.notes)) if found.notes else result

    @overload
    async def abuild(self, question: ContextRequest, **more: Any) -> ContextPayload: ...

    @overload
    async def abuild(
        self, question: str, options: ContextBuildOptions | None = None, **more: Any
    ) -> ContextBuildResult: ...

    async def abuild(
        self, question: str | ContextRequest, options: ContextBuildOptions | None = None, **more: Any
    ) -> ContextBuildResult | ContextPayload:
        """The same for code that must not be kept waiting."""
        import asyncio  # most programs never need it

        if isinstance(question, ContextRequest):
            return await asyncio.to_thread(lambda: self.build(question, **more))
        return await asyncio.to_thread(lambda: self.build(question, options, **more))

    def filters_for(self, user: User) -> Filters:
        """What a user's searches go through: the names under which the user reads; an owner's workspace is open."""
        if self._store.default_access() is DefaultAccess.OWNER:
            return Filters()
        groups = {*self._store.groups_of(user.id), *user.groups}
        return Filters(readers=readers_for(user.id, groups))

    def estimate_tokens(self, payload: ContextPayload) -> int:
        """How many tokens the payload's text has; an exact count."""
        return self._counter().count(payload.serialized)

    def validate(self, payload: ContextPayload) -> ContextValidationResult:
        """Whether a payload keeps what it promises, check by check, as the workspace is now."""
        from satchel.pipeline.validate import Measure, validate
        from satchel.pipeline.write.workspace import ContextAssembler

        request = payload.request
        if request is None:
            raise InvalidOption("payload", payload, "has no request: it is not known what it was made for")
        config = self._config_for(request)
        assembler = ContextAssembler.for_format(
            request.format, metadata_hints=config.metadata_hints, citations=config.citations
        )
        budget = request.token_budget or config.token_budget
        filters = self.filters_for(request.user)
        return validate(payload, Measure(budget, assembler, self._counter(), self._store, filters))

    def _build_payload(self, request: ContextRequest, counter: TokenCounter | None) -> ContextPayload:
        from satchel.pipeline.fit import Tools
        from satchel.pipeline.workspace import build_payload

        config = self._config_for(request)
        tools = Tools(self.search, counter or self._counter(), config, self._threads(), self._language_model)
        payload = build_payload(request, self._sight(request, config), tools)
        stale = self.workspace.changed_since(item.source_path for item in payload.items if item.source_path)
        notes = [f"{path} has changed since it was imported; import it again" for path in stale]
        notes += self._stale_files(payload)
        return replace(payload, notes=_told((*payload.notes, *notes))) if notes else payload

    def _stale_files(self, payload: ContextPayload) -> list[str]:
        """What is to be said of files whose blocks are shown as they were indexed, and are no longer so."""
        paths = {item.file_path for item in payload.items if item.file_path}
        if not paths:
            return []
        from satchel.ingest.freshness import Verdict, look

        known = self._store.files()
        told = []
        with self._opened() as folder:
            for path in sorted(paths & known.keys()):
                verdict = look(folder, path, known[path], self._max_file_bytes).verdict
                if verdict is not Verdict.SAME:
                    told.append(f"{path} {'is gone' if verdict is Verdict.GONE else 'has changed'}; index it again")
        return told

    def _config_for(self, request: ContextRequest) -> ContextConfig:
        return self._context_config.for_type(request.type)

    def _sight(self, request: ContextRequest, config: ContextConfig) -> Sight:
        from satchel.pipeline.collect import Sight

        filters = self.filters_for(request.user)
        focus = request.focus
        block = self._focused(focus.block_id, filters) if focus and focus.block_id else None
        wholes = [one for one in (focus.page_id, focus.database_id) if one] if focus else []
        pages = tuple(self._focused(one, filters) for one in dict.fromkeys(wholes))
        return Sight(self._store, filters, config.collectors, self._clock(), block, pages)

    def _focused(self, block_id: str, filters: Filters) -> Block:
        """The block that is focused; one that may not be read is as unknown as one that is not there."""
        block = self._store.block(block_id, filters)
        if block is not None:
            return block
        path, _, line = block_id.rpartition(":")
        if path and line.isdecimal() and len(line) <= _LONGEST_NUMBER:
            inside = [
                one for one in self._store.blocks_of(path, filters) if one.start_line <= int(line) <= one.end_line
            ]
            innermost = max(inside, key=lambda one: (one.start_line, -one.end_line), default=None)
            block = self._store.block(innermost.id, filters) if innermost else None
        if block is None:
            raise UnknownBlock(block_id)
        return block

    def _counter(self) -> TokenCounter:
        from satchel.tokens.registry import counter_for

        return counter_for(self._model)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor

                self._executor = ThreadPoolExecutor(_COLLECTORS_AT_ONCE, "satchel-collect")
            return self._executor

    def verify(self, answer: str, result: ContextBuildResult) -> CitationReport:
        """Whether an answer's citations are in the context."""
        from satchel.pipeline.verify import verify

        return verify(answer, result)

    def status(self) -> StoreFacts:
        """What the store holds."""
        return self._store.facts()

    def expand(self, piece_id: str, *, lines: int = 0, filters: Filters | None = None) -> Expansion:
        """The exact text behind an id: a path, a path with lines (`a.py:3-9`), or a block (`a.py#Class.method`).

        `lines` more are given on either side.
        """
        from satchel.ingest.freshness import Verdict, find_again, look

        filters = filters or Filters()
        block = self._store.block(piece_id, filters)
        if block is not None and not (block.qualified_name or block.type == BlockType.FILE):
            return Expansion(piece_id, "", 1, block.content.count("\n") + 1, block.content, block.language)
        path, old, qualified = self._located(piece_id, filters)
        state = self._store.files()[path]
        language = next((block.language for block in self._store.blocks_of(path, filters)), None)
        with self._opened() as folder:
            disk = look(folder, path, state, self._max_file_bytes)
        if disk.verdict is Verdict.GONE:
            return Expansion(piece_id, path, old.first_line, old.last_line, old.text, language, stale=True)
        if disk.verdict is Verdict.SAME:
            text, place = self._store.text_of(path, filters) or "", old
        else:
            again = find_again(path, disk.text, old, qualified)
            if again is None:
                return Expansion(piece_id, path, old.first_line, old.last_line, old.text, language, stale=True)
            text, place = disk.text, again
        first, last, shown = _widened(text, place.first_line, place.last_line, lines)
        return Expansion(piece_id, path, first, last, shown, language)

    # -- steps

    def _ranked(self, question: str, filters: Filters) -> tuple[list[Ranked], bool]:
        """The candidates in their order, and whether they were known.

        They are known to whoever has the same rights, until anything changes; and not by anybody else, who could
        tell from the time it takes that another had asked.
        """
        question = question.strip()
        if not question:
            raise InvalidOption("question", question, "must not be empty")
        key = (question, replace(filters, readers=None), self._store.rights(filters), self._store.seen())
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
        ranked = rank(asked, candidates, self._store.paths(files), recent=_recency(self._store.last_changes(files)))
        titles = self._store.titles(files)
        if titles:
            ranked += rank(asked, candidates, titles, weights=learned_weights(Kind.NOTES))
            ranked.sort(key=lambda one: -one.relevance)
        with self._lock:
            self._answered[key] = ranked
            while len(self._answered) > _CACHED_QUESTIONS:
                self._answered.popitem(last=False)
        return ranked, False

    def _pieces(self, ranked: Sequence[Ranked], filters: Filters) -> Iterator[_Found]:
        by_id = {one.piece: one for one in ranked}
        for piece in self._store.pieces(list(by_id), filters):
            yield _Found(piece, by_id[piece.id])

    def _fresh(self, found: _Found, folder: int, disk: dict[str, DiskFile], notes: list[str]) -> SearchHit | None:
        """The hit as the file on disk has it, or None when it has it no more."""
        from satchel.ingest.freshness import Place, Verdict, find_again, look

        piece, ranked = found
        if not piece.path:
            return _own_block(piece, ranked)
        now = disk.get(piece.path)
        if now is None:
            now = disk[piece.path] = look(folder, piece.path, piece.state, self._max_file_bytes)
        place: Place | None = Place(piece.first_line, piece.last_line, piece.text)
        if now.verdict is Verdict.GONE:
            notes.append(f"{piece.path} is gone")
            return None
        if now.verdict is Verdict.CHANGED:
            assert place is not None
            place = find_again(piece.path, now.text, place, piece.title)
            notes.append(f"{piece.path} has changed since it was indexed")
            if place is None:
                return None
        assert place is not None
        return SearchHit(
            f"{piece.path}:{place.first_line}-{place.last_line}",
            piece.path,
            place.first_line,
            place.last_line,
            ranked.relevance,
            place.text,
            piece.language,
            piece.block,
            piece.block_type,
            piece.title,
            piece.summary if now.verdict is Verdict.SAME else "",
            ranked.told(),
            now.verdict is Verdict.CHANGED,
            ranked.features.get("best_meaning", 0.0),
        )

    def _chunk(
        self, hit: SearchHit, options: ContextBuildOptions, expand_to_symbol: bool, filters: Filters
    ) -> KnowledgeChunk:
        expanded = None
        first, last = hit.start_line, hit.end_line
        if hit.path and not hit.reanchored and (expand_to_symbol or (options.expand_context and options.context_lines)):
            text = self._store.text_of(hit.path, filters) or ""
            if expand_to_symbol:
                first, last = self._symbol_around(hit, filters)
            first, last, expanded = _widened(text, first, last, options.context_lines if options.expand_context else 0)
        chunk = KnowledgeChunk(
            hit.content,
            file_path=hit.path,
            start_line=hit.start_line,
            end_line=hit.end_line,
            relevance=hit.relevance,
            language=hit.language,
            id=hit.id,
            type=hit.block_type,
            name=hit.title,
            metadata={"satchel.collector": "semantic", "satchel.signals": hit.signals},
        )
        return replace(chunk, expanded_context=expanded) if expanded is not None else chunk

    def _symbol_around(self, hit: SearchHit, filters: Filters) -> tuple[int, int]:
        """The lines of the smallest block that holds the hit, if it is of a size to be shown whole."""
        block = self._store.block(hit.block_id, filters) if "#" in hit.block_id else None
        if block is None or len(block.content) > _SYMBOL_CHARS:
            return hit.start_line, hit.end_line
        return min(block.start_line, hit.start_line), max(block.end_line, hit.end_line)

    def _located(self, piece_id: str, filters: Filters) -> tuple[str, Place, str]:
        """The path, the place and the name that an id stands for, as they were indexed."""
        from satchel.ingest.freshness import Place

        text = self._store.text_of(piece_id, filters)
        if text is not None:
            return piece_id, Place(1, max(1, text.rstrip("\n").count("\n") + 1), text), ""
        block = self._store.block(piece_id, filters) if "#" in piece_id else None
        if block is not None:
            return block.source_path, Place(block.start_line, block.end_line, block.content), block.qualified_name
        path, _, span = piece_id.rpartition(":")
        first, _, last = span.partition("-")
        text = self._store.text_of(path, filters) if path else None
        numbers = (first, last or first)
        if text is None or not all(one.isdecimal() and len(one) <= _LONGEST_NUMBER for one in numbers):
            near, _, wanted = piece_id.partition("#")
            known = [one.id for one in self._store.blocks_of(near, filters) if wanted and wanted in one.id]
            raise UnknownBlock(piece_id, known[:3])
        start, end = int(first), int(last or first)
        lines = text.split("\n")
        if not 1 <= start <= end <= len(lines):
            raise UnknownBlock(piece_id, [f"{path}:1-{len(lines)}"])
        inside = [
            one for one in self._store.blocks_of(path, filters) if one.start_line <= start and one.end_line >= end
        ]
        return path, Place(start, end, "\n".join(lines[start - 1 : end])), inside[-1].qualified_name if inside else ""

    def _settled(self, options: ContextBuildOptions | None) -> ContextBuildOptions:
        if options is None:
            return ENGINE_OPTIONS
        if options.workspace_path and Path(options.workspace_path).resolve() != self._root:
            raise InvalidOption("workspace_path", options.workspace_path, f"this engine is for {self._root}")
        return options

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise WorkspaceMissing("path", str(self._root), f"cannot be opened ({error.strerror})") from None
        try:
            yield folder
        finally:
            os.close(folder)


def _own_block(piece: StoredPiece, ranked: Ranked) -> SearchHit:
    """A hit on a block that is kept here and nowhere else."""
    return SearchHit(
        piece.block,
        "",
        piece.first_line,
        piece.last_line,
        ranked.relevance,
        piece.text or piece.title,
        piece.language,
        piece.block,
        piece.block_type,
        piece.title,
        piece.summary,
        ranked.told(),
        likeness=ranked.features.get("best_meaning", 0.0),
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _excerpts(question: str, hits: Sequence[SearchHit], options: ContextBuildOptions) -> list[SearchHit]:
    """The best hit whole, and of the others as much as lets a handful of them in."""
    asked = understand(question).terms
    most = max(_LEAST_EXCERPT_CHARS, options.max_tokens * _CHARS_PER_TOKEN // _HANDFUL)
    shown = list(hits[:1])
    for hit in hits[1:]:
        if not hit.path:
            shown.append(hit)  # a block of its own is short, and is known by its id alone
            continue
        part = excerpt(hit.content, asked, most)
        first = hit.start_line + part.before
        last = first + part.lines - 1
        shown.append(
            hit
            if part.text == hit.content
            else replace(hit, id=f"{hit.path}:{first}-{last}", start_line=first, end_line=last, content=part.text)
        )
    return shown


def _recency(changed: Mapping[int, int]) -> dict[int, float]:
    """How recently each file was changed, against the one that was changed last: halved every month."""
    newest = max(changed.values(), default=0)
    return {file: 0.5 ** ((newest - at) / _MONTH_SECONDS) for file, at in changed.items()}


def _with_options(filters: Filters, options: ContextBuildOptions) -> Filters:
    """The filters and those that the options hold."""
    from satchel.model.language import canonical_language

    return replace(
        filters,
        patterns=(*filters.patterns, *(options.file_patterns or ())),
        languages=(*filters.languages, *(canonical_language(one) for one in options.languages or ())),
    )


def _widened(text: str, first: int, last: int, more: int) -> tuple[int, int, str]:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    first, last = max(1, first - more), min(len(lines), last + more)
    while last > first and not lines[last - 1].strip():
        last -= 1
    while first < last and not lines[first - 1].strip():
        first += 1
    return first, last, "\n".join(lines[first - 1 : last])


def _told(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
