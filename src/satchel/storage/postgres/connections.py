"""Connections to the database of a workspace: a pool, and the identity of each transaction.

A transaction takes on a role, readers' names and settings before the first read, and all end with the transaction: the
next user of the connection inherits nothing, whether our pool or a pooler in between (PgBouncer) gives the connection
on. A connection found dead at the start of a transaction is replaced, as nothing is lost; a connection lost later is an
error.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from satchel.errors import IndexTooNew, StoreUnavailable
from satchel.storage.postgres.administration import VERSION, checked_extension, invalid_indexes, migrate, version_of
from satchel.storage.postgres.database import Connection, PostgresDatabase, map_postgres_errors, storable, value
from satchel.storage.postgres.locks import CONNECT_TIMEOUT_S, has_transaction_timeout

if TYPE_CHECKING:
    from satchel.storage.postgres.address import Address

# Far above any search; a longer statement is stuck, and would hold a pooled connection.
_READ_TIMEOUT_MS: Final = 30_000
# Statements of large commits take long; a stuck statement must still end and free the writers' lock.
_WRITE_TIMEOUT_MS: Final = 600_000
_IDLE_TIMEOUT_MS: Final = 600_000  # a hanging process must not hold locks and old row versions for ever
_POOL_TIMEOUT_S: Final = 5.0  # then all connections are busy or the server is down: an error is better than a hang
# An hour leaves room for large commits; a forgotten transaction keeps PostgreSQL from removing old rows.
_TRANSACTION_TIMEOUT_MS: Final = 3_600_000
_OPTIONS: Final[dict[str, Any]] = {"autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S, "prepare_threshold": None}
# The third time a connection runs a statement it is prepared: most of a read by key is planning.
_PREPARE_AFTER: Final = 2
_KEPT_ALIVE: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_MAX_CONNECTIONS: Final = 16  # per process and workspace; PostgreSQL accepts 100 in all by default
# After a restart of the server several pooled connections are dead; more tries hide an outage.
_MAX_BEGIN_ATTEMPTS: Final = 3
_RETRY_DELAY_S: Final = 0.2  # times the attempt: the server may be restarting

BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_ENTER: Final = "SELECT e.*, set_config('role', %s, true){} FROM satchel.enter(%s, %s, %s) AS e"


# Our errors report lost connections; psycopg's log messages would repeat them.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Identity(NamedTuple):
    """The identity of a transaction: the writer, the owner, or a reader with names."""

    role: str
    readers: frozenset[str] = frozenset()
    is_owner: bool = False


WRITER: Final = Identity("satchel_writer")


def reading_as(readers: frozenset[str] | None) -> Identity:
    """The identity of a reader with these names; None means the owner of a single-user workspace."""
    return Identity("satchel_reader", readers or frozenset(), readers is None)


class Entered(NamedTuple):
    """The database's answer to `enter`: the generation, the default access, and the readable access lists."""

    generation: int
    default_access: str
    lists: tuple[int, ...]

    @classmethod
    def read(cls, cursor: psycopg.Cursor[Any]) -> Entered:
        """Parse the answer to `enter`."""
        row = cursor.fetchone()
        assert row is not None
        return cls(row[0], row[1], tuple(row[2]))


_NOTHING: Final = Entered(0, "owner", ())


class Entrance(NamedTuple):
    """The workspace to enter, and the statement that enters, with the settings of a transaction there."""

    workspace: int
    statement: bytes

    @classmethod
    def into(cls, workspace: int, settings: Mapping[str, str]) -> Entrance:
        """The way into a workspace with these settings."""
        quoted = ((name, text.replace("'", "''")) for name, text in settings.items())
        calls = "".join(f", set_config('{name}', '{text}', true)" for name, text in quoted)
        return cls(workspace, _ENTER.format(calls).encode())

    def enter(self, connection: Connection, identity: Identity) -> psycopg.Cursor[Any]:
        """Take on an identity for the rest of the transaction, and the settings."""
        readers = sorted(map(storable, identity.readers))
        return connection.execute(self.statement, (identity.role, self.workspace, readers, identity.is_owner))


