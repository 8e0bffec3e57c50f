"""What an administrator does with a database: set it up for Satchel, let people in, see what is there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import psycopg

from satchel.storage.postgres.address import Address
from satchel.storage.postgres.errors import map_postgres_errors
from satchel.storage.postgres.migrate import let_in, migrate
from satchel.storage.postgres.schema import VERSION

_CONNECT_S: Final = 10


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


def _connected(address: Address) -> psycopg.Connection[Any]:
    return psycopg.connect(address.database, autocommit=True, connect_timeout=_CONNECT_S)
