"""The first index run of a folder: what can be searched while it goes on, and how far it is."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from satchel.ports.store import Store

_FACT: Final = "first run"
"""Key of the fact in the store; empty or missing once the index is complete."""
FIRST_BATCH_FILES: Final = 200  # about a second of work; fewer would rarely have the answer
FIRST_BATCH_SECONDS: Final = 1.0  # also where the first files are slow to read


class FirstRun(NamedTuple):
    """How far the first index run is: the files that can be searched, of how many, and the files read per second."""

    done: int
    of: int
    per_second: float

    @property
    def seconds_left(self) -> float:
        """The estimated time to the complete index, from the rate so far."""
        return (self.of - self.done) / self.per_second if self.per_second > 0 else math.inf

    @property
    def whole_seconds_left(self) -> int | None:
        """The estimated time in whole seconds; None if unknown."""
        return math.ceil(self.seconds_left) if self.seconds_left < math.inf else None

    @property
    def summary(self) -> str:
        """How much can be searched, in words."""
        return f"{self.done:,} of {self.of:,} files are indexed"


def first_run_of(store: Store) -> FirstRun | None:
    """How far the first run of a store is, in whatever process; None if the index is complete, or not begun."""
    stored = store.fact(_FACT)
    return FirstRun(*json.loads(stored)) if stored else None


@dataclass
class FirstRunLayout:
    """Makes the committed files of a first run searchable, after a first small batch and whenever they have doubled."""

    store: Store
    already: int
    """Files that need no reading: an interrupted run goes on."""
    of: int
    _laid_out: int = 0
    _begun: float = field(default_factory=time.monotonic)

    @classmethod
    def begun(cls, store: Store, found: int, to_read: int) -> FirstRunLayout | None:
        """The layout of a run that reads `to_read` of the found files; None if the store had a complete index."""
        # A grant raises the generation, too.
        is_complete = bool(store.files()) and first_run_of(store) is None
        return None if is_complete else cls(store, found - to_read, found)

    def batch_limits(self, done: int) -> tuple[int, float]:
        """How many files the next batch may have after `done` files, and how many seconds it may take."""
        return max(FIRST_BATCH_FILES, done), max(FIRST_BATCH_SECONDS, time.monotonic() - self._begun)

    def committed(self, done: int) -> None:
        """Lay out the committed files if they have doubled, so that each is merged a few times only."""
        if done < 2 * self._laid_out:
            return
        self.store.catch_up(partly=True)
        self._laid_out = done
        rate = done / max(time.monotonic() - self._begun, 1e-3)
        self._put(json.dumps(FirstRun(self.already + done, self.of, round(rate, 1))))

    def finish(self) -> None:
        """Note that the index is complete."""
        if first_run_of(self.store):
            self._put("")

    def _put(self, value: str) -> None:
        with self.store.write() as writer:
            writer.set_fact(_FACT, value)
