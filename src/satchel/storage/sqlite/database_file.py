"""The SQLite file: what was committed is in here, and everything else can be made from it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable, StoreUnavailable
from satchel.storage.sql.file_writer import fact
from satchel.storage.sql.writer import RelationalWriter
from satchel.storage.sqlite.schema import migrate

FILE_NAME: Final = "truth.sqlite"
_BUSY_MS: Final = 10_000
_MARKS_KEPT: Final = 1000
_UNWRITABLE: Final = (
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.IOError,
    apsw.PermissionsError,
)


_CLOSED: Final = (
    apsw.ConnectionClosedError,
    apsw.CursorClosedError,
    apsw.InterruptError,
    # Each thread has its own connection: only whoever closes touches another's.
    apsw.ThreadingViolationError,
)


@contextmanager
def map_sqlite_errors(where: Path) -> Iterator[None]:
    """SQLite's complaints in our words."""
    try:
        yield
    except _UNWRITABLE as error:
        raise IndexUnwritable(str(where), str(error)) from error
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
        # A full disk ends a transaction by itself, and then SQLite complains that there is none to be ended.
        if isinstance(error.__context__, _UNWRITABLE):
            raise IndexUnwritable(str(where), str(error.__context__)) from error
        raise IndexDamaged(str(where), str(error)) from error
    except apsw.BusyError as error:
        raise IndexBusy(str(where), "") from error
    except _CLOSED as error:
        raise closed(where) from error


def closed(where: Path) -> StoreUnavailable:
    """What is said to those who ask a store that was closed."""
    return StoreUnavailable(str(where), "it was closed")


class SqliteDatabase(apsw.Connection):
    """A connection to a file that holds one workspace."""

    workspace: Final = 1
    """SQLite stores the number 1 in no bytes at all."""
    like: Final = "LIKE"


def connect(path: Path, *, read_only: bool = False) -> SqliteDatabase:
    """An open SQLite file of our version."""
    with map_sqlite_errors(path):
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = SqliteDatabase(os.fspath(path), flags=flags)
        # Otherwise SQLite plans a statement again whenever a value is bound that an index does not look up.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.set_busy_timeout(_BUSY_MS)
        if not read_only:
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
        connection.pragma("temp_store", "memory")
        migrate(connection, str(path))
        return connection


class SqliteWriter(RelationalWriter):
    """One commit in the making, which leaves word of what is gone for the segments."""

    def _dropping(self, file: int) -> None:
        self._db.execute("INSERT INTO gone VALUES (?,?)", (file, self._generation))

    def seal(self) -> None:
        """End the commit: the next generation, and a mark by which what is derived from it knows it again."""
        self.settle()
        self.set_fact("generation", self._generation)
        self.set_fact(f"mark {self._generation:012d}", secrets.token_hex(8))
        old = f"mark {max(0, self._generation - _MARKS_KEPT):012d}"
        statement = "DELETE FROM fact WHERE workspace = ? AND name LIKE 'mark %' AND name < ?"
        self._db.execute(statement, (self._db.workspace, old))


def mark_of(connection: SqliteDatabase, generation: int) -> str:
    """The mark of a generation, by which one truth is told from another that counted as far."""
    return str(fact(connection, f"mark {generation:012d}") or "")
