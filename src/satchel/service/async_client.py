"""The client for asynchronous code: every call is made in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from satchel.service.client import Satchel

if TYPE_CHECKING:
    from typing import Self

P = ParamSpec("P")
T = TypeVar("T")


def _in_thread(
    method: Callable[Concatenate[Satchel, P], T],
) -> Callable[Concatenate[AsyncSatchel, P], Coroutine[Any, Any, T]]:
    """Wrap a client's method as a coroutine with the same arguments and result; the call runs in a thread."""

    @wraps(method)
    async def call(self: AsyncSatchel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        client = await self._opened()
        # Look the method up by name, to call the implementation of the client's own class.
        return await asyncio.to_thread(getattr(client, method.__name__), *args, **kwargs)

    return call


class AsyncSatchel:
    """Client of a workspace with awaitable methods; opened by `async with`, or by the first question."""

    def __init__(self, opening: Callable[[], Satchel]) -> None:
        self._opening = opening
        self._satchel: Satchel | None = None
        self._lock = asyncio.Lock()

    build = _in_thread(Satchel.build)
    search = _in_thread(Satchel.search)
    find = _in_thread(Satchel.find)
    expand = _in_thread(Satchel.expand)
    research = _in_thread(Satchel.research)
    ask = _in_thread(Satchel.ask)
    status = _in_thread(Satchel.status)
    index = _in_thread(Satchel.index)
    verify = _in_thread(Satchel.verify)

    async def aclose(self) -> None:
        """Close the client and release its resources."""
        satchel, self._satchel = self._satchel, None
        if satchel is not None:
            await asyncio.to_thread(satchel.close)

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _opened(self) -> Satchel:
        async with self._lock:
            if self._satchel is None:
                self._satchel = await asyncio.to_thread(self._opening)
            return self._satchel
