"""Who calls, and the workspace as they may see it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from time import monotonic
from typing import Final

from fastapi import Request

from satchel.errors import InvalidInput
from satchel.http.work import Work
from satchel.models.request import User
from satchel.service.client import Caller
from satchel.service.local_client import LocalSatchel

_POLL_S: Final = 0.01
_LATER_PATIENCE_S: Final = 1.0


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
    asked = monotonic()
    patience = min(bag.patience, _LATER_PATIENCE_S) if bag.auto_index.has_looked else bag.patience
    while not bag.auto_index.is_current(asked) and monotonic() - asked < patience:
        await asyncio.sleep(_POLL_S)
    return replace(bag, index_notes=bag.auto_index.notes())


def caller_of(request: Request) -> Caller:
    """Who calls; the guard has seen to it."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


def work_of(request: Request) -> Work:
    """Where blocking work is done."""
    work: Work = request.app.state.work
    return work
