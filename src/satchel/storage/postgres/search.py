"""Search in PostgreSQL: the evidence is fetched in a single exchange, and scored like in every store.

The database returns only rows with access for the asking user: the inverted lists of the question's words, and the
similarity of pieces to the question. Up to `EXACT_MOST` visible pieces the similarity of all is computed exactly;
above, the nearest come from the vector index, and the similarity of pieces with word matches is fetched in a second
exchange.

A user's view is assembled from chunks of columns, and cached until the next commit. Chunks never change; the database
decides in each transaction about the chunks visible to the user.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from satchel.storage.postgres.database import storable, value, with_psycopg_marks
from satchel.storage.postgres.derived import COLUMNS, FIELDS, NEAREST, signed, unpacked
from satchel.storage.sql import file_reader as selecting
from satchel.storage.sql import scoring
from satchel.storage.sql.file_writer import file_centrality
from satchel.storage.sql.rows import batches, filter_by_lists

if TYPE_CHECKING:
    import psycopg
    from numpy.typing import NDArray

    from satchel.models.search import Filters
    from satchel.ports.file_index import Candidate, StoreQuery, WordCounts
    from satchel.storage.postgres.connections import Visit
    from satchel.storage.postgres.database import Connection, PostgresDatabase


_MOST_BYTES: Final = 256 << 20  # for cached chunks, and as much again for cached views; then least recently used go
_MOST_VIEWS: Final = 64  # readers with the same access share a view; with more kinds of access, views are built again
_FETCH_BATCH_CHUNKS: Final = 200  # the keys stand in the statement's text, which stays short
_PER_PIECE: Final = 48  # bytes, estimated, for each piece and each file in a view

ChunkKey = tuple[int, int]
"""A segment and an access list."""


class StaleView(Exception):
    """The cached view is of another generation than the database."""


@dataclass(eq=False, kw_only=True)
class VisibleWorkspace:
    """The visible part of a workspace, for asking and for scoring."""

    starts: dict[ChunkKey, tuple[int, int]]
    view: scoring.View
    condition: str
    is_narrowed: bool
    dimensions: int
    indexed_pieces: int
    central: dict[int, float]

    def __post_init__(self) -> None:
        live = self.view.seen if self.view.pieces is None else self.view.seen & self.view.pieces
        live_places = np.flatnonzero(live)
        ids = self.view.segment.piece_ids[live_places]
        order = np.argsort(ids, kind="stable")
        self._ids, self._places = ids[order], live_places[order]
        self.visible_pieces = len(ids)
        self.chosen_pieces: NDArray[np.int64] | None = self._ids if self.is_narrowed else None

    @property
    def bytes(self) -> int:
        """The approximate memory of the view in bytes."""
        return _PER_PIECE * (len(self.view.segment.piece_ids) + len(self.view.segment.files))

    def places_of(self, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions of pieces in the columns; -1 for absent pieces."""
        if not len(self._ids) or not len(pieces):
            return np.full(len(pieces), -1, np.int64)
        at = np.minimum(np.searchsorted(self._ids, pieces), len(self._ids) - 1)
        return np.where(self._ids[at] == pieces, self._places[at], -1)

    def pieces_of_files(self, files: Iterable[int]) -> NDArray[np.int64]:
        """The visible pieces of these files."""
        columns = self.view.segment
        chosen = scoring.among(columns.files, list(files))[columns.piece_files] & self.view.seen
        return np.asarray(columns.piece_ids[chosen])

    def located(self, rows: Sequence[Sequence[Any]]) -> dict[tuple[int, int], scoring.Postings]:
        """The inverted lists by field and term, with the positions of the documents in the columns."""
        by_term: dict[tuple[int, int], list[tuple[int, bytes, bytes]]] = {}
        for field, term, segment, access, documents, counts in rows:
            start = self.starts.get((segment, access))
            if start is None:
                continue  # an access list not readable by our own check
            by_term.setdefault((field, term), []).append((start[field >= len(scoring.PIECE_FIELDS)], documents, counts))
        return {key: _joined(parts) for key, parts in by_term.items()}


def _joined(parts: list[tuple[int, bytes, bytes]]) -> scoring.Postings:
    parts.sort(key=lambda part: part[0])
    documents = np.frombuffer(b"".join(part[1] for part in parts), "<u4")
    counts = np.frombuffer(b"".join(part[2] for part in parts), np.uint8)
    starts = np.repeat(np.array([part[0] for part in parts], np.uint32), [len(part[2]) for part in parts])
    return scoring.Postings(documents + starts, counts)


