"""Questions are answered in a few threads, so that the loop is free to hear of cancellations."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from satchel.mcp.telling import Report, Telling

T = TypeVar("T")
_AT_ONCE: Final = max(4, (os.cpu_count() or 2) * 2)


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
