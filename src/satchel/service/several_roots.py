"""Client of several folders and installed packages: one question, one budget, one ranking, one numbering.

Each root keeps its own index, settings and access. A question searches all roots that its caller may read as one store
(`joint_store`); paths and ids begin with the label of their root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from satchel.errors import InvalidOption, NotAllowed, UnknownBlock
from satchel.service import answering
from satchel.service.auto_index import FOREVER, AutoIndex, IndexState
from satchel.service.client import OWNER, Caller, Indexed, Satchel, Status, names_options
from satchel.service.joint_store import JointFilters, Labels
from satchel.service.local_client import GENERAL_NOTE, with_index_notes
from satchel.service.piece_contexts import PieceContextBuilder
from satchel.service.question import Question, ResearchQuestion, question_from

if TYPE_CHECKING:
    from typing import Unpack

    from satchel.errors import IndexNotReady
    from satchel.models.context import Context
    from satchel.models.find import FindKind, Found
    from satchel.models.results import ResearchContext
    from satchel.models.search import Expansion, Filters, SearchResult
    from satchel.ports.language_model import LanguageModel
    from satchel.research.library import WorkspaceLibrary
    from satchel.retrieval.search import Searcher
    from satchel.service.auto_index import Fresh, Report, Watch
    from satchel.service.contents import Contents
    from satchel.service.engine import ContextEngine
    from satchel.service.local_client import LocalSatchel
    from satchel.service.question import QuestionOptions, ResearchOptions
    from satchel.service.research import ResearchAnswer
    from satchel.service.settings import Settings


class JointRoots(NamedTuple):
    """The opened roots of a client, folders before packages, each by label."""

    clients: tuple[LocalSatchel, ...]
    labels: Labels
    folders: int
    """The number of folders; the rest are packages."""
    primary: int
    """The root whose settings decide the budget, the format and the model: the first folder given."""
    searcher: Searcher
    notes: tuple[str, ...] = ()
    """Notes on folders that were left out, for the owner."""

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """A name for each root: its label, or the folder's name."""
        pairs = zip(self.labels.labels, self.clients, strict=True)
        return tuple(label or client.root.name for label, client in pairs)


