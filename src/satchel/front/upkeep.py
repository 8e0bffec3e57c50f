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
    from satchel.engine import ContextEngine
    from satchel.ingest.indexer import IndexReport, Step

_log: Final = logging.getLogger(__name__)
_TELL_EVERY_S: Final = 0.05


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


class Upkeep:
    """The index runs of an engine. `every` seconds at most the folder is looked at for changes (0: each time)."""

    def __init__(self, engine: ContextEngine, *, every: float = 0.0) -> None:
        self._engine = engine
        self._every = every
        self._changed = Condition()
        self._state = IndexState()
        self._report: IndexReport | None = None
        self._error: BaseException | None = None
        self._thread: Thread | None = None
        self._looked = -float("inf")
        self._stopping = Event()

    @property
    def state(self) -> IndexState:
        """How far it is."""
        return self._state

    def bring_up(self, *, wait: float, watch: Callable[[IndexState], None] | None = None) -> tuple[str, ...]:
        """Look for changes and read them, waiting so long at most; what there is to say about it."""
        if self._every and monotonic() - self._looked < self._every and not self._state.running:
            return ()
        self._start(lightly=True)
        state = self._await(monotonic() + wait, watch)
        if state.running:
            return (f"the index is being brought up ({state.told}); this answer is from what is there so far",)
        return (state.problem,) if state.problem else ()

    def look_soon(self) -> None:
        """Look for changes in the background, if that was not done just now."""
        if monotonic() - self._looked >= self._every:
            self._start(lightly=True)

    def index(self, watch: Callable[[IndexState], None] | None = None) -> IndexReport:
        """Bring the index up to the folder as it is now, however long that takes."""
        while not self._start(lightly=False):
            if self._stopping.is_set():
                raise IndexBusy(str(self._engine.root), " (which is about to end)")
            # A run that had begun before may have missed what was written since.
            self._await(float("inf"), watch)
        self._await(float("inf"), watch)
        if self._error is not None:
            raise self._error
        assert self._report is not None
        return self._report

    def close(self) -> None:
        """Stop a run that is under way; what it has committed stays."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    # -- the run

    def _start(self, *, lightly: bool) -> bool:
        """Begin a run, if there is none; a light one does nothing where nothing has changed."""
        with self._changed:
            if self._state.running or self._stopping.is_set():
                return False
            self._state = IndexState(running=True, doing="looking", runs=self._state.runs)
            self._report, self._error = None, None
            self._thread = Thread(target=self._run, args=(lightly,), name="satchel-index", daemon=True)
            self._thread.start()
            return True

    def _run(self, lightly: bool) -> None:
        problem = ""
        try:
            self._report = self._brought_up(lightly)
        except IndexBusy as error:
            self._error = error
            problem = "another process is indexing; this answer is from what is there"
        except _Stopped:
            self._error = IndexBusy(str(self._engine.root), " (which was told to stop)")
            problem = "the index run was stopped"
        except SatchelError as error:
            self._error = error
            problem = f"the index could not be brought up: {error}"
        except BaseException as error:
            self._error = error
            problem = f"the index could not be brought up ({type(error).__name__})"
            _log.exception("an index run failed")
        finally:
            self._looked = monotonic()
            self._tell(IndexState(runs=self._state.runs + 1, problem=problem))

    def _brought_up(self, lightly: bool) -> IndexReport:
        engine = self._engine
        for source in engine.workspace.changed_sources():
            try:
                engine.workspace.import_from(source)
            except InvalidInput as error:
                _log.warning("a source has changed and was not imported again: %s", type(error).__name__)
        changes = engine.changes() if lightly else None
        facts = engine.status()
        if changes is not None and not changes.to_look_at and not facts.behind and facts.generation:
            from satchel.ingest.indexer import IndexReport

            return IndexReport(found=changes.found, generation=facts.generation)
        told = 0.0

        def watch(step: Step) -> None:
            nonlocal told
            if self._stopping.is_set():
                raise _Stopped
            now = monotonic()
            if now - told >= _TELL_EVERY_S or step.doing != self._state.doing:
                told = now
                runs = self._state.runs
                self._tell(IndexState(running=True, doing=step.doing, done=step.done, of=step.of, runs=runs))

        return engine.index(watch, changes=changes)

    def _tell(self, state: IndexState) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()

    def _await(self, until: float, watch: Callable[[IndexState], None] | None) -> IndexState:
        """Wait for the end of the run, telling how far it is; the state when it ended or patience did."""
        seen = self._state
        while True:
            if watch is not None:
                watch(seen)
            with self._changed:
                while self._state is seen and seen.running:
                    left = until - monotonic()
                    if left <= 0:
                        return seen
                    self._changed.wait(min(left, 1.0))
                seen = self._state
            if not seen.running:
                if watch is not None:
                    watch(seen)
                return seen
            if monotonic() >= until:
                return seen
