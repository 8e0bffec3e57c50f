"""Bodies: read within limits, and refused as soon as it is clear that they will not do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from satchel.http.heads import SAFE_METHODS, Head
from satchel.http.problems import Problem, Refused, of_status, problem
from satchel.http.strict_json import BadJson, check

if TYPE_CHECKING:
    from starlette.types import Message, Receive

    from satchel.http.limits import Limits

_MOST_BYTES_AT_ONCE: Final = 16_384
"""A larger body is checked beside the loop, so that others are not kept waiting."""


class ClientGone(OSError):
    """The client has left; there is nobody to answer."""


def check_body_said(head: Head, limits: Limits) -> None:
    """Refuse what can be refused before any of the body is read."""
    if not head.has_body:
        return
    if head.method in SAFE_METHODS:
        raise Refused(problem(400, "unexpected-body", "A body is not expected", f"{head.method} takes no body."))
    if not head.is_upload and not head.is_json:
        raise Refused(of_status(415))
    said = head.said.get(b"content-length", b"")
    if said.isdigit() and int(said) > most_bytes(head, limits):
        raise Refused(too_large(most_bytes(head, limits)))


def most_bytes(head: Head, limits: Limits) -> int:
    """How large the body may be."""
    return limits.upload_bytes if head.is_upload else limits.body_bytes


def too_large(most: int) -> Problem:
    """For bodies over the limit."""
    return problem(413, "body-too-large", "The body is too large", f"It may have {most:,} bytes.", most_bytes=most)


def too_slow() -> Problem:
    """For bodies that do not arrive."""
    told = "The rest of the body did not arrive in time. Was all of it sent?"
    return problem(408, "body-too-slow", "The body came too slowly", told)


def server_busy(why: str) -> Problem:
    """For requests that there is no room for at the moment."""
    return problem(503, "server-busy", "The server is busy", f"{why} Try again in a moment.", {"Retry-After": "1"})


async def check_json(body: bytes, limits: Limits) -> None:
    """Refuse a body that is not strict JSON."""
    try:
        if len(body) > _MOST_BYTES_AT_ONCE:
            await asyncio.to_thread(check, body, limits.json_depth)
        elif body:
            check(body, limits.json_depth)
    except BadJson as error:
        place = f" (line {error.line}, column {error.column})" if error.position is not None else ""
        found = {"position": error.position, "line": error.line, "column": error.column}
        told = f"The body cannot be taken as JSON: {error.wrong}{place}."
        raise Refused(problem(400, "bad-json", "The body is not JSON as it has to be", told, None, **found)) from None


class Store:
    """Counts the bytes of all bodies that are being received, so that many of them cannot fill the memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.held = 0

    async def whole(self, receive: Receive) -> bytes:
        """The whole body. Refuses bodies that are too large or too slow."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientGone
                    part: bytes = message.get("body", b"")
                    more = message.get("more_body", False)
                    size += len(part)
                    self.held += len(part)
                    self._check(size)
                    parts.append(part)
        except TimeoutError:
            raise Refused(too_slow()) from None
        finally:
            self.held -= size
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check(self, size: int) -> None:
        if size > self._limits.body_bytes:
            raise Refused(too_large(self._limits.body_bytes))
        if self.held > self._limits.held_bytes:
            raise Refused(server_busy("It holds as many bodies as it has room for."))


class Upload:
    """A document on its way in: so many bytes, and never slower than the least rate for long."""

    __slots__ = ("_limits", "_waited", "size")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waited = 0.0
        self.size = 0

    @property
    def patience_seconds(self) -> float:
        """How long the next part may take: the more has come, the longer."""
        return self._limits.body_seconds + self.size / self._limits.upload_rate - self._waited

    async def part(self, receive: Receive) -> Message:
        """The client's next message."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(max(0.0, self.patience_seconds)):
                message = await receive()
        except TimeoutError:
            raise Refused(too_slow()) from None
        # Only time spent waiting counts against the client, not what is done with the parts in between.
        self._waited += loop.time() - began
        self.size += len(message.get("body", b""))
        if self.size > self._limits.upload_bytes:
            raise Refused(too_large(self._limits.upload_bytes))
        return message
