"""Routes for running a server: the state of the index and index runs, health, metrics, and the inspector page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from satchel import __version__
from satchel.errors import SatchelError
from satchel.http import schemas
from satchel.http.problems import problem_for
from satchel.http.routes.requests import as_events, as_json, caller_of, describe, event, satchel_for, wants, work_of
from satchel.models.request import User
from satchel.service.auto_index import IndexState

router = APIRouter(prefix="/v1", tags=["index"])
service_router = APIRouter(tags=["service"])
page_router = APIRouter(include_in_schema=False)
ROUTERS: Final = (router, service_router, page_router)

_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@router.get("/status", **describe("Content of the index", schemas.StatusAnswer, 503))
async def status(request: Request) -> Response:
    """Content of the index and progress of indexing; only the owner gets counts."""
    client = satchel_for(request)
    return await work_of(request).long(lambda: as_json(client.status().to_dict()))


@router.get("/contents", **describe("What there is to ask about", schemas.ContentsAnswer, 422, 503))
async def contents(request: Request, user: schemas.Name | None = None) -> Response:
    """Documents, notes, open tasks with a date, and files that the caller may read, and questions they suggest."""
    client = satchel_for(request, User(id=user) if user else None)
    return await work_of(request).long(lambda: as_json(client.contents().to_dict()))


@router.get("/index", **describe("Progress of an index run", schemas.Progress))
async def index_state(request: Request) -> Response:
    """How far the run is that is under way, or how the last one ended."""
    state = asdict(satchel_for(request).auto_index.state)
    if not caller_of(request).is_owner:
        state |= {"doing": "", "done": 0, "of": 0, "problem": "the index is not up to date" if state["problem"] else ""}
    return as_json(state)


@router.post(
    "/index",
    **describe("Refresh the index", schemas.IndexedAnswer, 409, 503, also="text/event-stream"),
)
async def index(request: Request) -> Response:
    """Read what has changed; for owners. With `Accept: text/event-stream` progress comes as events.

    The events are `progress` (running, doing, done, of), then `done` with the report, or `problem`. Whoever stops
    listening does not stop the run.
    """
    caller_of(request).must_be_owner("index the workspace")
    if wants(request, "text/event-stream"):
        return as_events(_progress(request))
    client = satchel_for(request)
    return await work_of(request).long(lambda: as_json(client.index().to_dict()))


async def _progress(request: Request) -> AsyncIterator[bytes]:
    client, loop = satchel_for(request), asyncio.get_running_loop()
    states: asyncio.Queue[IndexState] = asyncio.Queue()

    def watch(state: IndexState) -> None:
        loop.call_soon_threadsafe(states.put_nowait, state)

    running = asyncio.ensure_future(work_of(request).long(lambda: client.index(watch)))
    running.add_done_callback(
        lambda run: run.cancelled() or run.exception()
    )  # retrieves the exception: asyncio would log a warning
    while not running.done() or not states.empty():
        getting = asyncio.ensure_future(states.get())
        try:
            await asyncio.wait({getting, running}, return_when=asyncio.FIRST_COMPLETED, timeout=15)
            yield event("progress", asdict(getting.result())) if getting.done() else b": still at it\n\n"
        finally:
            getting.cancel()
    try:
        yield event("done", running.result().to_dict())
    except SatchelError as error:
        yield event("problem", problem_for(error, client.caller).as_dict())


@service_router.head("/health", include_in_schema=False)
@service_router.get("/health", summary="Health of the server", responses={200: {"model": schemas.Health}})
async def health() -> Response:
    """Answers as long as the server does; needs no token and says nothing about the workspace."""
    return as_json({"status": "ok", "version": __version__})


@service_router.get("/metrics", **describe("Metrics for Prometheus", None, also="text/plain"))
async def metrics(request: Request) -> Response:
    """Requests by route and status, and how long they took; for owners."""
    caller_of(request).must_be_owner("read the metrics")
    return Response(request.app.state.metrics.render(), headers={"content-type": _PROMETHEUS})


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
    """Contents and ETags of the inspector page's files by name; no file outside this dict is served."""
    folder = resources.files("satchel.web")
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _KINDS}
    return {name: (data, f'"{blake2b(data, digest_size=12).hexdigest()}"') for name, data in contents.items()}