@dataclass(slots=True)
class Visit:
    """A transaction and its current identity."""

    database: PostgresDatabase
    entrance: Entrance
    is_writing: bool
    is_snapshot: bool
    identity: Identity | None = None
    entered: Entered = _NOTHING
    is_over: bool = False
    depth: int = 0
    known_blocks: dict[bytes, bool] = field(default_factory=dict)
    """The blocks that this identity is known to see, and not to see."""

    def enter(self, identity: Identity) -> None:
        """Take on an identity for the next statements."""
        if identity != self.identity:
            self.database.flush()  # buffered inserts belong to the old identity
            self.identity = None  # unknown until the server has answered
            self.known_blocks = {}
            self.entered = Entered.read(self.entrance.enter(self.database.connection, identity))
            self.identity = identity


class _ThreadState(threading.local):
    """The open transaction of a thread."""

    visit: Visit | None = None


class Connections:
    """The connection pool, and the open transaction of each thread."""

    def __init__(self, address: Address, *, most: int = _MAX_CONNECTIONS) -> None:
        self.address = address
        self.shown = address.shown
        self._mine = _ThreadState()
        self._pid = os.getpid()
        with map_postgres_errors(self.shown), psycopg.connect(address.database, **_OPTIONS) as first:
            version = version_of(first)
            if version > VERSION:
                raise IndexTooNew(self.shown, version, VERSION)
            if version < VERSION:
                migrate(first, address)
            elif invalid_indexes(first):
                with suppress(StoreUnavailable):  # an administrator will migrate
                    migrate(first, address)
            self.settings = _settings(first, checked_extension(first, self.shown))
            self.workspace = _number_of(first, address.workspace)
            self.can_write = _may_write(first)
            self._prepare_after = _PREPARE_AFTER if _is_direct(first) else None
        self.reading = Entrance.into(self.workspace, self.settings)
        for_writing = {**self.settings, "statement_timeout": str(_WRITE_TIMEOUT_MS)}
        self._writing = Entrance.into(self.workspace, for_writing)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.database,
            kwargs={**_OPTIONS, **_KEPT_ALIVE},
            min_size=1,
            max_size=most,
            timeout=_POOL_TIMEOUT_S,
            reconnect_timeout=_POOL_TIMEOUT_S,
            open=True,
            name=f"satchel {address.workspace}",
        )

    @property
    def visit(self) -> Visit | None:
        """The open transaction of the calling thread, or None."""
        visit = self._mine.visit
        return None if visit is None or visit.is_over else visit

    @contextmanager
    def checked_out(self) -> Iterator[Connection]:
        """A connection from the pool for the duration of the context."""
        if os.getpid() != self._pid:
            raise StoreUnavailable(
                self.shown, "the connection was opened before this process was forked; open one in each process"
            )
        with map_postgres_errors(self.shown):
            connection = self._take()
            try:
                yield connection
            finally:
                self._pool.putconn(connection)

    def _take(self) -> Connection:
        try:
            return self._pool.getconn()
        except PoolTimeout:
            # A new connection attempt gets the server's reason, which the pool does not report.
            psycopg.connect(self.address.database, connect_timeout=2).close()
            raise

    @contextmanager
    def transaction(self, identity: Identity | None, *, writing: bool = False) -> Iterator[Visit]:
        """A transaction with an identity; inside another transaction of the thread, a part of the outer transaction."""
        outer = self.visit
        if outer is not None:
            before = outer.identity
            with map_postgres_errors(self.shown):
                try:
                    outer.depth += 1
                    if identity is not None:
                        outer.enter(identity)
                    yield outer
                finally:
                    outer.depth -= 1
                    # Directly within a snapshot each caller enters anew; elsewhere the outer identity is restored.
                    if (outer.depth or not outer.is_snapshot) and before is not None and not _is_over(outer):
                        outer.enter(before)
            return
        with self._begun(identity, writing) as visit:
            self._mine.visit = visit
            try:
                yield visit
            finally:
                visit.is_over = True  # although another thread may end it
                self._mine.visit = None

    @contextmanager
    def _begun(self, identity: Identity | None, writing: bool) -> Iterator[Visit]:
        for attempt in range(_MAX_BEGIN_ATTEMPTS):
            with self.checked_out() as connection:
                database = PostgresDatabase(connection, self.workspace)
                entrance = self._writing if writing else self.reading
                # A large commit fills tables for which a plan would be kept that was made when they were empty.
                connection.prepare_threshold = None if writing else self._prepare_after
                visit = Visit(database, entrance, is_writing=writing, is_snapshot=identity is None)
                try:
                    with connection.pipeline():
                        connection.execute(_BEGIN_WRITING if writing else BEGIN_READING)
                        if identity is not None:
                            visit.enter(identity)
                except psycopg.OperationalError:
                    # Nothing was done yet: try another connection.
                    if not connection.broken or attempt == _MAX_BEGIN_ATTEMPTS - 1:
                        raise
                    time.sleep(_RETRY_DELAY_S * attempt)
                    self._pool.check()
                    continue
                try:
                    yield visit
                    visit.database.flush()
                except BaseException:
                    with suppress(psycopg.Error):
                        if not connection.broken:
                            connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT" if writing else "ROLLBACK")
                return

    def close(self) -> None:
        """Close all connections; a forked process leaves the connections of its parent open."""
        if os.getpid() == self._pid:
            self._pool.close()


