"""What an administrator does with a database: set it up for Satchel, let people in, see what is there and for whom."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors

from satchel.errors import StoreUnavailable
from satchel.storage.postgres.address import Address
from satchel.storage.postgres.errors import map_postgres_errors
from satchel.storage.postgres.migrate import LEAST_PGVECTOR, let_in, migrate, version_of
from satchel.storage.postgres.schema import VERSION

_CONNECT_S: Final = 10
_LOOK_S: Final = 5


class SetUp(NamedTuple):
    """What was done: the version before and now, and who was let in."""

    before: int
    now: int
    logins: tuple[str, ...]


class Held(NamedTuple):
    """A workspace in the database, in figures."""

    name: str
    generation: int
    files: int
    pieces: int


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


def set_up(address: Address, logins: tuple[str, ...] = (), *, reading_only: bool = False) -> SetUp:
    """Bring the database to our version, and let logins take on our roles."""
    with map_postgres_errors(address.shown), _connected(address) as connection:
        before = migrate(connection, address.shown)
        for login in logins:
            let_in(connection, login, reading_only=reading_only)
    return SetUp(before, VERSION, logins)


def workspaces(address: Address) -> list[Held]:
    """Every workspace in the database, seen by its writer, one after the other."""
    found = []
    with map_postgres_errors(address.shown), _connected(address) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL ROLE satchel_owner")
            names = connection.execute("SELECT id, name FROM satchel.workspace ORDER BY name").fetchall()
        for number, name in names:
            with connection.transaction():
                entered = connection.execute(
                    "SELECT generation, set_config('role', 'satchel_writer', true) FROM satchel.enter(%s, %s, false)",
                    (number, []),
                ).fetchone()
                counts = connection.execute(
                    "SELECT (SELECT count(*) FROM satchel.file WHERE workspace = %(here)s),"
                    " (SELECT count(*) FROM satchel.piece WHERE workspace = %(here)s)",
                    {"here": number},
                ).fetchone()
            assert entered is not None
            assert counts is not None
            found.append(Held(name, entered[0], *counts))
    return found


def look_at(address: Address) -> SeenDatabase:
    """What is to be seen of the database at an address, by whoever it names."""
    with (
        map_postgres_errors(address.shown),
        _connected(address, wait_s=_LOOK_S) as connection,
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
            pgvector=_value(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'") or "",
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
    return bool(_value(connection, found, (role, role)))


def _has(connection: psycopg.Connection[Any], workspace: str) -> bool:
    try:
        return _value(connection, "SELECT satchel.workspace_number(%s)", (workspace,)) is not None
    except (errors.InsufficientPrivilege, errors.UndefinedFunction):
        return False


def _value(connection: psycopg.Connection[Any], statement: str, values: tuple[Any, ...] = ()) -> Any:
    row = connection.execute(statement.encode(), values).fetchone()
    return None if row is None else row[0]


def _connected(address: Address, *, wait_s: int = _CONNECT_S) -> psycopg.Connection[Any]:
    return psycopg.connect(address.database, autocommit=True, connect_timeout=wait_s)
