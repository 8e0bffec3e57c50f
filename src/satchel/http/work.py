"""Blocking work in a fixed number of threads: stores keep a connection for each, and answers stay in turn."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore, Thread
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")

_QUESTIONS_AT_ONCE: Final = max(2, os.cpu_count() or 2)
"""More would only take turns at the interpreter: with ten, a question took half as much CPU time again."""
_LONG_AT_ONCE: Final = 8
_STREAMS_AT_ONCE: Final = 32
_WAITING_PIECES: Final = 64
_END: Final = object()


class _Slot:
    """A place among the streams; it is free again when the stream has ended, or was thrown away unheard."""

    def __init__(self, places: Semaphore) -> None:
        self._places: Semaphore | None = places

    def release(self) -> None:
        places, self._places = self._places, None
        if places is not None:
            places.release()

    __del__ = release


class Work:
    """Threads for questions, others for what takes long (index runs, uploads), and one for each stream."""

    def __init__(self) -> None:
        self._questions = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "satchel-question")
        self._long = ThreadPoolExecutor(_LONG_AT_ONCE, "satchel-long")
        self._models = ThreadPoolExecutor(_LONG_AT_ONCE, "satchel-model")
        self._streams = Semaphore(_STREAMS_AT_ONCE)

    async def question(self, work: Callable[[], T]) -> T:
        """Do what takes milliseconds."""
        return await asyncio.get_running_loop().run_in_executor(self._questions, work)

    async def long(self, work: Callable[[], T]) -> T:
        """Do what may take long."""
        return await asyncio.get_running_loop().run_in_executor(self._long, work)

    async def model(self, work: Callable[[], T]) -> T:
        """Do what waits for a language model: others must not wait for it, too."""
        return await asyncio.get_running_loop().run_in_executor(self._models, work)

    def stream(self, things: Iterator[T]) -> AsyncIterator[T]:
        """What a blocking iterator yields, as it comes; it ends soon after nobody listens any more.

        A thread that waits for a model cannot be called back: there are only so many of them.
        """
        if not self._streams.acquire(blocking=False):
            raise HTTPException(503, headers={"Retry-After": "5"})
        return self._pieces(things, _Slot(self._streams))

    async def _pieces(self, things: Iterator[T], slot: _Slot) -> AsyncIterator[T]:
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Any] = asyncio.Queue(_WAITING_PIECES)
        left = Event()

        def run() -> None:
            try:
                for thing in things:
                    if left.is_set() or not _put(thing):
                        break
            finally:
                getattr(things, "close", lambda: None)()
                slot.release()
                _put(_END)

        def _put(thing: Any) -> bool:
            if loop.is_closed() or left.is_set():
                return False
            try:
                asyncio.run_coroutine_threadsafe(pieces.put(thing), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return False
            return True

        Thread(target=run, name="satchel-stream", daemon=True).start()
        try:
            while (thing := await pieces.get()) is not _END:
                yield thing
        finally:
            left.set()
            while not pieces.empty():  # whoever waits for room is let go
                pieces.get_nowait()

    def close(self) -> None:
        """Let the threads end; nobody waits for them."""
        for pool in (self._questions, self._long, self._models):
            pool.shutdown(wait=False, cancel_futures=True)
