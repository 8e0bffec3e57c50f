"""Carrying everything that one store keeps to another: in small commits, each of which is kept if we are stopped.

Nothing is open in the target that is closed in the source. Who is in which group goes first; each file and block comes
with the very list of those who may read it; and until the end, what nothing was said about is nobody's. A store that is
not complete says so (the fact `moving`), and is not taken for one that is.

A move that was stopped is simply begun again: what is there already is passed over. The source may change meanwhile.
What has changed is carried again until both hold the same, which is found out by counting and hashing all of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import IndexBusy, InvalidOption, MoveUnfinished, StoresDiffer
from satchel.models.access import DefaultAccess
from satchel.ports.transfer import MOVING, RowKind, StoredFile
from satchel.storage.migration.comparison import (
    Tallied,
    Tally,
    Watcher,
    content_of,
    differing_question,
    first_difference,
    line,
    standing_line,
    tally,
)
from satchel.storage.sql.rows import path_bytes

if TYPE_CHECKING:
    from satchel.ports.store import Store

_FILES_AT_ONCE: Final = 500
_PATHS_AT_ONCE: Final = 5_000
_ROWS_AT_ONCE: Final = 10_000
_ROUNDS: Final = 5
_PATIENCE_S: Final = 10.0
_RIGHTS: Final = (RowKind.MEMBERS, RowKind.GRANTS)
_REST: Final = (RowKind.LINKS, RowKind.ACTIVITY, RowKind.COMMITS)


class Side(NamedTuple):
    """A store, and what it is called."""

    store: Store
    name: str

    def refuse_unfinished(self) -> None:
        """Raise MoveUnfinished for a store that is still being filled from another."""
        begun = self.store.fact(MOVING)
        if begun is not None:
            raise MoveUnfinished(self.name, str(begun))


@dataclass(slots=True)
class MoveReport:
    """What was moved, and what both stores hold now, kind by kind."""

    source: str
    target: str
    held: dict[str, Tallied] = field(default_factory=dict)
    put: int = 0
    """Files and blocks that were put."""
    amended: int = 0
    """Those of which only the readers, the time or the place were changed."""
    passed: int = 0
    """Those that were there already."""
    dropped: int = 0
    """Those that the source no longer had."""
    rounds: int = 0
    questions: int = 0
    """How many questions both answer alike."""
    seconds: float = 0.0


def _unwatched(_doing: str, _done: int, _of: int) -> None:
    """Report progress to nobody."""


def move(source: Side, target: Side, watch: Watcher = _unwatched) -> MoveReport:
    """Bring everything that the source keeps to the target, and make sure that it is there."""
    started = time.perf_counter()
    moving = _Move(source, target, watch, MoveReport(source.name, target.name))
    # A process that was killed a moment ago may still seem to be at work to its database.
    with target.store.lock(wait=_PATIENCE_S):
        moving.run()
    moving.report.seconds = time.perf_counter() - started
    return moving.report


def verify(source: Side, target: Side, watch: Watcher = _unwatched) -> MoveReport:
    """Make sure that the target holds what the source holds; whatever differs raises StoresDiffer."""
    started = time.perf_counter()
    source.refuse_unfinished()
    target.refuse_unfinished()
    ours, theirs = tally(source.store, watch, "counting the source"), tally(target.store, watch, "counting the target")
    differences = ours.differences(theirs)
    if differences:
        raise _differ(source, target, differences)
    questions = _ask_both(source, target, ours)
    return MoveReport(source.name, target.name, ours.kinds, questions=questions, seconds=time.perf_counter() - started)


@dataclass(slots=True)
class _Move:
    source: Side
    target: Side
    watch: Watcher
    report: MoveReport

    def run(self) -> None:
        self._refuse()
        with self.target.store.write() as writer:
            writer.blocks.set_default(DefaultAccess.DENY)
            writer.transfer.set_facts({MOVING: self.source.name})
        held = self._carried()
        with self.target.store.write() as writer:
            writer.blocks.set_default(held.policy)
            writer.transfer.set_facts({MOVING: None})
        self.target.store.catch_up()
        self.report.held = held.kinds

    def _refuse(self) -> None:
        """Refuse a source or a target that must not be used."""
        self.source.refuse_unfinished()
        store, name = self.target
        begun = store.fact(MOVING)
        if name == self.source.name:
            problem = "is the source itself; name another place"
        elif begun is not None and begun != self.source.name:
            problem = (
                f"holds a part of {begun!r}, from which it is being filled; finish that move, choose "
                "another place, or remove what is there with `satchel clear`"
            )
        elif begun is None and not _is_empty(store):
            problem = (
                "already holds something; choose a place that is empty (another folder, or another "
                "workspace=… in the database), or remove what is there with `satchel clear`. Whether it holds the "
                "same as the source is found out with --verify-only"
            )
        else:
            return
        raise InvalidOption("target", name, problem)

    def _carried(self) -> Tally:
        """Carry until both hold the same; what they hold."""
        before: Tally | None = None
        for _ in range(_ROUNDS):
            self.report.rounds += 1
            self._carry()
            ours = tally(self.source.store, self.watch, "counting the source")
            theirs = tally(self.target.store, self.watch, "counting the target")
            differences = ours.differences(theirs, policy_too=False)
            if not differences and self._answers(ours):
                return ours
            if differences and before is not None and not before.differences(ours):
                # It stood still for a whole round, and yet they are not the same.
                raise _differ(self.source, self.target, differences)
            before = ours
        raise IndexBusy(self.source.name, "")

    def _answers(self, held: Tally) -> bool:
        """True if both answer alike; False if the source was changed since it was counted."""
        self.watch("arranging", 0, 0)
        self.target.store.catch_up()
        self.target.store.tidy()
        try:
            self.report.questions = _ask_both(self.source, self.target, held)
        except StoresDiffer:
            if self.source.store.generation == held.generation:
                raise
            return False
        return True

    # -- one round

    def _carry(self) -> None:
        self._carry_facts()
        for kind in _RIGHTS:
            self._carry_rows(kind)
        self._drop_what_is_gone()
        self._carry_files()
        for kind in _REST:
            self._carry_rows(kind)

    def _carry_facts(self) -> None:
        ours, theirs = self.source.store.transfer.facts(), self.target.store.transfer.facts()
        changed = {name: value for name, value in ours.items() if theirs.get(name) != value}
        with self.target.store.write() as writer:
            writer.transfer.set_facts({**dict.fromkeys(theirs.keys() - ours.keys()), **changed})

    def _carry_files(self) -> None:
        store = self.source.store
        after = done = 0
        total = store.transfer.count()
        while True:
            with store.snapshot():
                batch = store.transfer.files(after=after, limit=_FILES_AT_ONCE)
                vectors = store.transfer.vectors(key for stored in batch for key in stored.hashes)
            if not batch:
                return
            self._put(batch, vectors)
            after, done = batch[-1].number, done + len(batch)
            self.watch("moving", done, max(done, total))

    def _put(self, batch: list[StoredFile], vectors: dict[bytes, bytes]) -> None:
        reader = self.target.store.transfer
        there = reader.files_at([stored.path for stored in batch])
        known = reader.vectors(key for stored in there.values() for key in stored.hashes)
        new, amended = [], []
        for stored in batch:
            other = there.get(stored.path)
            if other is None or content_of(stored, vectors) != content_of(other, known):
                new.append(stored)
            elif standing_line(stored) != standing_line(other):
                amended.append(stored)
        if new or amended:
            keys = {key for stored in new for key in stored.hashes}
            with self.target.store.write() as writer:
                writer.transfer.put(new, {key: vectors[key] for key in keys & vectors.keys()})
                for stored in amended:
                    writer.transfer.amend(stored)
        self.report.put += len(new)
        self.report.amended += len(amended)
        if self.report.rounds == 1:
            self.report.passed += len(batch) - len(new) - len(amended)

    def _drop_what_is_gone(self) -> None:
        with self.source.store.snapshot():
            gone = self._gone()
            while batch := list(islice(gone, _FILES_AT_ONCE)):
                with self.target.store.write() as writer:
                    writer.transfer.drop(batch)
                self.report.dropped += len(batch)

    def _gone(self) -> Iterator[str]:
        """The paths that only the target has."""
        there = _paths(self.source.store)
        ours = next(there, None)
        for path in _paths(self.target.store):
            while ours is not None and path_bytes(ours) < path_bytes(path):
                ours = next(there, None)
            if ours != path:
                yield path

    def _carry_rows(self, kind: RowKind) -> None:
        """Put the rows that are lacking after those that are there; if those are others, put all of them anew."""
        self.watch(f"moving {kind.value}", 0, 0)
        with self.source.store.snapshot():
            rows = self.source.store.transfer.rows(kind)
            is_beginning = all(line(row) == line(next(rows, None)) for row in self.target.store.transfer.rows(kind))
            if not is_beginning:
                rows = self.source.store.transfer.rows(kind)
            # One commit for members and grants: with half of them, somebody might not be kept out.
            following = None if kind in _RIGHTS else _ROWS_AT_ONCE - 1
            while (first := next(rows, None)) is not None or not is_beginning:
                with self.target.store.write() as writer:
                    if not is_beginning:
                        writer.transfer.clear_rows(kind)
                    if first is not None:
                        writer.transfer.put_rows(kind, chain((first,), islice(rows, following)))
                is_beginning = True


def _paths(store: Store) -> Iterator[str]:
    after = ""
    while batch := store.transfer.paths(after=after, limit=_PATHS_AT_ONCE):
        yield from batch
        after = batch[-1]


def _is_empty(store: Store) -> bool:
    return not store.transfer.count() and all(next(store.transfer.rows(kind), None) is None for kind in RowKind)


def _differ(source: Side, target: Side, differences: list[str]) -> StoresDiffer:
    path = first_difference(source.store, target.store)
    return StoresDiffer(target.name, source.name, [*differences, *([] if path is None else [f"first at {path!r}"])])


def _ask_both(source: Side, target: Side, held: Tally) -> int:
    """Ask both the same questions; how many. A store whose search lags behind what it holds is not asked."""
    if source.store.facts().behind or target.store.facts().behind:
        return 0
    name = differing_question(source.store, target.store, held)
    if name is not None:
        raise StoresDiffer(target.name, source.name, [f"they answer otherwise when asked about {name!r}"])
    return len(held.samples)
