"""What somebody may see of a workspace, as columns: put together from chunks, and kept until the next commit.

Chunks never change, so they are kept by their numbers; which of them a user may use is what the database says in the
very transaction in which they are used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from satchel.storage.postgres.derived import COLUMNS, NEAREST, unpacked
from satchel.storage.sql import file_reader as selecting
from satchel.storage.sql.file_writer import file_centrality
from satchel.storage.sql.rows import batches, filter_by_lists
from satchel.storage.sql.scoring import PIECE_FIELDS, Columns, Postings, View, among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satchel.models.search import Filters
    from satchel.storage.postgres.connections import Visit
    from satchel.storage.postgres.database import PostgresDatabase

_MOST_BYTES: Final = 256 << 20
_MOST_VIEWS: Final = 64
_FETCHED_AT_ONCE: Final = 200
_PER_PIECE: Final = 48

ChunkKey = tuple[int, int]
"""A segment and an access list."""


class StaleView(Exception):
    """The view is not of the generation that was found."""


@dataclass(eq=False, kw_only=True)
class Seen:
    """What may be seen, to ask and to weigh answers with."""

    columns: Columns
    starts: dict[ChunkKey, tuple[int, int]]
    view: View
    condition: str
    is_narrowed: bool
    dimensions: int
    indexed_pieces: int
    central: dict[int, float]

    def __post_init__(self) -> None:
        live = self.view.seen if self.view.pieces is None else self.view.seen & self.view.pieces
        live_places = np.flatnonzero(live)
        ids = self.columns.piece_ids[live_places]
        order = np.argsort(ids, kind="stable")
        self._ids, self._places = ids[order], live_places[order]
        self.visible_pieces = len(ids)
        self.chosen_pieces: NDArray[np.int64] | None = self._ids if self.is_narrowed else None

    @property
    def bytes(self) -> int:
        """About how much room it takes."""
        return _PER_PIECE * (len(self.columns.piece_ids) + len(self.columns.files))

    def places_of(self, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where pieces stand in the columns; -1 for what is not there."""
        if not len(self._ids) or not len(pieces):
            return np.full(len(pieces), -1, np.int64)
        at = np.minimum(np.searchsorted(self._ids, pieces), len(self._ids) - 1)
        return np.where(self._ids[at] == pieces, self._places[at], -1)

    def pieces_of_files(self, files: Iterable[int]) -> NDArray[np.int64]:
        """The pieces of these files that may be seen."""
        wanted = among(self.columns.files, list(files))[self.columns.piece_files] & self.view.seen
        return np.asarray(self.columns.piece_ids[wanted])

    def located(self, rows: Sequence[Sequence[Any]]) -> dict[tuple[int, int], Postings]:
        """The inverted lists of each field and term, with the documents' places in the columns."""
        by_term: dict[tuple[int, int], list[tuple[int, bytes, bytes]]] = {}
        for field, term, segment, access, documents, counts in rows:
            start = self.starts.get((segment, access))
            if start is None:
                continue  # of a list that the first lock keeps out
            by_term.setdefault((field, term), []).append((start[field >= len(PIECE_FIELDS)], documents, counts))
        return {key: _joined(parts) for key, parts in by_term.items()}


def _joined(parts: list[tuple[int, bytes, bytes]]) -> Postings:
    parts.sort(key=lambda part: part[0])
    documents = np.frombuffer(b"".join(part[1] for part in parts), "<u4")
    counts = np.frombuffer(b"".join(part[2] for part in parts), np.uint8)
    starts = np.repeat(np.array([part[0] for part in parts], np.uint32), [len(part[2]) for part in parts])
    return Postings(documents + starts, counts)


class _Base(NamedTuple):
    """All chunks that may be seen, as one; what is dead among them is masked."""

    columns: Columns
    starts: dict[ChunkKey, tuple[int, int]]
    alive: NDArray[np.bool_]


