"""What a filled workspace costs: room, searches part by part, commits, grants."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.scale.fill import BLOCKS_PER_SPACE, DIMENSIONS, STOP_WORDS, Space, questions
from satchel.adapters.postgres import search as search_module
from satchel.adapters.postgres.derived import NEAREST, _lay_out, index_some, signed
from satchel.adapters.postgres.search import _POSTINGS, Asked, Search
from satchel.adapters.postgres.store import PostgresStore
from satchel.adapters.relational.columns import hash_of
from satchel.ingest.workspace import Edit
from satchel.model.access import Grant
from satchel.model.block import Block, BlockType
from satchel.ports.store import Filters, StoreQuery

TOP_K = 60
QUESTIONS = 15
COMMITS, BARE = 12, 4
RELAID = 1_000
PLAIN, HEAVY = (STOP_WORDS, 20_000), (20, STOP_WORDS)
"""The ranks of a question's six words: as in most questions, and all of them frequent."""

Figures = dict[str, float]
_PIDS: WeakKeyDictionary[PostgresStore, int] = WeakKeyDictionary()


class Rows(NamedTuple):
    """What a cursor gave, to be read again."""

    rows: list[Any]

    def fetchall(self) -> list[Any]:
        """All rows."""
        return self.rows


def opened(url: str) -> PostgresStore:
    """A store with one connection, so that the server's process behind it is known."""
    store = PostgresStore(url, listens=False)
    store._connections._pool.resize(1, 1)
    with store._connections.checked_out() as connection:
        _PIDS[store] = connection.info.backend_pid
    return store


def server_cpu_ms(store: PostgresStore) -> float:
    """The CPU time of the server's process behind a store."""
    return int(Path(f"/proc/{_PIDS[store]}/schedstat").read_text().split()[0]) / 1e6


def asked(kind: tuple[int, int], count: int = QUESTIONS) -> list[StoreQuery]:
    """Questions of a kind."""
    return [StoreQuery(terms=terms, vector=vector) for terms, vector in questions(count, *kind)]


def whole_searches(store: PostgresStore, queries: Sequence[StoreQuery], filters: Filters) -> Figures:
    """A search as programs make it: medians of milliseconds."""
    found: list[tuple[float, float, float]] = []
    store.search(queries[0], filters, top_k=TOP_K)
    for query in queries:
        server, client, wall = server_cpu_ms(store), time.process_time(), time.perf_counter()
        store.search(query, filters, top_k=TOP_K)
        wall, client = time.perf_counter() - wall, time.process_time() - client
        found.append((1e3 * wall, 1e3 * client, server_cpu_ms(store) - server))
    walls, clients, servers = (sorted(column) for column in zip(*found, strict=True))
    return {
        "wall_ms": statistics.median(walls), "wall_worst_ms": walls[-1],
        "client_cpu_ms": statistics.median(clients), "server_cpu_ms": statistics.median(servers),
    }  # fmt: skip


def parts_of_searches(store: PostgresStore, queries: Sequence[StoreQuery], filters: Filters) -> Figures:
    """The same, one part after the other: where the milliseconds and the bytes are."""
    found: dict[str, list[float]] = {}
    with store._visiting(filters) as visit:
        db = visit.database
        seen = store._views.of(visit, filters, store._allowed(db, filters))
        for query in queries:
            search = Search(db.connection, db.workspace, seen, query)
            figures: Figures = {"visible": seen.visible_pieces, "exact": float(search.is_exact)}
            terms = [signed(hash_of(term)) for term in query.terms]
            # The search's own statement, with its own parameters.
            words, spent = _timed(store, lambda: search._execute(_POSTINGS, (db.workspace, terms)).fetchall())  # noqa: B023
            figures |= {f"postings_{name}": value for name, value in spent.items()}
            figures["posting_rows"] = len(words)
            figures["postings"] = sum(len(row[5]) for row in words)
            near, spent = _timed(store, lambda: search._ask_near().fetchall())  # type: ignore[union-attr] # noqa: B023
            figures |= {f"near_{name}": value for name, value in spent.items()}
            again: list[Figures] = []
            search._asked_again = _watched(store, search._asked_again, again)  # type: ignore[method-assign]
            ready = Asked(Rows(words), Rows(near), [])  # type: ignore[arg-type]
            _, spent = _timed(store, lambda: search.weigh(ready, TOP_K))  # noqa: B023
            second = again[0] if again else {"wall_ms": 0.0, "client_cpu_ms": 0.0, "server_cpu_ms": 0.0}
            figures |= {f"second_{name}": value for name, value in second.items()}
            figures |= {f"weigh_{name}": spent[name] - second[name] for name in ("wall_ms", "client_cpu_ms")}
            figures["bytes"] = sum(len(row[4]) + len(row[5]) for row in words) + (
                12 * seen.visible_pieces if search.is_exact else 16 * len(near)
            )
            for name, value in figures.items():
                found.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def _timed(store: PostgresStore, doing: Callable[[], Any]) -> tuple[Any, Figures]:
    server, client, wall = server_cpu_ms(store), time.process_time(), time.perf_counter()
    result = doing()
    wall, client = time.perf_counter() - wall, time.process_time() - client
    return result, {
        "wall_ms": 1e3 * wall,
        "client_cpu_ms": 1e3 * client,
        "server_cpu_ms": server_cpu_ms(store) - server,
    }


