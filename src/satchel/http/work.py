"""Threads for blocking work, in a fixed number: stores have a connection for each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore, Thread
from typing import Any, Final, TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")

# More would only take turns at the interpreter: with ten, a question took half as much CPU time again.
_QUESTIONS_AT_ONCE: Final = max(2, os.cpu_count() or 2)
_LONG_AT_ONCE: Final = 8  # they wait for disks and other servers, not for the interpreter
_STREAMS_AT_ONCE: Final = 32  # each has a thread that cannot be called back
_MAX_WAITING_ITEMS: Final = 64  # of a stream whose client reads slowly
_END: Final = object()


class _Slot:
    """A place among the streams, free again when the stream has ended or was thrown away unread."""

    def __init__(self, places: Semaphore) -> None:
        self._places: Semaphore | None = places

    def release(self) -> None:
        places, self._places = self._places, None
        if places is not None:
            places.release()

    __del__ = release


class Work:
    """Threads for questions, for long work (index runs, uploads), for language models, and one for each stream."""

    def __init__(self) -> None:
        self._questions = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "satchel-question")
        self._long = ThreadPoolExecutor(_LONG_AT_ONCE, "satchel-long")
        self._models = ThreadPoolExecutor(_LONG_AT_ONCE, "satchel-model")
        self._streams = Semaphore(_STREAMS_AT_ONCE)

    async def question(self, work: Callable[[], T]) -> T:
        """The result of work that takes milliseconds."""
        return await asyncio.get_running_loop().run_in_executor(self._questions, work)

    async def long(self, work: Callable[[], T]) -> T:
        """The result of work that may take long."""
        return await asyncio.get_running_loop().run_in_executor(self._long, work)

    async def model(self, work: Callable[[], T]) -> T:
        """The result of work that waits for a language model, which must not delay other work."""
        return await asyncio.get_running_loop().run_in_executor(self._models, work)

    def stream(self, items: Iterator[T]) -> AsyncIterator[T]:
        """The items of a blocking iterator as they come; it is closed soon after the consumer has stopped."""
        if not self._streams.acquire(blocking=False):
            raise HTTPException(503, headers={"Retry-After": "5"})
        return self._items(items, _Slot(self._streams))

    async def _items(self, items: Iterator[T], slot: _Slot) -> AsyncIterator[T]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue(_MAX_WAITING_ITEMS)
        consumer_left = Event()

        def run() -> None:
            try:
                for item in items:
                    if consumer_left.is_set() or not _put(item):
                        break
            finally:
                getattr(items, "close", lambda: None)()
                slot.release()
                _put(_END)

        def _put(item: Any) -> bool:
            if loop.is_closed() or consumer_left.is_set():
                return False
            try:
                asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return False
            return True

        Thread(target=run, name="satchel-stream", daemon=True).start()
        try:
            while (item := await queue.get()) is not _END:
                yield item
        finally:
            consumer_left.set()
            while not queue.empty():  # a thread that waits for room goes on
                queue.get_nowait()

    def close(self) -> None:
        """Let the threads end, without waiting for them."""
        for pool in (self._questions, self._long, self._models):
            pool.shutdown(wait=False, cancel_futures=True)
