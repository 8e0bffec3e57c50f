"""What a filled workspace costs to keep and to ask: room, and searches part by part."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg

from benchmarks.scale.fill import STOP_WORDS, questions
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.storage.postgres import search as search_module
from satchel.storage.postgres.derived import signed
from satchel.storage.postgres.search import _POSTINGS, Answers, Search
from satchel.storage.postgres.store import PostgresStore
from satchel.storage.sql.scoring import hash_of

TOP_K = 60
QUESTIONS = 15
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
    store = PostgresStore(url)
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
            words, spent = timed(store, lambda: search._execute(_POSTINGS, (db.workspace, terms)).fetchall())  # noqa: B023
            figures |= {f"postings_{name}": value for name, value in spent.items()}
            figures["posting_rows"] = len(words)
            figures["postings"] = sum(len(row[5]) for row in words)
            near, spent = timed(store, lambda: search._ask_near().fetchall())  # type: ignore[union-attr] # noqa: B023
            figures |= {f"near_{name}": value for name, value in spent.items()}
            again: list[Figures] = []
            search._ask_again = _watched(store, search._ask_again, again)  # type: ignore[method-assign]
            ready = Answers(Rows(words), Rows(near), [])  # type: ignore[arg-type]
            _, spent = timed(store, lambda: search.weigh(ready, TOP_K))  # noqa: B023
            second = again[0] if again else {"wall_ms": 0.0, "client_cpu_ms": 0.0, "server_cpu_ms": 0.0}
            figures |= {f"second_{name}": value for name, value in second.items()}
            figures |= {f"weigh_{name}": spent[name] - second[name] for name in ("wall_ms", "client_cpu_ms")}
            figures["bytes"] = sum(len(row[4]) + len(row[5]) for row in words) + (
                12 * seen.visible_pieces if search.is_exact else 16 * len(near)
            )
            for name, value in figures.items():
                found.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def timed(store: PostgresStore, doing: Callable[[], Any]) -> tuple[Any, Figures]:
    """What doing it gave, and the milliseconds it took: on the clock, of the client and of the server."""
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
        result, spent = timed(store, lambda: method(*values))
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
        _, spent = timed(store, lambda: store.search(query, filters, top_k=TOP_K))  # noqa: B023
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
