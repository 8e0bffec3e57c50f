"""Asking an endpoint that speaks OpenAI's protocol, politely and safely.

A busy or failing server is asked again, later and later, for as long as it says or as patience lasts; what cannot get
better (a wrong key, an unknown model) is a problem at once. Redirects are not followed: the key and your text go to
the address that you named, and nowhere else. What went wrong is told without the key.

Three clocks run: one while connecting, one while the endpoint is silent, and for streams one over everything.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

from satchel.errors import InvalidOption, shown

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_WORTH_ANOTHER_TRY: Final = frozenset({408, 409, 425, 429, *range(500, 600)})
_LONGEST_WAIT: Final = 60.0
_LONGEST_TIMEOUT: Final = 86_400.0
_MAX_REFUSAL_BYTES: Final = 64_000
_SHOWN_REFUSAL_CHARS: Final = 500
_PIECE_BYTES: Final = 65_536
_CONNECT_TIMEOUT: Final = 15.0
"""Whoever listens answers in much less; a model that thinks is waited for with the longer `timeout`."""

_Read = TypeVar("_Read")


class EndpointProblem(Exception):
    """Why there is no answer, fit to be shown; `status` is 0 where the endpoint did not get to say one."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class EndpointStream:
    """An answer that is still coming: iterate for its bytes as they come, and close it."""

    def __init__(self, answer: http.client.HTTPResponse, max_bytes: int, deadline: float) -> None:
        self._answer = answer
        self._max_bytes = max_bytes
        self._deadline = deadline
        # Others may not know of streams, and answer at once.
        self.is_events = (answer.headers.get_content_type() or "") == "text/event-stream"

    def close(self) -> None:
        """Let go of the connection."""
        self._answer.close()

    def __iter__(self) -> Iterator[bytes]:
        left = self._max_bytes
        while True:
            try:
                data = self._answer.read1(_PIECE_BYTES)
            except TimeoutError:
                raise EndpointProblem("the endpoint fell silent", 200) from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise EndpointProblem(f"the connection broke ({type(error).__name__})", 200) from None
            if not data:
                return
            left -= len(data)
            if left < 0:
                raise EndpointProblem(f"the endpoint's answer is longer than {self._max_bytes:,} bytes", 200)
            if time.monotonic() > self._deadline:
                raise EndpointProblem("it took longer than it may in all", 200)
            yield data