def _watched(store: PostgresStore, method: Callable[..., Any], into: list[Figures]) -> Callable[..., Any]:
    def watched(*values: Any) -> Any:
        result, spent = _timed(store, lambda: method(*values))
        into.append(spent)
        return result

    return watched


@contextmanager
def always_by_index() -> Iterator[None]:
    """Search by the index however little there is."""
    held = search_module.EXACT_MOST
    search_module.EXACT_MOST = 0  # type: ignore[misc]
    try:
        yield
    finally:
        search_module.EXACT_MOST = held  # type: ignore[misc]


def first_search(url: str, query: StoreQuery, filters: Filters) -> Figures:
    """The first question of a process: everything that may be seen is fetched; and the memory that this takes."""
    walls, clients = [], []
    for _ in range(3):
        store = opened(url)
        _, spent = _timed(store, lambda: store.search(query, filters, top_k=TOP_K))  # noqa: B023
        walls.append(spent["wall_ms"])
        clients.append(spent["client_cpu_ms"])
        store.close()
    gc.collect()
    store = opened(url)
    tracemalloc.start()
    store.search(query, filters, top_k=TOP_K)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    store.search(query, filters, top_k=TOP_K)
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    store.close()
    return {
        "wall_ms": statistics.median(walls), "client_cpu_ms": statistics.median(clients),
        "held_bytes": float(held), "question_bytes": float(peak),
    }  # fmt: skip


def recall(store: PostgresStore, queries: Sequence[StoreQuery], filters: Filters, first: int = 50) -> float:
    """Which share of the nearest the index finds."""
    shares = []
    with store._visiting(filters) as visit:
        db = visit.database
        seen = store._views.of(visit, filters, store._allowed(db, filters))
        for query in queries:
            search = Search(db.connection, db.workspace, seen, query)
            if search.is_exact:
                return 1.0
            near = search._ask_near()
            assert near is not None
            got = {row[0] for row in near.fetchall()}
            exact = search._execute(
                "SELECT piece FROM dense WHERE workspace = %s ORDER BY (vector <#> %s::text::halfvec) + 0, piece LIMIT %s",
                (db.workspace, search._vector, first),
            )
            shares.append(len(got & {row[0] for row in exact.fetchall()}) / first)
    return statistics.mean(shares)


# -- room


def room(connection: psycopg.Connection[Any]) -> dict[str, dict[str, float]]:
    """The bytes of every table that holds anything: rows, what is kept apart, and each index."""
    found: dict[str, dict[str, float]] = {}
    for name, heap, toast, rows in connection.execute(
        "SELECT relname, pg_relation_size(oid), CASE WHEN reltoastrelid = 0 THEN 0 ELSE pg_total_relation_size(reltoastrelid) END,"
        " reltuples FROM pg_class WHERE relnamespace = 'satchel'::regnamespace AND relkind = 'r'"
    ).fetchall():
        found[name] = {"heap": float(heap), "toast": float(toast), "rows": float(rows)}
    for table, index, size in connection.execute(
        "SELECT held.relname, kept.relname, pg_relation_size(indexrelid) FROM pg_index JOIN pg_class AS held ON held.oid = indrelid"
        " JOIN pg_class AS kept ON kept.oid = indexrelid WHERE held.relnamespace = 'satchel'::regnamespace"
    ).fetchall():
        found[table][f"index {index}"] = float(size)
    return {name: figures for name, figures in found.items() if figures["rows"] > 0}


# -- writing


