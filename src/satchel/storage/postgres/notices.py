"""Hears of commits as they happen, and lets go of what was seen before them.

Nothing rests on it for correctness: every answer looks at the generation in its own transaction. It saves the memory
that views of the past would take, and lets programs wait for a change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Event, Thread
from typing import Any, Final

import psycopg

from satchel.storage.postgres.writer import CHANNEL

_log: Final = logging.getLogger(__name__)
_LISTENS_S: Final = 0.25
_CONNECT_S: Final = 10
_AGAIN_S: Final = 2.0


class Notices:
    """A thread that listens on a connection of its own."""

    def __init__(self, database: str, workspace: int, told: Callable[[int], None]) -> None:
        self._database = database
        self._workspace = workspace
        self._told = told
        self._over = Event()
        self._changed = Condition()
        self._generation = -1
        self.is_listening = Event()
        self._thread = Thread(target=self._run, name="satchel-notices", daemon=True)
        self._thread.start()

    def wait(self, after: int, timeout: float) -> int:
        """The newest generation that was told of, as soon as it is newer than that one."""
        with self._changed:
            self._changed.wait_for(lambda: self._generation > after, timeout)
            return max(after, self._generation)

    def close(self) -> None:
        """Listen no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with psycopg.connect(self._database, autocommit=True, connect_timeout=_CONNECT_S) as connection:
                    self._listen(connection)
            except psycopg.Error as error:
                _log.debug("the database tells nothing: %s", error)
            self.is_listening.clear()
            self._over.wait(_AGAIN_S)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(f"LISTEN {CHANNEL}".encode())
        # What was committed while nobody listened.
        row = connection.execute(
            "SELECT generation FROM satchel.enter(%s, %s, false)", (self._workspace, [])
        ).fetchone()
        if row is not None:
            self._hear(f"{self._workspace} {row[0]}")
        self.is_listening.set()
        while not self._over.is_set():
            for notice in connection.notifies(timeout=_LISTENS_S, stop_after=1):
                self._hear(notice.payload)

    def _hear(self, payload: str) -> None:
        workspace, _, generation = payload.partition(" ")
        if workspace == str(self._workspace) and generation.isdecimal():
            self._told(int(generation))
            with self._changed:
                self._generation = max(self._generation, int(generation))
                self._changed.notify_all()
