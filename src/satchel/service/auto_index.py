"""Refresh of an index before questions are answered: a single run at a time, shared by all callers.

Questions do not wait for a long run. They are answered from the index as far as it is built, with a note about it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Condition, Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from satchel.errors import IndexBusy, IndexNotReady, IndexUnwritable, InvalidInput, SatchelError
from satchel.service.watching import FolderLooks
from satchel.text.visible import counted

if TYPE_CHECKING:
    from satchel.indexing.changes import Changes, IndexReport
    from satchel.indexing.first_run import FirstRun
    from satchel.indexing.indexer import IndexStep
    from satchel.service.engine import ContextEngine

__all__ = ["FOREVER", "AutoIndex", "IndexReport", "IndexState", "Report", "Watch", "describe_report", "usual_reasons"]

_log: Final = logging.getLogger(__name__)
FOREVER: Final = float("inf")
_PROGRESS_EVERY_S: Final = 0.05
"""Least time between progress messages: a reader cannot see more, and every message wakes all waiting threads."""
_CHECK_S: Final = 0.2  # between two checks of a first run that makes no progress, because it lays out
_BUSY_POLL_S: Final = 0.02
"""Time between two tries on a busy index: edits in the same process take a few milliseconds."""
_MAX_IMPORT_NOTES: Final = 10
"""More notes of an import would hide the other messages; `satchel workspace import --json` shows all."""

Fresh: TypeAlias = float | Literal["now"] | None
"""How fresh an index a question needs: checked at most so many seconds ago, or `now`, whatever a watch reports."""

Watch = Callable[["IndexState"], None]
"""Callback for the progress of an index run."""
Report = Callable[[str, bool], None]
"""Callback for messages about the index: a sentence, and True if the sentence reports a problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How far an index run is, or how the last one ended."""

    running: bool = False
    doing: str = ""
    done: int = 0
    of: int = 0
    runs: int = 0
    problem: str = ""

    @property
    def summary(self) -> str:
        """The state in a few words."""
        if not self.running:
            return self.problem or ("up to date" if self.runs else "not checked yet")
        return f"{self.doing} {self.done:,} of {self.of:,} files" if self.of else self.doing or "looking"


class _Stopped(Exception):
    """Raised inside an index run to end it when the index is closed."""


@dataclass(slots=True, eq=False, kw_only=True)
class _Run:
    """An index run: start time, mode, callbacks for progress and messages, and result.

    A light run ends early if no file has changed.
    """

    began: float
    is_light: bool
    busy_wait_s: float
    watch: Watch | None = None
    report_to: Report | None = None
    question: str = ""
    is_done: bool = False
    report: IndexReport | None = None
    error: BaseException | None = None
    problem: str = ""

    def tell(self, sentence: str, *, is_problem: bool = False) -> None:
        if self.report_to is not None:
            self.report_to(sentence, is_problem)


class AutoIndex:
    """Scheduler of an engine's index runs; checks the folder for changes at most once per `every` seconds (0: always).

    `busy_wait_s` is how long a run waits for other writers of the index.
    """

    def __init__(self, engine: ContextEngine, *, every: float = 0.0, busy_wait_s: float = 10.0) -> None:
        self._engine = engine
        self._every = every
        self.busy_wait_s = busy_wait_s
        self._changed = Condition()
        self._state = IndexState()
        self._run: _Run | None = None
        self._thread: Thread | None = None
        self._looked = -FOREVER
        self._looks = FolderLooks(engine.root)
        self._stopping = Event()

    @property
    def state(self) -> IndexState:
        """Progress of the current run, or the outcome of the last run."""
        return self._state

    def is_due(self, fresh: Fresh = None) -> bool:
        """True if the folder must be checked for changes before a question is answered."""
        if not self._engine.is_here:
            return False
        if self._state.running or fresh == "now":
            return True
        max_age = self._every if fresh is None else fresh
        return not (max_age and monotonic() - self._looked < max_age) and not self._looks.is_quiet(self._engine.store)

    def refresh(
        self,
        *,
        patience: float,
        watch: Watch | None = None,
        report: Report | None = None,
        quick: bool = False,
        fresh: Fresh = None,
        question: str = "",
        more_than: int = 0,
    ) -> tuple[str, ...]:
        """Index changed files, waiting `patience` seconds at most; returns notes for the answer.

        `report` receives sentences about the run, and a failed run then raises an error instead of adding a note. With
        `quick`, an existing index is not refreshed. A first run reads first what the `question` names; if it takes
        longer than `patience`, the wait ends as soon as more than `more_than` files can be searched.
        """
        if not self.is_due(fresh):
            return ()
        if quick and self._engine.status().generation:
            if report is not None:
                report("answering from the index as it is (--quick)", False)
            return ()
        asked_at = monotonic()
        new = _Run(began=asked_at, is_light=True, busy_wait_s=self.busy_wait_s, report_to=report, question=question)
        run = self._run_or_join(new, asked_at + patience, watch, more_than)
        if run is not None and run.is_done and run.began < asked_at and (not self._every or fresh == "now"):
            # The joined run may have checked the folder before the last file was written.
            run = self._run_or_join(replace(new, began=monotonic()), asked_at + patience, watch, more_than)
        if report is None or run is None or run.error is None:
            return self.notes(run)
        if isinstance(run.error, IndexBusy):
            if self.not_ready() is None:
                report("another process is indexing; answering from the existing index", False)
        elif _is_read_only(run.error) and self._is_complete():
            report("the index is read-only and cannot be refreshed; answering from the existing index", False)
        else:
            raise run.error
        return ()

    def _run_or_join(self, new: _Run, until: float, watch: Watch | None, more_than: int) -> _Run | None:
        run = self._begin(new, watch=watch, is_own=until == FOREVER)
        self._await(run, until, watch, more_than)
        return run

    @property
    def has_looked(self) -> bool:
        """True if a run has ended and answers need no new run each, or if the folder is not on this machine."""
        return not self._engine.is_here or bool(self._every and self._state.runs)

    def is_current(self, asked: float, fresh: Fresh = None) -> bool:
        """True if the index is fresh enough for a question asked at `asked` (monotonic time); if not, starts a run."""
        run = self._run
        if not self._engine.is_here:
            return True
        if run is not None and run.is_done and (run.began >= asked or not self.is_due(fresh)):
            return True
        self._begin(self._light_run())
        return self._stopping.is_set()

    def _light_run(self) -> _Run:
        return _Run(began=monotonic(), is_light=True, busy_wait_s=self.busy_wait_s)

    def refresh_soon(self) -> None:
        """Start a refresh in the background if a refresh is due."""
        if self.is_due():
            self._begin(self._light_run())

    @property
    def first_run(self) -> FirstRun | None:
        """How far the first index run is, in whatever process; None if the index is complete, or not begun."""
        return self._engine.first_run if self._run is None or self._is_unfinished(self._run) else None

    def can_answer_before(self, until: float, more_than: int = 0) -> bool:
        """True if the first run will not end before `until`, but more than so many files can be searched already."""
        progress = self.first_run
        return progress is not None and progress.done > more_than and progress.seconds_left > until - monotonic()

    def not_ready(self) -> IndexNotReady | None:
        """The error for a question if nothing can be searched yet because the first index run goes on."""
        if self._run is None or not self._is_unfinished(self._run):
            return None
        facts, state = self._engine.status(), self._state
        if facts.generation > facts.behind:
            return None
        return IndexNotReady(str(self._engine.root), state.done, state.of)

    @property
    def is_run_elsewhere(self) -> bool:
        """True if the last run found another process indexing."""
        return self._run is not None and self._run.is_done and isinstance(self._run.error, IndexBusy)

    @staticmethod
    def _is_unfinished(run: _Run) -> bool:
        return not run.is_done or isinstance(run.error, (IndexBusy, IndexUnwritable))

    def notes(self, run: _Run | None = None) -> tuple[str, ...]:
        """Notes about the state of the index for an answer given now."""
        run = run or self._run
        if run is None:
            return ()
        notes = self._looks.take_notes()
        progress = self.first_run
        if progress is not None:
            left = f", the rest in about {progress.seconds_left:,.0f} s" if progress.seconds_left < FOREVER else ""
            notes.append(f"{progress.summary}{left}; this answer uses only these")
        elif not run.is_done:
            state = self._state.summary
            notes.append(f"the index is being refreshed ({state}); this answer uses the data indexed so far")
        elif run.problem:
            notes.append(run.problem)
        return tuple(notes)

    def index(
        self, watch: Watch | None = None, *, report: Report | None = None, busy_wait_s: float | None = None
    ) -> IndexReport:
        """Index the current state of the folder and wait for the end of the run, without a time limit."""
        asked_at = monotonic()
        while True:
            wait_s = self.busy_wait_s if busy_wait_s is None else busy_wait_s
            new = _Run(began=monotonic(), is_light=False, busy_wait_s=wait_s, report_to=report)
            run = self._begin(new, watch=watch, is_own=True)
            if run is None:
                raise IndexBusy(str(self._engine.root), " (which is about to end)")
            self._await(run, FOREVER, watch)
            # An earlier run may have missed files written since its start, and a light run is not thorough.
            if run.began >= asked_at and not run.is_light:
                break
        if run.error is not None:
            raise run.error
        assert run.report is not None
        return run.report

    def close(self) -> None:
        """Stop the current run; rows already committed stay in the index."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._looks.close()

    # -- the run

    def _begin(self, new: _Run, *, watch: Watch | None = None, is_own: bool = False) -> _Run | None:
        """Return the current run, or start the new one; None while closing.

        With `is_own` the caller's own thread does the work, so Ctrl-C interrupts the work.
        """
        with self._changed:
            if self._run is not None and not self._run.is_done:
                return self._run
            if self._stopping.is_set():
                return None
            new.watch = watch if is_own else None
            if not is_own:
                thread = Thread(target=self._work, args=(new,), name="satchel-index", daemon=True)
                thread.start()
                self._thread = thread
            self._run = new
            self._state = IndexState(running=True, doing="looking", runs=self._state.runs)
        if is_own:
            self._work(new)
        return new

    def _work(self, run: _Run) -> None:
        with self._changed:
            """Wait until `_begin` has published the run."""
        try:
            run.report = self._when_free(run)
        except IndexBusy as error:
            run.error = error
            run.problem = "another process is indexing; this answer uses the existing index"
        except _Stopped:
            run.error = IndexBusy(str(self._engine.root), " (which is stopping)")
            run.problem = "the index run was stopped"
        except SatchelError as error:
            run.error = error
            if _is_read_only(error):
                run.problem = "the index is read-only and cannot be refreshed; this answer uses the existing index"
                return
            run.problem = f"the index could not be refreshed: {error}"
        except BaseException as error:
            run.error = error
            run.problem = f"the index could not be refreshed ({type(error).__name__})"
            if not isinstance(error, Exception):
                raise  # Ctrl-C and the end of the process must end the caller, too
            _log.error("an index run failed: %s", type(error).__name__)
        finally:
            self._looked = monotonic()
            with self._changed:
                run.is_done = True
                self._state = IndexState(runs=self._state.runs + 1, problem=run.problem)
                self._changed.notify_all()

    def _when_free(self, run: _Run) -> IndexReport:
        """Index as soon as no other process writes. Without a complete index the wait has no limit."""
        end = monotonic() + run.busy_wait_s
        has_reported = False
        while True:
            try:
                return self._refreshed(run)
            except IndexBusy:
                is_first = run.is_light and not self._is_complete()
                if (not is_first and monotonic() >= end) or self._stopping.wait(_BUSY_POLL_S):
                    raise
                if is_first and not has_reported:
                    has_reported = True
                    run.tell("another process is indexing; waiting for it")

    def _is_complete(self) -> bool:
        """True once a whole index can be searched; newly committed rows cannot be found yet."""
        if self._engine.first_run is not None:
            return False
        facts = self._engine.status()
        return facts.generation > facts.behind

    def _refreshed(self, run: _Run) -> IndexReport:
        engine = self._engine
        self._import_changed_sources(run)
        if not run.is_light:
            return self._indexed(run, None)
        began = self._looks.begin()
        changes = engine.changes()
        if engine.is_current(changes):
            from satchel.indexing.changes import IndexReport

            report = IndexReport(found=changes.found, generation=engine.store.generation)
        else:
            report = self._indexed(run, changes)
        self._looks.end(began, changes.folders, engine.store)
        return report

    def _indexed(self, run: _Run, changes: Changes | None) -> IndexReport:
        """The report of an index run with progress; None looks for the changes."""
        last_published = 0.0

        def publish(step: IndexStep) -> None:
            nonlocal last_published
            if self._stopping.is_set():
                raise _Stopped
            now = monotonic()
            if now - last_published >= _PROGRESS_EVERY_S or step.doing != self._state.doing:
                last_published = now
                self._publish(run, step)

        report = self._engine.index(publish, changes=changes, waiting_question=run.question)
        for sentence in describe_report(report):
            run.tell(sentence)
        return report

    def _publish(self, run: _Run, step: IndexStep) -> None:
        state = IndexState(running=True, doing=step.doing, done=step.done, of=step.of, runs=self._state.runs)
        with self._changed:
            self._state = state
            self._changed.notify_all()
        if run.watch is not None:
            run.watch(state)

    def _import_changed_sources(self, run: _Run) -> None:
        """Import the sources again whose files have changed since their import."""
        for source in self._engine.workspace.changed_sources():
            from satchel.service.importing import import_again

            try:
                report = import_again(self._engine.workspace, source, only_changes=True)
            except InvalidInput as error:
                _log.warning("a source has changed and was not imported again: %s", type(error).__name__)
                run.tell(f"{source.path} has changed and was not imported again: {error}", is_problem=True)
                continue
            removed = f", {report.removed:,} removed" if report.removed else ""
            run.tell(f"{source.kind} has changed: {report.counts['block']:,} blocks read again{removed}")
            for note in report.notes[:_MAX_IMPORT_NOTES]:
                run.tell(note)

    def _await(self, run: _Run | None, until: float, watch: Watch | None, more_than: int = 0) -> None:
        """Wait for the end of a run, or until the time `until`, passing progress to `watch`.

        Where a first run will not end before that time, the wait ends once more than so many files can be searched.
        """
        if run is None:
            return
        last_state: IndexState | None = None
        while True:
            with self._changed:
                if self._state is last_state and not run.is_done:
                    self._changed.wait(max(0.0, min(until - monotonic(), _CHECK_S)))
                last_state, is_done = self._state, run.is_done
            if watch is not None:
                watch(last_state)
            if is_done or monotonic() >= until or (until < FOREVER and self.can_answer_before(until, more_than)):
                return


