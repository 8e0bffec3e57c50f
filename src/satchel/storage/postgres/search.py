"""Searching in PostgreSQL: the evidence for an answer comes in one exchange, and is weighed here as everywhere.

What comes is what the asking user may see, because the database gives no more: the inverted lists of the question's
words, and how near the pieces are in meaning. Up to some ten thousand visible pieces the nearness of all of them is
reckoned exactly; beyond that, the nearest are found through the index, and those that the words speak for are asked for
in a second exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from satchel.storage.postgres.database import storable, with_psycopg_marks
from satchel.storage.postgres.derived import FIELDS, signed
from satchel.storage.sql import file_reader as selecting
from satchel.storage.sql.scoring import NO_POSTINGS, STEPS, Postings, View, gather, hash_of, in_steps

if TYPE_CHECKING:
    import psycopg
    from numpy.typing import NDArray

    from satchel.ports.file_index import Candidate, StoreQuery
    from satchel.storage.postgres.views import Seen

EXACT_MOST: Final = 150_000
"""So many visible pieces are compared one by one: it takes some 80 ms at most, nothing is missed, and what is hidden
has no part in it. Through the index, 17 % of the nearest were missed among many texts that are nearly alike."""
_INDEX_SHARE: Final = 0.2
"""Where fewer of the pieces may be seen, an index that holds them all leads mostly to what may not."""
_NEAREST: Final = 400
_WIDER: Final = 3
_GUESS: Final = 0.8

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


class Asked(NamedTuple):
    """The cursors of one exchange, to be read when it has come back."""

    postings: psycopg.Cursor[Any]
    near: psycopg.Cursor[Any] | None
    defining: list[tuple[list[str], psycopg.Cursor[Any]]]


class Search:
    """One question to what somebody may see."""

    def __init__(self, connection: psycopg.Connection[Any], workspace: int, seen: Seen, query: StoreQuery) -> None:
        self._connection = connection
        self._workspace = workspace
        self._seen = seen
        self._query = query
        vector = query.vector
        self._vector = None if vector is None or not vector.any() else _as_text(in_steps(vector))

    @property
    def is_exact(self) -> bool:
        """Whether every visible piece is compared."""
        seen = self._seen
        few = seen.visible_pieces <= EXACT_MOST or seen.visible_pieces < _INDEX_SHARE * seen.indexed_pieces
        return few or not seen.dimensions

    def ask(self) -> Asked:
        """Put the questions; within a pipeline, nothing is waited for."""
        terms = [signed(hash_of(term)) for term in self._query.terms]
        postings = self._execute(_POSTINGS, (self._workspace, terms))
        return Asked(postings, self._ask_near(), self._ask_defining())

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
        return self._execute(statement, (self._vector, self._workspace, *more, _NEAREST))

    def _set(self, **settings: str) -> None:
        calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        self._connection.execute(f"SELECT {calls}".encode())

    def _ask_defining(self) -> list[tuple[list[str], psycopg.Cursor[Any]]]:
        asked = []
        for name in self._query.names:
            *owners, last = selecting.parts_of(name)
            statement = with_psycopg_marks(selecting.defining_statement(self._seen.condition))
            asked.append((owners, self._execute(statement, (self._workspace, storable(last)))))
        return asked

    def _execute(self, statement: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        cursor = self._connection.cursor(binary=True)
        cursor.execute(statement.encode(), values)
        return cursor

    def weigh(self, asked: Asked, top_k: int) -> list[Candidate]:
        """The candidates, from what has come back."""
        defining: dict[int, set[int]] = {}
        for owners, cursor in asked.defining:
            for file, piece in selecting.exactly(cursor.fetchall(), owners):
                defining.setdefault(file, set()).add(piece)
        postings = self._seen.located(asked.postings.fetchall())
        count = len(self._seen.columns.piece_ids)
        if asked.near is None:
            source = Gathered(self._seen.view, postings, np.zeros(count, np.float32))
            return gather([source], self._query, top_k, defining)
        near = asked.near.fetchall()
        if self.is_exact:
            likeness = self._likeness(np.zeros(count, np.float32), *_unpacked(near))
            return gather([Gathered(self._seen.view, postings, likeness)], self._query, top_k, defining)
        pieces, far = np.array([row[0] for row in near], np.int64), np.array([row[1] for row in near], np.float64)
        # Of the others nothing is known but that they are farther away.
        least = -float(far.max(initial=0.0)) * _GUESS if len(far) else 0.0
        likeness = self._likeness(np.full(count, max(least, 0.0), np.float32), pieces, far)
        found = gather([Gathered(self._seen.view, postings, likeness)], self._query, _WIDER * top_k, defining)
        likeness = self._likeness(likeness, *self._asked_again(found, pieces))
        return gather([Gathered(self._seen.view, postings, likeness)], self._query, top_k, defining)

    def _asked_again(
        self, found: Sequence[Candidate], known: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How near the pieces are for which something else speaks."""
        wanted = self._seen.pieces_of_files({one.file for one in found if not one.is_passage})
        wanted = np.union1d(wanted, np.array([one.piece for one in found if one.is_passage], np.int64))
        rows = self._execute(_SOME, (self._vector, self._workspace, np.setdiff1d(wanted, known).tolist())).fetchall()
        return np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)

    def _likeness(self, into: NDArray[np.float32], pieces: NDArray[np.int64], far: NDArray[Any]) -> NDArray[np.float32]:
        places = self._seen.places_of(pieces)
        there = places >= 0
        scaled = np.maximum(-far[there].astype(np.float32), 0) / np.float32(127.0 * STEPS)
        into[places[there]] = scaled
        return into


class Gathered:
    """What came back, to gather evidence from."""

    def __init__(self, view: View, postings: dict[tuple[int, int], Postings], likeness: NDArray[np.float32]) -> None:
        self.view = view
        self._postings = postings
        self._likeness = likeness

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each hash the documents of the field that hold its term."""
        return [self._postings.get((FIELDS[field], signed(one)), NO_POSTINGS) for one in hashes]

    def likeness(self, _: NDArray[np.float32]) -> NDArray[Any]:
        """How near each piece is in meaning."""
        return self._likeness.copy()


def _as_text(vector: NDArray[np.float32]) -> str:
    return str(vector.astype(np.int64).tolist())


def _unpacked(rows: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    pieces, far = rows[0]
    if pieces is None:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return np.frombuffer(pieces, ">i8").astype(np.int64), np.frombuffer(far, ">f4")
