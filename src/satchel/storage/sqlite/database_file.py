"""The SQLite file with the committed data; everything else in the folder can be derived from the file."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from satchel.errors import IndexBusy, IndexDamaged, IndexTooNew, IndexUnwritable, StoreUnavailable
from satchel.storage.sql.block_writer import RelationalWriter
from satchel.storage.sql.rows import Database
from satchel.storage.sql.table_transfer import CHANGED

_FOLDER: Final = Path(__file__).with_name("migrations")
_MIGRATIONS: Final = ("1_files.sql", "2_blocks.sql", "3_documents.sql", "4_workspace_column.sql")
"""Each migrates the file to the version in its name."""

VERSION: Final = len(_MIGRATIONS)


def migration(version: int) -> str:
    """The SQL from the previous version of the file to this version."""
    return (_FOLDER / _MIGRATIONS[version - 1]).read_text()


def migrate(connection: apsw.Connection, where: str) -> None:
    """Migrate the file to the current version, each step atomically."""
    version = connection.pragma("user_version")
    if version > VERSION:
        raise IndexTooNew(where, version, VERSION)
    while version < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated meanwhile.
            version = connection.pragma("user_version")
            if version < VERSION:
                version += 1
                connection.execute(migration(version))
                connection.pragma("user_version", version)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has ended the transaction already
                connection.execute("ROLLBACK")
            raise


FILE_NAME: Final = "truth.sqlite"
BUSY_TIMEOUT_MS: Final = 10_000  # waits for another process's commit; then the caller gets IndexBusy
_MAX_MARKS: Final = 1000  # segments that are more commits behind are built anew
_MAX_PROBLEM_CHARS: Final = 300  # fits a message; the first problems tell enough
_UNWRITABLE: Final = (apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.PermissionsError)
_CHECKSUM_BYTES: Final = 8  # SQLite's checksum layer looks after the files whose pages reserve exactly so many bytes
_CHECKSUMMED: Final = int.from_bytes(b"Satc", "big")
"""The application id of a file with a checksum in every page; older files of ours have none."""


_CLOSED: Final = (
    apsw.ConnectionClosedError,
    apsw.CursorClosedError,
    apsw.InterruptError,
    # Each thread has its own connection: only `close` touches the connections of other threads.
    apsw.ThreadingViolationError,
)


def damage_told_by(error: apsw.Error) -> str:
    """The damage to the file that an error reports, or ""."""
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
        return "a page does not match its checksum"
    return str(error) if isinstance(error, (apsw.NotADBError, apsw.CorruptError)) else ""


def quick_check(connection: apsw.Connection) -> str:
    """The problems found by SQLite's quick_check, which reads every page, or ""."""
    rows = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    return "" if rows == ["ok"] else " ".join("; ".join(rows).split())[:_MAX_PROBLEM_CHARS]


@contextmanager
def map_sqlite_errors(where: Path) -> Iterator[None]:
    """Raise SQLite's errors in the `with` block as Satchel's errors; `where` is the place that they name."""
    try:
        yield
    except _UNWRITABLE as error:
        if damage := damage_told_by(error):
            raise IndexDamaged(str(where), damage) from error
        raise IndexUnwritable(str(where), str(error)) from error
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
        # A full disk ends the transaction, and then SQLite reports that there is no transaction to end.
        if isinstance(error.__context__, _UNWRITABLE):
            raise IndexUnwritable(str(where), str(error.__context__)) from error
        raise IndexDamaged(str(where), str(error)) from error
    except apsw.BusyError as error:
        raise IndexBusy(str(where), "") from error
    except _CLOSED as error:
        raise closed_error(where) from error


def closed_error(where: Path) -> StoreUnavailable:
    """The error for calls on a closed store."""
    return StoreUnavailable(str(where), "the store is closed")


class SqliteDatabase(apsw.Connection, Database):
    """A connection to a file with a single workspace."""

    workspace = 1
    """SQLite stores the number 1 in no bytes at all."""
    like = "LIKE"


