"""The guard as ASGI middleware: the order in which a request is checked.

Sizes, request smuggling, path traversal, DNS rebinding, CSRF, method, caller, body, and a place among the requests in
the application. A request that fails is answered with a problem (docs/http.md), and no more of it is read than the
response needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from satchel.errors import SatchelError
from satchel.http.guard.authentication import LOGIN, LOGOUT, Authenticator
from satchel.http.guard.bodies import BodyMemoryLimit, ClientGone, Upload, check_declared_body, check_json
from satchel.http.guard.exchange import Exchange
from satchel.http.guard.limits import DEFAULT_LIMITS, Limits
from satchel.http.guard.observability import Metrics, RequestLog, route_name
from satchel.http.guard.request_checks import RequestHead, check_head
from satchel.http.problems import Problem, Refused, problem, problem_for, problem_for_status, server_busy

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from satchel.http.guard.credentials import Keyring

_ALWAYS_SERVED: Final = frozenset({"/health", "/metrics"})  # monitoring must see that the server is busy
_STOPPING_SECONDS: Final = 1.0  # for the response to a request that the server's stop cancels
_CLIENT_CLOSED: Final = 499  # nginx's status for a client that left; only in log and metrics
_STOPPING: Final = problem(
    503,
    "server-stopping",
    "The server stops",
    "The server is being stopped. Try again when it is back.",
    {"Retry-After": "5"},
)


class Guard:
    """ASGI middleware that passes only checked requests on to the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keyring,
        hosts: frozenset[str],
        origins: frozenset[str] = frozenset(),
        limits: Limits = DEFAULT_LIMITS,
        log: RequestLog | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._hosts = _encode(hosts)
        self._origins = _encode(origins)
        # Behind a proxy that terminates TLS the request's scheme is http; the host's origins tell that it is https.
        https_hosts = {host for host in hosts if f"https://{host}" in origins and f"http://{host}" not in origins}
        self._authenticator = Authenticator(keys, _encode(https_hosts))
        self._log = log
        self._metrics = metrics or Metrics()
        self._bodies = BodyMemoryLimit(limits)
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        head = RequestHead(scope)
        exchange = Exchange(head, receive, send, self._limits, self._record)
        scope.setdefault("state", {}).update(request_id=head.request_id, caller=None)
        try:
            await self._handle(exchange)
        except Refused as refused:
            await exchange.refuse(refused.problem)
        except ClientGone:
            exchange.client_gone = True
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOPPING_SECONDS):
                    await exchange.refuse(_STOPPING)
            raise
        finally:
            self._record(exchange)

    async def _handle(self, exchange: Exchange) -> None:
        head = exchange.head
        check_head(head, self._limits, self._hosts, self._origins)
        if head.path in (LOGIN, LOGOUT):
            check_declared_body(head, self._limits)
            await exchange.respond(*await self._authenticator.log_in_or_out(head))
            return
        exchange.caller = head.scope["state"]["caller"] = await self._authenticator.caller(head)
        check_declared_body(head, self._limits)
        if head.is_upload:
            exchange.upload = Upload(self._limits)
        elif head.has_body:
            body = await self._bodies.read(exchange.pull)
            await check_json(body, self._limits.json_depth)
            exchange.body = body
        if self._running >= self._limits.concurrent and head.path not in _ALWAYS_SERVED:
            raise Refused(server_busy(f"It works on {self._running} requests already."))
        self._running += 1
        self._metrics.in_work.inc()
        try:
            failure = await self._run(exchange)
        finally:
            self._running -= 1
            self._metrics.in_work.dec()
        if failure is not None:
            await exchange.refuse(failure)

    async def _run(self, exchange: Exchange) -> Problem | None:
        """Let the application respond; the problem to respond with if it did not."""
        failure: Problem | None = None
        try:
            await exchange.run(self._app)
        except SatchelError as error:
            failure = problem_for(error, exchange.caller)
        except Exception as error:
            if self._log is not None and exchange.refusal is None and not exchange.client_left:
                self._log.exception(error, request_id=exchange.head.request_id)
            failure = problem_for_status(500)
        if failure is None and not exchange.started and not exchange.client_left:
            failure = problem_for_status(500)
        return exchange.refusal or failure

    def _record(self, exchange: Exchange) -> None:
        """Log and count how a request ended, once."""
        if exchange.recorded:
            return
        exchange.recorded = True
        status = _CLIENT_CLOSED if exchange.client_left or not exchange.status else exchange.status
        exchange.code = exchange.code or exchange.head.scope["state"].get("problem", "")
        route = route_name(exchange.head.scope)
        self._metrics.count_request(exchange, route, status)
        if self._log is not None:
            self._log.request(exchange, route, status)


def _encode(names: Iterable[str]) -> frozenset[bytes]:
    return frozenset(name.encode("latin-1") for name in names)
