"""Shared parts of all routes: worker threads, the caller, the caller's view of the workspace, and responses."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Semaphore, Thread
from time import monotonic
from typing import Any, Final, TypeVar, cast

from fastapi import Request
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from satchel.errors import InvalidInput
from satchel.models.request import User
from satchel.service.auto_index import Fresh
from satchel.service.client import Caller
from satchel.service.open_roots import LocalClient
from satchel.text.visible import show_lone_bytes

T = TypeVar("T")

# More threads would compete for the interpreter lock (GIL): with ten, a question took half as much CPU time again.
_QUESTION_THREADS: Final = max(2, os.cpu_count() or 2)
_LONG_WORK_THREADS: Final = 8  # threads wait for disks and other servers, not for the interpreter
_STREAMS_AT_ONCE: Final = 32  # each stream holds a thread until the iterator ends; further streams get 503
_MAX_QUEUED_ITEMS: Final = 64  # of a stream; with a slow client the thread waits instead of filling the memory
_END: Final = object()


class _Slot:
    """A slot of the stream limit, released when the stream ends or is garbage-collected unread."""

    def __init__(self, places: Semaphore) -> None:
        self._places: Semaphore | None = places

    def release(self) -> None:
        places, self._places = self._places, None
        if places is not None:
            places.release()

    __del__ = release


class WorkerThreads:
    """Thread pools for questions, long work (index runs, uploads) and language models, and a thread per stream."""

    def __init__(self) -> None:
        self._questions = ThreadPoolExecutor(_QUESTION_THREADS, "satchel-question")
        self._long = ThreadPoolExecutor(_LONG_WORK_THREADS, "satchel-long")
        self._models = ThreadPoolExecutor(_LONG_WORK_THREADS, "satchel-model")
        self._streams = Semaphore(_STREAMS_AT_ONCE)

    async def question(self, work: Callable[[], T]) -> T:
        """The result of short work (milliseconds)."""
        return await asyncio.get_running_loop().run_in_executor(self._questions, work)

    async def long(self, work: Callable[[], T]) -> T:
        """The result of long work (index runs, uploads)."""
        return await asyncio.get_running_loop().run_in_executor(self._long, work)

    async def model(self, work: Callable[[], T]) -> T:
        """The result of a call to a language model; separate threads keep slow models from delaying routes."""
        return await asyncio.get_running_loop().run_in_executor(self._models, work)

    def stream(self, items: Iterator[T]) -> AsyncIterator[T]:
        """The items of a blocking iterator, as an async iterator; closes `items` soon after the consumer stops."""
        if not self._streams.acquire(blocking=False):
            raise HTTPException(503, headers={"Retry-After": "5"})
        return self._items(items, _Slot(self._streams))

    async def _items(self, items: Iterator[T], slot: _Slot) -> AsyncIterator[T]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue(_MAX_QUEUED_ITEMS)
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
        """Shut the thread pools down without waiting for running work."""
        for pool in (self._questions, self._long, self._models):
            pool.shutdown(wait=False, cancel_futures=True)


ANY: Final = "satchel_any"  # in a route: `/blocks/{block_id:satchel_any}`


class _AnyConvertor(PathConvertor):
    # Starlette's own convertor stops at a line break, and the request would get 404.
    regex = r"[\s\S]*"


register_url_convertor(ANY, _AnyConvertor())


_POLL_S: Final = 0.01  # between checks of an index run; a question is delayed by at most this much
_LATER_PATIENCE_S: Final = 1.0  # after the first run there is an index to answer from, with a note (docs/http.md)


async def known_query(request: Request) -> None:
    """Refuse unknown and repeated query parameters (only `readers` may repeat)."""
    if not request.scope["query_string"]:
        return
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    names = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in names.items():
        if name not in known:
            problem = f"unknown parameter; this route takes {', '.join(sorted(known)) or 'none'}"
            raise InvalidInput("query", name, problem)
        if count > 1 and name != "readers":
            raise InvalidInput(name, count, "is given more than once; give it once")


def satchel_for(request: Request, user: User | None = None) -> LocalClient:
    """The workspace with the access of the caller, or of `user` if the caller is an owner."""
    client: LocalClient = request.app.state.satchel
    caller = caller_of(request)
    asking = caller.asking(user)
    return client.seen_by(caller if asking == caller.user else Caller(user=asking, is_owner=caller.is_owner))


def satchel_for_owner(request: Request, action: str) -> LocalClient:
    """The workspace for an owner; refuses `action` to any caller who is not an owner."""
    caller_of(request).must_be_owner(action)
    return satchel_for(request)


async def fresh(request: Request, user: User | None = None, max_age: Fresh = None) -> LocalClient:
    """The workspace for the caller (`satchel_for`) after the index is refreshed, or after a limited wait.

    The wait takes no worker thread. The first index run gets the longest wait, unless it takes longer still and a part
    can be searched; during later runs the answer comes from the index so far, with a note.
    """
    client = satchel_for(request, user)
    began = monotonic()
    patience = min(client.patience, _LATER_PATIENCE_S) if client.auto_index.has_looked else client.patience
    while not client.auto_index.is_current(began, max_age) and monotonic() - began < patience:
        if client.auto_index.can_answer_before(began + patience):
            break
        await asyncio.sleep(_POLL_S)
    return replace(client, index_notes=client.auto_index.notes())


def caller_of(request: Request) -> Caller:
    """The caller of the request, authenticated by the guard."""
    return cast("Caller", request.scope["state"]["caller"])


def work_of(request: Request) -> WorkerThreads:
    """The worker threads of the application."""
    return cast("WorkerThreads", request.app.state.work)


_PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_REFUSALS: Final = {
    400: "The request is malformed",
    401: "Missing or wrong token",
    403: "Not allowed for this caller",
    404: "Not found",
    409: "Conflict",
    413: "The body is too large",
    414: "The URL is too long",
    415: "Not JSON",
    422: "The request is not valid",
    431: "The headers are too large",
    503: "Not available at the moment",
}
_GUARD_STATUSES: Final = (400, 401, 403, 413, 414, 415, 431)  # refusals of the guard, possible on every route


def describe(summary: str, model: Any, *refusals: int, also: str = "") -> dict[str, Any]:
    """The OpenAPI arguments of a route: summary, JSON model, a second media type (`also`), and statuses of refusals."""
    success: dict[str, Any] = {"model": model} if model else {}
    if also:
        success["content"] = {also: {}}
    refused = {
        status: {"description": _REFUSALS[status], "content": _PROBLEM} for status in (*_GUARD_STATUSES, *refusals)
    }
    return {"summary": summary, "responses": {200: success, **refused}}


def as_json(value: Any) -> Response:
    """A JSON response; bytes outside UTF-8 are shown as `⟦0xE9⟧`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(show_lone_bytes(text).text.encode(), media_type="application/json")


def event(kind: str, value: Any) -> bytes:
    """A server-sent event as bytes."""
    return f"event: {kind}\ndata: {json.dumps(value, ensure_ascii=True, allow_nan=False)}\n\n".encode()


def as_events(events: AsyncIterator[bytes]) -> StreamingResponse:
    """A response of server-sent events."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def wants(request: Request, kind: str) -> bool:
    """True if the Accept header prefers this media type to JSON."""
    accepted = request.headers.get("accept", "")
    return kind in accepted and "application/json" not in accepted.split(kind)[0]
