"""Connection limits and time-outs for slow clients (slowloris), also for those that do not read their response.

uvicorn waits without end for a request's head and for a client to read its response. Here the server looks at each
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

from satchel.http.guard.middleware import CLIENT_GONE, SECURITY_HEADERS, STREAMING
from satchel.http.guard.request_checks import Limits
from satchel.http.problems import Problem, problem_for_status, refusal

_SETTLED_SECONDS: Final = 1.0  # a client silent for this long gives way when there is no room for another
_MAX_TURNED_AWAY: Final = 256  # connections over the limit that get a response; the rest are cut off

_H11_PROBLEMS: Final = {431: problem_for_status(431), 501: refusal("unknown-coding")}


def connection_class(limits: Limits, on_refusal: Callable[[int, str], None]) -> type[GuardedConnection]:
    """The class of one server's connections."""
    shared = {"limits": limits, "on_refusal": staticmethod(on_refusal), "waiting": {}}
    return type("SatchelConnection", (GuardedConnection,), shared)


class GuardedConnection(H11Protocol):
    """One connection, which ends when its client is too slow."""

    limits: ClassVar[Limits]
    on_refusal: ClassVar[Callable[[int, str], None]]  # called with the status and code of each refusal
    waiting: ClassVar[dict[GuardedConnection, float]]  # connections without a request, the longest waiting first

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting_since = 0.0
        self._refused_at: float | None = None
        self._stalled_since: float | None = None
        self._stalled_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, if there is room for it."""
        super().connection_made(transport)
        if len(self.connections) <= self.limits.connections or self._make_room():
            self._wait()
        elif len(self.connections) <= self.limits.connections + _MAX_TURNED_AWAY:
            self._refuse(refusal("server-busy/connections"))
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read what the client sends; after a refusal it is thrown away."""
        if self._refused_at is not None:
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
        """Tell the running request that its client is gone."""
        self.waiting.pop(self, None)
        self._mark_client_gone()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stalled_since = None
        super().resume_writing()

    def shutdown(self) -> None:
        """The server stops: a response that has begun may be finished, a stream ends."""
        if self.transport.is_closing():
            return
        if self._refused_at is not None or (self._is_busy and STREAMING in self.cycle.scope):
            self.transport.close()
        else:
            super().shutdown()

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _mark_client_gone(self) -> None:
        if self._is_busy:
            self.cycle.scope[CLIENT_GONE] = True  # type: ignore[typeddict-unknown-key]

    def check(self, now: float) -> None:
        """End the connection if its client has been too slow."""
        if self._is_stalled(now):
            type(self).on_refusal(408, "client-stalled")
            self.transport.abort()
        elif self.transport.is_closing():
            return
        elif self._refused_at is not None:
            if now - self._refused_at >= self.limits.linger_seconds:
                self.transport.close()
        elif self.conn.their_state is h11.IDLE and now - self._waiting_since >= self.limits.header_seconds:
            self._refuse(refusal("head-too-slow"), silently=not self.conn.trailing_data[0])

    def send_400_response(self, _: str) -> None:
        """Refuse what is no HTTP. uvicorn calls this while it handles h11's exception."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        self._refuse(_H11_PROBLEMS.get(status, refusal("bad-request/http")))

    def _is_stalled(self, now: float) -> bool:
        """True if the client does not read what was written for it."""
        unread = self.transport.get_write_buffer_size()
        enough = self.limits.download_rate * self.limits.stalled_seconds
        if not unread:
            self._stalled_since = None
        elif self._stalled_since is None or unread <= self._stalled_bytes - enough:
            self._stalled_since, self._stalled_bytes = now, unread
        else:
            return now - self._stalled_since >= self.limits.stalled_seconds
        return False

    def _wait(self) -> None:
        self._waiting_since = self.loop.time()
        self.waiting.pop(self, None)
        self.waiting[self] = self._waiting_since

    def _make_room(self) -> bool:
        """End the connection that has been waiting the longest without a request."""
        oldest = next(iter(self.waiting), None)
        if oldest is None or self.loop.time() - self.waiting[oldest] < _SETTLED_SECONDS:
            return False
        del self.waiting[oldest]
        oldest.transport.close()
        return True

    def _refuse(self, refusal: Problem, silently: bool = False) -> None:
        """Respond with a problem, then throw away what still comes until the client has gone, or for a while."""
        self.waiting.pop(self, None)
        self._unset_keepalive_if_required()
        type(self).on_refusal(refusal.status, refusal.code)
        if self._is_busy:
            self._mark_client_gone()
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        if silently or self.transport.is_closing():
            self.transport.close()
            return
        self._refused_at = self.loop.time()
        self.flow.resume_reading()
        self.transport.write(_raw_response(refusal))
        self.transport.write_eof()


def _raw_response(refusal: Problem) -> bytes:
    """A whole response, to what never became a request."""
    headers, body = refusal.encode()
    status = f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\n".encode("ascii")
    pairs = [*headers, *SECURITY_HEADERS, (b"connection", b"close")]
    return status + b"".join(b"%s: %s\r\n" % pair for pair in pairs) + b"\r\n" + body