def _is_read_only(error: BaseException) -> bool:
    return isinstance(error, IndexUnwritable) and error.is_read_only


def usual_reasons() -> frozenset[str]:
    """Reasons for skipping files by rule; every reason outside this set concerns a single file."""
    from satchel.indexing.walk import Skip

    return frozenset(skip.value for skip in Skip)


def describe_report(report: IndexReport) -> list[str]:
    """Sentences about an index run: the counts, and why documents were not read, if any were not."""
    parts = [f"{report.read:,} of {counted(report.found, 'file')} read"]
    if report.duplicates:
        parts.append(f"{report.duplicates:,} duplicates")
    if report.dropped:
        parts.append(f"{report.dropped:,} deleted")
    if report.skipped:
        parts.append(f"{sum(report.skipped.values()):,} skipped")
    if not report.found and not report.skipped:
        parts.append("the folder has no files")
    if not report.found and report.skipped:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in sorted(report.skipped.items()))
        parts.append(f"the folder has no readable files ({reasons})")
    sentences = [f"indexed in {report.seconds:.1f} s: {', '.join(parts)}"]
    if unread := report.skipped["document"]:
        from satchel.indexing.walk import can_read_documents

        documents = "1 document was" if unread == 1 else f"{unread:,} documents were"
        reason = "the setting `documents` is off" if can_read_documents() else "pip install 'satchel[documents]'"
        sentences.append(f"{documents} not read: {reason}")
    return sentences
