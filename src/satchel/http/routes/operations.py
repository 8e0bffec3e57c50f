"""Routes for running a server: the state of the index and index runs, health, metrics, and the inspector page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from satchel import __version__
from satchel.errors import SatchelError
from satchel.http import response_models as answers
from satchel.http.problems import problem_for
from satchel.http.routes.requests import (
    Work,
    as_events,
    as_json,
    caller_of,
    describe,
    event,
    satchel_for,
    wants,
    work_of,
)
from satchel.service.auto_index import IndexState
from satchel.service.local_client import LocalSatchel

router = APIRouter(prefix="/v1", tags=["index"])


@router.get("/status", **describe("status", "What the index holds", 503, model=answers.StatusAnswer))
async def status(request: Request) -> Response:
    """What the index holds and how far it is; a user who is not the owner is not told how much there is."""
    bag = satchel_for(request)
    return await work_of(request).long(lambda: as_json(bag.status().to_dict()))


@router.get("/index", **describe("index_state", "How far an index run is", model=answers.Progress))
async def index_state(request: Request) -> Response:
    """How far the run is that is under way, or how the last one ended."""
    told = told_state(satchel_for(request).auto_index.state)
    if not caller_of(request).is_owner:
        told |= {"doing": "", "done": 0, "of": 0, "problem": "the index is not up to date" if told["problem"] else ""}
    return as_json(told)


@router.post(
    "/index",
    **describe(
        "index",
        "Bring the index up to the folder",
        409,
        503,
        model=answers.IndexedAnswer,
        media_type="text/event-stream",
    ),
)
async def index(request: Request) -> Response:
    """Read what has changed; for owners. With `Accept: text/event-stream` progress comes as events.

    The events are `progress` (running, doing, done, of), then `done` with the report, or `problem`. Whoever stops
    listening does not stop the run.
    """
    caller_of(request).must_be_owner("index the workspace")
    bag, work = satchel_for(request), work_of(request)
    if wants(request, "text/event-stream"):
        return as_events(_progress(bag, work))
    return await work.long(lambda: as_json(bag.index().to_dict()))


def told_state(state: IndexState) -> dict[str, Any]:
    """The state as JSON can hold it."""
    return {name: getattr(state, name) for name in IndexState.__slots__}


async def _progress(bag: LocalSatchel, work: Work) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    states: asyncio.Queue[IndexState] = asyncio.Queue()

    def watch(state: IndexState) -> None:
        loop.call_soon_threadsafe(states.put_nowait, state)

    running = asyncio.ensure_future(work.long(lambda: bag.index(watch)))
    running.add_done_callback(lambda one: one.cancelled() or one.exception())  # somebody has to look at it
    while not running.done() or not states.empty():
        getting = asyncio.ensure_future(states.get())
        try:
            await asyncio.wait({getting, running}, return_when=asyncio.FIRST_COMPLETED, timeout=15)
            yield event("progress", told_state(getting.result())) if getting.done() else b": still at it\n\n"
        finally:
            getting.cancel()
    try:
        yield event("done", running.result().to_dict())
    except SatchelError as error:
        yield event("problem", problem_for(error, bag.caller).as_dict())


service_router = APIRouter(tags=["service"])

_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


@service_router.head("/health", include_in_schema=False)
@service_router.get(
    "/health", operation_id="health", summary="Whether it is up", responses={200: {"model": answers.Health}}
)
async def health() -> Response:
    """Answers as long as the server does; needs no token and says nothing about the workspace."""
    return as_json({"status": "ok", "version": __version__})


@service_router.get("/metrics", **describe("metrics", "Counts and times for Prometheus", media_type="text/plain"))
async def metrics(request: Request) -> Response:
    """Requests by route and status, and how long they took; for owners."""
    caller_of(request).must_be_owner("read the metrics")
    return Response(request.app.state.metrics.render(), headers={"content-type": _PROMETHEUS})


page_router = APIRouter(include_in_schema=False)

_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@page_router.head("/")
@page_router.get("/")
async def inspector(request: Request) -> Response:
    """The page; it holds no data, and asks for it with the caller's cookie."""
    return _file("index.html", request)


@page_router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """A file of the page."""
    return _file(name, request)


def _file(name: str, request: Request) -> Response:
    data, tag = _files().get(name, (b"", ""))
    if not tag:
        raise HTTPException(404)
    headers = {"content-type": _KINDS[name.rpartition(".")[2]], "cache-control": "no-cache", "etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """All files of the page with their tags: what is not among them is not served."""
    folder = resources.files("satchel.web")
    files = [one for one in folder.iterdir() if one.name.rpartition(".")[2] in _KINDS]
    contents = {one.name: one.read_bytes() for one in files}
    return {name: (data, f'"{blake2b(data, digest_size=12).hexdigest()}"') for name, data in contents.items()}
