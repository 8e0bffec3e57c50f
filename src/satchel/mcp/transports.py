"""The MCP server's transports: stdio (started by agents) and streamable HTTP behind the guard."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from threading import Timer
from typing import TYPE_CHECKING, Any, Final, NoReturn

from satchel.errors import NotAllowed
from satchel.mcp import sdk
from satchel.mcp.folders import OneFolder, ServedFolders
from satchel.mcp.result_pages import MOST_CHARS
from satchel.service.client import Caller

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from satchel.mcp.handlers import RequestContext
    from satchel.service.open_roots import LocalClient


_STOP_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_CLOSE_WAIT_S: Final = 1.0  # for the index to close: clients wait for the end; committed data is safe anyway
_WARM_UP_DELAY_S: Final = 0.3  # the client gets the lists first: loading would delay the responses
_MAX_BODY_BYTES: Final = 256 * 1024  # of a request over HTTP: above the longest arguments of a tool in ASCII
_log: Final = logging.getLogger(__name__)


def serve(folders: ServedFolders, *, max_result_chars: int, quiet: bool = False) -> NoReturn:
    """Serve until stdin ends or a signal comes, then end the process with 0."""
    for number in _STOP_SIGNALS:
        signal.signal(number, _exit_process)
    _log_to_stderr(quiet)
    sdk.load()
    import anyio

    try:
        anyio.run(_serve, folders, max_result_chars)
    except BaseException as error:
        if not _is_client_disconnect(error):
            _log.error("the server failed", exc_info=error)
            os._exit(1)
    _close_and_exit(folders)


async def _serve(folders: ServedFolders, max_result_chars: int) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from satchel.mcp.handlers import RequestHandlers

    handlers = RequestHandlers(
        folders,
        lambda _: folders.caller,
        max_result_chars=max_result_chars,
        after_listing=_warm_up_soon,
        if_user_is_missing="; start the server with --user USER",
    )
    server = handlers.server()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signals, folders)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        # Exit without waiting for running threads.
        _close_and_exit(folders)


def _is_client_disconnect(error: BaseException) -> bool:
    import anyio

    if isinstance(error, BaseExceptionGroup):
        return all(_is_client_disconnect(part) for part in error.exceptions)
    return isinstance(error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError)


async def _end_on_signals(folders: ServedFolders) -> None:
    if sys.platform == "win32":  # on Windows the handlers of `serve` stay
        return
    import anyio

    with anyio.open_signal_receiver(*_STOP_SIGNALS) as signals:
        async for _ in signals:
            _close_and_exit(folders)


@cache
def _warm_up_soon() -> None:
    """Schedule `_warm_up` once, after the client has received the list of tools."""
    timer = Timer(_WARM_UP_DELAY_S, _warm_up)
    timer.daemon = True
    timer.start()


def _warm_up() -> None:
    """Load the tokenizer before the first question; touches neither the folder nor the index."""
    with suppress(Exception):  # the first question will report the error
        from satchel.service.token_counts import count_tokens

        count_tokens(" satchel")


def _close_and_exit(folders: ServedFolders) -> NoReturn:
    """Close the folders and end the process with its children; does not wait for running threads."""
    with suppress(Exception):
        folders.close(_CLOSE_WAIT_S)
    _exit_process()


def _exit_process(*_: Any) -> NoReturn:
    with suppress(Exception):
        sys.stderr.flush()
    os._exit(0)


def _log_to_stderr(quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutContent("satchel: %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.ERROR if quiet else logging.WARNING, force=True)


class _WithoutContent(logging.Formatter):
    """Formats exceptions without messages: a message may hold a file's text."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """The traceback and the exception type."""
        kind, _, trace = ei
        return f"{''.join(traceback.format_tb(trace))}{kind.__name__ if kind else ''}"


class McpApp:
    """The MCP server for a workspace as an ASGI application; `hosts` and `origins` are the accepted headers.

    Requests are answered only inside `lifespan`. There are no sessions: no state outlives a request.
    """

    def __init__(
        self, satchel: LocalClient, *, hosts: Sequence[str], origins: Sequence[str], max_result_chars: int = MOST_CHARS
    ) -> None:
        sdk.load("satchel serve")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from satchel.mcp.handlers import RequestHandlers

        self._handlers = RequestHandlers(OneFolder(satchel), _caller_of, max_result_chars=max_result_chars)
        self._manager = StreamableHTTPSessionManager(
            self._handlers.server(),
            stateless=True,
            max_request_body_size=_MAX_BODY_BYTES,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=True, allowed_hosts=list(hosts), allowed_origins=list(origins)
            ),
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Enter before the first request and leave after the last; only once."""
        async with self._manager.run():
            try:
                yield
            finally:
                await self._handlers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an HTTP request; refuses unknown callers and all methods but POST."""
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is supported, not {scope['type']}")
        if not isinstance(_known_caller(scope), Caller):
            await _refuse(send, 401, "the caller is unknown", (b"www-authenticate", b"Bearer"))
        elif scope["method"] != "POST":
            # There are no sessions: nothing to listen to, nothing to end.
            await _refuse(send, 405, "only POST", (b"allow", b"POST"))
        else:
            await self._manager.handle_request(scope, receive, _uncached(send))


def _known_caller(scope: Any) -> object:
    return (scope.get("state") or {}).get("caller")


def _caller_of(context: RequestContext) -> Caller:
    """The caller of this request; raises NotAllowed if unknown: nobody is the owner by default."""
    caller = _known_caller(getattr(context.request, "scope", {}))
    if not isinstance(caller, Caller):
        raise NotAllowed("caller", None, "the caller is unknown")
    return caller


async def _refuse(send: Send, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _uncached(send: Send) -> Send:
    """Wrap `send` to forbid caching (`no-store`): answers depend on the caller."""

    async def send_uncached(message: Message) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"cache-control"]
            message = {**message, "headers": [*others, (b"cache-control", b"no-store")]}
        await send(message)

    return send_uncached
