"""The guard as ASGI middleware: the order of the checks of a request.

Sizes, request smuggling, path traversal, DNS rebinding, CSRF, method, caller, body, and the limit of concurrent
requests. A failed check responds with a problem (docs/http.md); the guard reads no more of the request than the
response needs.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from satchel.errors import SatchelError
from satchel.http.guard import request_checks as checks
from satchel.http.guard.authentication import LOGIN, LOGOUT, Authenticator
from satchel.http.guard.observability import Metrics, RequestLog, route_name, trace_of
from satchel.http.guard.request_checks import DEFAULT_LIMITS, ClientGone, HttpLimits, RequestHead
from satchel.http.problems import Problem, Refused, problem_for, problem_for_status, refusal, refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from satchel.http.guard.credentials import Keyring
    from satchel.service.client import Caller


# Keys of the scope.
CLIENT_GONE: Final = "satchel.gone"  # set by the connection when the client leaves before the end of the response
STREAMING: Final = "satchel.streaming"  # set for the connection when a response of unknown length has begun

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_POLICY: Final = b"content-security-policy"
_PAGE_POLICY: Final = (_POLICY, CONTENT_SECURITY_POLICY.encode())
# Data opened directly in a browser (an image, a document) must neither run scripts nor load anything.
_DATA_POLICY: Final = (_POLICY, b"default-src 'none'; frame-ancestors 'none'")
_NO_STORE: Final = (b"cache-control", b"no-store")
_FIXED_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_GUARD_HEADERS: Final = frozenset(
    {name for name, _ in _FIXED_HEADERS} | {_POLICY, b"x-request-id", b"server", b"connection"}
)
_UNCACHED_HEADERS: Final = _GUARD_HEADERS | {b"cache-control"}  # only the page's own files may be cached
SECURITY_HEADERS: Final = (*_FIXED_HEADERS, _DATA_POLICY, _NO_STORE)  # of refusals before there is an ASGI request


@dataclass(slots=True, eq=False)
class Exchange:
    """The state of a request and of the response. The application gets the guarded `receive` and `send`."""

    head: RequestHead
    _receive: Receive
    _send: Send
    _limits: HttpLimits
    _on_late: Callable[[Exchange], None]  # called after the response to a request that took too long
    body_left: bool
    began: float = field(default_factory=time.perf_counter)
    caller: Caller | None = None
    status: int = 0  # until the response begins
    code: str = ""  # of the problem, if the response is one
    bytes_out: int = 0
    complete: bool = False
    client_gone: bool = False
    recorded: bool = False  # in the log and the metrics
    refusal: Problem | None = None  # set while the application runs: further messages of the application are dropped
    _upload_bytes: int = 0
    _upload_seconds: float = 0.0  # spent waiting for the client
    body: bytes | None = None  # read by the guard already, for the application's first `receive`
    _cancel: anyio.CancelScope | None = None
    _timer: asyncio.TimerHandle | None = None
    _deadline: float = 0.0
    _late_response: asyncio.Task[None] | None = None

    @property
    def client_left(self) -> bool:
        """True if the client left before the end of the response."""
        return not self.complete and (self.client_gone or CLIENT_GONE in self.head.scope)

    # -- from the client

    async def pull(self) -> Message:
        """The next message from the client."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.client_gone = self.client_gone or not self.complete
        elif not message.get("more_body", False):
            self.body_left = False
        return message

    async def receive(self) -> Message:
        """The next message for the application."""
        if self.body is not None:
            body, self.body = self.body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if not self.head.is_upload or not self.body_left:
            return await self.pull()
        self._deadline = math.inf  # while the client is waited for
        try:
            message = await self._pull_upload()
        except Refused as error:
            self.refusal = error.problem
            raise
        self._set_deadline()
        return message

    async def _pull_upload(self) -> Message:
        """The next part of an upload, with a size limit and a minimum rate (`upload_rate`, against slow clients)."""
        # The more has arrived, the longer the next part may take.
        seconds = self._limits.body_seconds + self._upload_bytes / self._limits.upload_rate - self._upload_seconds
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                message = await self.pull()
        except TimeoutError:
            raise refused("body-too-slow") from None
        # Only waiting counts against the client, not the time that the application takes between two parts.
        self._upload_seconds += loop.time() - began
        self._upload_bytes += len(message.get("body", b""))
        checks.check_size(self._upload_bytes, self._limits.upload_bytes)
        return message

    # -- to the client

    async def send(self, message: Message) -> None:
        """Send a message of the application to the client."""
        if self.refusal is not None:
            return
        if self.client_left:
            raise ClientGone
        if message["type"] == "http.response.start":
            await self._start(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body":
            await self._send_body(message.get("body", b""), message.get("more_body", False))

    async def respond(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a whole response without the application."""
        await self._start(status, headers)
        await self._send_body(body, False)

    async def refuse(self, refusal: Problem) -> None:
        """Respond with a problem; a response already begun is cut off instead, and the connection closed."""
        if self.client_left:
            return
        self.code = self.code or refusal.code
        if not self.status:
            await self.respond(refusal.status, *refusal.encode(self.head.request_id))

    async def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.status = status
        if self._timer is not None:
            self._timer.cancel()
        merged, length_known = _response_headers(self.head, headers)
        if self.body_left:
            merged.append((b"connection", b"close"))
        if not length_known and status not in (204, 304):
            self.head.scope[STREAMING] = True
        await self._send({"type": "http.response.start", "status": status, "headers": merged})

    async def _send_body(self, body: bytes, more: bool) -> None:
        self.bytes_out += len(body)
        if not more and self.body_left:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            await self._linger()
            body = b""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        self.complete = not more and CLIENT_GONE not in self.head.scope

    async def _linger(self) -> None:
        """Discard the rest of the request body for a while: an earlier close would lose the response, too."""
        bytes_left = 0 if b"expect" in self.head.headers else self._limits.linger_bytes
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_seconds):
                while bytes_left > 0 and self.body_left and not self.client_left:
                    bytes_left -= len((await self.pull()).get("body", b""))

    # -- deadline

    async def run(self, app: ASGIApp) -> None:
        """Run the application, and respond with a problem if the application misses the deadline."""
        self._set_deadline()
        try:
            # A worker thread cannot be cancelled: this scope then ends when the thread does.
            with anyio.CancelScope() as self._cancel:
                await app(self.head.scope, self.receive, self.send)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._late_response is not None:
                await self._late_response

    def _set_deadline(self) -> None:
        """Restart the deadline of the application. A running timer stays and reads the new deadline."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + self._limits.request_seconds
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._expire)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        if self.status or self.refusal is not None:
            return
        seconds = self._limits.request_seconds
        if loop.time() < self._deadline:
            self._timer = loop.call_at(min(self._deadline, loop.time() + seconds), self._expire)
            return
        self.refusal = refusal("took-too-long", seconds=seconds)
        self._late_response = loop.create_task(self.refuse(self.refusal))
        self._late_response.add_done_callback(lambda _: self._on_late(self))
        assert self._cancel is not None
        self._cancel.cancel()


def _response_headers(
    head: RequestHead, headers: Iterable[tuple[bytes, bytes]]
) -> tuple[list[tuple[bytes, bytes]], bool]:
    """The headers of the application and the guard, and True if the headers hold a content length."""
    dropped = _GUARD_HEADERS if head.path.startswith("/assets/") else _UNCACHED_HEADERS
    lowered = ((name.lower(), value) for name, value in headers)
    merged = [pair for pair in lowered if pair[0] not in dropped and not pair[0].startswith(b"access-control-")]
    sent = dict(merged)
    policy = _PAGE_POLICY if sent.get(b"content-type", b"").startswith(b"text/html") else _DATA_POLICY
    merged += (*_FIXED_HEADERS, policy, (b"x-request-id", head.request_id.encode("ascii")))
    if b"cache-control" not in sent:
        merged.append(_NO_STORE)
    return merged, b"content-length" in sent


_ALWAYS_SERVED: Final = frozenset({"/health", "/metrics"})  # monitoring must see that the server is busy
_STOPPING_SECONDS: Final = 1.0  # to send a refusal while the server stops; a slower client gets no response
_LOGGED_METHODS: Final = checks.METHODS | {"OPTIONS"}
_CLIENT_CLOSED_STATUS: Final = 499  # nginx's status for a client that left; only in log and metrics


@dataclass(eq=False)
class Guard:
    """ASGI middleware: only checked requests reach the application."""

    app: ASGIApp
    _: KW_ONLY
    keys: InitVar[Keyring]
    hosts: InitVar[frozenset[str]]
    origins: InitVar[frozenset[str]] = frozenset()
    limits: HttpLimits = DEFAULT_LIMITS
    log: RequestLog | None = None
    metrics: Metrics = field(default_factory=Metrics)
    running: int = field(default=0, init=False)  # requests in the application

    def __post_init__(self, keys: Keyring, hosts: frozenset[str], origins: frozenset[str]) -> None:
        self._hosts, self._origins = _encode(hosts), _encode(origins)
        # Behind a proxy that terminates TLS the request's scheme is http; the configured origins reveal https.
        https_hosts = {host for host in hosts if f"https://{host}" in origins and f"http://{host}" not in origins}
        self._authenticator = Authenticator(keys, _encode(https_hosts))
        self._bodies = checks.BodyMemoryLimit(self.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or refuse the request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        head = RequestHead(scope)
        exchange = Exchange(head, receive, send, self.limits, self._record, head.has_body)
        scope.setdefault("state", {}).update(request_id=head.request_id, caller=None)
        try:
            await self._handle(exchange)
        except Refused as error:
            await exchange.refuse(error.problem)
        except ClientGone:
            exchange.client_gone = True
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOPPING_SECONDS):
                    await exchange.refuse(refusal("server-stopping"))
            raise
        finally:
            self._record(exchange)

    async def _handle(self, exchange: Exchange) -> None:
        head = exchange.head
        checks.check_head(head, self.limits, self._hosts, self._origins)
        if head.path in (LOGIN, LOGOUT):
            checks.check_declared_body(head, self.limits)
            await exchange.respond(*await self._authenticator.log_in_or_out(head))
            return
        exchange.caller = head.scope["state"]["caller"] = await self._authenticator.caller(head)
        checks.check_declared_body(head, self.limits)
        if head.has_body and not head.is_upload:
            body = await self._bodies.read(exchange.pull)
            await checks.check_json(body, self.limits.json_depth)
            exchange.body = body
        if self.running >= self.limits.concurrent and head.path not in _ALWAYS_SERVED:
            raise refused("server-busy/requests", running=self.running)
        self.running += 1
        try:
            with self.metrics.in_work.track_inprogress():
                failure = await self._run(exchange)
        finally:
            self.running -= 1
        if failure is not None:
            await exchange.refuse(failure)

    async def _run(self, exchange: Exchange) -> Problem | None:
        """Run the application; returns a problem if the application failed, was stopped or sent no response."""
        failure: Problem | None = None
        try:
            await exchange.run(self.app)
        except SatchelError as error:
            failure = problem_for(error, exchange.caller)
        except Exception as error:
            if self.log is not None and exchange.refusal is None and not exchange.client_left:
                self.log.write("error", "exception", request_id=exchange.head.request_id, **trace_of(error))
            failure = problem_for_status(500)
        if failure is None and not exchange.status and not exchange.client_left:
            failure = problem_for_status(500)
        return exchange.refusal or failure

    def _record(self, exchange: Exchange) -> None:
        """Log and count the end of a request, once."""
        if exchange.recorded:
            return
        exchange.recorded = True
        head, caller, seconds = exchange.head, exchange.caller, time.perf_counter() - exchange.began
        status = _CLIENT_CLOSED_STATUS if exchange.client_left or not exchange.status else exchange.status
        code = exchange.code or head.scope["state"].get("problem", "")
        route = route_name(head.scope)
        self.metrics.count_request(route, head.method, status, seconds)
        if code:
            self.metrics.count_refusal(code)
        if self.log is not None:
            self.log.write(
                "error" if status >= 500 else "info",
                "request",
                request_id=head.request_id,
                method=head.method if head.method in _LOGGED_METHODS else "other",
                route=route,
                status=status,
                code=code or None,
                milliseconds=round(seconds * 1000, 2),
                bytes_out=exchange.bytes_out,
                caller=None if caller is None else "owner" if caller.is_owner else "user",
                user=caller.user.id if caller is not None and caller.user is not None else None,
            )


def _encode(names: Iterable[str]) -> frozenset[bytes]:
    return frozenset(name.encode("latin-1") for name in names)
