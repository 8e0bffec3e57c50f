"""Bringing a database to our version: one at a time, while others read and write."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import errors, sql

from satchel.errors import IndexTooNew, StoreUnavailable
from satchel.storage.postgres.schema import EMPTY_SCHEMA, MIGRATIONS, ROLES, VERSION, migration

_LOCK: Final = 0x5A7C4E10
_LOCK_TIMEOUT_MS: Final = 5_000
_LOOK_AGAIN_S: Final = 0.1
LEAST_PGVECTOR: Final = (0, 8)


def version_of(connection: psycopg.Connection[Any]) -> int:
    """The version of the database; 0 where nothing of ours is there."""
    try:
        found = connection.execute("SELECT to_regclass('satchel.schema_version')").fetchone()
        if found is None or found[0] is None:
            return 0
        row = connection.execute("SELECT version FROM satchel.schema_version").fetchone()
    except errors.InsufficientPrivilege as error:
        who = connection.info.user
        raise StoreUnavailable(
            "the database",
            f"{who!r} was not let in; an administrator has to run: satchel postgres setup URL --login {who}",
        ) from error
    return int(row[0]) if row else 0


def migrate(connection: psycopg.Connection[Any], where: str) -> int:
    """Bring the schema to our version, each step whole or not at all; the version that it was before."""
    _take_turn(connection)
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
            # Somebody was stopped while it was made; it is made again from where the steps are repeatable.
            connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS satchel.{}").format(sql.Identifier(name)))
            version = min(version, next(i for i, name in enumerate(MIGRATIONS) if _is_repeatable(name)))
        while version < VERSION:
            _step(connection, version)
            version += 1
        return before
    finally:
        if not connection.broken:
            connection.execute("RESET ROLE")
            connection.execute("RESET lock_timeout")
            connection.execute("RESET search_path")
            connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def _take_turn(connection: psycopg.Connection[Any]) -> None:
    """Wait for whoever migrates now, without a statement that stays open: an index could not be made beside it."""
    while True:
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if row and row[0]:
            return
        time.sleep(_LOOK_AGAIN_S)


def _step(connection: psycopg.Connection[Any], version: int) -> None:
    name = MIGRATIONS[version]
    if _is_repeatable(name):
        # What is made beside others waits for them, and they do not wait for it.
        connection.execute("SET lock_timeout = 0")
        for statement in migration(name).split(";\n")[:-1]:
            connection.execute(statement.encode())
        _note(connection, version + 1)
        return
    # Whoever is at work goes first; we do not make others queue behind us.
    connection.execute(sql.SQL("SET lock_timeout = {}").format(_LOCK_TIMEOUT_MS))
    with connection.transaction():
        connection.execute(migration(name).encode())
        _note(connection, version + 1)


def _is_repeatable(name: str) -> bool:
    return name.endswith("_concurrently.sql")


def invalid_indexes(connection: psycopg.Connection[Any]) -> list[str]:
    """Indexes that somebody was stopped at making."""
    rows = connection.execute(
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE NOT indisvalid AND relnamespace = to_regnamespace('satchel')"
    ).fetchall()
    return [str(row[0]) for row in rows]


def _not_prepared(connection: psycopg.Connection[Any], where: str, error: Exception) -> StoreUnavailable:
    said = str(error).strip().partition("\n")[0]
    return StoreUnavailable(
        where,
        f"it is not set up for this version of Satchel, and {connection.info.user!r} may not do that ({said}); an "
        "administrator has to run: satchel postgres setup URL --login NAME",
    )


def _note(connection: psycopg.Connection[Any], version: int) -> None:
    connection.execute("UPDATE satchel.schema_version SET version = %s", (version,))


def _prepare(connection: psycopg.Connection[Any], where: str) -> None:
    """The extension, the roles and the empty schema: what an administrator has to do."""
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            for role in ROLES:
                found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
                if not found:
                    _make_role(connection, role)
                connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
            connection.execute(migration(EMPTY_SCHEMA).encode())
    except (errors.InsufficientPrivilege, errors.UndefinedFile, errors.FeatureNotSupported) as error:
        raise _not_prepared(connection, where, error) from error


def _make_role(connection: psycopg.Connection[Any], role: str) -> None:
    """Roles belong to all databases of a server, and another of them may be set up at this very moment."""
    with suppress(errors.DuplicateObject, errors.UniqueViolation), connection.transaction():
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(role)))


def let_in(connection: psycopg.Connection[Any], login: str, *, reading_only: bool = False) -> None:
    """Let somebody who logs in take on our roles; no more than that."""
    roles = ("satchel_reader",) if reading_only else ("satchel_reader", "satchel_writer")
    for role in roles:
        connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(login)))


def checked_extension(connection: psycopg.Connection[Any], where: str) -> str:
    """The schema in which pgvector's types are; raises if it is too old to filter while it searches."""
    row = connection.execute(
        "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
        " WHERE extname = 'vector'"
    ).fetchone()
    if row is None:
        raise StoreUnavailable(where, "it has no pgvector; an administrator has to run: satchel postgres setup URL")
    parts = tuple(int(part) for part in str(row[0]).split(".")[:2])
    if parts < LEAST_PGVECTOR:
        raise StoreUnavailable(
            where, f"its pgvector is {row[0]}; 0.8 or newer is needed (ALTER EXTENSION vector UPDATE)"
        )
    return str(row[1])
