"""What it costs to write to a filled workspace: commits, grants, laying out again, taking vectors into an index."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.scale.fill import BLOCKS_PER_SPACE, DIMENSIONS, Space
from benchmarks.scale.measure import PLAIN, TOP_K, Figures, asked, opened, timed
from satchel.models.access import Grant
from satchel.models.block import Block, BlockType
from satchel.models.search import Filters
from satchel.storage.postgres.derived import NEAREST, _lay_out, index_some
from satchel.workspace.blocks import Edit

COMMITS, BARE = 12, 4
RELAID = 1_000


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

        _, spent = timed(store, commit)
        spents.append(spent)
        wals.append(wal_bytes(connection) - before)
        _, found = timed(reader, lambda: reader.search(query, everything, top_k=TOP_K))
        searches.append(found["wall_ms"])
        _, after = timed(store, store.catch_up)
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

    _, spent = timed(store, granting)
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

        _, spent = timed(store, laying)
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
        taken, spent = timed(store, lambda: index_some(database, DIMENSIONS))
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
