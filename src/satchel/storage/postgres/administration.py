"""The database schema, migrations, and administration: set up the database, grant roles, inspect.

Roles: `satchel_owner` owns everything and cannot log in; `satchel_writer` sees a whole workspace; `satchel_reader` sees
the rows of a workspace with access for the reader's names. Row-level security is forced, hence also binds the owner. A
login takes on the writer's or the reader's role for each transaction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg import errors, sql

from satchel.errors import IndexTooNew, StoreUnavailable
from satchel.storage.postgres.address import Address
from satchel.storage.postgres.database import Connection, first_line, map_postgres_errors, value
from satchel.storage.postgres.locks import CONNECT_TIMEOUT_S, advisory_lock

TABLES: Final = (
    *("fact", "access", "file", "content", "block", "piece", "page", "vector", "mention", "activity"),
    *("node", "bond", "deed", "permit", "member", "chunk", "posting", "dead", "dense"),
)
"""Every table with rows of workspaces."""

DIMENSIONS: Final = (256, 384, 512, 768, 1024, 1536, 3072)
"""Vectors with these numbers of dimensions have an index; all others are scanned."""

_ROLES: Final = ("satchel_owner", "satchel_writer", "satchel_reader")
_EMPTY_SCHEMA: Final = "0_schema.sql"
_MIGRATIONS: Final = ("1_tables.sql", "2_nearest_concurrently.sql")
"""Each takes the schema to the version of its number: in one transaction, or statement by statement where each may be
run again (`_concurrently`: beside the readers and writers at work, none of whom waits)."""
_REPEATABLE: Final = tuple(name.endswith("_concurrently.sql") for name in _MIGRATIONS)

VERSION: Final = len(_MIGRATIONS)

# Arbitrary, but never to be changed: old and new versions must take the same advisory lock.
_MIGRATION_LOCK_KEY: Final = 0x5A7C4E10
# While a migration waits for a table lock, all later statements queue behind it; after this time it gives up.
_LOCK_TIMEOUT_MS: Final = 5_000
_LOCK_POLL_S: Final = 0.1  # polling faster loads the server, polling more slowly delays the start after a migration
_INSPECTION_CONNECT_TIMEOUT_S: Final = 5  # the server may be down, and the report must not wait long
_MIN_PGVECTOR_VERSION: Final = (0, 8)
"""Older versions cannot filter during an index scan."""


# -- the schema


def version_of(connection: Connection) -> int:
    """The schema version of the database; 0 without a Satchel schema."""
    try:
        if value(connection, "SELECT to_regclass('satchel.schema_version')") is None:
            return 0
        return int(value(connection, "SELECT version FROM satchel.schema_version") or 0)
    except errors.InsufficientPrivilege as error:
        who = connection.info.user
        raise StoreUnavailable(
            "the database",
            f"the login {who!r} has no access; an administrator must run: satchel postgres setup URL --login {who}",
        ) from error


def migrate(connection: Connection, address: Address) -> int:
    """Migrate the schema to the current version, each step atomically; return the version before."""
    where = address.shown
    with advisory_lock(address.database, [_MIGRATION_LOCK_KEY], wait_s=math.inf, poll_s=_LOCK_POLL_S):
        before = version = version_of(connection)
        if version > VERSION:
            raise IndexTooNew(where, version, VERSION)
        if not version:
            _prepare(connection, where)
        extension = checked_extension(connection, where)
        try:
            for name in invalid_indexes(connection):
                # An interrupted CREATE INDEX CONCURRENTLY left it invalid: the repeatable steps are run again.
                statement = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS satchel.{}")
                connection.execute(statement.format(sql.Identifier(name)))
                version = min(version, _REPEATABLE.index(True))
            for step in range(version, VERSION):
                _migrate_from(connection, step, extension)
        except errors.InsufficientPrivilege as error:
            raise _not_prepared(connection, where, error) from error
        return before


def _migrate_from(connection: Connection, version: int, extension: str) -> None:
    """Migrate the schema from a version to the next."""
    script = _script(_MIGRATIONS[version])
    if _REPEATABLE[version]:
        # CREATE INDEX CONCURRENTLY waits for others without blocking them. It runs outside of any transaction, where
        # no setting would last behind a pooler: the names are written out.
        for statement in script.replace("{vector}", f'"{extension}"').split(";\n")[:-1]:
            connection.execute(statement.encode())
    with _as_owner(connection, extension):
        if not _REPEATABLE[version]:
            connection.execute(script.encode())
        connection.execute("UPDATE satchel.schema_version SET version = %s", (version + 1,))


@contextmanager
def _as_owner(connection: Connection, extension: str) -> Iterator[None]:
    """A transaction of the owner of the tables."""
    with connection.transaction():
        connection.execute("SET LOCAL ROLE satchel_owner")
        path = sql.SQL("SET LOCAL search_path = satchel, {}, pg_temp").format(sql.Identifier(extension))
        connection.execute(path)
        # A waiting migration would make all later statements queue behind it, hence the time limit.
        connection.execute(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}".encode())
        yield


def _script(name: str) -> str:
    return Path(__file__).with_name("migrations").joinpath(name).read_text()


def invalid_indexes(connection: Connection) -> list[str]:
    """Names of indexes left invalid by an interrupted build."""
    rows = connection.execute(
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE NOT indisvalid AND relnamespace = to_regnamespace('satchel')"
    ).fetchall()
    return [str(row[0]) for row in rows]


def _not_prepared(connection: Connection, where: str, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        where,
        f"the database is not set up for this version of Satchel, and {connection.info.user!r} may not do that "
        f"({first_line(error)}); an administrator must run: satchel postgres setup URL --login NAME",
    )


def _prepare(connection: Connection, where: str) -> None:
    """Create the extension, the roles and the empty schema; requires an administrator."""
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            for role in _ROLES:
                if not value(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)):
                    # Roles belong to all databases of a server; another database may be set up at the same moment.
                    with suppress(errors.DuplicateObject, errors.UniqueViolation), connection.transaction():
                        connection.execute(f"CREATE ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS".encode())
                connection.execute(f"GRANT {role} TO CURRENT_USER".encode())
            connection.execute(_script(_EMPTY_SCHEMA).encode())
    except (errors.InsufficientPrivilege, errors.UndefinedFile, errors.FeatureNotSupported) as error:
        raise _not_prepared(connection, where, error) from error


def checked_extension(connection: Connection, where: str) -> str:
    """The schema with pgvector's types; raises if pgvector is missing or too old for filtered index scans."""
    row = connection.execute(
        "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
        " WHERE extname = 'vector'"
    ).fetchone()
    if row is None:
        raise StoreUnavailable(
            where, "the extension pgvector is missing; an administrator must run: satchel postgres setup URL"
        )
    if _is_too_old(row[0]):
        problem = f"pgvector {row[0]} is too old; 0.8 or newer is needed (ALTER EXTENSION vector UPDATE)"
        raise StoreUnavailable(where, problem)
    return str(row[1])