class _Vectors:
    """An embedder that costs nothing."""

    name = "scale"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._space = Space(seed=99)

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return (self._space.vectors(len(texts)) / np.float32(127)).astype(np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.asarray(self.embed_texts([text])[0])


def commits(
    url: str, connection: psycopg.Connection[Any], texts: Sequence[str], with_index: bool
) -> tuple[Figures, float]:
    """Commits of one block each, and what is done after each; the server is made durable meanwhile.

    The second figure is the first search after a commit, of a process that knew everything before it.
    """
    embedder, spents, afters, wals, searches = _Vectors(), [], [], [], []
    reader, query = opened(url), asked(PLAIN, 1)[0]
    store = opened(url)
    if not with_index:
        store._nearest_from = 10**12  # or the first catching up would take all vectors into an index
    everything = Filters()
    store.search(query, everything, top_k=1)
    reader.search(query, everything, top_k=TOP_K)
    connection.execute("CHECKPOINT")
    for number, text in enumerate(texts):
        if number == len(texts) - BARE:
            connection.execute("ALTER SYSTEM SET full_page_writes = off")
            connection.execute("SELECT pg_reload_conf()")
            time.sleep(0.3)
        before = wal_bytes(connection)

        def commit(number: int = number, text: str = text) -> None:
            with store.lock(), store.write() as writer:
                edit = Edit(writer, embedder)
                edit.put(Block(id=f"new{number}", type=BlockType.TEXT, content=text, parent="b20"))
                edit.embed()

        _, spent = _timed(store, commit)
        spents.append(spent)
        wals.append(wal_bytes(connection) - before)
        _, found = _timed(reader, lambda: reader.search(query, everything, top_k=TOP_K))
        searches.append(found["wall_ms"])
        _, after = _timed(store, store.catch_up)
        afters.append(after)
    reader.close()
    store.close()
    middle = {f"{name}": statistics.median(one[name] for one in spents) for name in spents[0]}
    figures = {
        **middle, "wal_first_bytes": float(wals[0]), "wal_bytes": float(statistics.median(wals[1:-BARE])),
        "wal_bare_bytes": float(statistics.median(wals[-BARE:])),
        **{f"after_{name}": statistics.median(one[name] for one in afters) for name in afters[0]},
        "after_worst_ms": max(one["wall_ms"] for one in afters),
    }  # fmt: skip
    return figures, statistics.median(searches)


def grant(url: str, connection: psycopg.Connection[Any]) -> Figures:
    """One grant on a subtree of a thousand blocks."""
    store = opened(url)
    before = wal_bytes(connection)

    def granting() -> None:
        with store.lock(), store.write() as writer:
            writer.blocks.grant(Grant(block=f"b{BLOCKS_PER_SPACE}", principal="user:new"))

    _, spent = _timed(store, granting)
    store.close()
    return {**spent, "wal_bytes": float(wal_bytes(connection) - before), "blocks": BLOCKS_PER_SPACE}


def laying_out(url: str, connection: psycopg.Connection[Any]) -> Figures:
    """Lay blocks out that are spread over the whole workspace, as merging segments does; nothing of it is kept."""
    store = opened(url)
    before = wal_bytes(connection)
    spent: Figures = {}
    with suppress(_NotKept), store.write():
        visit = store._connections.visit
        assert visit is not None
        database = visit.database
        files: list[Any] = database.execute(
            f"SELECT id, access FROM (SELECT id, access FROM file ORDER BY md5(id::text) LIMIT {RELAID}) AS chosen ORDER BY access, id"
        ).fetchall()

        def laying() -> None:
            _lay_out(database, files, DIMENSIONS)
            database.changes()

        _, spent = _timed(store, laying)
        raise _NotKept
    store.close()
    return {**spent, "wal_bytes": float(wal_bytes(connection) - before), "blocks": RELAID}


class _NotKept(Exception):
    """What was tried is taken back."""


def taking_into_index(url: str, connection: psycopg.Connection[Any], count: int) -> float:
    """Milliseconds of the server for each vector that a commit takes into the index."""
    connection.execute(
        f"UPDATE dense SET indexed = 0 WHERE piece IN (SELECT piece FROM dense ORDER BY piece LIMIT {count})".encode()
    )
    store = opened(url)
    with store.write():
        visit = store._connections.visit
        assert visit is not None
        database = visit.database
        taken, spent = _timed(store, lambda: index_some(database, DIMENSIONS))
    store.close()
    return float(spent["server_cpu_ms"] / max(taken, 1))


def set_nearest(connection: psycopg.Connection[Any], workspace: int, dimensions: int) -> None:
    """Say that the workspace's vectors are in the index, or are not, in a generation of its own."""
    connection.execute(
        "INSERT INTO fact (workspace, name, value) VALUES (%s, %s, %s) ON CONFLICT (workspace, name) DO UPDATE SET value = excluded.value",
        (workspace, NEAREST, str(dimensions)),
    )
    connection.execute("UPDATE fact SET value = value::int + 1 WHERE name = 'generation'")


def wal_bytes(connection: psycopg.Connection[Any]) -> int:
    """How much the server has logged since it was made."""
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])