@dataclass(frozen=True, slots=True)
class JointIndex:
    """The schedulers of several roots as one."""

    members: tuple[AutoIndex, ...]
    labels: tuple[str, ...]

    @property
    def state(self) -> IndexState:
        """Progress of the runs under way, or the outcome of the last ones."""
        states = [member.state for member in self.members]
        running = [state for state in states if state.running]
        problems = (
            f"{label}: {state.problem}" for label, state in zip(self.labels, states, strict=True) if state.problem
        )
        return IndexState(
            running=bool(running),
            doing=running[0].doing if running else "",
            done=sum(state.done for state in running),
            of=sum(state.of for state in running),
            runs=min(state.runs for state in states),
            problem="" if running else next(problems, ""),
        )

    @property
    def has_looked(self) -> bool:
        """True if answers need no new run in any root."""
        return all(member.has_looked for member in self.members)

    def is_current(self, asked: float, fresh: Fresh = None) -> bool:
        """True if every index is fresh enough for a question asked at `asked`; starts a run in each that is not."""
        are_current = [member.is_current(asked, fresh) for member in self.members]  # each one that is not starts a run
        return all(are_current)

    def can_answer_before(self, until: float, more_than: int = 0) -> bool:
        """True if first runs go on, and each has more than so many files that can be searched before `until`."""
        begun = [member for member in self.members if member.first_run is not None]
        return bool(begun) and all(member.can_answer_before(until, more_than) for member in begun)

    def not_ready(self) -> IndexNotReady | None:
        """The error for a question while too little of one of the roots is indexed; None if it can be answered."""
        return next((error for member in self.members if (error := member.not_ready())), None)

    def refresh_soon(self) -> None:
        """Start a refresh in the background in each root where one is due."""
        for member in self.members:
            member.refresh_soon()

    def notes(self) -> tuple[str, ...]:
        """Notes about the state of the indexes for an answer given now."""
        return self._labelled([member.notes() for member in self.members])

    def refresh(
        self,
        *,
        patience: float,
        watch: Watch | None = None,
        report: Report | None = None,
        quick: bool = False,
        fresh: Fresh = None,
        question: str = "",
    ) -> tuple[str, ...]:
        """Index changed files in every root, waiting `patience` seconds at most; returns notes for the answer."""
        if patience != FOREVER and not quick:
            self.refresh_soon()  # side by side; with unlimited patience the caller's thread does one after the other
        until = monotonic() + patience
        notes = []
        for label, member in zip(self.labels, self.members, strict=True):
            left, own_report = max(0.0, until - monotonic()), _labelled_report(label, report)
            own = member.refresh(
                patience=left, watch=watch, report=own_report, quick=quick, fresh=fresh, question=question
            )
            notes.append(own)
        return self._labelled(notes)

    def _labelled(self, notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
        pairs = zip(self.labels, notes, strict=True)
        return tuple(f"{label}: {note}" for label, own in pairs for note in own)


def _labelled_report(label: str, report: Report | None) -> Report | None:
    """A callback for messages of one root that names the root."""
    if report is None:
        return None
    return lambda sentence, is_problem: report(f"{label}: {sentence}", is_problem)


@dataclass(frozen=True, slots=True)
class SeveralRoots(Satchel):
    """Client of several roots on this machine, limited to the access of a caller in each.

    The further fields are those of `LocalSatchel`.
    """

    roots: JointRoots
    caller: Caller = OWNER
    patience: float = FOREVER
    watch: Watch | None = None
    report: Report | None = None
    quick: bool = False
    index_notes: tuple[str, ...] | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the first folder."""
        return self.roots.clients[self.roots.primary].settings

    @property
    def auto_index(self) -> JointIndex:
        """Scheduler of the index runs of the roots that the caller may read: nobody waits for another's index."""
        readable = range(len(self.roots.clients)) if self.caller.is_owner else self._readable()
        labels = self.roots.shown_labels
        members = tuple(self.roots.clients[root].auto_index for root in readable)
        return JointIndex(members, tuple(labels[root] for root in readable))

    @property
    def engine(self) -> ContextEngine:
        """The engine of the only folder; raises InvalidOption if there are several."""
        return self._only_folder().engine

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model for answers, if one is set."""
        return self.roots.clients[self.roots.primary].language_model

    @property
    def is_owners_alone(self) -> bool:
        """True while only the owner may read one of the folders."""
        return any(client.is_owners_alone for client in self.roots.clients[: self.roots.folders])

    def seen_by(self, caller: Caller, watch: Watch | None = None) -> SeveralRoots:
        """The same roots for another caller; `watch` receives the progress of index runs."""
        return replace(self, caller=caller, watch=watch)

    # -- asking

    @names_options(Question)
    def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """Build one context for a question from all roots."""
        full_question = question_from(Question, question, options)
        if full_question.workspace_options:
            return self._built_by_one(full_question)
        views = self._readable()
        full_question = full_question.asked_by(self.caller.asking(full_question.user))
        notes = self._ready(full_question)
        filters = self._filters(views, full_question)
        change = answering.change_in(full_question, filters, lambda: self.roots.clients[self.roots.primary].root)
        built: Context = PieceContextBuilder(self.roots.searcher, change=change).build(
            full_question.query,
            answering.options_for(self.settings, full_question),
            filters=filters,
            expand_to_symbol=full_question.expand == "symbol",
            counter=self.roots.clients[self.roots.primary].counter_for(full_question),
            min_sufficiency=full_question.min_sufficiency or 0.0,
            shown=self.roots.clients[self.roots.primary].shown_to(full_question),
        )
        skipped = self._skipped_notes(views, full_question, filters, answering.best_relevance(built))
        return with_index_notes(replace(built, notes=(*built.notes, *skipped)), notes)

    @names_options(Question)
    def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """Return the pieces of all roots with the highest relevance to a question."""
        full_question = question_from(Question, question, options)
        views = self._readable()
        full_question = full_question.asked_by(self.caller.asking(full_question.user))
        notes = self._ready(full_question)
        filters = self._filters(views, full_question)
        result = answering.hits_of(self.roots.searcher, self.settings, full_question, filters)
        best = max((hit.relevance for hit in result.hits), default=0.0)
        skipped = self._skipped_notes(views, full_question, filters, best)
        return replace(result, notes=(*notes, *result.notes, *skipped))

    def find(
        self,
        what: str,
        kind: FindKind | str = "definition",
        *,
        limit: int = 100,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> Found:
        """Find a symbol, a text or an outline in all roots; paths begin with the label of their root."""
        from satchel.retrieval.find import find

        asked = Question(query=what or ".", include=tuple(include), exclude=tuple(exclude))
        views = self._readable()
        asked = asked.asked_by(self.caller.asking(None))
        notes = self._ready(asked)
        found = find(self.roots.searcher.store, what, kind, self._filters(views, asked), limit)
        return replace(found, notes=(*notes, *found.notes))

    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """Return the exact text behind an id, which begins with the label of its root."""
        views, labels = self._readable(), self.roots.labels
        root, own_id = labels.root_of(piece_id) or (-1, piece_id)
        near: list[str] = []
        if root in views:
            try:
                found = views[root].expand(own_id, lines=lines)
            except UnknownBlock as error:
                near = [labels.shown(root, own_near) for own_near in error.near]
            else:
                return replace(found, id=labels.shown(root, found.id), path=labels.shown(root, found.path))
        self.refresh()
        raise UnknownBlock(piece_id, near or list(self._with_labels(piece_id, views)))

    @names_options(ResearchQuestion)
    def research(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchContext:
        """Build a context of numbered pages from the documents of the only folder."""
        return self._only_folder().research(question, **options)

    @names_options(ResearchQuestion)
    def ask(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchAnswer:
        """Answer a question from the documents of the only folder with the configured language model."""
        return self._only_folder().ask(question, **options)

    def library(self) -> WorkspaceLibrary:
        """Return the documents of the only folder as a library of pages."""
        return self._only_folder().library()

    def filters(self) -> Filters:
        """Access filters for the caller in the only folder."""
        return self._only_folder().filters()

    def is_for_workspace(self, question: Question) -> bool:
        """True if a question gets the context of the only folder's workspace instead of pieces of all roots."""
        return bool(question.workspace_options)

    def disk_path(self, path: str) -> Path:
        """The place on disk of a file by its path in sources."""
        root, own_path = self.roots.labels.root_of(path) or (self.roots.primary, path)
        return self.roots.clients[root].disk_path(own_path)

    # -- the indexes

    @property
    def generation(self) -> int:
        """The number of the last commit that the caller can see in the only folder."""
        return self._only_folder().generation

    def _ready(self, full_question: Question) -> tuple[str, ...]:
        """Notes about the indexes for an answer; raises IndexNotReady while too little of a root is indexed."""
        notes = self.refresh(full_question.fresh, question=full_question.query)
        if not_ready := self.auto_index.not_ready():
            raise not_ready
        return notes

    def refresh(self, fresh: Fresh = None, *, question: str = "") -> tuple[str, ...]:
        """Index changed files in every root where a refresh is due; returns notes about the indexes for answers.

        `fresh` and `question` are those of `AutoIndex.refresh`.
        """
        notes = self.index_notes
        if notes is None:
            notes = self.auto_index.refresh(
                patience=self.patience,
                watch=self.watch,
                report=self.report,
                quick=self.quick,
                fresh=fresh,
                question=question,
            )
        if not self.caller.is_owner:
            return (GENERAL_NOTE,) if notes else ()
        return (*self.roots.notes, *notes)

    def file_paths(self) -> list[str]:
        """The paths of all indexed files, root by root; empty unless the caller may read all of them."""
        shown = self.roots.labels.shown
        return [shown(root, path) for root, view in self._readable().items() for path in view.file_paths()]

    def unread_files(self) -> int:
        """The number of files that were read partly or not at all."""
        return sum(client.unread_files() for client in self.roots.clients)

    def status(self) -> Status:
        """Return the contents and the progress of all indexes together; counts only for an owner."""
        views = self._readable()
        statuses = {root: view.status() for root, view in views.items()}
        names = self.roots.shown_labels
        others = (f"{names[root]}: {own.state}" for root, own in statuses.items() if own.state != "up to date")
        known = replace(
            next(iter(statuses.values())),
            # A package is called by its label: its folder is a copy in the cache.
            workspace=", ".join(
                own.workspace if root < self.roots.folders else names[root] for root, own in statuses.items()
            ),
            generation=sum(own.generation for own in statuses.values()),
            indexing=any(own.indexing for own in statuses.values()),
            state=next(others, "up to date"),
            done=sum(own.done for own in statuses.values()),
            of=sum(own.of for own in statuses.values()),
            token_budget=self.settings.token_budget,
            format=self.settings.format,
        )
        if not self.caller.is_owner:
            return known
        return replace(
            known,
            files=sum(own.files or 0 for own in statuses.values()),
            blocks=sum(own.blocks or 0 for own in statuses.values()),
            pieces=sum(own.pieces or 0 for own in statuses.values()),
            bytes_on_disk=sum(own.bytes_on_disk or 0 for own in statuses.values()),
        )

    def index(self, watch: Watch | None = None) -> Indexed:
        """Index every root."""
        self.caller.must_be_owner("index the workspace")
        reports = [view.index(watch) for view in self._views()]
        labelled = zip(self.roots.shown_labels, reports, strict=True)
        return Indexed(
            found=sum(report.found for report in reports),
            read=sum(report.read for report in reports),
            dropped=sum(report.dropped for report in reports),
            seconds=round(sum(report.seconds for report in reports), 3),
            generation=sum(report.generation for report in reports),
            notes=tuple(f"{label}: {note}" for label, report in labelled for note in report.notes),
        )

    def close(self) -> None:
        """Close all roots for all callers."""
        for client in self.roots.clients:
            client.close()

    # -- parts

    def _views(self) -> list[LocalSatchel]:
        """The client of each root with the caller's access."""
        return [
            replace(client, caller=self.caller, watch=self.watch, report=self.report, patience=self.patience)
            for client in self.roots.clients
        ]

    def _readable(self) -> dict[int, LocalSatchel]:
        """The roots that the caller may read, by number; raises NotAllowed if there is none."""
        readable: dict[int, LocalSatchel] = {}
        refusal: NotAllowed | None = None
        for root, view in enumerate(self._views()):
            try:
                view.require_access()
                readable[root] = view
            except NotAllowed as error:
                refusal = error
        if not readable and refusal is not None:
            raise refusal
        return readable

    def contents(self) -> Contents:
        """What the caller may read in all roots; paths and ids begin with the label of their root."""
        from satchel.service.contents import contents_of, joined

        labels = self.roots.labels
        found = [
            contents_of(view.engine.store, view.filters(), view.engine.now()).under(partial(labels.shown, root))
            for root, view in self._readable().items()
        ]
        return joined(found)

    def _only_folder(self) -> LocalSatchel:
        if self.roots.folders > 1:
            problem = "blocks, documents and the context of a workspace belong to one folder; ask that folder alone"
            raise InvalidOption("path", ", ".join(self.roots.shown_labels), problem)
        return replace(self._views()[0], quick=self.quick)

    def _built_by_one(self, question: Question) -> Context:
        """The workspace context of the only folder: sections of several workspaces cannot be joined."""
        name = question.workspace_options[0]
        if self.roots.folders > 1:
            problem = "applies to the workspace of one folder; leave it out, or ask that folder alone"
            raise InvalidOption(name, getattr(question, name), problem)
        built = self._only_folder().build(question)
        packages = ", ".join(self.roots.shown_labels[1:])
        return replace(built, notes=(*built.notes, f"{packages} is not searched with {name}"))

    def _filters(self, views: dict[int, LocalSatchel], question: Question) -> JointFilters:
        own: list[Filters | None] = [None] * len(self.roots.clients)
        for root, view in views.items():
            include, exclude = self._globs(root, question.include), self._globs(root, question.exclude)
            if include or not question.include:
                full_question = replace(question, include=include, exclude=exclude)
                own[root] = answering.seen_by(
                    view.engine, full_question.user, answering.filters_for(view.settings, full_question)
                )
        return JointFilters(of_roots=tuple(own))

    def _globs(self, root: int, globs: Sequence[str]) -> tuple[str, ...]:
        """The globs for a root's own paths: those with its label, and those without a label, which are for all."""
        labels = self.roots.labels
        return tuple(labels.own_glob(root, glob) for glob in globs if root in (labels.asked_in(glob) or [root]))

    def _skipped_notes(
        self, views: dict[int, LocalSatchel], question: Question, filters: JointFilters, best_relevance: float
    ) -> list[str]:
        """Notes on files that are not in the indexes and may matter to the question, with the name of the root."""
        names = self.roots.shown_labels
        return [
            f"{names[root]}: {note}"
            for root, view in views.items()
            if (own := filters.of_roots[root]) is not None
            for note in answering.skipped_notes(view.engine, question, own, best_relevance)
        ]

    def _with_labels(self, own_id: str, views: dict[int, LocalSatchel]) -> Iterator[str]:
        """The ids with labels that would have a text."""
        for root, view in views.items():
            try:
                view.engine.expand(own_id, filters=view.filters())
            except UnknownBlock:
                continue
            yield self.roots.labels.shown(root, own_id)
