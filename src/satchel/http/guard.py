"""What every request passes before the application sees it, and every answer on its way out.

The order: the size of the head, the path, the host, the site it comes from, the method, who asks, the body, and a place
among the requests in work. Whoever fails is answered with a problem (docs/http.md), and nothing more is read than the
answer needs.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from satchel.errors import SatchelError
from satchel.http import heads, login, problems
from satchel.http.admission import Guesses, admitted
from satchel.http.bodies import ClientGone, Store, Upload, check_body_said, check_json, server_busy
from satchel.http.exchange import CLIENT_CLOSED, Exchange
from satchel.http.heads import Head
from satchel.http.limits import Limits
from satchel.http.problems import Problem, Refused
from satchel.http.routing import route_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from satchel.http.keys import Keyring
    from satchel.http.logs import RequestLog
    from satchel.http.metrics import Metrics

_ALWAYS_SERVED: Final = frozenset({"/health", "/metrics"})
"""Whoever watches the server must be able to see that it is busy."""
_LAST_WORDS_SECONDS: Final = 1.0
_DEFAULT_LIMITS: Final = Limits()


class Guard:
    """An ASGI application in front of another: only requests that are in order reach that one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keyring,
        hosts: frozenset[str],
        origins: frozenset[str] = frozenset(),
        limits: Limits = _DEFAULT_LIMITS,
        log: RequestLog | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._app = app
        self._keys = keys
        self._limits = limits
        self._hosts = frozenset(one.encode("latin-1") for one in hosts)
        self._origins = frozenset(one.encode("latin-1") for one in origins)
        # Behind something that speaks https for us, the request does not say so; the name it was called by does.
        self._https_hosts = frozenset(
            one.encode("latin-1") for one in hosts if f"https://{one}" in origins and f"http://{one}" not in origins
        )
        self._log = log
        self._metrics = metrics
        self._bodies = Store(limits)
        self._guesses = Guesses()
        self._in_work = 0

    @property
    def in_work(self) -> int:
        """How many requests the application is working on."""
        return self._in_work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        head = Head(scope)
        exchange = Exchange(head, scope, receive, send, self._limits)
        scope.setdefault("state", {}).update(request_id=head.request_id, caller=None)
        try:
            await self._handle(exchange)
        except Refused as refused:
            await exchange.refuse(refused.problem)
        except ClientGone:
            exchange.gone = True
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await exchange.refuse(_stopping())
            raise
        finally:
            self._note(exchange)

    async def _handle(self, exchange: Exchange) -> None:
        head, scope = exchange.head, exchange.scope
        heads.check_sizes(head, self._limits)
        heads.check_framing(head, scope)
        heads.check_target(head, scope)
        heads.check_host(head, self._hosts)
        heads.check_site(head, self._origins)
        heads.check_method(head)
        if head.path in (login.LOGIN, login.LOGOUT):
            await self._log_in_or_out(exchange)
            return
        try:
            caller = admitted(head, scope, self._keys)
        except Refused as refused:
            if refused.problem.code == "wrong-token":
                await self._guesses.pause(scope)
            raise
        exchange.caller = scope["state"]["caller"] = caller
        check_body_said(head, self._limits)
        if head.is_upload:
            exchange.upload = Upload(self._limits)
        elif head.has_body:
            body = await self._bodies.whole(exchange.pull)
            await check_json(body, self._limits)
            exchange.replay(body)
        await self._work(exchange)

    async def _log_in_or_out(self, exchange: Exchange) -> None:
        head, scope = exchange.head, exchange.scope
        check_body_said(head, self._limits)
        secure = scope.get("scheme") == "https" or head.said[b"host"] in self._https_hosts
        if head.path == login.LOGOUT:
            await exchange.answer(*login.logged_out(head, scope, self._keys, secure))
            return
        try:
            answer: login.Answer | Problem | None = login.logged_in(head, scope, self._keys, secure)
        except Refused as refused:
            if refused.problem.code == "wrong-token":
                await self._guesses.pause(scope)
            raise
        if answer is None:
            await self._guesses.pause(scope)
            answer = login.used_up(head)
        if isinstance(answer, Problem):
            raise Refused(answer)
        await exchange.answer(*answer)

    async def _work(self, exchange: Exchange) -> None:
        if self._in_work >= self._limits.concurrent and exchange.head.path not in _ALWAYS_SERVED:
            raise Refused(server_busy(f"It works on {self._in_work} requests already."))
        self._in_work += 1
        if self._metrics is not None:
            self._metrics.began()
        failed: Problem | None = None
        try:
            await exchange.run(self._app, lambda: self._note(exchange))
        except SatchelError as error:
            failed = problems.of(error, exchange.caller)
        except Exception as error:
            failed = self._unexpected(exchange, error)
        finally:
            self._in_work -= 1
            if self._metrics is not None:
                self._metrics.ended()
        failed = exchange.refusal or failed
        if failed is None and not exchange.started and not exchange.left:
            failed = problems.internal_error()
        if failed is not None:
            await exchange.refuse(failed)

    def _unexpected(self, exchange: Exchange, error: Exception) -> Problem:
        if self._log is not None and exchange.refusal is None and not exchange.left:
            self._log.exception(error, request_id=exchange.head.request_id)
        return problems.internal_error()

    def _note(self, exchange: Exchange) -> None:
        """Write down how a request ended, once."""
        if exchange.noted:
            return
        exchange.noted = True
        status = exchange.status
        if exchange.left or not status:
            status = CLIENT_CLOSED
        exchange.code = exchange.code or exchange.scope["state"].get("problem", "")
        route = route_of(exchange.scope)
        if self._metrics is not None:
            self._metrics.note(exchange, route, status)
        if self._log is not None:
            self._log.request(exchange, route, status)


def _stopping() -> Problem:
    told = "The server is being stopped. Try again when it is back."
    return problems.problem(503, "server-stopping", "The server stops", told, {"Retry-After": "5"})
