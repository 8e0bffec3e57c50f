"""Counts and times for Prometheus. Labels are routes, methods, statuses and codes of ours: their number is bounded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from satchel.http.heads import METHODS

if TYPE_CHECKING:
    from satchel.http.exchange import Exchange

CONTENT_TYPE: Final[str] = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)


class Metrics:
    """What one server counts, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        """Others may register what they count, too."""
        self._requests = Counter(
            "satchel_http_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "satchel_http_request_seconds",
            "From the end of the request's head to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._in_work = Gauge("satchel_http_in_work", "Requests in work.", registry=self.registry)
        self._refused = Counter(
            "satchel_http_refused", "Requests answered with a problem, by code.", ("code",), registry=self.registry
        )

    def began(self) -> None:
        """The application was given a request."""
        self._in_work.inc()

    def ended(self) -> None:
        """The application is done with a request."""
        self._in_work.dec()

    def note(self, exchange: Exchange, route: str, status: int) -> None:
        """A request has ended."""
        method = exchange.head.method
        self._requests.labels(route, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(route).observe(time.perf_counter() - exchange.began)
        if exchange.code:
            self.refused(exchange.code)

    def refused(self, code: str) -> None:
        """Something was answered with a problem."""
        self._refused.labels(code).inc()

    def render(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)