class Views:
    """The cached views of a workspace."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._chunks: OrderedDict[ChunkKey, dict[str, NDArray[Any]]] = OrderedDict()
        self._chunk_bytes = 0
        self._seen: OrderedDict[tuple[Any, ...], VisibleWorkspace] = OrderedDict()
        self._generation = -1

    def known(self, key: tuple[Any, ...]) -> VisibleWorkspace | None:
        """A cached view, or None."""
        with self._lock:
            seen = self._seen.get(key)
            if seen is not None:
                self._seen.move_to_end(key)
            return seen

    def of(self, visit: Visit, filters: Filters, allowed: frozenset[int] | None) -> VisibleWorkspace:
        """The view for a transaction, from the cache or newly made."""
        key = view_key(visit.entered.generation, visit.entered.lists, filters)
        seen = self.known(key)
        if seen is None:
            seen = self._make(visit, filters, allowed)
            # A file's modification time may change without a new generation.
            if not visit.is_writing and filters.modified_after is None and filters.modified_before is None:
                self._keep(key, seen)
        return seen

    def _keep(self, key: tuple[Any, ...], seen: VisibleWorkspace) -> None:
        with self._lock:
            if key[0] < self._generation:
                return
            self._generation = key[0]
            for old in [known for known in self._seen if known[0] < key[0]]:
                del self._seen[old]
            self._seen[key] = seen
            while len(self._seen) > 1 and (
                len(self._seen) > _MOST_VIEWS or sum(seen.bytes for seen in self._seen.values()) > _MOST_BYTES
            ):
                self._seen.popitem(last=False)

    def _make(self, visit: Visit, filters: Filters, allowed: frozenset[int] | None) -> VisibleWorkspace:
        db = visit.database
        columns, starts, visible = self._base(db, allowed)
        files = selecting.allowed_files(db, filters)
        if files is not None:
            visible &= scoring.among(columns.files, files)
        pieces = None
        if filters.types:
            pieces = scoring.among(columns.piece_ids, selecting.pieces_of_types(db, filters.types))
        dimensions = int(db.fact(NEAREST) or 0)
        # Centrality is counted over all files, hidden files included: only the owner may see it.
        central = file_centrality(db) if filters.readers is None else {}
        return VisibleWorkspace(
            starts=starts,
            view=scoring.View(columns, visible, pieces),
            condition=filter_by_lists(allowed).condition,
            is_narrowed=files is not None or pieces is not None,
            dimensions=dimensions,
            indexed_pieces=_indexed(db, dimensions),
            central=central,
        )

    def _base(
        self, db: PostgresDatabase, allowed: frozenset[int] | None
    ) -> tuple[scoring.Columns, dict[ChunkKey, tuple[int, int]], NDArray[np.bool_]]:
        """All visible chunks concatenated, the start of each chunk, and a mask of the live files."""
        every = "SELECT segment, access, files, pieces FROM chunk WHERE workspace = ? ORDER BY segment, access"
        rows = [row for row in db.execute(every, (db.workspace,)) if allowed is None or row[1] in allowed]
        parts = self._columns(db, [(row[0], row[1]) for row in rows])
        starts: dict[ChunkKey, tuple[int, int]] = {}
        files = pieces = 0
        for segment, access, file_count, piece_count in rows:
            starts[segment, access] = (pieces, files)
            files, pieces = files + file_count, pieces + piece_count
        columns = scoring.Columns(_concatenated(parts, [start[1] for start in starts.values()]))
        alive = np.ones(len(columns.files), bool)
        dead: dict[int, list[int]] = {}
        for segment, file in db.execute("SELECT segment, file FROM dead WHERE workspace = ?", (db.workspace,)):
            dead.setdefault(segment, []).append(file)
        for ((segment, _), (_, first)), part in zip(starts.items(), parts, strict=True):
            if segment in dead:
                alive[first : first + len(part["files"])] = ~scoring.among(part["files"], dead[segment])
        return columns, starts, alive

    def _columns(self, db: PostgresDatabase, keys: Sequence[ChunkKey]) -> list[dict[str, NDArray[Any]]]:
        """The columns of chunks, from the cache or else from the database."""
        with self._lock:
            known = {key: self._chunks[key] for key in keys if key in self._chunks}
            for key in known:
                self._chunks.move_to_end(key)
        missing = [key for key in keys if key not in known]
        for batch in batches(missing, _FETCH_BATCH_CHUNKS):
            chunks = ",".join(f"({segment},{access})" for segment, access in batch)
            select = (
                f"SELECT segment, access, columns FROM chunk WHERE workspace = ? AND (segment, access) IN ({chunks})"
            )
            for segment, access, data in db.execute(select, (db.workspace,)):
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
    """The cache key of a view; owners see the usage counts of files, users do not."""
    return generation, lists, filters.readers is None, replace(filters, readers=None)


def _bytes(arrays: dict[str, NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _concatenated(parts: Sequence[dict[str, NDArray[Any]]], file_starts: Sequence[int]) -> dict[str, NDArray[Any]]:
    if not parts:
        return {column.name: column.shaped(np.empty(0, column.kind)) for column in COLUMNS}
    arrays = {name: np.concatenate([part[name] for part in parts]) for name, *_ in COLUMNS}
    shift = np.repeat(np.array(file_starts, np.uint32), [len(part["piece_ids"]) for part in parts])
    arrays["piece_files"] = arrays["piece_files"] + shift
    return arrays


def _indexed(db: PostgresDatabase, dimensions: int) -> int:
    """The approximate number of vectors in the vector index, of all workspaces."""
    if not dimensions:
        return 0
    name = f"satchel.dense_nearest_{dimensions}"
    rows = value(db.connection, "SELECT reltuples FROM pg_class WHERE oid = to_regclass(%s)", (name,))
    return max(int(rows or 0), int(db.fact("pieces") or 0))


EXACT_MOST: Final = 150_000
"""Up to this many visible pieces all are compared: some 80 ms at most, nothing is missed, and hidden pieces have no
effect. Through the index, 17 % of the nearest pieces were missed among many nearly equal texts (docs/scale.md)."""
_INDEX_SHARE: Final = 0.2
"""With a smaller share of the pieces visible, the index over all pieces returns mostly hidden pieces."""
_NEAREST_PIECES: Final = 400  # as many as `hnsw.ef_search`, the index's list of candidates, holds
# Times top_k: candidates with exact similarity in the second exchange, as the estimate may reorder them.
_RESCORED_FACTOR: Final = 3
# Of the least similar piece found: the rest is farther away, but not known to be unrelated.
_UNKNOWN_SIMILARITY_SHARE: Final = 0.8

_POSTINGS: Final = (
    "SELECT field, term, segment, access, documents, counts FROM posting WHERE workspace = %s AND term = ANY(%s)"
)
_ALL: Final = (
    "SELECT string_agg(int8send(piece), ''::bytea),"
    " string_agg(float4send(coalesce(vector <#> %s::text::halfvec, 0)::real), ''::bytea)"
    " FROM dense WHERE workspace = %s"
)
_NEAR: Final = (
    "SELECT piece, vector::halfvec({0}) <#> %s::text::halfvec({0}) AS far FROM dense"
    " WHERE workspace = %s AND indexed = {0}{1} ORDER BY far LIMIT %s"
)
_SOME: Final = (
    "SELECT piece, coalesce(vector <#> %s::text::halfvec, 0) FROM dense WHERE workspace = %s AND piece = ANY(%s)"
)
_PATHS: Final = "SELECT id, path FROM file WHERE workspace = %s AND id = ANY(%s)"


class Answers(NamedTuple):
    """The cursors of a single exchange, to be read after the exchange."""

    postings: psycopg.Cursor[Any]
    near: psycopg.Cursor[Any] | None
    defining: list[tuple[list[str], psycopg.Cursor[Any]]]


@dataclass
class Search:
    """A question to a view."""

    _connection: Connection
    _workspace: int
    _seen: VisibleWorkspace
    _query: StoreQuery
    _reading_again: Callable[[], AbstractContextManager[None]] = nullcontext
    """A transaction for a query after the first exchange, which may have ended its own."""

    @cached_property
    def _vector(self) -> str | None:
        vector = self._query.vector
        return None if vector is None or not vector.any() else _as_text(scoring.in_steps(vector))

    @property
    def is_exact(self) -> bool:
        """True if every visible piece is compared."""
        seen = self._seen
        few = seen.visible_pieces <= EXACT_MOST or seen.visible_pieces < _INDEX_SHARE * seen.indexed_pieces
        return few or not seen.dimensions

    def ask(self) -> Answers:
        """Send the queries; within a pipeline, without waiting for results."""
        terms = [signed(scoring.hash_of(term)) for term in self._query.terms]
        postings = self._execute(_POSTINGS, (self._workspace, terms))
        return Answers(postings, self._ask_near(), self._ask_defining())

    def count_words(self, terms: Sequence[str]) -> WordCounts:
        """The number of visible pieces, and of those with each term."""
        hashes = [signed(scoring.hash_of(term)) for term in terms]
        rows = self._execute(_POSTINGS, (self._workspace, hashes)).fetchall()
        likeness = np.empty(0, np.float32)  # words alone are counted
        return scoring.count_words([FetchedEvidence(self._seen.view, self._seen.located(rows), likeness)], terms)

    def _ask_near(self) -> psycopg.Cursor[Any] | None:
        if self._vector is None:
            return None
        chosen = self._seen.chosen_pieces
        only = "" if chosen is None else " AND piece = ANY(%s)"
        more: tuple[Any, ...] = () if chosen is None else (chosen.tolist(),)
        if self.is_exact:
            self._set(enable_indexscan="off" if chosen is None else "on")
            return self._execute(_ALL + only, (self._vector, self._workspace, *more))
        self._set(
            **{"enable_sort": "off", "hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": "400"},
            **{"hnsw.max_scan_tuples": "40000"},
        )
        statement = _NEAR.format(self._seen.dimensions, only)
        return self._execute(statement, (self._vector, self._workspace, *more, _NEAREST_PIECES))

    def _set(self, **settings: str) -> None:
        calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        self._connection.execute(f"SELECT {calls}".encode())

    def _ask_defining(self) -> list[tuple[list[str], psycopg.Cursor[Any]]]:
        statement = with_psycopg_marks(selecting.defining_statement(self._seen.condition))
        names = [selecting.parts_of(name) for name in self._query.names]
        return [(owners, self._execute(statement, (self._workspace, storable(last)))) for *owners, last in names]

    def _execute(self, statement: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        cursor = self._connection.cursor(binary=True)
        # Not prepared: how a search is planned depends on settings that differ from one search to the next.
        cursor.execute(statement.encode(), values, prepare=False)
        return cursor

    def weigh(self, answers: Answers, top_k: int) -> list[Candidate]:
        """The candidates from the results of the queries."""
        defining: dict[int, set[int]] = {}
        for owners, cursor in answers.defining:
            for file, piece in selecting.exactly(cursor.fetchall(), owners):
                defining.setdefault(file, set()).add(piece)
        likeness = np.zeros(len(self._seen.view.segment.piece_ids), np.float32)
        source = FetchedEvidence(self._seen.view, self._seen.located(answers.postings.fetchall()), likeness)
        if answers.near is not None and self.is_exact:
            self._set_likeness(likeness, *_unpacked(answers.near.fetchall()))
        elif answers.near is not None:
            pieces, far = _as_arrays(answers.near.fetchall())
            # All remaining pieces are farther away; how far is unknown.
            likeness.fill(max(-float(far.max(initial=0.0)) * _UNKNOWN_SIMILARITY_SHARE if len(far) else 0.0, 0.0))
            self._set_likeness(likeness, pieces, far)
            candidates = scoring.gather([source], self._query, _RESCORED_FACTOR * top_k, defining, self._paths_of)
            self._set_likeness(likeness, *self._ask_again(candidates, pieces))
        return scoring.gather([source], self._query, top_k, defining, self._paths_of)

    def _paths_of(self, files: Collection[int]) -> dict[int, bytes]:
        with self._reading_again():
            return dict(self._execute(_PATHS, (self._workspace, list(files))).fetchall())

    def _ask_again(
        self, candidates: Sequence[Candidate], known: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The similarity of candidate pieces not returned by the vector index."""
        pieces = self._seen.pieces_of_files({candidate.file for candidate in candidates if not candidate.is_passage})
        passages = [candidate.piece for candidate in candidates if candidate.is_passage]
        unknown = np.setdiff1d(np.union1d(pieces, np.array(passages, np.int64)), known).tolist()
        return _as_arrays(self._execute(_SOME, (self._vector, self._workspace, unknown)).fetchall())

    def _set_likeness(self, likeness: NDArray[np.float32], pieces: NDArray[np.int64], far: NDArray[Any]) -> None:
        places = self._seen.places_of(pieces)
        there = places >= 0
        likeness[places[there]] = np.maximum(-far[there].astype(np.float32), 0) / np.float32(127.0 * scoring.STEPS)


@dataclass(slots=True)
class FetchedEvidence:
    """The results of the queries as a source of evidence."""

    view: scoring.View
    _postings: dict[tuple[int, int], scoring.Postings]
    _likeness: NDArray[np.float32]

    def postings(self, field: str, hashes: Sequence[int]) -> list[scoring.Postings]:
        """For each term hash the documents with the term in the field."""
        return [self._postings.get((FIELDS[field], signed(term)), scoring.NO_POSTINGS) for term in hashes]

    def likeness(self, _: NDArray[np.float32]) -> NDArray[Any]:
        """The similarity of each piece to the question."""
        return self._likeness.copy()


def _as_arrays(rows: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)


def _as_text(vector: NDArray[np.float32]) -> str:
    return str(vector.astype(np.int64).tolist())


def _unpacked(rows: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    pieces, far = rows[0]
    if pieces is None:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return np.frombuffer(pieces, ">i8").astype(np.int64), np.frombuffer(far, ">f4")