def _is_direct(connection: Connection) -> bool:
    """True if no pooler is in between: one answers for the server, with a process number of its own.

    Behind a pooler the next transaction may be with another process, which has none of the prepared statements.
    """
    return bool(value(connection, "SELECT pg_backend_pid()") == connection.info.backend_pid)


def _settings(connection: Connection, extension: str) -> dict[str, str]:
    """The settings of each transaction, independent of the identity."""
    settings = {
        "search_path": f'satchel, "{extension}", pg_temp',
        "idle_in_transaction_session_timeout": str(_IDLE_TIMEOUT_MS),
        "client_connection_check_interval": "2s",
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
    }
    # A statement_timeout in the URL or of the login takes precedence.
    if value(connection, "SELECT current_setting('statement_timeout')") == "0":
        settings["statement_timeout"] = str(_READ_TIMEOUT_MS)
    if has_transaction_timeout(connection):
        settings["transaction_timeout"] = str(_TRANSACTION_TIMEOUT_MS)
    return settings


def _may_write(connection: Connection) -> bool:
    """True if this login may take on the writer's role."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL ROLE satchel_writer")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def _is_over(visit: Visit) -> bool:
    """True if the transaction accepts no more statements."""
    info = visit.database.connection.info
    if info.pipeline_status == psycopg.pq.PipelineStatus.ABORTED:
        return True
    return info.transaction_status not in (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.ACTIVE)


def _number_of(connection: Connection, name: str) -> int:
    """The number of the workspace with the given name; creates a missing workspace."""
    known = "SELECT satchel.workspace_number(%s)"
    number = value(connection, known, (name,))
    if number is None:
        try:
            with suppress(psycopg.errors.UniqueViolation), connection.transaction():  # another process may be faster
                connection.execute("SET LOCAL ROLE satchel_writer")
                connection.execute(
                    "INSERT INTO satchel.workspace (name) SELECT %s WHERE satchel.workspace_number(%s) IS NULL",
                    (name, name),
                )
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnavailable(name, "the workspace does not exist, and this login may not create it") from error
        number = value(connection, known, (name,))
    return int(number)
