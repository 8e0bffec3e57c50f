"""Client of a workspace on this machine; used by the command line, the HTTP API and the MCP server."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel.errors import IndexNotReady, IndexProblem, InvalidOption, NotAllowed, UnknownBlock, UnknownPage
from satchel.models.access import DefaultAccess
from satchel.service import answering
from satchel.service.auto_index import FOREVER, AutoIndex, IndexState
from satchel.service.client import OWNER, Caller, Indexed, Satchel, Status, names_options
from satchel.service.question import Question, ResearchQuestion, question_from
from satchel.service.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Unpack

    from satchel.indexing.changes import IndexReport
    from satchel.models.context import Context
    from satchel.models.find import FindKind, Found
    from satchel.models.results import ResearchContext
    from satchel.models.search import Expansion, Filters, SearchResult
    from satchel.ports.language_model import LanguageModel
    from satchel.research.library import WorkspaceLibrary
    from satchel.service.auto_index import Fresh, Report, Watch
    from satchel.service.contents import Contents
    from satchel.service.engine import ContextEngine
    from satchel.service.question import QuestionOptions, ResearchOptions
    from satchel.service.research import ResearchAnswer
    from satchel.service.sessions import ShownLines
    from satchel.service.settings import Settings
    from satchel.tokens.counter import TokenCounter
    from satchel.workspace.blocks import Workspace

AnyContext = TypeVar("AnyContext", bound="Context")
Answer = TypeVar("Answer")

LOOKS_EVERY_S: Final = 2.0
"""Least time between two checks of a served folder for changes: a shorter time makes questions slower, a longer time
answers from older files."""
_LOOKS_AGAIN_S: Final = 0.1  # at an index that another process begins
PATIENCE_S: Final = 20.0
"""Longest wait of a served question for an index run; after this time the answer comes from the index as far as it is
built. A longer wait gives more complete answers, but callers may give up."""


class _Shared:
    """State shared by all callers' clients of a workspace."""

    def __init__(self, engine: ContextEngine, settings: Settings, auto_index: AutoIndex, encoding: Any) -> None:
        self.engine = engine
        self.settings = settings
        self.auto_index = auto_index
        self.encoding = encoding
        self.sessions = Sessions()
        self._library: WorkspaceLibrary | None = None
        self._lock = Lock()

    def library(self) -> WorkspaceLibrary:
        from satchel.service.factory.opening import library_over

        with self._lock:
            if self._library is None:
                self._library = library_over(self.engine, self.settings)
            return self._library

    def close(self) -> None:
        self.auto_index.close()
        with self._lock:
            library, self._library = self._library, None
        if library is not None:
            library.close_pages()
        self.engine.close()