@cache
def checksum_layer() -> str:
    """The name of SQLite's file layer that verifies the checksum of each page it reads."""
    # The layer comes with apsw's wheels, as a library that registers itself for the whole process.
    library = Path(apsw.__file__).with_name("sqlite_extra_binaries") / "cksumvfs"
    with closing(apsw.Connection(":memory:")) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
        try:
            connection.load_extension(str(library))
        except apsw.ExtensionLoadingError as error:
            problem = f"apsw comes without the library cksumvfs: {error}; install apsw from PyPI"
            raise StoreUnavailable(str(library), problem) from error
    return "cksmvfs"


def connect(path: Path) -> SqliteDatabase:
    """An open SQLite file of the current version."""
    with map_sqlite_errors(path):
        connection = SqliteDatabase(os.fspath(path), vfs=checksum_layer())
        try:
            # Otherwise SQLite may plan a statement again for each newly bound value.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            with checksummed(connection, path):
                connection.pragma("journal_mode", "wal")
                connection.pragma("synchronous", "normal")
                connection.pragma("temp_store", "memory")
                migrate(connection, str(path))
        except BaseException:
            connection.close()
            raise
        return connection


def is_read_only(path: Path) -> bool:
    """True if this process may read the file, but write neither the file nor into its folder (also on a disk that
    nobody may write)."""
    return path.exists() and not any(os.access(place, os.W_OK) for place in (path, path.parent))


