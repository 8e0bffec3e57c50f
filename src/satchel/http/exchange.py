"""One request and its answer, as they pass through the guard."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import anyio

from satchel.http.bodies import ClientGone, Upload
from satchel.http.headers import headers_for
from satchel.http.problems import Problem, Refused, problem

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from satchel.http.heads import Head
    from satchel.http.limits import Limits
    from satchel.service.identity import Caller

GONE: Final = "satchel.gone"
"""Set in the scope by the protocol when the client leaves before the answer's end."""
STREAMING: Final = "satchel.streaming"
"""Set in the scope for the protocol when an answer of unknown length is under way."""
CLIENT_CLOSED: Final = 499


class Exchange:
    """What is known of a request, and what was sent for it. `receive` and `send` are what the application gets."""

    __slots__ = (
        "_answering",
        "_body",
        "_cancel",
        "_deadline",
        "_limits",
        "_receive",
        "_send",
        "_timer",
        "_when_late",
        "began",
        "body_left",
        "bytes_out",
        "caller",
        "code",
        "complete",
        "gone",
        "head",
        "noted",
        "refusal",
        "scope",
        "started",
        "status",
        "upload",
    )

    def __init__(self, head: Head, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.began = time.perf_counter()
        self.head = head
        self.scope = scope
        self.caller: Caller | None = None
        self.status = 0
        self.code = ""
        self.bytes_out = 0
        self.started = False
        self.complete = False
        self.gone = False
        self.noted = False
        self.body_left = head.has_body
        self.refusal: Problem | None = None
        """A reason found while the application worked; nothing that it sends counts any more."""
        self.upload: Upload | None = None
        self._receive = receive
        self._send = send
        self._limits = limits
        self._body: bytes | None = None
        self._cancel: anyio.CancelScope | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._when_late: Callable[[], None] | None = None
        self._answering: asyncio.Task[None] | None = None

    @property
    def left(self) -> bool:
        """Whether the client left before the end of the answer."""
        return not self.complete and (self.gone or GONE in self.scope)

    # -- from the client

    async def pull(self) -> Message:
        """The client's next message."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = self.gone or not self.complete
        elif not message.get("more_body", False):
            self.body_left = False
        return message

    def replay(self, body: bytes) -> None:
        """Give the application a body that was read before."""
        self._body = body

    async def receive(self) -> Message:
        """The application's next message."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self.upload is None or not self.body_left:
            return await self.pull()
        self._deadline = math.inf  # for as long as it is the client who is waited for
        try:
            message = await self.upload.part(self.pull)
        except Refused as refused:
            self.refusal = refused.problem
            raise
        self._arm()
        return message

    # -- to the client

    async def send(self, message: Message) -> None:
        """What the application sends."""
        if self.refusal is not None:
            return
        if self.left:
            raise ClientGone
        if message["type"] == "http.response.start":
            await self._start(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body":
            await self._send_body(message.get("body", b""), message.get("more_body", False))

    async def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """Answer without the application."""
        await self._start(status, headers)
        await self._send_body(body, False)

    async def refuse(self, found: Problem) -> None:
        """Answer with a problem, unless an answer has begun: then the connection ends without its end."""
        if self.left:
            return
        self.code = self.code or found.code
        if self.started:
            return
        body = found.encoded(self.head.request_id)
        await self.answer(found.status, found.head(len(body)), body)

    async def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.started = True
        self.status = status
        if self._timer is not None:
            self._timer.cancel()
        merged, length_known = headers_for(self.head, headers, closes=self.body_left)
        if not length_known and status not in (204, 304):
            self.scope[STREAMING] = True
        await self._send({"type": "http.response.start", "status": status, "headers": merged})

    async def _send_body(self, body: bytes, more: bool) -> None:
        self.bytes_out += len(body)
        if not more and self.body_left:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            await self._linger()
            body = b""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        self.complete = not more and GONE not in self.scope

    async def _linger(self) -> None:
        """Take what the client still sends, for a while: a connection closed before loses the answer, too."""
        left = 0 if b"expect" in self.head.said else self._limits.linger_bytes
        try:
            async with asyncio.timeout(self._limits.linger_seconds):
                while left > 0 and self.body_left and not self.left:
                    left -= len((await self.pull()).get("body", b""))
        except TimeoutError:
            """It is not read to its end."""

    # -- in time

    async def run(self, app: Any, when_late: Callable[[], None]) -> None:
        """Let the application work; if it does not answer in time, answer for it."""
        self._when_late = when_late
        self._arm()
        try:
            # A worker thread cannot be cancelled: this scope then ends when the thread does.
            with anyio.CancelScope() as self._cancel:
                await app(self.scope, self.receive, self.send)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._answering is not None:
                await self._answering

    def _arm(self) -> None:
        """Give the application its time, from now on. The timer looks at the deadline when it fires, so it may stay."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + self._limits.request_seconds
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._expire)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        if self.started or self.refusal is not None:
            return
        if loop.time() < self._deadline:
            later = min(self._deadline, loop.time() + self._limits.request_seconds)
            self._timer = loop.call_at(later, self._expire)
            return
        self.refusal = _took_too_long(self._limits.request_seconds)
        self._answering = loop.create_task(self._answer_late(self.refusal))
        assert self._cancel is not None
        self._cancel.cancel()

    async def _answer_late(self, found: Problem) -> None:
        await self.refuse(found)
        if self._when_late is not None:
            self._when_late()


def _took_too_long(seconds: float) -> Problem:
    told = f"There was no answer within {seconds:g} seconds. Ask for less, or try again later."
    return problem(504, "took-too-long", "It took too long", told)
