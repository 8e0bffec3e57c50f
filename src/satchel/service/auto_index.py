"""Keeps an index up with its folder while questions are answered: one run at a time, which anybody may watch.

Questions do not wait for a long run. They are answered from what is there, and say so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from satchel.errors import IndexBusy, InvalidInput, SatchelError

if TYPE_CHECKING:
    from satchel.indexing.indexer import IndexReport, Step
    from satchel.service.engine import ContextEngine

_log: Final = logging.getLogger(__name__)
_TELL_EVERY_S: Final = 0.05
_POLL_S: Final = 0.02


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
    def told(self) -> str:
        """In a few words."""
        if not self.running:
            return self.problem or ("up to date" if self.runs else "not looked at yet")
        return f"{self.doing} {self.done:,} of {self.of:,} files" if self.of else self.doing or "looking"


class _Stopped(Exception):
    """The run was told to stop."""


@dataclass(slots=True, eq=False)
class _Run:
    """One index run: when it began, whether it is thorough, and how it ended."""

    began: float
    is_light: bool
    is_done: bool = False
    report: IndexReport | None = None
    error: BaseException | None = None
    problem: str = ""


class Upkeep:
    """The index runs of an engine. `every` seconds at most the folder is looked at for changes (0: each time).

    `waits` is how long a run waits for others who write to the index.
    """

    def __init__(self, engine: ContextEngine, *, every: float = 0.0, waits: float = 10.0) -> None:
        self._engine = engine
        self._every = every
        self.waits = waits
        self._changed = Condition()
        self._state = IndexState()
        self._run: _Run | None = None
        self._thread: Thread | None = None
        self._looked = -float("inf")
        self._stopping = Event()

    @property
    def state(self) -> IndexState:
        """How far it is."""
        return self._state

    @property
    def is_due(self) -> bool:
        """Whether the folder has to be looked at again before a question is answered."""
        if not self._engine.is_here:
            return False
        return not self._every or self._state.running or monotonic() - self._looked >= self._every

    def bring_up(self, *, wait: float, watch: Callable[[IndexState], None] | None = None) -> tuple[str, ...]:
        """Look for changes and read them, waiting so long at most; what there is to say about it."""
        if not self.is_due:
            return ()
        asked = monotonic()
        run = self._begin(lightly=True)
        self._await(run, asked + wait, watch)
        if run is not None and run.is_done and run.began < asked and not self._every:
            # It may have looked before the last thing was written.
            run = self._begin(lightly=True)
            self._await(run, asked + wait, watch)
        return self.notes(run)

    @property
    def has_looked(self) -> bool:
        """Whether a run has come to its end, and nobody asks for one before each answer."""
        return not self._engine.is_here or bool(self._every and self._state.runs)

    def settle(self, asked: float) -> bool:
        """Whether the folder was looked at as a question of that moment wants it; if not, see to it, and ask again."""
        run = self._run
        if not self._engine.is_here:
            return True
        if run is not None and run.is_done and (run.began >= asked or not self.is_due):
            return True
        self._begin(lightly=True)
        return self._stopping.is_set()

    def look_soon(self) -> None:
        """Look for changes in the background, if that was not done just now."""
        if self.is_due:
            self._begin(lightly=True)

    def notes(self, run: _Run | None = None) -> tuple[str, ...]:
        """What is to be said about answers that are given now."""
        run = run or self._run
        if run is None:
            return ()
        if not run.is_done:
            return (f"the index is being brought up ({self._state.told}); this answer is from what is there so far",)
        return (run.problem,) if run.problem else ()

    def index(self, watch: Callable[[IndexState], None] | None = None) -> IndexReport:
        """Bring the index up to the folder as it is now, however long that takes."""
        asked = monotonic()
        while True:
            run = self._begin(lightly=False)
            if run is None:
                raise IndexBusy(str(self._engine.root), " (which is about to end)")
            self._await(run, float("inf"), watch)
            # A run that had begun before may have missed what was written since, and a light one is not thorough.
            if run.began >= asked and not run.is_light:
                break
        if run.error is not None:
            raise run.error
        assert run.report is not None
        return run.report

    def close(self) -> None:
        """Stop a run that is under way; what it has committed stays."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    # -- the run

    def _begin(self, *, lightly: bool) -> _Run | None:
        """The run that is under way, or a new one; a light one does nothing where nothing has changed."""
        with self._changed:
            if self._run is not None and not self._run.is_done:
                return self._run
            if self._stopping.is_set():
                return None
            run = _Run(monotonic(), lightly)
            thread = Thread(target=self._work, args=(run,), name="satchel-index", daemon=True)
            thread.start()
            self._run, self._thread = run, thread
            self._state = IndexState(running=True, doing="looking", runs=self._state.runs)
            return run

    def _work(self, run: _Run) -> None:
        with self._changed:
            """Whoever began it has told that it runs."""
        try:
            run.report = self._when_free(run)
        except IndexBusy as error:
            run.error = error
            run.problem = "another process is indexing; this answer is from what is there"
        except _Stopped:
            run.error = IndexBusy(str(self._engine.root), " (which was told to stop)")
            run.problem = "the index run was stopped"
        except SatchelError as error:
            run.error = error
            run.problem = f"the index could not be brought up: {error}"
        except BaseException as error:
            run.error = error
            run.problem = f"the index could not be brought up ({type(error).__name__})"
            _log.error("an index run failed: %s", type(error).__name__)
        finally:
            self._looked = monotonic()
            with self._changed:
                run.is_done = True
                self._state = IndexState(runs=self._state.runs + 1, problem=run.problem)
                self._changed.notify_all()

    def _when_free(self, run: _Run) -> IndexReport:
        """Do it once nobody else writes; edits of this very process are short."""
        end = monotonic() + self.waits
        while True:
            try:
                return self._brought_up(run.is_light)
            except IndexBusy:
                if monotonic() >= end or self._stopping.wait(_POLL_S):
                    raise

    def _brought_up(self, lightly: bool) -> IndexReport:
        engine = self._engine
        for source in engine.workspace.changed_sources():
            try:
                engine.workspace.import_from(source)
            except InvalidInput as error:
                _log.warning("a source has changed and was not imported again: %s", type(error).__name__)
        changes = engine.changes() if lightly else None
        if changes is not None and engine.is_up(changes):
            from satchel.indexing.indexer import IndexReport

            return IndexReport(found=changes.found, generation=engine.store.generation)
        told = 0.0

        def watch(step: Step) -> None:
            nonlocal told
            if self._stopping.is_set():
                raise _Stopped
            now = monotonic()
            if now - told >= _TELL_EVERY_S or step.doing != self._state.doing:
                told = now
                state = IndexState(running=True, doing=step.doing, done=step.done, of=step.of, runs=self._state.runs)
                with self._changed:
                    self._state = state
                    self._changed.notify_all()

        return engine.index(watch, changes=changes)

    def _await(self, run: _Run | None, until: float, watch: Callable[[IndexState], None] | None) -> None:
        """Wait for the end of a run, or of patience, telling how far it is."""
        if run is None:
            return
        seen: IndexState | None = None
        while True:
            with self._changed:
                while self._state is seen and not run.is_done:
                    left = until - monotonic()
                    if left <= 0:
                        return
                    self._changed.wait(min(left, 1.0))
                seen, is_done = self._state, run.is_done
            if watch is not None:
                watch(seen)
            if is_done or monotonic() >= until:
                return
