"""Streams from blocking iterators: in order, with an end, and let go when nobody listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from starlette.exceptions import HTTPException

from satchel.http.routes import requests as module
from satchel.http.routes.requests import WorkerThreads
from tests.support.waiting import HANG_SECONDS, wait_for_async


def test_pieces_come_in_order_and_end() -> None:
    async def hear() -> list[int]:
        work = WorkerThreads()
        try:
            return [one async for one in work.stream(iter(range(500)))]
        finally:
            work.close()

    assert asyncio.run(hear()) == list(range(500))


def test_whoever_stops_listening_ends_the_iterator() -> None:
    ended = threading.Event()

    def forever() -> Iterator[int]:
        try:
            i = 0
            while True:
                yield (i := i + 1)
        finally:
            ended.set()

    async def hear() -> None:
        work = WorkerThreads()
        stream = work.stream(forever())
        async for one in stream:
            if one == 3:
                break
        await stream.aclose()  # type: ignore[attr-defined]
        await wait_for_async(ended.is_set, "the end of the work")
        work.close()

    asyncio.run(hear())


def test_there_are_only_so_many_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STREAMS_AT_ONCE", 2)
    released = threading.Event()

    def silent() -> Iterator[int]:
        yield 1
        released.wait(HANG_SECONDS)

    async def hear() -> None:
        work = WorkerThreads()
        open_ones = [work.stream(silent()) for _ in range(2)]
        for stream in open_ones:
            assert await anext(stream) == 1
            await stream.aclose()  # type: ignore[attr-defined]
        with pytest.raises(HTTPException):
            work.stream(silent())
        released.set()
        assert [one async for one in await _when_free(work)] == [7]
        work.close()

    async def _when_free(work: WorkerThreads) -> AsyncIterator[int]:
        def stream() -> AsyncIterator[int] | None:
            try:
                return work.stream(iter([7]))
            except HTTPException:
                return None

        return await wait_for_async(stream, "a free place")

    asyncio.run(hear())


def test_a_stream_that_nobody_reads_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STREAMS_AT_ONCE", 2)
    work = WorkerThreads()
    for _ in range(5):
        work.stream(iter([1]))

    async def hear() -> list[int]:
        return [one async for one in work.stream(iter([1, 2]))]

    assert asyncio.run(hear()) == [1, 2]
    work.close()
