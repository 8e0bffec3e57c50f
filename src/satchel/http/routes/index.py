"""What the index holds, and bringing it up with progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from satchel.errors import SatchelError
from satchel.http import answers
from satchel.http.problems import problem_for
from satchel.http.routes.callers import caller_of, satchel_for, work_of
from satchel.http.routes.replies import as_events, as_json, describe, event, wants
from satchel.http.work import Work
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