def _is_too_old(pgvector: str) -> bool:
    return tuple(int(part) for part in pgvector.split(".")[:2]) < _MIN_PGVECTOR_VERSION


# -- an administrator's work


class SetUp(NamedTuple):
    """The result of a setup: the version before and now, and the logins with new roles."""

    before: int
    now: int
    logins: tuple[str, ...]


class WorkspaceFigures(NamedTuple):
    """Counts of files and pieces in a workspace of the database."""

    name: str
    generation: int
    files: int
    pieces: int


class SeenDatabase(NamedTuple):
    """The state of a database as visible to a login."""

    server: str
    user: str
    version: int
    ours: int
    pgvector: str
    not_let_in: bool
    can_read: bool
    can_write: bool
    has_workspace: bool

    @property
    def pgvector_too_old(self) -> bool:
        """True if pgvector cannot filter during an index scan."""
        return _is_too_old(self.pgvector)


def set_up(address: Address, logins: tuple[str, ...] = (), *, reading_only: bool = False) -> SetUp:
    """Migrate the database to the current version, and grant Satchel's roles to logins."""
    with map_postgres_errors(address.shown), _connected(address) as connection:
        before = migrate(connection, address)
        for login in logins:
            let_in(connection, login, reading_only=reading_only)
    return SetUp(before, VERSION, logins)


def let_in(connection: Connection, login: str, *, reading_only: bool = False) -> None:
    """Grant Satchel's roles to a login, and nothing else."""
    roles = "satchel_reader" if reading_only else "satchel_reader, satchel_writer"
    connection.execute(sql.SQL(f"GRANT {roles} TO {{}}").format(sql.Identifier(login)))


def workspaces(address: Address) -> list[WorkspaceFigures]:
    """Every workspace in the database with counts, read with the writer's role."""
    figures = []
    with map_postgres_errors(address.shown), _connected(address) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL ROLE satchel_owner")
            names = connection.execute("SELECT id, name FROM satchel.workspace ORDER BY name").fetchall()
        for number, name in names:
            with connection.transaction():
                entering = (
                    "SELECT generation, set_config('role', 'satchel_writer', true) FROM satchel.enter(%s, %s, false)"
                )
                generation = value(connection, entering, (number, []))
                files, pieces = (
                    value(connection, f"SELECT count(*) FROM satchel.{table} WHERE workspace = %s", (number,))
                    for table in ("file", "piece")
                )
            figures.append(WorkspaceFigures(name, generation, files, pieces))
    return figures


def look_at(address: Address) -> SeenDatabase:
    """The state of the database at an address, as visible to the login of the address."""
    with (
        map_postgres_errors(address.shown),
        _connected(address, wait_s=_INSPECTION_CONNECT_TIMEOUT_S) as connection,
        connection.transaction(),
    ):
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("SET LOCAL statement_timeout = '5s'")
        version = None
        with suppress(StoreUnavailable), connection.transaction():
            version = version_of(connection)
        can_read = bool(version) and _may_be(connection, "satchel_reader")
        return SeenDatabase(
            server=connection.info.parameter_status("server_version") or "",
            user=connection.info.user,
            version=version or 0,
            ours=VERSION,
            pgvector=value(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'") or "",
            not_let_in=version is None,
            can_read=can_read,
            can_write=can_read and _may_be(connection, "satchel_writer"),
            has_workspace=can_read and version == VERSION and _has(connection, address.workspace),
        )


def _may_be(connection: Connection, role: str) -> bool:
    return bool(value(connection, "SELECT pg_has_role(rolname, 'MEMBER') FROM pg_roles WHERE rolname = %s", (role,)))


def _has(connection: Connection, workspace: str) -> bool:
    with suppress(errors.InsufficientPrivilege, errors.UndefinedFunction), connection.transaction():
        return value(connection, "SELECT satchel.workspace_number(%s)", (workspace,)) is not None
    return False


def _connected(address: Address, *, wait_s: int = CONNECT_TIMEOUT_S) -> Connection:
    return psycopg.connect(address.database, autocommit=True, connect_timeout=wait_s)
