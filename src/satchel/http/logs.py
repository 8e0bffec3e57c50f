"""A log of JSON lines: what happened and to which request, never what it was about.

Bodies, queries, ids in paths, tokens, questions and the messages of exceptions stay out of it.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Final

from satchel.errors import InvalidOption

if TYPE_CHECKING:
    from satchel.http.exchange import Exchange

LEVELS: Final = ("debug", "info", "warning", "error")
_MOST_FRAMES: Final = 40
_SHOWN_PATH_PARTS: Final = 3
_UVICORN: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")


class RequestLog:
    """Writes one JSON object a line."""

    def __init__(self, stream: IO[str] | None = None, level: str = "info") -> None:
        if level not in LEVELS:
            raise InvalidOption("log_level", level, f"must be one of {', '.join(LEVELS)}")
        self._stream = stream
        self._least = LEVELS.index(level)
        self._lock = Lock()

    def write(self, level: str, event: str, **fields: Any) -> None:
        """One line; fields that are None are left out."""
        if LEVELS.index(level) < self._least:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {"time": now, "level": level, "event": event}
        told.update({name: value for name, value in fields.items() if value is not None})
        line = json.dumps(told, separators=(",", ":")) + "\n"
        # The stream is looked up late: whoever redirects standard error means us, too.
        stream = self._stream or sys.stderr
        with self._lock, suppress(OSError, ValueError):
            stream.write(line)
            stream.flush()

    def request(self, exchange: Exchange, route: str, status: int) -> None:
        """How a request ended."""
        caller = exchange.caller
        self.write(
            "error" if status >= 500 else "info",
            "request",
            request_id=exchange.head.request_id,
            method=exchange.head.method if exchange.head.method in _METHODS else "other",
            route=route,
            status=status,
            code=exchange.code or None,
            milliseconds=round((time.perf_counter() - exchange.began) * 1000, 2),
            bytes_out=exchange.bytes_out,
            caller=None if caller is None else "owner" if caller.is_owner else "user",
            user=caller.user.id if caller is not None and caller.user is not None else None,
        )

    def exception(self, error: BaseException, **fields: Any) -> None:
        """What nobody expected: its type and where it was raised. Its message may hold content and stays out."""
        self.write("error", "exception", **fields, **trace_of(error))


def trace_of(error: BaseException) -> dict[str, Any]:
    """The type, and the frames as file:line."""
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    causes: list[str] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and len(causes) < _SHOWN_PATH_PARTS:
        causes.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, BaseExceptionGroup):
        causes += [type(one).__name__ for one in error.exceptions[:_SHOWN_PATH_PARTS]]
    return {
        "type": type(error).__name__,
        "frames": [f"{_short(frame.filename)}:{frame.lineno}" for frame in frames],
        "causes": causes or None,
    }


@contextmanager
def uvicorn_silenced(log: RequestLog) -> Iterator[None]:
    """What uvicorn and the loop would print as text, with tracebacks, becomes lines of ours without content."""
    ours = _Records(log)
    loggers = [logging.getLogger(name) for name in (*_UVICORN, "asyncio")]
    before = [(one, one.handlers, one.propagate, one.level) for one in loggers]
    for one in loggers:
        one.handlers, one.propagate = [ours], False
        one.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for one, handlers, propagate, level in before:
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(level)


class _Records(logging.Handler):
    """Passes on that something was said and where, not what: messages hold addresses, paths and tracebacks."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line for a record."""
        error = record.exc_info[1] if record.exc_info else None
        fields = trace_of(error) if error is not None else {}
        self._log.write("debug", "server", said_by=f"{record.module}:{record.lineno}", **fields)


def _short(path: str) -> str:
    return "/".join(path.replace("\\", "/").split("/")[-_SHOWN_PATH_PARTS:])


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
