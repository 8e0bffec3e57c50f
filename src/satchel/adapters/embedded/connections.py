"""A connection to the SQLite file for each thread that asks, for as long as the thread lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.adapters.embedded.truth import closed, connect

if TYPE_CHECKING:
    import apsw

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
        self._open: list[apsw.Connection] = []
        self._idle: list[apsw.Connection] = []
        self._is_closed = False

    def mine(self) -> apsw.Connection:
        """This thread's."""
        held: _Held | None = getattr(self._threads, "held", None)
        if held is None:
            held = self._threads.held = _Held(self._taken(), self._given_back)
        return held.connection

    def _taken(self) -> apsw.Connection:
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

    def _given_back(self, connection: apsw.Connection) -> None:
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

    def _close(self, connection: apsw.Connection) -> None:
        import apsw

        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                connection.interrupt()
                connection.close()
            except apsw.ConnectionClosedError:
                pass
            except apsw.ThreadingViolationError:
                # Somebody is in the middle of a statement, which was told to end.
                if time.monotonic() < until:
                    time.sleep(_LOOK_AGAIN_S)
                    continue
                raise
            break
        with self._lock:
            self._open = [one for one in self._open if one is not connection]


class _Held:
    """What a thread holds; it is let go of with the thread."""

    def __init__(self, connection: apsw.Connection, give_back: Callable[[apsw.Connection], None]) -> None:
        self.connection = connection
        self._give_back = give_back

    def __del__(self) -> None:
        self._give_back(self.connection)
