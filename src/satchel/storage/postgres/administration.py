"""The database schema, migrations, and administration: set up the database, grant roles, inspect.

Roles: `satchel_owner` owns everything and cannot log in; `satchel_writer` sees a whole workspace; `satchel_reader` sees
the rows of a workspace with access for the reader's names. Row-level security is forced, hence also binds the owner. A
login takes on the writer's or the reader's role for each transaction.
"""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg import errors, sql

from satchel.errors import IndexTooNew, StoreUnavailable
from satchel.storage.postgres.address import Address
from satchel.storage.postgres.database import Connection, first_line, map_postgres_errors, value

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
_CONNECT_TIMEOUT_S: Final = 10  # long enough for a slow network; a wrong address must not seem to hang
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


def migrate(connection: Connection, where: str) -> int:
    """Migrate the schema to the current version, each step atomically; return the version before."""
    # Polling, as a waiting statement would stay open, and CREATE INDEX CONCURRENTLY waits for open statements.
    while not value(connection, "SELECT pg_try_advisory_lock(%s)", (_MIGRATION_LOCK_KEY,)):
        time.sleep(_LOCK_POLL_S)
    try:
        before = version = version_of(connection)
        if version > VERSION:
            raise IndexTooNew(where, version, VERSION)
        if not version:
            _prepare(connection, where)
        extension = checked_extension(connection, where)
        connection.execute(sql.SQL("SET search_path = satchel, {}, pg_temp").format(sql.Identifier(extension)))
        try:
            connection.execute("SET ROLE satchel_owner")
        except errors.InsufficientPrivilege as error:
            raise _not_prepared(connection, where, error) from error
        for name in invalid_indexes(connection):
            # An interrupted CREATE INDEX CONCURRENTLY left it invalid: the repeatable steps are run again.
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS satchel.{}").format(sql.Identifier(name)))
            version = min(version, _REPEATABLE.index(True))
        for step in range(version, VERSION):
            _migrate_from(connection, step)
        return before
    finally:
        if not connection.broken:
            for setting in ("ROLE", "lock_timeout", "search_path"):
                connection.execute(f"RESET {setting}".encode())
            connection.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATION_LOCK_KEY,))


def _migrate_from(connection: Connection, version: int) -> None:
    """Migrate the schema from a version to the next."""
    is_repeatable, script = _REPEATABLE[version], _script(_MIGRATIONS[version])
    # CREATE INDEX CONCURRENTLY waits for others without blocking them. In a transaction a waiting migration would
    # make all later statements queue behind it, hence the time limit.
    timeout_ms = 0 if is_repeatable else _LOCK_TIMEOUT_MS
    connection.execute(f"SET lock_timeout = {timeout_ms}".encode())
    with nullcontext() if is_repeatable else connection.transaction():
        for statement in script.split(";\n")[:-1] if is_repeatable else [script]:
            connection.execute(statement.encode())
        connection.execute("UPDATE satchel.schema_version SET version = %s", (version + 1,))


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
        before = migrate(connection, address.shown)
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
    with map_postgres_errors(address.shown), _connected(address, wait_s=_INSPECTION_CONNECT_TIMEOUT_S) as connection:
        connection.execute("SET default_transaction_read_only = on")
        connection.execute("SET statement_timeout = '5s'")
        version = None
        with suppress(StoreUnavailable):
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
    with suppress(errors.InsufficientPrivilege, errors.UndefinedFunction):
        return value(connection, "SELECT satchel.workspace_number(%s)", (workspace,)) is not None
    return False


def _connected(address: Address, *, wait_s: int = _CONNECT_TIMEOUT_S) -> Connection:
    return psycopg.connect(address.database, autocommit=True, connect_timeout=wait_s)
