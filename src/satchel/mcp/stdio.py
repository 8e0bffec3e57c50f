"""The server on stdin and stdout, as agents start it. It ends with its client, at once."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from threading import Timer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from satchel.mcp import sdk

if TYPE_CHECKING:
    from satchel.mcp.folder import Folder

_log: Final = logging.getLogger(__name__)
_ENDS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_CLOSING_S: Final = 1.0
_WARM_UP_AFTER_S: Final = 0.3


def serve(folder: Folder, *, max_result_chars: int, quiet: bool = False) -> NoReturn:
    """Serve until stdin ends or a signal comes, then end the process with 0."""
    for one in _ENDS:
        signal.signal(one, _leave_now)
    _log_to_stderr(quiet)
    sdk.load()
    import anyio

    try:
        anyio.run(_serve, folder, max_result_chars)
    except BaseException as error:
        if not _is_of_a_client_that_left(error):
            _log.error("the server failed", exc_info=error)
            os._exit(1)
    _leave(folder)


async def _serve(folder: Folder, max_result_chars: int) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from satchel.mcp.server import Desk

    warming = _Warming()
    desk = Desk(
        folder.opened,
        lambda _: folder.caller,
        max_result_chars=max_result_chars,
        after_listing=warming.begin,
        if_user_is_missing="; start the server with --user USER",
    )
    server = desk.server()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signals, folder)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        # Whoever waits in a thread is not waited for.
        _leave(folder)


def _is_of_a_client_that_left(error: BaseException) -> bool:
    import anyio

    if isinstance(error, BaseExceptionGroup):
        return all(_is_of_a_client_that_left(one) for one in error.exceptions)
    return isinstance(error, OSError | anyio.BrokenResourceError | anyio.ClosedResourceError)


async def _end_on_signals(folder: Folder) -> None:
    if sys.platform == "win32":  # there the handlers that were set first stay
        return
    import anyio

    with anyio.open_signal_receiver(*_ENDS) as signals:
        async for _ in signals:
            _leave(folder)


class _Warming:
    """Begins to load what questions need, once the client has what it waits for."""

    def __init__(self) -> None:
        self._begun = False

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            timer = Timer(_WARM_UP_AFTER_S, _warm_up)
            timer.daemon = True
            timer.start()


def _warm_up() -> None:
    from satchel.mcp.folder import warm_up

    with suppress(Exception):  # the first question will say what is wrong
        warm_up()


def _leave(folder: Folder) -> NoReturn:
    """End the process. Its children end with it; threads that still work are not waited for."""
    with suppress(Exception):
        folder.close(_CLOSING_S)
    _leave_now()


def _leave_now(*_: Any) -> NoReturn:
    with suppress(Exception):
        sys.stderr.flush()
    os._exit(0)


def _log_to_stderr(quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutContent("satchel: %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR if quiet else logging.WARNING)


class _WithoutContent(logging.Formatter):
    """Of exceptions, their kind and where they happened: what they say may be a file's text."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """The kind of an exception and the places it came through."""
        kind, _, trace = ei
        places = "".join(traceback.format_tb(trace)) if isinstance(trace, TracebackType) else ""
        return f"{places}{kind.__name__ if kind else ''}"
