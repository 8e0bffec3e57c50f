"""What routes have in common: who calls, which workspace, and answers as JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from time import monotonic
from typing import Any, Final

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from satchel.errors import InvalidInput
from satchel.front.caller import Caller
from satchel.front.local import LocalSatchel
from satchel.model.request import User
from satchel.surfaces.http.work import Work
from satchel.text.visible import make_visible

_POLL_S: Final = 0.01
_LATER_PATIENCE_S: Final = 1.0
_ALONE: Final = re.compile("[\ud800-\udfff]")

PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route says in OpenAPI that it may refuse."""
    told = {
        400: "The request cannot be read",
        401: "No token, or a wrong one",
        403: "Not for this caller",
        404: "There is no such thing",
        409: "Something else is in the way",
        413: "Too large",
        414: "The address is too long",
        431: "The headers are too long",
        415: "Not JSON",
        422: "The request is not valid",
        503: "Not now",
    }
    return {
        status: {"description": told[status], "content": PROBLEM}
        for status in (400, 401, 403, 413, 414, 415, 431, *statuses)
    }


async def known_query(request: Request) -> None:
    """Refuse what a route does not ask for, and what is said twice: which of the two would be meant?"""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    known = {one.alias for one in route.dependant.query_params}
    said = [name for name, _ in request.query_params.multi_items()]
    for name in said:
        if name not in known:
            told = f"this route does not take it; it takes {', '.join(sorted(known)) or 'none'}"
            raise InvalidInput("query", name, told)
        if said.count(name) > 1 and name != "readers":
            raise InvalidInput(name, said.count(name), "is said more than once; which is meant?")


def satchel_for(request: Request, user: User | None = None) -> LocalSatchel:
    """The workspace as the caller may see it, or as the user may for whom an owner asks."""
    bag: LocalSatchel = request.app.state.satchel
    caller = caller_of(request)
    asking = caller.asking(user)
    return bag.seen_by(caller if asking == caller.user else Caller(user=asking, is_owner=caller.is_owner))


async def fresh(request: Request, user: User | None = None) -> LocalSatchel:
    """The same, brought up to the folder. A run is waited for here, and not in a thread that others need.

    The first is waited for longest; later ones are answered beside, with a note.
    """
    bag = satchel_for(request, user)
    upkeep, asked = bag.upkeep, monotonic()
    patience = min(bag.patience, _LATER_PATIENCE_S) if upkeep.has_looked else bag.patience
    while not upkeep.settle(asked) and monotonic() - asked < patience:
        await asyncio.sleep(_POLL_S)
    return replace(bag, looked=upkeep.notes())


def caller_of(request: Request) -> Caller:
    """Who calls; the guard has seen to it."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


def work_of(request: Request) -> Work:
    """Where blocking work is done."""
    work: Work = request.app.state.work
    return work


def as_json(value: Any, status: int = 200) -> Response:
    """An answer as JSON. A byte that was not UTF-8 is shown as `⟦0xE9⟧`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not text.isascii():
        text = _ALONE.sub(lambda found: make_visible(found[0]).text, text)
    return Response(text.encode(), status, media_type="application/json")


def event(kind: str, value: Any) -> bytes:
    """A server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(value, ensure_ascii=True, allow_nan=False)}\n\n".encode()


def as_events(events: AsyncIterator[bytes]) -> StreamingResponse:
    """An answer that comes as events."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def wants(request: Request, kind: str) -> bool:
    """Whether the caller asks for this kind of answer rather than JSON."""
    accepted = request.headers.get("accept", "")
    return kind in accepted and "application/json" not in accepted.split(kind)[0]