@dataclass(frozen=True, slots=True)
class LocalSatchel(Satchel):
    """Client of a workspace on this machine, limited to the access of a caller.

    `patience` is how many seconds a question waits for an index run; `watch` and `report` receive its progress and
    messages (`AutoIndex.refresh`); with `quick` an existing index is not refreshed.
    """

    shared: _Shared
    caller: Caller = OWNER
    patience: float = FOREVER
    watch: Watch | None = None
    report: Report | None = None
    quick: bool = False
    index_notes: tuple[str, ...] | None = None
    """Notes about the index for answers, if the caller has refreshed the index already; None: refresh first."""

    @property
    def engine(self) -> ContextEngine:
        """The engine, for operations without a method here."""
        return self.shared.engine

    @property
    def root(self) -> Path:
        """The workspace's folder."""
        return self.engine.root

    @property
    def settings(self) -> Settings:
        """The settings of the workspace."""
        return self.shared.settings

    @property
    def workspace(self) -> Workspace:
        """Editor for blocks beside the files: import, put, move, link, grant."""
        return self.engine.workspace

    @property
    def auto_index(self) -> AutoIndex:
        """Scheduler of the workspace's index runs."""
        return self.shared.auto_index

    def seen_by(self, caller: Caller, watch: Watch | None = None) -> LocalSatchel:
        """The same workspace for another caller; `watch` receives the progress of index runs."""
        return replace(self, caller=caller, watch=watch)

    # -- asking

    @names_options(Question)
    def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """Build the context for a question."""
        full_question = self._with_caller(question_from(Question, question, options))
        counter = self.counter_for(full_question)
        built, notes = self._when_ready(
            full_question.query,
            full_question.fresh,
            lambda: answering.build(
                self.engine, self.settings, full_question, counter=counter, shown=self.shown_to(full_question)
            ),
            _is_weak,
        )
        return with_index_notes(built, notes)

    @names_options(Question)
    def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """Return the pieces with the highest relevance to a question."""
        full_question = self._with_caller(question_from(Question, question, options))
        result, notes = self._when_ready(
            full_question.query,
            full_question.fresh,
            lambda: answering.search(self.engine, self.settings, full_question),
            _is_weak_search,
        )
        return replace(result, notes=(*notes, *result.notes)) if notes else result

    def find(
        self,
        what: str,
        kind: FindKind | str = "definition",
        *,
        limit: int = 100,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> Found:
        """Find a symbol, a text or an outline."""
        from satchel.retrieval.find import find

        asked = self._with_caller(Question(query=what or ".", include=tuple(include), exclude=tuple(exclude)))

        def answer() -> Found:
            filters = answering.seen_by(self.engine, asked.user, answering.filters_for(self.settings, asked))
            return find(self.engine.store, what, kind, filters, limit)

        found, notes = self._when_ready(what, None, answer, lambda given: not given.matches)
        return replace(found, notes=(*notes, *found.notes)) if notes else found

    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """Return the exact text behind an id; only an unknown id triggers a refresh and a second try."""
        try:
            return self.engine.expand(piece_id, lines=lines, filters=self.filters())
        except UnknownBlock:
            self.refresh()
            return self.engine.expand(piece_id, lines=lines, filters=self.filters())

    @names_options(ResearchQuestion)
    def research(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchContext:
        """Build a context of numbered pages of documents and notes for a question, within the budget."""
        from satchel.service.research import research

        full_question = question_from(ResearchQuestion, question, options)
        view = replace(self, caller=self.caller.on_behalf_of(full_question.user))

        def answer() -> ResearchContext:
            library = view.library()
            if full_question.by != "text" and self.watch is not None:
                with suppress(IndexProblem):  # the search reports an index without write access
                    library.look_at_pages(partial(_watch_step, self.watch, "looking at pages"))
            return research(library, full_question, full_question.model or self.settings.model)

        context, notes = view._when_ready(full_question.query, None, answer, _is_weak)
        return with_index_notes(context, notes)

    @names_options(ResearchQuestion)
    def ask(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchAnswer:
        """Answer a question from the documents with the configured language model, with sources."""
        from satchel.service.research import answer_from, must_have

        full_question = question_from(ResearchQuestion, question, options)
        model = must_have(self.engine.language_model)
        return answer_from(self.research(full_question), full_question, model)

    def library(self) -> WorkspaceLibrary:
        """Return the documents as a library of pages, limited to the caller's access."""
        self.require_access()
        library = self.shared.library()
        if self.caller.user is None and self.engine.store.default_access() is DefaultAccess.OWNER:
            return library
        return library.seen_by(answering.asking_user(self.engine, self.caller.user))

    def page_picture(self, document: str, page: int, *, thumbnail: bool = False) -> Path | None:
        """Return the file with the picture of a page; None for kinds of documents without page pictures."""
        self.refresh()
        library = self.library()
        # Documents are identified by content hash: copies of a document are the same document.
        state = self.engine.store.files().get(os.path.normpath(document))
        doc_id = state.content_hash.hex() if state else document
        if library.get_document_markdown(doc_id) is None:
            raise InvalidOption("document", document, "no such document; give its path relative to PATH")
        if library.get_page_metadata(doc_id, page) is None:
            raise UnknownPage(document, page)
        return library.page_image(doc_id, page, thumbnail=thumbnail)

    def make_page_pictures(self) -> int:
        """Make pictures and thumbnails of all pages; returns the number of pages."""
        watch = self.watch
        return self.library().make_images(
            partial(_watch_step, watch, "making pictures of pages") if watch is not None else None
        )

    def filters(self) -> Filters:
        """Access filters for the caller."""
        self.require_access()
        return answering.seen_by(self.engine, self.caller.user)

    @property
    def is_owners_alone(self) -> bool:
        """True while only the owner may read the workspace."""
        return self.engine.store.default_access() is DefaultAccess.OWNER

    def disk_path(self, path: str) -> Path:
        """The place on disk of a file by its path in sources."""
        return self.root / path

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model for answers, if one is set."""
        return self.engine.language_model

    def contents(self) -> Contents:
        """What the caller may read: documents, notes, tasks and files, and questions about them."""
        from satchel.service.contents import contents_of

        return contents_of(self.engine.store, self.filters(), self.engine.now())

    def file_paths(self) -> list[str]:
        """The paths of all indexed files, in order; empty unless the caller may read all of them."""
        is_open = self.caller.is_owner and self.filters().readers is None
        return sorted(self.engine.store.files()) if is_open else []

    # -- the index

    def unread_files(self) -> int:
        """The number of files that were read partly or not at all."""
        return len(self.engine.store.notes())

    @property
    def generation(self) -> int:
        """The number of the last commit that the caller can see; an owner sees every commit."""
        store, user = self.engine.store, self.caller.user
        if user is None or self.caller.is_owner:
            return store.generation
        return store.generation_for(self.engine.filters_for(user))

    def status(self) -> Status:
        """Return the contents and the progress of the index; counts only for an owner."""
        from satchel import __version__

        facts, state = self.engine.status(), self.auto_index.state
        known = Status(
            workspace=self.engine.root.name,
            generation=self.generation,
            indexing=state.running,
            state=self._summary(state) if facts.generation or state.running else "not indexed yet",
            done=state.done if self.caller.is_owner else 0,
            of=state.of if self.caller.is_owner else 0,
            token_budget=self.settings.token_budget,
            format=self.settings.format,
            version=__version__,
        )
        if not self.caller.is_owner:
            return known
        model = self.engine.language_model
        return replace(
            known,
            workspace=str(self.engine.root),
            files=facts.files,
            blocks=facts.blocks,
            pieces=facts.pieces,
            embedder=facts.embedder,
            bytes_on_disk=facts.bytes_on_disk,
            default_access=self.engine.store.default_access().value,
            language_model=model.name if model else None,
        )

    def is_for_workspace(self, question: Question) -> bool:
        """True if a question gets the context of a workspace instead of pieces of files."""
        return answering.is_for_a_workspace(self.engine, question)

    def refresh(self, fresh: Fresh = None, *, question: str = "", more_than: int = 0) -> tuple[str, ...]:
        """Index changed files if a refresh is due; returns notes about the index for answers.

        `fresh`, `question` and `more_than` are those of `AutoIndex.refresh`.
        """
        return self._refresh(self.patience, fresh, question, more_than)

    def _refresh(self, patience: float, fresh: Fresh, question: str, more_than: int) -> tuple[str, ...]:
        notes = self.index_notes
        if notes is None:
            notes = self.auto_index.refresh(
                patience=patience,
                watch=self.watch,
                report=self.report,
                quick=self.quick,
                fresh=fresh,
                question=question,
                more_than=more_than,
            )
        # Only the owner may know counts and paths of files.
        return notes if self.caller.is_owner or not notes else (GENERAL_NOTE,)

    def _when_ready(
        self, question: str, fresh: Fresh, answer: Callable[[], Answer], is_weak: Callable[[Answer], bool]
    ) -> tuple[Answer, tuple[str, ...]]:
        """The answer, with notes about the index; raises IndexNotReady if too little is indexed yet.

        While most of a first index run is ahead, a weak answer is not given: the question waits for more, as long as
        its patience lasts.
        """
        waits = self.index_notes is None and not self.quick
        began = monotonic()
        until = began + (self.patience if waits else 0.0)
        more_than = 0
        while True:
            notes = self._refresh(max(0.0, until - monotonic()), fresh, question, more_than)
            if not_ready := self.auto_index.not_ready():
                # Another process begins with the first index: soon a part of it can be searched.
                if not self.auto_index.is_run_elsewhere or monotonic() >= min(until, began + PATIENCE_S):
                    raise not_ready
                sleep(_LOOKS_AGAIN_S)
                continue
            given, progress = answer(), self.auto_index.first_run
            if progress is None or 2 * progress.done >= progress.of or not is_weak(given):
                return given, notes
            if monotonic() >= until:
                raise IndexNotReady(str(self.root), progress.done, progress.of, progress.whole_seconds_left)
            more_than = progress.done

    def run_index(self, watch: Watch | None = None, *, busy_wait_s: float | None = None) -> IndexReport:
        """Index the folder; returns the full report of the run."""
        self.caller.must_be_owner("index the workspace")
        return self.auto_index.index(watch or self.watch, report=self.report, busy_wait_s=busy_wait_s)

    def index(self, watch: Watch | None = None) -> Indexed:
        """Index the folder."""
        report = self.run_index(watch)
        return Indexed(
            found=report.found,
            read=report.read,
            dropped=report.dropped,
            seconds=round(report.seconds, 3),
            generation=report.generation,
            notes=tuple(report.notes),
        )

    def close(self) -> None:
        """Close the workspace for all callers."""
        self.shared.close()

    def _summary(self, state: IndexState) -> str:
        if not self.engine.is_here:
            return "up to date"
        if self.caller.is_owner:
            return state.summary
        return GENERAL_NOTE if state.problem else "being refreshed" if state.running else state.summary

    def require_access(self) -> None:
        """Raise NotAllowed for callers other than the owner until access is granted, whatever token the caller has."""
        if not self.caller.is_owner and self.engine.store.default_access() is DefaultAccess.OWNER:
            assert self.caller.user is not None
            raise NotAllowed("user", self.caller.user.id, ALONE)

    def _with_caller(self, question: Question) -> Question:
        self.require_access()
        return question.asked_by(self.caller.asking(question.user))

    def shown_to(self, question: Question) -> ShownLines | None:
        """What the session of a question was shown; None without a session."""
        if not question.session:
            return None
        return self.shared.sessions.of(question.user.id if question.user else "", question.session)

    def counter_for(self, question: Question) -> TokenCounter | None:
        """Counter over the already loaded tokenizer; None if the question's model has a different tokenizer."""
        encoding = self.shared.encoding
        if encoding is None:
            return None
        from satchel.tokens.openai import OpenAICounter
        from satchel.tokens.registry import Tokenization, describe_tokenizer

        if describe_tokenizer(question.model or self.settings.model) != Tokenization(encoding.name):
            return None
        return OpenAICounter(encoding.name, served_by=encoding)


ALONE: Final = (
    "only the owner may read this workspace until access is granted: `satchel workspace grant`, "
    "`satchel workspace default deny` or `allow`"
)
GENERAL_NOTE: Final = "the index is not up to date; this answer uses the data indexed so far"
"""The note for callers other than the owner, who may not know counts and paths of files."""


_INCOMPLETE: Final = "the index is not complete, so what answers may be missing from it"


def _is_weak(context: Context) -> bool:
    """True for a context that probably does not answer."""
    return not context.sources or (context.sufficiency is not None and bool(context.sufficiency.reasons))


def _is_weak_search(result: SearchResult) -> bool:
    """True for hits that probably do not answer."""
    from satchel.retrieval.sufficiency import LOW_SUFFICIENCY

    return not result.hits or result.hits[0].relevance < LOW_SUFFICIENCY


def with_index_notes(context: AnyContext, notes: tuple[str, ...]) -> AnyContext:
    """The context with the notes about the index; with little sufficiency an incomplete index is the first reason."""
    if not notes:
        return context
    judged = context.sufficiency
    if judged and judged.reasons:
        judged = replace(judged, reasons=(_INCOMPLETE, *judged.reasons))
    return replace(context, notes=(*notes, *context.notes), sufficiency=judged)


def _watch_step(watch: Watch, doing: str, done: int, of: int) -> None:
    watch(IndexState(running=True, doing=doing, done=done, of=of))


def open_local(
    path: str | os.PathLike[str] = ".",
    *,
    caller: Caller = OWNER,
    settings: Settings | None = None,
    every: float = 0.0,
    patience: float = FOREVER,
    busy_wait_s: float = 10.0,
    encoding: Any = None,
    **changed: Any,
) -> LocalSatchel:
    """Open the workspace in a folder or a database; a folder is checked for changes at most once per `every` seconds.

    `busy_wait_s` is how long an index run waits for other writers; `encoding` is an already loaded tokenizer.
    """
    from satchel.service.factory.opening import open_engine, settings_at
    from satchel.service.settings import Settings

    names = Settings.__slots__
    mine = {name: changed.pop(name) for name in tuple(changed) if name in names and is_setting(name, changed[name])}
    settings = settings or settings_at(path, mine)
    engine = open_engine(path, settings=settings, **changed)
    auto_index = AutoIndex(engine, every=every, busy_wait_s=busy_wait_s)
    return LocalSatchel(_Shared(engine, settings, auto_index, encoding), caller, patience)


def is_setting(name: str, value: object) -> bool:
    """False for a language model passed as an object: only its name is a setting."""
    return name != "language_model" or isinstance(value, str)


def client_of(
    engine: ContextEngine,
    settings: Settings,
    *,
    caller: Caller = OWNER,
    every: float = 0.0,
    patience: float = FOREVER,
) -> LocalSatchel:
    """Create a client for an open engine."""
    return LocalSatchel(_Shared(engine, settings, AutoIndex(engine, every=every), None), caller, patience)
