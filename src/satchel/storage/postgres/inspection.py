"""Looking at a database without changing anything in it: what is set up, and for whom."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors

from satchel.errors import StoreUnavailable
from satchel.storage.postgres.address import Address
from satchel.storage.postgres.errors import map_postgres_errors
from satchel.storage.postgres.migrate import LEAST_PGVECTOR, version_of
from satchel.storage.postgres.schema import VERSION

_CONNECT_S: Final = 5


class SeenDatabase(NamedTuple):
    """What is to be seen of a database."""

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
        """Whether it cannot filter while it searches."""
        return tuple(int(part) for part in self.pgvector.split(".")[:2]) < LEAST_PGVECTOR


def look_at(address: Address) -> SeenDatabase:
    """What is to be seen of the database at an address, by whoever it names."""
    with (
        map_postgres_errors(address.shown),
        psycopg.connect(address.database, autocommit=True, connect_timeout=_CONNECT_S) as connection,
    ):
        connection.execute("SET default_transaction_read_only = on")
        connection.execute("SET statement_timeout = '5s'")
        version, not_let_in = _version(connection)
        can_read = bool(version) and _may_be(connection, "satchel_reader")
        info = connection.info
        return SeenDatabase(
            server=info.parameter_status("server_version") or "",
            user=info.user,
            version=version,
            ours=VERSION,
            pgvector=_one(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'") or "",
            not_let_in=not_let_in,
            can_read=can_read,
            can_write=can_read and _may_be(connection, "satchel_writer"),
            has_workspace=can_read and version == VERSION and _has(connection, address.workspace),
        )


def _version(connection: psycopg.Connection[Any]) -> tuple[int, bool]:
    try:
        return version_of(connection), False
    except StoreUnavailable:
        return 0, True


def _may_be(connection: psycopg.Connection[Any], role: str) -> bool:
    found = "SELECT pg_has_role(%s, 'MEMBER') FROM pg_roles WHERE rolname = %s"
    return bool(_one(connection, found, (role, role)))


def _has(connection: psycopg.Connection[Any], workspace: str) -> bool:
    try:
        return _one(connection, "SELECT satchel.workspace_number(%s)", (workspace,)) is not None
    except (errors.InsufficientPrivilege, errors.UndefinedFunction):
        return False


def _one(connection: psycopg.Connection[Any], statement: str, values: tuple[Any, ...] = ()) -> Any:
    row = connection.execute(statement.encode(), values).fetchone()
    return None if row is None else row[0]
