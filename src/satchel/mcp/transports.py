"""The MCP server's transports: stdio (started by agents) and streamable HTTP behind the guard."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock, Thread, Timer
from typing import TYPE_CHECKING, Any, Final, NoReturn

from satchel.errors import InvalidOption, NotAllowed
from satchel.mcp import sdk
from satchel.mcp.result_pages import MOST_CHARS
from satchel.service.client import OWNER, Caller

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from satchel.mcp.handlers import RequestContext
    from satchel.service.open_roots import LocalClient


PATIENCE_S: Final = 20.0  # a tool waits this long for an index run, then answers from the index so far (docs/mcp.md)
_STOP_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_CLOSE_WAIT_S: Final = 1.0  # for the index to close: clients wait for the end; committed data is safe anyway
_WARM_UP_DELAY_S: Final = 0.3  # the client gets the lists first: loading would delay the responses
_MAX_BODY_BYTES: Final = 256 * 1024  # of a request over HTTP: above the longest arguments of a tool in ASCII
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class ServedFolder:
    """Folders served over stdio, with the caller and the settings; opened on first use."""

    paths: tuple[str, ...]
    _: KW_ONLY
    caller: Caller = OWNER
    allow_home: bool = False
    patience: float = PATIENCE_S
    settings: Mapping[str, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, init=False)
    _opened: LocalClient | None = field(default=None, init=False)

    def opened(self) -> LocalClient:
        """The client of the folders, opened by the first call."""
        with self._lock:
            if self._opened is None:
                from satchel.service.factory.opening import is_database, workspace
                from satchel.service.open_roots import open_roots

                for path in self.paths:
                    if not self.allow_home and not is_database(path):
                        _refuse_home(workspace(path), path)
                self._opened = open_roots(self.paths, caller=self.caller, patience=self.patience, **self.settings)
            return self._opened

    def close(self, within: float) -> None:
        """Close the workspace, but wait at most `within` seconds. Committed data stays."""
        client = self._opened
        if client is not None:
            closing = Thread(target=client.close, name="satchel-closing", daemon=True)
            closing.start()
            closing.join(within)


def _refuse_home(root: Path, path: str) -> None:
    """Refuse the home directory and its parents: an agent started there must not index everything."""
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):
        home = root if root == root.parent else Path("/")
    if root == home or root in home.parents or root == root.parent:
        problem = f"is {root}, which is or contains the home directory, and is not indexed"
        raise InvalidOption("path", path, f"{problem}; start the server with the folder to search: satchel mcp PATH")


def serve(folder: ServedFolder, *, max_result_chars: int, quiet: bool = False) -> NoReturn:
    """Serve until stdin ends or a signal comes, then end the process with 0."""
    for number in _STOP_SIGNALS:
        signal.signal(number, _exit_process)
    _log_to_stderr(quiet)
    sdk.load()
    import anyio

    try:
        anyio.run(_serve, folder, max_result_chars)
    except BaseException as error:
        if not _is_client_disconnect(error):
            _log.error("the server failed", exc_info=error)
            os._exit(1)
    _close_and_exit(folder)


async def _serve(folder: ServedFolder, max_result_chars: int) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from satchel.mcp.handlers import RequestHandlers

    handlers = RequestHandlers(
        folder.opened,
        lambda _: folder.caller,
        max_result_chars=max_result_chars,
        after_listing=_warm_up_soon,
        if_user_is_missing="; start the server with --user USER",
    )
    server = handlers.server()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signals, folder)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        # Exit without waiting for running threads.
        _close_and_exit(folder)


def _is_client_disconnect(error: BaseException) -> bool:
    import anyio

    if isinstance(error, BaseExceptionGroup):
        return all(_is_client_disconnect(part) for part in error.exceptions)
    return isinstance(error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError)


async def _end_on_signals(folder: ServedFolder) -> None:
    if sys.platform == "win32":  # on Windows the handlers of `serve` stay
        return
    import anyio

    with anyio.open_signal_receiver(*_STOP_SIGNALS) as signals:
        async for _ in signals:
            _close_and_exit(folder)


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


def _close_and_exit(folder: ServedFolder) -> NoReturn:
    """Close the folder and end the process with its children; does not wait for running threads."""
    with suppress(Exception):
        folder.close(_CLOSE_WAIT_S)
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

        self._handlers = RequestHandlers(lambda: satchel, _caller_of, max_result_chars=max_result_chars)
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
