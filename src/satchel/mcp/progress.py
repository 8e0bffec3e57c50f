"""Threads in which questions are answered, and the progress of index runs that clients are told meanwhile.

The loop stays free to hear of cancellations.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from satchel.service.auto_index import IndexState

T = TypeVar("T")
_AT_ONCE: Final = max(4, (os.cpu_count() or 2) * 2)
_EVERY_S: Final = 0.2
_LOOKING_S: Final = 0.5
"""A folder that is looked through in less is not worth a word."""

Report = Callable[[float, float | None, str], Awaitable[None]]


class Gone(Exception):
    """Nobody waits for the answer any more."""


class Telling:
    """Watches an index run from a thread that waits for it, and has the loop tell the client."""

    def __init__(self, report: Report, loop: asyncio.AbstractEventLoop) -> None:
        self._report = report
        self._loop = loop
        self._gone = Event()
        self._begun: float | None = None
        self._told_at = -float("inf")
        self._told = -1
        self._before = 0
        self._doing = ""
        self._done = 0
        self._sending: Future[None] | None = None

    def give_up(self) -> None:
        """Nobody waits any more: the thread stops waiting, too. The index run goes on."""
        self._gone.set()

    def __call__(self, state: IndexState) -> None:
        """Called by the thread whenever there is something new."""
        if self._gone.is_set():
            raise Gone
        now = monotonic()
        self._begun = self._begun or now
        if not state.running or now - self._told_at < _EVERY_S or not self._is_free():
            return
        if not state.of and now - self._begun < _LOOKING_S:
            return
        progress, total = self._counted(state)
        if progress > self._told:
            self._told, self._told_at = progress, now
            self._sending = asyncio.run_coroutine_threadsafe(self._send(progress, total, state.summary), self._loop)

    async def finish(self) -> None:
        """Wait until what was begun to be told is told: nothing may come after the answer."""
        if self._sending is not None:
            await asyncio.wrap_future(self._sending)

    def _counted(self, state: IndexState) -> tuple[int, int | None]:
        """All steps together: what one step has counted is added to the next."""
        if state.doing != self._doing:
            self._before, self._doing = self._before + self._done, state.doing
        self._done = state.done
        return self._before + state.done, self._before + state.of if state.of else None

    def _is_free(self) -> bool:
        return self._sending is None or self._sending.done()

    async def _send(self, progress: float, total: float | None, message: str) -> None:
        try:
            await self._report(progress, total, message)
        except Exception:
            self.give_up()  # there is nobody to tell


class Work:
    """The threads, and who waits for them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, "satchel-mcp")
        self._quick = ThreadPoolExecutor(2, "satchel-mcp-status")
        self._waiting: set[Telling] = set()

    async def do(self, work: Callable[[Telling], T], report: Report, *, quick: bool = False) -> T:
        """Do something that may wait for an index run; whoever is cancelled meanwhile is not waited for."""
        loop = asyncio.get_running_loop()
        telling = Telling(report, loop)
        self._waiting.add(telling)
        try:
            done = await loop.run_in_executor(self._quick if quick else self._threads, partial(work, telling))
            await telling.finish()
            return done
        finally:
            telling.give_up()
            self._waiting.discard(telling)

    async def close(self) -> None:
        """Let everybody give up, and wait for the threads."""
        for telling in tuple(self._waiting):
            telling.give_up()
        for pool in (self._threads, self._quick):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
