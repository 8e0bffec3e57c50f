"""The same server for HTTP, to be mounted behind the guard that has found out who asks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import NotAllowed
from satchel.mcp import sdk
from satchel.mcp.paging import MOST_CHARS
from satchel.service.client import Caller

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from satchel.mcp.server import Asked
    from satchel.service.local_client import LocalSatchel

_MOST_BODY_BYTES: Final = 256 * 1024


class McpApp:
    """The MCP server for a workspace as an ASGI application; `hosts` and `origins` are those that may be named.

    It answers while its lifespan is entered. Nothing is kept between two requests.
    """

    def __init__(
        self,
        satchel: LocalSatchel,
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
        max_result_chars: int = MOST_CHARS,
    ) -> None:
        sdk.load("satchel serve")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from satchel.mcp.server import Desk

        self._desk = Desk(lambda: satchel, _caller_of, max_result_chars=max_result_chars)
        self._manager = StreamableHTTPSessionManager(
            self._desk.server(),
            stateless=True,
            max_request_body_size=_MOST_BODY_BYTES,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=True, allowed_hosts=list(hosts), allowed_origins=list(origins)
            ),
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Enter it before the first request and leave it after the last; once only."""
        async with self._manager.run():
            try:
                yield
            finally:
                await self._desk.work.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise RuntimeError(f"this is for HTTP, not for {scope['type']}")
        if not isinstance(_known_caller(scope), Caller):
            await _refuse(send, 401, "who asks is not known", (b"www-authenticate", b"Bearer"))
        elif scope["method"] != "POST":
            # There are no sessions: nothing to listen to, nothing to end.
            await _refuse(send, 405, "only POST", (b"allow", b"POST"))
        else:
            await self._manager.handle_request(scope, receive, _uncached(send))


def _known_caller(scope: Any) -> object:
    return (scope.get("state") or {}).get("caller")


def _caller_of(asked: Asked) -> Caller:
    """Who sent this very request; nobody is taken for the owner by default."""
    caller = _known_caller(getattr(asked.request, "scope", {}))
    if not isinstance(caller, Caller):
        raise NotAllowed("caller", None, "who asks is not known")
    return caller


async def _refuse(send: Send, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _uncached(send: Send) -> Send:
    """Answers are for the one who asked: no cache on the way keeps them."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message = {**message, "headers": [*kept, (b"cache-control", b"no-store")]}
        await send(message)

    return sent