class OpenAIEndpoint:
    """One path below an endpoint's base (`url`, …/v1); `hints` say what to do about a status (0: nobody answers)."""

    def __init__(
        self,
        path: str,
        *,
        url: str | None,
        key: str,
        timeout: float,
        tries: int,
        max_answer_bytes: int,
        hints: Mapping[int, str],
        sleep: Callable[[float], None] = time.sleep,
        before_each_try: Callable[[], None] = lambda: None,
    ) -> None:
        if tries < 1:
            raise InvalidOption("tries", tries, "must be at least 1")
        if not 0 < timeout <= _LONGEST_TIMEOUT:
            raise InvalidOption("timeout", timeout, "must be a number of seconds, more than 0 and at most a day")
        base = (url or _DEFAULT_URL).rstrip("/")
        _check_address(base)
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise EndpointProblem("the key holds characters that no key has; was it pasted whole?")
        self._url = f"{base}/{path}"
        self._key = key
        self._timeout = timeout
        self._tries = tries
        self._max_answer_bytes = max_answer_bytes
        self._hints = hints
        self._sleep = sleep
        self._before_each_try = before_each_try
        self._opener = urllib.request.build_opener(_NoRedirects, _PlainHandler, _SecureHandler)

    def ask(self, question: Mapping[str, Any]) -> bytes:
        """The body of the answer, or an `EndpointProblem` once nothing more can be hoped for."""
        return self._asked(question, self._whole)

    def stream(self, question: Mapping[str, Any], *, max_bytes: int, total_timeout: float) -> EndpointStream:
        """The answer as it comes; what broke off is not asked for again, for somebody may have heard its beginning."""
        deadline = time.monotonic() + total_timeout
        return self._asked(question, lambda answer: EndpointStream(answer, max_bytes, deadline), deadline)

    def _asked(
        self,
        question: Mapping[str, Any],
        read: Callable[[http.client.HTTPResponse], _Read],
        deadline: float = float("inf"),
    ) -> _Read:
        body = json.dumps(question).encode()
        for attempt in range(1, self._tries + 1):
            self._before_each_try()
            try:
                return read(self._opener.open(self._request(body), timeout=self._timeout))
            except urllib.error.HTTPError as error:
                with error:
                    problem = self._refusal(error)
                if error.code not in _WORTH_ANOTHER_TRY:
                    raise EndpointProblem(problem, error.code) from None
                asked, status = _asked_to_wait(error.headers.get("Retry-After")), error.code
            # A host whose name cannot be encoded is a UnicodeError.
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                reason = getattr(error, "reason", "") or str(error) or repr(error)
                problem = f"the endpoint {self._url} cannot be reached: {self.printable(str(reason))}"
                asked, status = 0.0, 0
            wait = _wait(attempt, asked)
            if time.monotonic() + wait > deadline:
                raise EndpointProblem(f"{problem} (and there is no time for another try)", status)
            if attempt < self._tries:
                self._sleep(wait)
        hint = "" if status else self._hints.get(0, "")
        raise EndpointProblem(f"{problem} (after {self._tries} tries){hint}", status)

    def printable(self, said: str) -> str:
        """What the other side said, without the key and without anything that a terminal would obey."""
        said = said.replace(self._key, "…") if self._key else said
        return "".join(c if c.isprintable() else " " for c in said)[:_SHOWN_REFUSAL_CHARS].strip()

    def _request(self, body: bytes) -> urllib.request.Request:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 - checked
        if self._key:
            request.add_header("Authorization", f"Bearer {self._key}")
        return request

    def _whole(self, answer: http.client.HTTPResponse) -> bytes:
        with answer:
            data = answer.read(self._max_answer_bytes + 1)
        if len(data) > self._max_answer_bytes:
            raise EndpointProblem(f"the endpoint's answer is longer than {self._max_answer_bytes:,} bytes", 200)
        # A read that names a limit does not itself complain about a connection that broke off.
        if answer.length:
            raise http.client.IncompleteRead(data, answer.length)
        return data

    def _refusal(self, error: urllib.error.HTTPError) -> str:
        if 300 <= error.code < 400:
            aim = self.printable(error.headers.get("Location") or "nowhere")
            return f"the endpoint answered {error.code}, a redirect to {aim}, which is not followed; give that address"
        try:
            said = error.read(_MAX_REFUSAL_BYTES).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            said = "(its explanation broke off)"
        return f"the endpoint answered {error.code}: {self.printable(said)}{self._hints.get(error.code, '')}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Nowhere else."""
        return


class _InTime(http.client.HTTPConnection):
    """A connection that is not waited for as long as an answer is."""

    def connect(self) -> None:
        patience = self.timeout
        self.timeout = min(_CONNECT_TIMEOUT, patience or _CONNECT_TIMEOUT)
        super().connect()
        self.sock.settimeout(patience)


class _SecureInTime(_InTime, http.client.HTTPSConnection):
    """The same, encrypted."""


class _PlainHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """With our connection."""
        return self.do_open(_InTime, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """With our connection, checked as ever."""
        return self.do_open(_SecureInTime, req)


def _check_address(base: str) -> None:
    if not base.startswith(("https://", "http://")):
        raise EndpointProblem(f"the address {shown(base)} must begin with https:// or http://")
    try:
        parts = urllib.parse.urlsplit(base)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise EndpointProblem(f"the address is none ({error})") from None
    # The address is part of error messages; a password is not.
    if "@" in parts.netloc:
        raise EndpointProblem("the address holds a user or a password; use the key instead")
    if not host or not (base.isascii() and base.isprintable()) or " " in base:
        raise EndpointProblem(f"the address {shown(base)} is none")


def _wait(attempt: int, asked: float) -> float:
    backoff = min(_LONGEST_WAIT, 0.5 * 2.0 ** (attempt - 1)) * (0.5 + random.random() / 2)  # noqa: S311 - jitter
    return min(_LONGEST_WAIT, max(asked, backoff))


def _asked_to_wait(header: str | None) -> float:
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
