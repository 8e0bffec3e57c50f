"""A request log (JSON Lines) and Prometheus metrics, both without content.

Both name routes, statuses and codes, never bodies, queries, ids in paths, tokens, questions or messages of exceptions.
The labels of the metrics are bounded in number.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from satchel.errors import InvalidOption
from satchel.http.guard.request_checks import METHODS

if TYPE_CHECKING:
    from starlette.types import Scope


_LEVELS: Final = ("debug", "info", "warning", "error")
_MAX_FRAMES: Final = 40  # of a traceback: the innermost show the place; a deep recursion would fill the log
_MAX_CAUSES: Final = 3  # of an exception: a log line stays short; further causes are not logged
_MAX_PATH_PARTS: Final = 3  # of a frame's file: enough to find the file, without the installation's folder
_SERVER_LOGGERS: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "asyncio")
_SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_ROUTES_WITHOUT_TEMPLATE: Final = frozenset({"/", "/health", "/metrics", "/login", "/logout", "/mcp"})


def route_name(scope: Scope) -> str:
    """The path template of the route, never the path: a path may hold ids."""
    route = scope.get("fastapi", {}).get("effective_route_context") or scope.get("route")
    template = getattr(route, "path_format", None) or getattr(route, "path", None)
    if isinstance(template, str) and template:
        return template
    path: str = scope["path"]
    if path in _ROUTES_WITHOUT_TEMPLATE:
        return path
    return "/assets/*" if path.startswith("/assets/") else "(unknown)"


class RequestLog:
    """Writes JSON Lines to a stream, by default to standard error."""

    def __init__(self, stream: IO[str] | None = None, level: str = "info") -> None:
        if level not in _LEVELS:
            raise InvalidOption("log_level", level, f"must be one of {', '.join(_LEVELS)}")
        self._stream = stream
        self._min_level = _LEVELS.index(level)
        self._lock = Lock()

    def write(self, level: str, event: str, **fields: Any) -> None:
        """Write a line without the fields of value None."""
        if _LEVELS.index(level) < self._min_level:
            return
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event}
        line.update({name: value for name, value in fields.items() if value is not None})
        stream = self._stream or sys.stderr  # looked up late: standard error may have been redirected
        with self._lock, suppress(OSError, ValueError):
            stream.write(json.dumps(line, separators=(",", ":")) + "\n")
            stream.flush()


class Metrics:
    """The Prometheus metrics of a server, in a separate registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter(
            "satchel_http_requests", "Requests by route, method and status.", labels, registry=registry
        )
        text = "From the end of the request's head to the end of its answer."
        self._seconds = Histogram(
            "satchel_http_request_seconds", text, ("route",), buckets=_SECONDS_BUCKETS, registry=registry
        )
        self.in_work = Gauge("satchel_http_in_work", "Requests in progress.", registry=registry)
        text = "Requests answered with a problem, by code."
        self._refused = Counter("satchel_http_refused", text, ("code",), registry=registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        self._requests.labels(route, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_refusal(self, code: str) -> None:
        """Count a problem response by code."""
        self._refused.labels(code).inc()

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


@contextmanager
def redirect_server_logs(log: RequestLog) -> Iterator[None]:
    """Redirect the logs of uvicorn and asyncio to `log`, reduced to lines without content."""
    handler = _ContentFreeHandler(log)
    loggers = [logging.getLogger(name) for name in _SERVER_LOGGERS]
    before = [(logger, logger.handlers, logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, handlers, propagate, level in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)


class _ContentFreeHandler(logging.Handler):
    """Logs records without messages: a message may hold addresses, paths and tracebacks."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write the origin of a log record, and the trace of the exception, as a line."""
        error = record.exc_info[1] if record.exc_info else None
        fields = trace_of(error) if error is not None else {}
        self._log.write("debug", "server", said_by=f"{record.module}:{record.lineno}", **fields)


def trace_of(error: BaseException) -> dict[str, Any]:
    """The exception type, the frames as file:line, and the types of the causes; no message (may hold content)."""
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    causes: list[str] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and len(causes) < _MAX_CAUSES:
        causes.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, BaseExceptionGroup):
        causes += [type(part).__name__ for part in error.exceptions[:_MAX_CAUSES]]
    return {
        "type": type(error).__name__,
        "frames": [f"{_short_path(frame.filename)}:{frame.lineno}" for frame in frames],
        "causes": causes or None,
    }


def _short_path(path: str) -> str:
    return "/".join(path.replace("\\", "/").split("/")[-_MAX_PATH_PARTS:])
