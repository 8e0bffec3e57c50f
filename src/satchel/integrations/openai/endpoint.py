"""Requests to an API with OpenAI's protocol, with retries.

A busy or failing server is asked again after a growing wait, or after the wait that it asks for. What a retry cannot
mend (a wrong key, an unknown model) is a problem at once.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

from satchel.errors import InvalidOption
from satchel.http_client import HttpClient, HttpProblem, HttpResponse

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_RETRIED_STATUSES: Final = frozenset({0, 408, 409, 425, 429, *range(500, 600)})
_FIRST_WAIT_SECONDS: Final = 0.5  # a brief failure costs little time; each further try waits twice as long
_MAX_WAIT_SECONDS: Final = 60.0  # rate limits are per minute
_MAX_TIMEOUT_SECONDS: Final = 86_400.0  # a day: a larger number is hardly meant in seconds
_MAX_REFUSAL_BYTES: Final = 64_000  # more than any explanation has; the rest is not read

_Answer = TypeVar("_Answer")


@dataclass(eq=False, repr=False, slots=True)
class OpenAIEndpoint:
    """A path below the API's base `url` (…/v1); `hints` give advice about a status (0: no connection)."""

    path: str
    _: KW_ONLY
    url: InitVar[str | None]
    key: InitVar[str]
    timeout: InitVar[float]
    tries: int
    hints: Mapping[int, str]
    sleep: Callable[[float], None] = time.sleep
    before_each_try: Callable[[], None] = lambda: None
    client: HttpClient = field(init=False)

    def __post_init__(self, url: str | None, key: str, timeout: float) -> None:
        if self.tries < 1:
            raise InvalidOption("tries", self.tries, "must be at least 1")
        if not 0 < timeout <= _MAX_TIMEOUT_SECONDS:
            raise InvalidOption("timeout", timeout, "must be a number of seconds, more than 0 and at most a day")
        try:
            self.client = HttpClient(url or _DEFAULT_URL, key=key, timeout=timeout, uses_proxies=True)
        except InvalidOption as error:
            raise HttpProblem(str(error)) from None

    def ask(self, question: Mapping[str, Any], *, max_bytes: int) -> bytes:
        """The body of the answer; an interrupted answer is requested again."""
        return self._retry(lambda: self._send(question, max_bytes).read())

    def stream(self, question: Mapping[str, Any], *, max_bytes: int, total_timeout: float) -> HttpResponse:
        """The answer as a stream; an interrupted stream is not requested again, as the beginning has been used."""
        deadline = time.monotonic() + total_timeout
        return self._retry(lambda: self._send(question, max_bytes, deadline), deadline)

    def _retry(self, send: Callable[[], _Answer], deadline: float = math.inf) -> _Answer:
        for attempt in range(1, self.tries + 1):
            self.before_each_try()
            try:
                return send()
            except HttpProblem as caught:
                problem = caught
            if problem.status not in _RETRIED_STATUSES:
                raise problem
            wait = _wait_seconds(attempt, problem.retry_after)
            if time.monotonic() + wait > deadline:
                raise self._failure(problem, "no time for another try")
            if attempt < self.tries:
                self.sleep(wait)
        raise self._failure(problem, f"after {self.tries} tries")

    def _failure(self, problem: HttpProblem, effort: str) -> HttpProblem:
        if problem.status:
            return HttpProblem(f"{problem.reason} ({effort})", problem.status)
        url = f"{self.client.url}/{self.path}"
        return HttpProblem(f"the endpoint {url} cannot be reached: {problem.reason} ({effort}){self.hints.get(0, '')}")

    def _send(self, question: Mapping[str, Any], max_bytes: int, deadline: float = math.inf) -> HttpResponse:
        response = self.client.request("POST", self.path, question, max_bytes=max_bytes, deadline=deadline)
        if response.status < 300:
            return response
        with response:
            reason = self._refusal(response)
        raise HttpProblem(reason, response.status, response.headers.get("Retry-After", ""))

    def _refusal(self, response: HttpResponse) -> str:
        status = response.status
        if status < 400:
            target = self.client.printable(response.headers.get("Location") or "nowhere")
            return f"the endpoint answered {status}, a redirect to {target}, which is not followed; use that URL"
        text = b""
        try:
            for data in response:
                text += data
                if len(text) > _MAX_REFUSAL_BYTES:
                    break
        except HttpProblem:
            text = text or b"(its explanation broke off)"
        explanation = self.client.printable(text[:_MAX_REFUSAL_BYTES].decode("utf-8", "replace"))
        return f"the endpoint answered {status}: {explanation}{self.hints.get(status, '')}"


def _wait_seconds(attempt: int, retry_after: str) -> float:
    jitter = 0.5 + random.random() / 2  # noqa: S311 - spreads clients, guards no secret
    backoff = min(_MAX_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1)) * jitter
    return min(_MAX_WAIT_SECONDS, max(_retry_after_seconds(retry_after), backoff))


def _retry_after_seconds(header: str) -> float:
    """The wait in a Retry-After header (seconds or a date), in seconds; 0 if the header is neither."""
    with suppress(ValueError):
        return max(0.0, float(header))
    with suppress(TypeError, ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return 0.0
