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
from satchel.ports.transfer import MOVING, RowKind, StoredFile, TransferRow
from satchel.storage.migration.compare_search import answered_otherwise
from satchel.storage.migration.tally import (
    Tallied,
    Tally,
    Watcher,
    content_of,
    first_difference,
    path_order,
    row_line,
    standing_line,
    tally,
)

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


def move(source: Side, target: Side, watch: Watcher | None = None) -> MoveReport:
    """Bring everything that the source keeps to the target, and make sure that it is there."""
    return _Move(source, target, watch or _nobody).run()


def verify(source: Side, target: Side, watch: Watcher | None = None) -> MoveReport:
    """Make sure that the target holds what the source holds; whatever differs raises StoresDiffer."""
    started = time.perf_counter()
    _refuse_unfinished(source)
    _refuse_unfinished(target)
    watch = watch or _nobody
    ours, theirs = tally(source.store, watch, "counting the source"), tally(target.store, watch, "counting the target")
    told = ours.differences(theirs)
    if told:
        raise _differ(source, target, told)
    questions = _asked(source, target, ours)
    return MoveReport(source.name, target.name, ours.kinds, questions=questions, seconds=time.perf_counter() - started)


class _Move:
    def __init__(self, source: Side, target: Side, watch: Watcher) -> None:
        self._source = source
        self._target = target
        self._from = source.store
        self._to = target.store
        self._watch = watch
        self._report = MoveReport(source.name, target.name)

    def run(self) -> MoveReport:
        started = time.perf_counter()
        # One that was killed a moment ago may still seem to be at work to its database.
        with self._to.lock(wait=_PATIENCE_S):
            self._refuse()
            self._begin()
            held = self._carried()
            self._finish(held)
        self._report.held = held.kinds
        self._report.seconds = time.perf_counter() - started
        return self._report

    # -- the beginning and the end

    def _refuse(self) -> None:
        _refuse_unfinished(self._source)
        name = self._target.name
        if name == self._source.name:
            raise InvalidOption("target", name, "is the source itself; name another place")
        begun = self._to.fact(MOVING)
        if begun is not None and begun != self._source.name:
            problem = (
                f"holds a part of {begun!r}, from which it is being filled; finish that move, choose "
                "another place, or remove what is there with `satchel clear`"
            )
            raise InvalidOption("target", name, problem)
        if begun is None and not _is_empty(self._to):
            problem = (
                "already holds something; choose a place that is empty (another folder, or another "
                "workspace=… in the database), or remove what is there with `satchel clear`. Whether it holds the "
                "same as the source is found out with --verify-only"
            )
            raise InvalidOption("target", name, problem)

    def _begin(self) -> None:
        with self._to.write() as writer:
            writer.blocks.set_default(DefaultAccess.DENY)
            writer.transfer.set_facts({MOVING: self._source.name})

    def _carried(self) -> Tally:
        """Carry until both hold the same; what they hold."""
        before: Tally | None = None
        for _ in range(_ROUNDS):
            self._report.rounds += 1
            self._carry()
            ours = tally(self._from, self._watch, "counting the source")
            told = ours.differences(tally(self._to, self._watch, "counting the target"), policy_too=False)
            if not told and self._answers(ours):
                return ours
            if told and before is not None and not before.differences(ours):
                # It stood still for a whole round, and yet they are not the same.
                raise _differ(self._source, self._target, told)
            before = ours
        raise IndexBusy(self._source.name, "")

    def _answers(self, held: Tally) -> bool:
        """Whether both answer alike; not, if the source was changed since it was counted."""
        self._watch("arranging", 0, 0)
        self._to.catch_up()
        self._to.tidy()
        try:
            self._report.questions = _asked(self._source, self._target, held)
        except StoresDiffer:
            if self._from.generation == held.generation:
                raise
            return False
        return True

    def _finish(self, held: Tally) -> None:
        with self._to.write() as writer:
            writer.blocks.set_default(held.policy)
            writer.transfer.set_facts({MOVING: None})
        self._to.catch_up()

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
        ours, theirs = self._from.transfer.facts(), self._to.transfer.facts()
        changed = {name: value for name, value in ours.items() if theirs.get(name) != value}
        with self._to.write() as writer:
            writer.transfer.set_facts({**dict.fromkeys(theirs.keys() - ours.keys()), **changed})

    def _carry_files(self) -> None:
        after = done = 0
        total = self._from.transfer.count()
        while True:
            with self._from.snapshot():
                some = self._from.transfer.files(after=after, limit=_FILES_AT_ONCE)
                vectors = self._from.transfer.vectors(key for one in some for key in one.hashes)
            if not some:
                return
            self._take(some, vectors)
            after, done = some[-1].number, done + len(some)
            self._watch("moving", done, max(done, total))

    def _take(self, some: list[StoredFile], vectors: dict[bytes, bytes]) -> None:
        there = self._to.transfer.files_at([one.path for one in some])
        known = self._to.transfer.vectors(key for one in there.values() for key in one.hashes)
        new, amended = [], []
        for one in some:
            other = there.get(one.path)
            if other is None or content_of(one, vectors) != content_of(other, known):
                new.append(one)
            elif standing_line(one) != standing_line(other):
                amended.append(one)
        if new or amended:
            wanted = {key for one in new for key in one.hashes}
            with self._to.write() as writer:
                writer.transfer.put(new, {key: vector for key, vector in vectors.items() if key in wanted})
                for one in amended:
                    writer.transfer.amend(one)
        self._report.put += len(new)
        self._report.amended += len(amended)
        if self._report.rounds == 1:
            self._report.passed += len(some) - len(new) - len(amended)

    def _drop_what_is_gone(self) -> None:
        with self._from.snapshot():
            gone = self._gone()
            while some := list(islice(gone, _FILES_AT_ONCE)):
                with self._to.write() as writer:
                    writer.transfer.drop(some)
                self._report.dropped += len(some)

    def _gone(self) -> Iterator[str]:
        """The paths that only the target has."""
        held = _paths(self._from)
        ours = next(held, None)
        for path in _paths(self._to):
            while ours is not None and path_order(ours) < path_order(path):
                ours = next(held, None)
            if ours != path:
                yield path

    def _carry_rows(self, kind: RowKind) -> None:
        """Put after those that are there what is still lacking; if those are others, put all of them anew."""
        self._watch(f"moving {kind.value}", 0, 0)
        with self._from.snapshot():
            ours, theirs = self._from.transfer.rows(kind), self._to.transfer.rows(kind)
            for row in ours:
                other = next(theirs, None)
                if other is None:
                    self._append(kind, chain((row,), ours))
                    return
                if row_line(row) != row_line(other):
                    self._replace(kind)
                    return
            if next(theirs, None) is not None:
                self._replace(kind)

    def _append(self, kind: RowKind, rows: Iterator[TransferRow]) -> None:
        # One commit for those who are in groups: with half of them, somebody might not be kept out.
        following = None if kind in _RIGHTS else _ROWS_AT_ONCE - 1
        for first in rows:
            with self._to.write() as writer:
                writer.transfer.put_rows(kind, chain((first,), islice(rows, following)))

    def _replace(self, kind: RowKind) -> None:
        with self._to.write() as writer:
            writer.transfer.clear_rows(kind)
            writer.transfer.put_rows(kind, self._from.transfer.rows(kind))


def _paths(store: Store) -> Iterator[str]:
    after = ""
    while some := store.transfer.paths(after=after, limit=_PATHS_AT_ONCE):
        yield from some
        after = some[-1]


def _is_empty(store: Store) -> bool:
    return not store.transfer.count() and all(next(store.transfer.rows(kind), None) is None for kind in RowKind)


def _refuse_unfinished(side: Side) -> None:
    begun = side.store.fact(MOVING)
    if begun is not None:
        raise MoveUnfinished(side.name, str(begun))


def _differ(source: Side, target: Side, told: list[str]) -> StoresDiffer:
    path = first_difference(source.store, target.store)
    return StoresDiffer(target.name, source.name, [*told, *([] if path is None else [f"first at {path!r}"])])


def _asked(source: Side, target: Side, held: Tally) -> int:
    """Ask both the same questions; how many. One whose search lags behind what it holds is not asked."""
    if source.store.facts().behind or target.store.facts().behind:
        return 0
    name = answered_otherwise(source.store, target.store, held)
    if name is not None:
        raise StoresDiffer(target.name, source.name, [f"they answer otherwise when asked about {name!r}"])
    return len(held.samples)


def _nobody(_doing: str, _done: int, _of: int) -> None:
    """Nobody is watching."""
