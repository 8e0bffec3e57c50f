"""Connections: so many, and none that is waited for without end.

uvicorn waits for ever for a request's head and for a client to read its answer. Here the server looks at each
connection several times a second (`check`) and ends those that took too long.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from satchel.http.exchange import GONE, STREAMING
from satchel.http.headers import SECURITY_HEADERS
from satchel.http.limits import Limits
from satchel.http.problems import Problem, problem

_SETTLED_SECONDS: Final = 1.0
"""A client that has been silent for this long gives way when there is no room for another."""
_MORE_TURNED_AWAY: Final = 256
"""So many more connections are told that there is no room; the rest are cut off."""


def protocol_for(limits: Limits, on_refusal: Callable[[int, str], None]) -> type[GuardedProtocol]:
    """The protocol for one server."""
    shared = {"limits": limits, "on_refusal": staticmethod(on_refusal), "waiting": {}}
    return type("SatchelProtocol", (GuardedProtocol,), shared)


class GuardedProtocol(H11Protocol):
    """One connection, which ends when its client is too slow."""

    limits: ClassVar[Limits]
    on_refusal: ClassVar[Callable[[int, str], None]]
    """Told of each refusal: its status and code."""
    waiting: ClassVar[dict[GuardedProtocol, float]]
    """Connections without a request, the longest waiting first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting_since = 0.0
        self._leaving_since: float | None = None
        self._stalled_since: float | None = None
        self._stalled_bytes = 0

    # -- a connection's life

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is room for it."""
        super().connection_made(transport)
        if len(self.connections) <= self.limits.connections or self._made_room():
            self._wait()
        elif len(self.connections) <= self.limits.connections + _MORE_TURNED_AWAY:
            self._leave(_no_room())
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends; after a refusal it is thrown away."""
        if self._leaving_since is not None:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self.waiting.pop(self, None)

    def on_response_complete(self) -> None:
        """Wait for the next request, from now on."""
        self._wait()
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE:
            self.waiting.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let whoever works on a request know that its client is gone."""
        self.waiting.pop(self, None)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.scope[GONE] = True  # type: ignore[typeddict-unknown-key]
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stalled_since = None
        super().resume_writing()

    def shutdown(self) -> None:
        """The server stops: an answer that is being worked on may be finished, a stream ends."""
        if self.transport.is_closing():
            return
        if self._leaving_since is not None:
            self.transport.close()
            return
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way and STREAMING in self.cycle.scope:
            self.transport.close()
            return
        super().shutdown()

    # -- in time

    def check(self, now: float) -> None:
        """End the connection if its client has been too slow."""
        if self._is_stalled(now):
            type(self).on_refusal(408, "client-stalled")
            self.transport.abort()
        elif self.transport.is_closing():
            return
        elif self._leaving_since is not None:
            if now - self._leaving_since >= self.limits.linger_seconds:
                self.transport.close()
        elif self.conn.their_state is h11.IDLE and now - self._waiting_since >= self.limits.header_seconds:
            self._leave(_head_too_slow(), silently=not self.conn.trailing_data[0])

    def send_400_response(self, _: str) -> None:
        """Refuse what is no HTTP. Called where h11's reason is being handled."""
        error = sys.exc_info()[1]
        self._leave(_no_http(getattr(error, "error_status_hint", 400)))

    def _is_stalled(self, now: float) -> bool:
        """Whether the client does not read what was written for it."""
        held = self.transport.get_write_buffer_size()
        enough = self.limits.download_rate * self.limits.stalled_seconds
        if not held:
            self._stalled_since = None
        elif self._stalled_since is None or held <= self._stalled_bytes - enough:
            self._stalled_since, self._stalled_bytes = now, held
        else:
            return now - self._stalled_since >= self.limits.stalled_seconds
        return False

    # -- room

    def _wait(self) -> None:
        self._waiting_since = self.loop.time()
        self.waiting.pop(self, None)
        self.waiting[self] = self._waiting_since

    def _made_room(self) -> bool:
        """End the connection that has been waiting the longest without a request."""
        oldest = next(iter(self.waiting), None)
        if oldest is None or self.loop.time() - self.waiting[oldest] < _SETTLED_SECONDS:
            return False
        del self.waiting[oldest]
        oldest.transport.close()
        return True

    def _leave(self, found: Problem, silently: bool = False) -> None:
        """Say why, then throw away what still comes until the client has gone, or for a little while."""
        self.waiting.pop(self, None)
        self._unset_keepalive_if_required()
        type(self).on_refusal(found.status, found.code)
        if self.cycle is not None and not self.cycle.response_complete:
            begun = self.cycle.response_started
            self.cycle.disconnected = True
            self.cycle.scope[GONE] = True  # type: ignore[typeddict-unknown-key]
            self.cycle.message_event.set()
            if begun:
                self.transport.abort()
                return
        if silently or self.transport.is_closing():
            self.transport.close()
            return
        self._leaving_since = self.loop.time()
        self.flow.resume_reading()
        self.transport.write(_answer(found))
        self.transport.write_eof()


def _answer(found: Problem) -> bytes:
    """A whole answer, for requests that never became one."""
    body = found.encoded()
    status = f"HTTP/1.1 {found.status} {HTTPStatus(found.status).phrase}\r\n".encode("ascii")
    pairs = [*found.head(len(body)), *SECURITY_HEADERS, (b"connection", b"close")]
    return status + b"".join(b"%s: %s\r\n" % pair for pair in pairs) + b"\r\n" + body


def _no_room() -> Problem:
    told = "There are as many connections as this server takes. Try again in a moment."
    return problem(503, "server-busy", "The server is busy", told, {"Retry-After": "1"})


def _head_too_slow() -> Problem:
    return problem(408, "head-too-slow", "The request came too slowly", "Its head did not arrive in time.")


def _no_http(status: int) -> Problem:
    if status == 431:
        told = "The request line and the headers are longer than this server takes."
        return problem(431, "headers-too-large", "The headers are too large", told)
    if status == 501:
        told = "The only transfer coding that is taken is chunked."
        return problem(501, "unknown-coding", "The body's coding is not known", told)
    return problem(400, "bad-request", "This is no HTTP request", "The request line, headers or body break HTTP/1.1.")
