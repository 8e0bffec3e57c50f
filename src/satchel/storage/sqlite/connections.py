"""A connection to the SQLite file for each thread that asks, for as long as the thread lives."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from satchel.storage.sqlite.database_file import SqliteDatabase, closed, connect

_MOST_IDLE: Final = 4
_PATIENCE_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.002


class Connections:
    """Nobody sees what another thread has not committed; the connection of a thread that ended is the next one's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.local()
        # Of threads that end while this one is inside, too.
        self._lock = threading.RLock()
        self._open: list[SqliteDatabase] = []
        self._idle: list[SqliteDatabase] = []
        self._is_closed = False

    def mine(self) -> SqliteDatabase:
        """This thread's."""
        held: _Held | None = getattr(self._threads, "held", None)
        if held is None:
            held = self._threads.held = _Held(self._taken(), self)
        return held.connection

    def _taken(self) -> SqliteDatabase:
        with self._lock:
            self._refuse_if_closed()
            if self._idle:
                return self._idle.pop()
        connection = connect(self._path)
        with self._lock:
            self._open.append(connection)
        try:
            self._refuse_if_closed()
        except BaseException:
            self._close(connection)
            raise
        return connection

    def give_back(self, connection: SqliteDatabase) -> None:
        """A thread has ended."""
        with self._lock:
            if self._is_closed:
                return  # whoever closes has closed it
            if len(self._idle) < _MOST_IDLE and not connection.in_transaction:
                self._idle.append(connection)
                return
        self._close(connection)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise closed(self._path.parent)

    def close(self) -> None:
        """Close them all; a thread that is asking meanwhile is told so."""
        with self._lock:
            self._is_closed = True
            left = list(self._open)
        for connection in left:
            self._close(connection)
        self._threads = threading.local()

    def _close(self, connection: SqliteDatabase) -> None:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                connection.close()
            except apsw.ConnectionClosedError:
                pass
            except apsw.ThreadingViolationError:
                if time.monotonic() > until:
                    raise
                # Somebody is in the middle of a statement. (Not before: closing moves what was written into the file.)
                with suppress(apsw.Error):
                    connection.interrupt()
                time.sleep(_LOOK_AGAIN_S)
                continue
            break
        with self._lock:
            self._open = [one for one in self._open if one is not connection]


class _Held:
    """What a thread holds; it is let go of with the thread."""

    def __init__(self, connection: SqliteDatabase, pool: Connections) -> None:
        self.connection = connection
        # Not in a circle: what nobody closes is closed when nobody has it any more.
        self._pool = weakref.ref(pool)

    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        # When the interpreter ends, what would be needed is gone already, and the files are closed anyhow.
        pool = None if is_over() else self._pool()
        if pool is not None:
            pool.give_back(self.connection)
