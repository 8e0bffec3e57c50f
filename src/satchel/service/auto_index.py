"""Refresh of an index before questions are answered: a single run at a time, shared by all callers.

Questions do not wait for a long run. They are answered from the index as far as it is built, with a note about it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from satchel.errors import IndexBusy, IndexUnwritable, InvalidInput, SatchelError
from satchel.text.visible import counted

if TYPE_CHECKING:
    from satchel.indexing.changes import IndexReport
    from satchel.indexing.indexer import IndexStep
    from satchel.service.engine import ContextEngine

__all__ = ["FOREVER", "AutoIndex", "IndexReport", "IndexState", "Report", "Watch", "describe_report", "usual_reasons"]

_log: Final = logging.getLogger(__name__)
FOREVER: Final = float("inf")
_PROGRESS_EVERY_S: Final = 0.05
"""Least time between progress messages: a reader cannot see more, and every message wakes all waiting threads."""
_BUSY_POLL_S: Final = 0.02
"""Time between two tries on a busy index: edits in the same process take a few milliseconds."""
_MAX_IMPORT_NOTES: Final = 10
"""More notes of an import would hide the other messages; `satchel workspace import --json` shows all."""

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
        self._stopping = Event()

    @property
    def state(self) -> IndexState:
        """Progress of the current run, or the outcome of the last run."""
        return self._state

    @property
    def is_due(self) -> bool:
        """True if the folder must be checked for changes before a question is answered."""
        if not self._engine.is_here:
            return False
        return not self._every or self._state.running or monotonic() - self._looked >= self._every

    def refresh(
        self, *, patience: float, watch: Watch | None = None, report: Report | None = None, quick: bool = False
    ) -> tuple[str, ...]:
        """Index changed files, waiting `patience` seconds at most; returns notes for the answer.

        `report` receives sentences about the run, and a failed run then raises an error instead of adding a note. With
        `quick`, an existing index is not refreshed.
        """
        if not self.is_due:
            return ()
        if quick and self._engine.status().generation:
            if report is not None:
                report("answering from the index as it is (--quick)", False)
            return ()
        asked_at = monotonic()
        run = self._run_or_join(asked_at, patience, watch, report)
        if run is not None and run.is_done and run.began < asked_at and not self._every:
            # The joined run may have checked the folder before the last file was written.
            run = self._run_or_join(asked_at, patience, watch, report)
        if report is None or run is None or run.error is None:
            return self.notes(run)
        if isinstance(run.error, IndexBusy):
            report("another process is indexing; answering from the existing index", False)
        elif _is_read_only(run.error) and self._can_answer():
            report("the index is read-only and cannot be refreshed; answering from the existing index", False)
        else:
            raise run.error
        return ()

    def _run_or_join(self, asked_at: float, patience: float, watch: Watch | None, report: Report | None) -> _Run | None:
        run = self._begin(is_light=True, patience=patience, watch=watch, report=report)
        self._await(run, asked_at + patience, watch)
        return run

    @property
    def has_looked(self) -> bool:
        """True if a run has ended and answers need no new run each, or if the folder is not on this machine."""
        return not self._engine.is_here or bool(self._every and self._state.runs)

    def is_current(self, asked: float) -> bool:
        """True if the index is fresh enough for a question asked at `asked` (monotonic time); if not, starts a run."""
        run = self._run
        if not self._engine.is_here:
            return True
        if run is not None and run.is_done and (run.began >= asked or not self.is_due):
            return True
        self._begin(is_light=True)
        return self._stopping.is_set()

    def refresh_soon(self) -> None:
        """Start a refresh in the background if a refresh is due."""
        if self.is_due:
            self._begin(is_light=True)

    def notes(self, run: _Run | None = None) -> tuple[str, ...]:
        """Notes about the state of the index for an answer given now."""
        run = run or self._run
        if run is None:
            return ()
        if not run.is_done:
            state = self._state.summary
            return (f"the index is being refreshed ({state}); this answer uses the data indexed so far",)
        return (run.problem,) if run.problem else ()

    def index(
        self, watch: Watch | None = None, *, report: Report | None = None, busy_wait_s: float | None = None
    ) -> IndexReport:
        """Index the current state of the folder and wait for the end of the run, without a time limit."""
        asked_at = monotonic()
        while True:
            run = self._begin(is_light=False, patience=FOREVER, watch=watch, report=report, busy_wait_s=busy_wait_s)
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

    # -- the run

    def _begin(
        self,
        *,
        is_light: bool,
        patience: float = 0.0,
        watch: Watch | None = None,
        report: Report | None = None,
        busy_wait_s: float | None = None,
    ) -> _Run | None:
        """Return the current run, or start a new run; None while closing.

        With unlimited patience the caller's own thread does the work, so Ctrl-C interrupts the work.
        """
        is_own = patience == FOREVER
        with self._changed:
            if self._run is not None and not self._run.is_done:
                return self._run
            if self._stopping.is_set():
                return None
            run = _Run(
                began=monotonic(),
                is_light=is_light,
                busy_wait_s=self.busy_wait_s if busy_wait_s is None else busy_wait_s,
                watch=watch if is_own else None,
                report_to=report,
            )
            if not is_own:
                thread = Thread(target=self._work, args=(run,), name="satchel-index", daemon=True)
                thread.start()
                self._thread = thread
            self._run = run
            self._state = IndexState(running=True, doing="looking", runs=self._state.runs)
        if is_own:
            self._work(run)
        return run

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
        """Index as soon as no other process writes. A first run waits without limit: no index exists to answer from."""
        end = monotonic() + run.busy_wait_s
        has_reported = False
        while True:
            try:
                return self._refreshed(run)
            except IndexBusy:
                is_first = run.is_light and not self._can_answer()
                if (not is_first and monotonic() >= end) or self._stopping.wait(_BUSY_POLL_S):
                    raise
                if is_first and not has_reported:
                    has_reported = True
                    run.tell("another process is indexing; waiting for it")

    def _can_answer(self) -> bool:
        """True once a generation of the index can be searched; newly committed rows cannot be found yet."""
        facts = self._engine.status()
        return facts.generation > facts.behind

    def _refreshed(self, run: _Run) -> IndexReport:
        engine = self._engine
        self._import_changed_sources(run)
        changes = engine.changes() if run.is_light else None
        if changes is not None and engine.is_current(changes):
            from satchel.indexing.changes import IndexReport

            return IndexReport(found=changes.found, generation=engine.store.generation)
        last_published = 0.0

        def publish(step: IndexStep) -> None:
            nonlocal last_published
            if self._stopping.is_set():
                raise _Stopped
            now = monotonic()
            if now - last_published >= _PROGRESS_EVERY_S or step.doing != self._state.doing:
                last_published = now
                self._publish(run, step)

        report = engine.index(publish, changes=changes)
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
                report = import_again(self._engine.workspace, source)
            except InvalidInput as error:
                _log.warning("a source has changed and was not imported again: %s", type(error).__name__)
                run.tell(f"{source.path} has changed and was not imported again: {error}", is_problem=True)
                continue
            removed = f", {report.removed:,} removed" if report.removed else ""
            run.tell(f"{source.kind} has changed: {report.counts['block']:,} blocks read again{removed}")
            for note in report.notes[:_MAX_IMPORT_NOTES]:
                run.tell(note)

    def _await(self, run: _Run | None, until: float, watch: Watch | None) -> None:
        """Wait for the end of a run, or until the time `until`, passing progress to `watch`."""
        if run is None:
            return
        last_state: IndexState | None = None
        while True:
            with self._changed:
                while self._state is last_state and not run.is_done:
                    left = until - monotonic()
                    if left <= 0:
                        return
                    self._changed.wait(min(left, 1.0))
                last_state, is_done = self._state, run.is_done
            if watch is not None:
                watch(last_state)
            if is_done or monotonic() >= until:
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
        reason = (
            "the setting `documents` is off"
            if can_read_documents()
            else "pip install '.[documents]' in Satchel's checkout"
        )
        sentences.append(f"{documents} not read: {reason}")
    return sentences