class Views:
    """The views of one workspace."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._chunks: OrderedDict[ChunkKey, dict[str, NDArray[Any]]] = OrderedDict()
        self._chunk_bytes = 0
        self._seen: OrderedDict[tuple[Any, ...], Seen] = OrderedDict()
        self._generation = -1

    def forget(self, generation: int) -> None:
        """Drop what was seen before a commit."""
        with self._lock:
            if generation > self._generation:
                self._generation = generation
                self._seen.clear()

    def known(self, key: tuple[Any, ...]) -> Seen | None:
        """A view that was made before."""
        with self._lock:
            found = self._seen.get(key)
            if found is not None:
                self._seen.move_to_end(key)
            return found

    def of(self, visit: Visit, filters: Filters, allowed: frozenset[int] | None) -> Seen:
        """What may be seen in a transaction."""
        key = view_key(visit.entered.generation, visit.entered.lists, filters)
        found = self.known(key)
        if found is None:
            found = self._make(visit, filters, allowed)
            # The time of a file may change without anything else changing.
            if not visit.is_writing and filters.modified_after is None and filters.modified_before is None:
                self._keep(key, found)
        return found

    def _keep(self, key: tuple[Any, ...], seen: Seen) -> None:
        with self._lock:
            if key[0] < self._generation:
                return
            self._generation = key[0]
            for old in [one for one in self._seen if one[0] < key[0]]:
                del self._seen[old]
            self._seen[key] = seen
            while len(self._seen) > 1 and (
                len(self._seen) > _MOST_VIEWS or sum(one.bytes for one in self._seen.values()) > _MOST_BYTES
            ):
                self._seen.popitem(last=False)

    def _make(self, visit: Visit, filters: Filters, allowed: frozenset[int] | None) -> Seen:
        db = visit.database
        base = self._base(db, allowed)
        visible = base.alive
        files = selecting.allowed_files(db, filters)
        if files is not None:
            visible = visible & among(base.columns.files, files)
        pieces = None
        if filters.types:
            pieces = among(base.columns.piece_ids, selecting.pieces_of_types(db, filters.types))
        dimensions = int(db.fact(NEAREST) or 0)
        # How much a file is used is counted over everybody's files.
        central = file_centrality(db) if filters.readers is None else {}
        return Seen(
            columns=base.columns,
            starts=base.starts,
            view=View(base.columns, visible, pieces),
            condition=filter_by_lists(allowed).condition,
            is_narrowed=files is not None or pieces is not None,
            dimensions=dimensions,
            indexed_pieces=_indexed(db, dimensions),
            central=central,
        )

    def _base(self, db: PostgresDatabase, allowed: frozenset[int] | None) -> _Base:
        every = "SELECT segment, access, files, pieces FROM chunk WHERE workspace = ? ORDER BY segment, access"
        rows = [row for row in db.execute(every, (db.workspace,)) if allowed is None or row[1] in allowed]
        parts = self._columns(db, [(row[0], row[1]) for row in rows])
        starts: dict[ChunkKey, tuple[int, int]] = {}
        files = pieces = 0
        for segment, access, file_count, piece_count in rows:
            starts[segment, access] = (pieces, files)
            files, pieces = files + file_count, pieces + piece_count
        columns = Columns(_concatenated(parts, [start[1] for start in starts.values()]))
        alive = np.ones(len(columns.files), bool)
        dead: dict[int, list[int]] = {}
        for segment, file in db.execute("SELECT segment, file FROM dead WHERE workspace = ?", (db.workspace,)):
            dead.setdefault(segment, []).append(file)
        for (segment, _), start, part in zip(starts, starts.values(), parts, strict=True):
            if segment in dead:
                count = len(part["files"])
                alive[start[1] : start[1] + count] = ~among(part["files"], dead[segment])
        return _Base(columns, starts, alive)

    def _columns(self, db: PostgresDatabase, keys: Sequence[ChunkKey]) -> list[dict[str, NDArray[Any]]]:
        """The columns of chunks, those that are not known from the database."""
        with self._lock:
            known = {key: self._chunks[key] for key in keys if key in self._chunks}
            for key in known:
                self._chunks.move_to_end(key)
        missing = [key for key in keys if key not in known]
        for some in batches(missing, _FETCHED_AT_ONCE):
            marks = ",".join(f"({segment},{access})" for segment, access in some)
            wanted = (
                f"SELECT segment, access, columns FROM chunk WHERE workspace = ? AND (segment, access) IN ({marks})"
            )
            for segment, access, data in db.execute(wanted, (db.workspace,)):
                known[segment, access] = unpacked(data)
        with self._lock:
            for key in missing:
                if key in known and key not in self._chunks:
                    self._chunks[key] = known[key]
                    self._chunk_bytes += _bytes(known[key])
            while self._chunk_bytes > _MOST_BYTES and len(self._chunks) > 1:
                self._chunk_bytes -= _bytes(self._chunks.popitem(last=False)[1])
        return [known[key] for key in keys]


def view_key(generation: int, lists: tuple[int, ...], filters: Filters) -> tuple[Any, ...]:
    """What tells one view from another: owners see how much files are used, users do not."""
    return generation, lists, filters.readers is None, replace(filters, readers=None)


def _bytes(arrays: dict[str, NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _concatenated(parts: Sequence[dict[str, NDArray[Any]]], file_starts: Sequence[int]) -> dict[str, NDArray[Any]]:
    if not parts:
        return {name: np.empty(0, kind) for name, kind, _ in COLUMNS}
    arrays = {name: np.concatenate([part[name] for part in parts]) for name, *_ in COLUMNS}
    shift = np.repeat(np.array(file_starts, np.uint32), [len(part["piece_ids"]) for part in parts])
    arrays["piece_files"] = arrays["piece_files"] + shift
    return arrays


def _indexed(db: PostgresDatabase, dimensions: int) -> int:
    """About how many vectors are in the index of near ones, of all workspaces."""
    if not dimensions:
        return 0
    name = f"satchel.dense_nearest_{dimensions}"
    row = db.connection.execute("SELECT reltuples FROM pg_class WHERE oid = to_regclass(%s)", (name,)).fetchone()
    return max(int(row[0]) if row else 0, int(db.fact("pieces") or 0))
