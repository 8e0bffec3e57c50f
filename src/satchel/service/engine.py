"""The engine: indexes a workspace, searches the index, and packs contexts.

engine = satchel.open_engine("path/to/repository")
engine.index()
print(engine.build("where is the retry backoff computed").context)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, overload

from satchel.errors import AmbiguousBlock, InvalidOption, UnknownBlock
from satchel.indexing.walk import NO_DOCUMENTS
from satchel.models.access import DefaultAccess, readers_for
from satchel.models.options import (
    DEFAULT_CONTEXT_CONFIG,
    ContextBuildOptions,
    ContextConfig,
    HeadingStyle,
    OverflowPolicy,
    RerankingStrategy,
    TokenEstimationMethod,
)
from satchel.models.request import ContextRequest
from satchel.models.search import Expansion, Filters, SearchResult
from satchel.retrieval.freshness import LONGEST_NUMBER, Expander, Folder
from satchel.retrieval.search import Searcher
from satchel.retrieval.sufficiency import judge, with_notice
from satchel.service.piece_contexts import MAX_HITS, PieceContextBuilder

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from satchel.assembly.citations.verify import Citable
    from satchel.indexing.changes import Changes, IndexReport
    from satchel.indexing.first_run import FirstRun
    from satchel.indexing.indexer import Watcher
    from satchel.indexing.walk import DocumentPolicy
    from satchel.models.block import Block
    from satchel.models.context import CitationReport, Context, Sufficiency
    from satchel.models.request import User
    from satchel.models.results import ContextBuildResult, ContextPayload, ContextValidationResult
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.ports.embedder import Embedder
    from satchel.ports.language_model import LanguageModel
    from satchel.ports.prepared_cache import PreparedCache
    from satchel.ports.store import Store, StoreFacts
    from satchel.ports.workers import WorkersMaker
    from satchel.retrieval.change import Change
    from satchel.service.sessions import ShownLines
    from satchel.tokens.counter import TokenCounter
    from satchel.workspace.blocks import Workspace
    from satchel.workspace.collectors import CollectorContext
    from satchel.workspace.page_cache import PageCache

_COLLECTOR_THREADS: Final = 5  # a thread for each built-in collector: focus, semantic, relations, activity, history
# Hits compared with the question for the sufficiency of a workspace context, as many as for pieces of files.
_JUDGED_HITS: Final = 10

ENGINE_OPTIONS: Final = ContextBuildOptions(
    max_chunks=MAX_HITS,
    min_relevance=0.0,
    reranking=RerankingStrategy.NONE,
    token_estimation=TokenEstimationMethod.TOKENIZER,
    overflow=OverflowPolicy.TRUNCATE,
    expand_context=False,
    include_citations=True,
    heading_style=HeadingStyle.NAMED,
)
"""Default options for a context from an index: exact token counts, as many pieces as fit."""


class ContextEngine:
    """Indexes a workspace, searches the index, and packs contexts.

    Attributes: the `folder` and its `root`, the `store`, the `embedder` for vectors, the `searcher` for pieces, the
    `language_model` for answers (may be None), and the `context_config` for the contexts of requests.
    """

    def __init__(
        self,
        root: Path,
        store: Store,
        embedder: Embedder,
        *,
        max_file_bytes: int,
        workers: WorkersMaker | None = None,
        history_commits: int = 0,
        cross_encoder: CrossEncoder | None = None,
        without: str = "",
        documents: DocumentPolicy = NO_DOCUMENTS,
        context_config: ContextConfig = DEFAULT_CONTEXT_CONFIG,
        language_model: LanguageModel | None = None,
        clock: Callable[[], datetime] | None = None,
        model: str = "gpt-4o",
        is_here: bool = True,
        cache: PreparedCache | None = None,
        seed: Callable[[Callable[[], Collection[str]]], bool] | None = None,
    ) -> None:
        self.root = root
        self.folder = Folder(root, max_file_bytes, documents, is_here)
        self.store = store
        self.embedder = embedder
        self.searcher = Searcher(self.folder, store, embedder)
        self.language_model = language_model
        self.context_config = context_config
        self._cross_encoder = cross_encoder
        self._workers = workers
        self._cache = cache
        self._seed = seed
        self._without = without
        self._history_commits = history_commits
        self._clock = clock or (lambda: datetime.now(UTC))
        self._model = model
        self._executor: ThreadPoolExecutor | None = None
        self._lock = Lock()

    def __enter__(self) -> ContextEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def folder_here(self) -> Path:
        """Return the folder; raise InvalidOption if the folder is not on this machine."""
        if not self.is_here:
            problem = (
                "is a workspace in a database, without a folder on this machine; run the command on its folder, "
                "with `--store URL`"
            )
            raise InvalidOption("path", str(self.root), problem)
        return self.root

    @property
    def is_here(self) -> bool:
        """True if the folder is on this machine; if not, the workspace allows questions and edits, but no indexing."""
        return self.folder.is_here

    def close(self) -> None:
        """Stop the threads and close the store."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
        self.store.close()

    @property
    def workspace(self) -> Workspace:
        """Editor for blocks beside the files: put, move, link, grant."""
        from satchel.workspace.blocks import Workspace

        return Workspace(self.store, self.embedder, self.root)

    # -- the write path

    def changes(self) -> Changes:
        """Find the changes in the folder since the last index run."""
        self._start_from_sibling()
        return self._compared_with_store()

    def _start_from_sibling(self) -> None:
        """Start a new index as a copy of the index of a similar folder, if there is one."""
        seed, self._seed = self._seed, None
        if seed is not None and not self.store.generation:
            seed(lambda: self._compared_with_store().paths)

    def _compared_with_store(self) -> Changes:
        from satchel.indexing.changes import Lookout

        folder = self.folder
        return Lookout(self.folder_here(), self.store, folder.max_file_bytes, self._without, folder.documents).changes()

    def is_current(self, changes: Changes) -> bool:
        """True if the index reflects the folder, given the changes of the folder."""
        facts = self.store.facts()
        is_complete = (
            bool(facts.generation) and not facts.behind and changes.are_skips_stored and self.first_run is None
        )
        return is_complete and not changes.to_look_at and not self._has_new_history()

    def _has_new_history(self) -> bool:
        """True if HEAD of the repository has moved since the history was read."""
        from satchel.indexing.git_history import UnreadableHistory, head_of

        with suppress(UnreadableHistory):
            return bool(self._history_commits) and head_of(self.root) != self.store.history_head()
        return False

    @property
    def first_run(self) -> FirstRun | None:
        """How far the first index run is, in whatever process; None if the index is complete, or not begun."""
        from satchel.indexing.first_run import first_run_of

        return first_run_of(self.store)

    def index(
        self, watcher: Watcher | None = None, *, changes: Changes | None = None, waiting_question: str = ""
    ) -> IndexReport:
        """Refresh the store from the folder; only changed files are read, first those that a waiting question names."""
        from satchel.indexing.indexer import Indexer

        self._start_from_sibling()
        indexer = Indexer(
            self.folder_here(),
            self.store,
            self.embedder,
            max_file_bytes=self.folder.max_file_bytes,
            documents=self.folder.documents,
            workers=self._workers,
            without=self._without,
            cache=self._cache,
        )
        report = indexer.run(changes, watcher, waiting_question=waiting_question)
        if self._history_commits:
            self._read_history(report)
        return report

    def _read_history(self, report: IndexReport) -> None:
        """Read the git history if HEAD has moved; a history that cannot be read is none, with a note."""
        from satchel.indexing.git_history import History, UnreadableHistory, head_of, read_history

        stored, head = self.store.history_head(), ""
        try:
            head = head_of(self.root)
            history = History(head)
            if head not in ("", stored):
                history = read_history(self.root, head, most_commits=self._history_commits)
        except UnreadableHistory as error:
            # Under this commit, so that the next runs do not wait for the same repository again.
            history = History(head, note=f"the git history was not read: {error}")
        if history.head != stored:
            with self.store.write() as writer:
                writer.put_activity(history.activities, history.head)
        if history.note:
            report.notes.append(history.note)

    # -- the read path

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """Return the pieces with the highest relevance to a question; each piece is checked against the disk."""
        return self.searcher.search(question, top_k=top_k, filters=filters)

    def expand(self, piece_id: str, *, lines: int = 0, filters: Filters | None = None) -> Expansion:
        """Return the exact text behind an id: a path, a path with lines (`a.py:3-9`), or a block (`a.py#Class.method`).

        `lines` more lines are added before and after. A page, heading or other block of the workspace comes with all
        blocks below; its lines can be asked for, too (`Notes/Plan:3-9`).
        """
        if self.store.holds_blocks():
            from satchel.workspace.pages import expand_block

            if expansion := expand_block(piece_id, self.store, filters or Filters()):
                return expansion
        return Expander(self.folder, self.store).expand(piece_id, lines, filters or Filters())

    @overload
    def build(
        self,
        question: ContextRequest,
        *,
        counter: TokenCounter | None = None,
        config: ContextConfig | None = None,
        min_sufficiency: float = 0.0,
    ) -> ContextPayload: ...

    @overload
    def build(
        self,
        question: str,
        options: ContextBuildOptions | None = None,
        *,
        filters: Filters | None = None,
        expand_to_symbol: bool = False,
        counter: TokenCounter | None = None,
        min_sufficiency: float = 0.0,
        shown: ShownLines | None = None,
        change: Change | None = None,
    ) -> ContextBuildResult: ...

    def build(
        self,
        question: str | ContextRequest,
        options: ContextBuildOptions | None = None,
        *,
        filters: Filters | None = None,
        expand_to_symbol: bool = False,
        counter: TokenCounter | None = None,
        config: ContextConfig | None = None,
        min_sufficiency: float = 0.0,
        shown: ShownLines | None = None,
        change: Change | None = None,
    ) -> ContextBuildResult | ContextPayload:
        """Build the context for a question: the best pieces of the workspace, inside the budget.

        A `ContextRequest` also names the user and the focus, and returns a payload of sections; `config` replaces the
        engine's `context_config` for this request. A context with a sufficiency below `min_sufficiency` says in its
        first line that nothing here seems to answer. Lines that a session was `shown` are left out. With
        a `change` the context is what the change reaches.
        """
        if isinstance(question, ContextRequest):
            config = config or self.context_config
            return self._build_payload(question, counter, config, min_sufficiency)
        options = self._settled(options)
        filters = _with_options(filters or Filters(), options)
        return PieceContextBuilder(self.searcher, self._cross_encoder, change).build(
            question,
            options,
            filters=filters,
            expand_to_symbol=expand_to_symbol,
            counter=counter,
            min_sufficiency=min_sufficiency,
            shown=shown,
        )

    @overload
    async def abuild(self, question: ContextRequest, **more: Any) -> ContextPayload: ...

    @overload
    async def abuild(
        self, question: str, options: ContextBuildOptions | None = None, **more: Any
    ) -> ContextBuildResult: ...

    async def abuild(
        self, question: str | ContextRequest, options: ContextBuildOptions | None = None, **more: Any
    ) -> ContextBuildResult | ContextPayload:
        """Run `build` in a thread, for asynchronous code."""
        import asyncio  # most programs never need it

        if isinstance(question, ContextRequest):
            return await asyncio.to_thread(lambda: self.build(question, **more))
        return await asyncio.to_thread(lambda: self.build(question, options, **more))

    def filters_for(self, user: User) -> Filters:
        """Access filters for a user's searches: the user's id and groups; an owner's own workspace has no filter."""
        if self.store.default_access() is DefaultAccess.OWNER:
            return Filters()
        groups = {*self.store.groups_of(user.id), *user.groups}
        return Filters(readers=readers_for(user.id, groups))

    def now(self) -> datetime:
        """The time by the engine's clock."""
        return self._clock()

    def estimate_tokens(self, payload: ContextPayload) -> int:
        """Count the tokens of the payload's text with the counter that made it."""
        return (payload.counter or self._counter()).count(payload.serialized)

    def validate(self, payload: ContextPayload) -> ContextValidationResult:
        """Check a payload against its request and the current workspace; returns the result of each check."""
        from satchel.workspace.specification import ContextAssembler, Measure, validate

        request = payload.request
        if request is None:
            raise InvalidOption("payload", payload, "has no request, so it cannot be checked")
        config = payload.config or self.context_config.for_type(request.type)
        assembler = ContextAssembler(request.format, metadata_hints=config.metadata_hints, citations=config.citations)
        budget = request.token_budget or config.token_budget
        filters = self.filters_for(request.user)
        return validate(payload, Measure(budget, assembler, payload.counter or self._counter(), self.store, filters))

    def _build_payload(
        self, request: ContextRequest, counter: TokenCounter | None, config: ContextConfig, min_sufficiency: float
    ) -> ContextPayload:
        from satchel.workspace.recipe import BuildTools, build_payload

        config = config.for_type(request.type)
        tools = BuildTools(counter or self._counter(), config, self._threads(), self.language_model)
        with self.store.snapshot():
            view = self._context(request, config)

        def build(notice: str) -> ContextPayload:
            payload = build_payload(request, view, tools, notice)
            return replace(payload, sufficiency=self._judge(request, payload, view.filters))

        payload = with_notice(build, min_sufficiency)
        stale = self.workspace.changed_since(item.source_path for item in payload.items if item.source_path)
        notes = [f"{path} has changed since it was imported; import it again" for path in stale]
        notes += self._stale_files(payload)
        return replace(payload, notes=tuple(dict.fromkeys((*payload.notes, *notes)))) if notes else payload

    def _judge(self, request: ContextRequest, context: Context, filters: Filters) -> Sufficiency | None:
        """The sufficiency of a workspace context, or None without a question."""
        if not request.query.strip():
            return None
        with self.store.snapshot():
            hits = self.search(request.query, top_k=_JUDGED_HITS, filters=filters).hits
            return judge(request.query, context, hits, self.store, filters)

    def _stale_files(self, payload: ContextPayload) -> list[str]:
        """Notes about files changed or removed since their indexing, for the blocks in the payload."""
        paths = {item.file_path for item in payload.items if item.file_path}
        if not paths:
            return []
        from satchel.retrieval.freshness import Verdict

        known = self.store.files()
        notes = []
        with self.folder.opened() as disk:
            for path in sorted(paths & known.keys()):
                verdict = disk.judge(path, known[path])
                if verdict is not Verdict.SAME:
                    notes.append(f"{path} {'is missing' if verdict is Verdict.GONE else 'has changed'}; index again")
        return notes

    def _context(self, request: ContextRequest, config: ContextConfig) -> CollectorContext:
        from satchel.workspace.collectors import CollectorContext

        filters = self.filters_for(request.user)
        focus = request.focus
        block = self._focused(focus.block_id, filters) if focus and focus.block_id else None
        page_ids = [page_id for page_id in (focus.page_id, focus.database_id) if page_id] if focus else []
        pages = tuple(self._focused(page_id, filters) for page_id in dict.fromkeys(page_ids))
        return CollectorContext(
            store=self.store,
            filters=filters,
            config=config.collectors,
            now=self.now(),
            focus=block,
            pages=pages,
            search=self.search,
            embedder=self.embedder,
            page_cache=self.page_cache,
            generation=self.store.generation_for(filters),
        )

    @cached_property
    def page_cache(self) -> PageCache:
        """The pages of notes that were read for earlier questions."""
        from satchel.workspace.page_cache import PageCache

        return PageCache()

    def _focused(self, block_id: str, filters: Filters) -> Block:
        """Return the focused block; raise UnknownBlock for a missing block as well as for a block without access."""
        block = self.store.block(block_id, filters)
        if block is not None:
            return block
        path, _, line = block_id.rpartition(":")
        if path and line.isdecimal() and len(line) <= LONGEST_NUMBER:
            inside = [
                nested
                for nested in self.store.blocks_of(path, filters)
                if nested.start_line <= int(line) <= nested.end_line
            ]
            innermost = max(inside, key=lambda nested: (nested.start_line, -nested.end_line), default=None)
            block = self.store.block(innermost.id, filters) if innermost else None
        return block or self._called(block_id, filters)

    def _called(self, name: str, filters: Filters) -> Block:
        """The only readable block that is called so, by title, alias, path or the beginning of its id."""
        found = self.store.named(name, filters)
        wanted = name.casefold()
        ways: tuple[Callable[[Block], bool], ...] = (
            lambda block: block.title.casefold() == wanted,
            lambda block: wanted in (str(alias).casefold() for alias in block.metadata.get("aliases") or ()),
            lambda block: name in (block.source_path, block.source_path.rpartition(".")[0]) and block.is_page,
            lambda block: block.id.startswith(name),
        )
        for is_called in ways:
            called = [block for block in found if is_called(block)]
            if len(called) == 1:
                return called[0]
            if called:
                raise AmbiguousBlock(name, [block.id for block in called])
        raise UnknownBlock(name)

    def _counter(self) -> TokenCounter:
        from satchel.tokens.registry import counter_for

        return counter_for(self._model)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor

                self._executor = ThreadPoolExecutor(_COLLECTOR_THREADS, "satchel-collect")
            return self._executor

    def verify(self, answer: str, context: Citable) -> CitationReport:
        """Check the citations of an answer against the context."""
        from satchel.assembly.citations.verify import verify

        return verify(answer, context)

    def status(self) -> StoreFacts:
        """Counts of files, blocks and pieces in the store, its embedder, generation and size."""
        return self.store.facts()

    def _settled(self, options: ContextBuildOptions | None) -> ContextBuildOptions:
        if options is None:
            return ENGINE_OPTIONS
        if options.workspace_path and Path(options.workspace_path).resolve() != self.root:
            raise InvalidOption("workspace_path", options.workspace_path, f"this engine is for {self.root}")
        return options


def _with_options(filters: Filters, options: ContextBuildOptions) -> Filters:
    """Add the file patterns and languages of the options to the filters."""
    from satchel.models.files import canonical_language

    return replace(
        filters,
        patterns=(*filters.patterns, *(options.file_patterns or ())),
        languages=(*filters.languages, *(canonical_language(language) for language in options.languages or ())),
    )
