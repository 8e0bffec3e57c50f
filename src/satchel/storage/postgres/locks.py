"""Advisory locks, each held by a transaction on a connection of its own.

A lock of a session would not work behind a pooler (PgBouncer in transaction mode), which gives the connection to the
server to another client after each transaction. A transaction that only holds a lock has no snapshot: it keeps nobody
from removing old rows or from building an index.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import psycopg

from satchel.storage.postgres.database import Connection, value

CONNECT_TIMEOUT_S: Final = 10  # long enough for a slow network; a wrong address must not seem to hang
_TRANSACTION_TIMEOUT_SERVER_VERSION: Final = 170000  # PostgreSQL 17, the first with `transaction_timeout`


def has_transaction_timeout(connection: Connection) -> bool:
    """True if the server can limit the duration of transactions."""
    return connection.info.server_version >= _TRANSACTION_TIMEOUT_SERVER_VERSION


@contextmanager
def advisory_lock(database: str, key: Sequence[int], *, wait_s: float, poll_s: float) -> Iterator[bool]:
    """Hold a lock; waits up to `wait_s` seconds, and gives False if another connection still holds the lock."""
    connection = psycopg.connect(database, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, prepare_threshold=None)
    try:
        is_ours = _acquired(connection, key, wait_s, poll_s)
        if is_ours:
            _stay_open(connection)
        yield is_ours
    finally:
        try:
            with suppress(psycopg.Error):
                # Answered when the lock is free; closing the connection alone frees it some time later.
                connection.execute("ROLLBACK")
        finally:
            connection.close()


def _acquired(connection: Connection, key: Sequence[int], wait_s: float, poll_s: float) -> bool:
    """Begin a transaction that holds the lock; False without one."""
    # Without bound values: a statement with some keeps its snapshot until the next, and CREATE INDEX waits for it.
    statement = f"SELECT pg_try_advisory_xact_lock({', '.join(map(str, key))})"
    until = time.monotonic() + wait_s
    while True:
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        if value(connection, statement):
            return True
        # Each try is a transaction of its own, which CREATE INDEX under this lock may wait for.
        connection.execute("ROLLBACK")
        if time.monotonic() >= until:
            return False
        time.sleep(poll_s)


def _stay_open(connection: Connection) -> None:
    """The lock is held for as long as its holder works, however long nothing is sent on this connection."""
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    if has_transaction_timeout(connection):
        connection.execute("SET LOCAL transaction_timeout = 0")
