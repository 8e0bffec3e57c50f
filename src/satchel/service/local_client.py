"""The front door to a folder on this machine; what the CLI, the HTTP API and the MCP server ask, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import NotAllowed, UnknownBlock
from satchel.models.access import DefaultAccess
from satchel.service import build as answering
from satchel.service.auto_index import Upkeep
from satchel.service.client import Indexed, Satchel, Status
from satchel.service.identity import OWNER, Caller
from satchel.service.question import Question, as_question

if TYPE_CHECKING:
    from typing import Unpack

    from satchel.models.search import Expansion, SearchResult
    from satchel.ports.store import Filters
    from satchel.research.context import ResearchContext
    from satchel.research.library import WorkspaceLibrary
    from satchel.service.auto_index import IndexState
    from satchel.service.build import Context
    from satchel.service.client import Told
    from satchel.service.engine import ContextEngine
    from satchel.service.research import ResearchAnswer, ResearchQuestion
    from satchel.service.settings import Settings

FOREVER: Final = float("inf")
LOOKS_EVERY_S: Final = 2.0
"""At most so often a served folder is looked at for changes."""
PATIENCE_S: Final = 20.0
"""So long a question waits for a first index run, where somebody waits for the answer; then it is answered from what is
there."""


class _Shared:
    """What all views of one workspace have in common."""

    def __init__(self, engine: ContextEngine, settings: Settings, every: float) -> None:
        self.engine = engine
        self.settings = settings
        self.upkeep = Upkeep(engine, every=every)
        self._library: WorkspaceLibrary | None = None
        self._lock = Lock()

    def library(self) -> WorkspaceLibrary:
        from satchel.service.factory.opening import library_over

        with self._lock:
            if self._library is None:
                self._library = library_over(self.engine, self.settings)
            return self._library

    def close(self) -> None:
        self.upkeep.close()
        with self._lock:
            library, self._library = self._library, None
        if library is not None:
            library.close_pages()
        self.engine.close()


@dataclass(frozen=True, slots=True)
class LocalSatchel(Satchel):
    """A folder's workspace as a caller may see it. `patience` is how long a question waits for an index run."""

    shared: _Shared
    caller: Caller = OWNER
    patience: float = FOREVER
    watch: Callable[[IndexState], None] | None = None
    looked: tuple[str, ...] | None = None
    """What there is to say about the index, where somebody has seen to it already."""

    @property
    def engine(self) -> ContextEngine:
        """The engine, for everything that is not asked through the front door."""
        return self.shared.engine

    @property
    def settings(self) -> Settings:
        """The settings of the workspace."""
        return self.shared.settings

    @property
    def upkeep(self) -> Upkeep:
        """Its index runs."""
        return self.shared.upkeep

    def seen_by(self, caller: Caller, watch: Callable[[IndexState], None] | None = None) -> LocalSatchel:
        """The same workspace for another caller; `watch` is told about index runs that questions wait for."""
        return replace(self, caller=caller, watch=watch)

    # -- asking

    def build(self, question: str | Question, **told: Unpack[Told]) -> Context:
        """The context for a question."""
        asked = self._asked(as_question(question, told))
        notes = self._fresh()
        built = answering.build(self.engine, self.settings, asked)
        return replace(built, notes=(*notes, *built.notes)) if notes else built

    def search(self, question: str | Question, **told: Unpack[Told]) -> SearchResult:
        """The pieces that answer a question best."""
        asked = self._asked(as_question(question, told))
        notes = self._fresh()
        found = answering.search(self.engine, self.settings, asked)
        return replace(found, notes=(*notes, *found.notes)) if notes else found

    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """The exact text behind an id; the folder is looked at again only for one that is not known."""
        try:
            return self.engine.expand(piece_id, lines=lines, filters=self.filters())
        except UnknownBlock:
            self._fresh()
            return self.engine.expand(piece_id, lines=lines, filters=self.filters())

    def ask(self, query: str, *, num_results: int = 10, max_tokens: int = 10_000) -> ResearchAnswer:
        """An answer from the documents with its sources."""
        from satchel.service.research import ResearchQuestion, answer_from, must_have

        asked = ResearchQuestion(query=query, num_results=num_results, max_tokens=max_tokens)
        model = must_have(self.engine.language_model)
        return answer_from(self.research(asked), asked, model)

    def research(self, asked: ResearchQuestion) -> ResearchContext:
        """The pages that answer a question, numbered, within the budget."""
        from satchel.service.research import research

        notes = self._fresh()
        context = research(self.library(), asked, self.settings.model)
        return replace(context, notes=(*notes, *context.notes)) if notes else context

    def library(self) -> WorkspaceLibrary:
        """The documents as a library of pages, as far as the caller may read them."""
        self._must_be_let_in()
        library = self.shared.library()
        if self.caller.user is None and self.engine.store.default_access() is DefaultAccess.OWNER:
            return library
        return library.seen_by(answering.asking_user(self.engine, self.caller.user))

    def filters(self) -> Filters:
        """What the caller may read."""
        self._must_be_let_in()
        return answering.seen_by(self.engine, self.caller.user)

    # -- the index

    def status(self) -> Status:
        """What the index holds and how far it is."""
        from satchel import __version__

        facts, state = self.engine.status(), self.upkeep.state
        known = Status(
            workspace=self.engine.root.name,
            generation=facts.generation,
            indexing=state.running,
            state=self._told(state) if facts.generation or state.running else "not indexed yet",
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

    def index(self, watch: Callable[[IndexState], None] | None = None) -> Indexed:
        """Bring the index up to the folder."""
        self.caller.must_be_owner("index the workspace")
        report = self.upkeep.index(watch)
        return Indexed(
            found=report.found,
            read=report.read,
            dropped=report.dropped,
            seconds=round(report.seconds, 3),
            generation=report.generation,
            notes=tuple(report.notes),
        )

    def close(self) -> None:
        """Let go of everything, for all callers."""
        self.shared.close()

    def _told(self, state: IndexState) -> str:
        if not self.engine.is_here:
            return "up to date"
        if self.caller.is_owner:
            return state.told
        return _GENERAL if state.problem else "being brought up" if state.running else state.told

    def _must_be_let_in(self) -> None:
        """A workspace is its owner's alone until something is granted, whatever tokens there are."""
        if not self.caller.is_owner and self.engine.store.default_access() is DefaultAccess.OWNER:
            assert self.caller.user is not None
            raise NotAllowed("user", self.caller.user.id, ALONE)

    def _asked(self, question: Question) -> Question:
        self._must_be_let_in()
        return question.asked_by(self.caller.asking(question.user))

    def _fresh(self) -> tuple[str, ...]:
        notes = self.looked
        if notes is None:
            notes = self.upkeep.bring_up(wait=self.patience, watch=self.watch)
        # How much there is, and where, is the owner's to know.
        return notes if self.caller.is_owner or not notes else (_GENERAL,)


ALONE: Final = (
    "this workspace is its owner's alone until it is said who may read: `satchel workspace grant`, "
    "`satchel workspace default deny` or `allow`"
)
_GENERAL: Final = "the index is not up to date; this answer is from what is there so far"


def open_local(
    path: str | os.PathLike[str] = ".",
    *,
    caller: Caller = OWNER,
    settings: Settings | None = None,
    every: float = 0.0,
    patience: float = FOREVER,
    **changed: Any,
) -> LocalSatchel:
    """The workspace in a folder, which is looked at for changes every so many seconds at most, or in a database."""
    from satchel.service.factory.opening import open_engine, settings_at
    from satchel.service.settings import Settings

    names = Settings.__slots__
    mine = {name: changed.pop(name) for name in tuple(changed) if name in names and _is_setting(name, changed[name])}
    settings = settings or settings_at(path, mine)
    engine = open_engine(path, settings=settings, **changed)
    return over(engine, settings, caller=caller, every=every, patience=patience)


def _is_setting(name: str, value: object) -> bool:
    """A language model may be given itself, or be named as a setting is."""
    return name != "language_model" or isinstance(value, str)


def over(
    engine: ContextEngine,
    settings: Settings,
    *,
    caller: Caller = OWNER,
    every: float = 0.0,
    patience: float = FOREVER,
) -> LocalSatchel:
    """An engine that is open already, behind the front door."""
    return LocalSatchel(_Shared(engine, settings, every), caller, patience)