def connect_to_read(path: Path) -> SqliteDatabase:
    """A connection to an existing file, of any version, that writes nothing and makes no files beside it."""
    # With an empty write-ahead log SQLite needs no files beside the database: `immutable` prevents creating them.
    try:
        has_log = os.stat(f"{path}-wal").st_size > 0
    except OSError:
        has_log = False
    name = f"file:{quote(os.fspath(path.absolute()))}?{'mode=ro' if has_log else 'immutable=1'}"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = SqliteDatabase(name, flags=flags, vfs=checksum_layer())
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("temp_store", "memory")
        verify_checksums(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> SqliteDatabase:
    """A connection to a file of the current version that may only be read."""
    with map_sqlite_errors(path):
        connection = connect_to_read(path)
        version = int(connection.pragma("user_version"))
        if version == VERSION:
            return connection
        connection.close()
        if version > VERSION:
            raise IndexTooNew(str(path), version, VERSION)
        problem = f"it has format version {version}, and has to be brought to version {VERSION}"
        raise IndexUnwritable(str(path), problem, is_read_only=True)


def verify_checksums(connection: apsw.Connection, path: Path) -> bool:
    """True if the pages have checksums; raises IndexDamaged if the file's header was changed to turn them off."""
    if connection.pragma("application_id") != _CHECKSUMMED:
        return False
    if connection.reserve_bytes() != _CHECKSUM_BYTES:
        raise IndexDamaged(str(path), "the file's header is invalid")
    return True


@contextmanager
def checksummed(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Give the pages of a file checksums while the `with` block makes the file or brings it to the current version."""
    if verify_checksums(connection, path):
        yield
        return
    is_new = connection.pragma("page_count") == 0
    connection.reserve_bytes(None, _CHECKSUM_BYTES)
    yield
    if not is_new:
        connection.execute("VACUUM")
    connection.pragma("application_id", _CHECKSUMMED)


class SqliteWriter(RelationalWriter):
    """An open commit; records deleted files for the segments."""

    def _dropping(self, file: int) -> None:
        self._db.execute("INSERT INTO gone VALUES (?,?)", (file, self._generation))

    def _note_who_can_see_it(self) -> None:
        """Note the generation for the access lists with a change: other readers need not know of the commit."""
        lists = "SELECT DISTINCT access FROM file WHERE workspace = ? AND id IN ({keys})"
        changed = self.changed_lists.union(row[0] for row in self._db.run_in(lists, sorted(self.changed_files)))
        is_first = self._db.fact(f"{CHANGED}all") is None
        names = ["all"] if self.concerns_all or is_first or not changed else sorted(map(str, changed))
        for name in names:
            self.set_fact(f"{CHANGED}{name}", self._generation)

    def seal(self) -> None:
        """Write what belongs at the end of a commit, which the caller then ends.

        Recomputes deferred access, raises the generation, and stores a random mark to recognize derived data by.
        """
        self.settle_access()
        self._note_who_can_see_it()
        self.set_fact("generation", self._generation)
        self.set_fact(f"mark {self._generation:012d}", secrets.token_hex(8))
        old = f"mark {max(0, self._generation - _MAX_MARKS):012d}"
        self._db.run("DELETE FROM fact WHERE workspace = ? AND name LIKE 'mark %' AND name < ?", old)


def last_changes(connection: SqliteDatabase) -> dict[str, int]:
    """For each access list, and for `all`, the last generation in which its readers could see a change."""
    facts = connection.run("SELECT name, value FROM fact WHERE workspace = ? AND name LIKE ?", f"{CHANGED}%")
    return {name.removeprefix(CHANGED): int(value) for name, value in facts}


def mark_of(connection: SqliteDatabase, generation: int) -> str:
    """The mark of a generation; tells apart two databases with the same generation number."""
    return str(connection.fact(f"mark {generation:012d}") or "")


_MAX_IDLE_CONNECTIONS: Final = 4  # saves opening the file for the next threads; each open connection holds a page cache
# An interrupted statement ends soon; a thread that does not end must not block closing for ever.
_CLOSE_WAIT_S: Final = 10.0
_CLOSE_POLL_S: Final = 0.002  # polling more slowly would only delay closing


class ThreadConnections:
    """A connection for each thread, to isolate uncommitted changes; connections of ended threads are reused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_read_only = is_read_only(path)
        self._threads = threading.local()
        # Reentrant: this thread may give back an ended thread's connection (`__del__`) while it holds the lock.
        self._lock = threading.RLock()
        self._open: list[SqliteDatabase] = []
        self._idle: list[SqliteDatabase] = []
        self._is_closed = False

    def mine(self) -> SqliteDatabase:
        """The calling thread's connection."""
        mine: _ThreadConnection | None = getattr(self._threads, "mine", None)
        if mine is None:
            mine = self._threads.mine = _ThreadConnection(self._taken(), self)
        return mine.connection

    def _taken(self) -> SqliteDatabase:
        with self._lock:
            self._refuse_if_closed()
            if self._idle:
                return self._idle.pop()
        connection = connect_read_only(self._path) if self.is_read_only else connect(self._path)
        with self._lock:
            self._open.append(connection)
        try:
            self._refuse_if_closed()
        except BaseException:
            self._close(connection)
            raise
        return connection

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise closed_error(self._path.parent)

    def give_back(self, connection: SqliteDatabase) -> None:
        """Take back the connection of an ended thread."""
        with self._lock:
            if self._is_closed:
                return  # `close` has closed the connection
            if len(self._idle) < _MAX_IDLE_CONNECTIONS and not connection.in_transaction:
                self._idle.append(connection)
                return
        self._close(connection)

    def close(self) -> None:
        """Close all connections; running statements of other threads fail with StoreUnavailable."""
        with self._lock:
            self._is_closed = True
            left = list(self._open)
        for connection in left:
            self._close(connection)
        self._threads = threading.local()

    def _close(self, connection: SqliteDatabase) -> None:
        until = time.monotonic() + _CLOSE_WAIT_S
        while True:
            try:
                with suppress(apsw.ConnectionClosedError):
                    connection.close()
                break
            except apsw.ThreadingViolationError:
                if time.monotonic() > until:
                    raise
                # Another thread runs a statement. (Not interrupted earlier: closing checkpoints the write-ahead log.)
                with suppress(apsw.Error):
                    connection.interrupt()
                time.sleep(_CLOSE_POLL_S)
        with self._lock:
            self._open = [other for other in self._open if other is not connection]


class _ThreadConnection:
    """A thread's connection; goes back to the pool at the end of the thread."""

    def __init__(self, connection: SqliteDatabase, pool: ThreadConnections) -> None:
        self.connection = connection
        # No reference cycle: an unreferenced pool is freed, and its connections are closed.
        self._pool = weakref.ref(pool)

    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        # At interpreter exit the needed modules are gone already, and the files are closed anyhow.
        pool = None if is_over() else self._pool()
        if pool is not None:
            pool.give_back(self.connection)
