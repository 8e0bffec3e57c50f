"""HTTP client for language models, embedders and Satchel servers, and a parser for server-sent events.

The client never follows redirects: the key must not reach another host. No response is decompressed or read beyond its
limit, connecting has a separate time-out, and no message contains the key.
"""

from __future__ import annotations

import codecs
import json
import math
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from io import IncrementalNewlineDecoder
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from satchel.errors import InvalidOption

if TYPE_CHECKING:
    # Imported by the first request: the import takes 95 ms of CPU, and most commands send no request.
    import httpx2


_MAX_CONNECT_SECONDS: Final = 15.0
"""A listening server accepts much faster; only the response may take as long as `timeout`."""
_MAX_MESSAGE_CHARS: Final = 500
"""Limit for error texts of a server: enough for the sentence that explains a refusal."""


class HttpProblem(Exception):
    """A failed request, with a printable reason; `status` is 0 if the connection failed."""

    def __init__(self, reason: str, status: int = 0, retry_after: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after


class HttpResponse(AbstractContextManager["HttpResponse"]):
    """A streaming response: iterate over the bytes or call `read`, then close the response."""

    def __init__(self, response: httpx2.Response, *, max_bytes: int, deadline: float) -> None:
        self._response = response
        self._max_bytes = max_bytes
        self._deadline = deadline
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    def __iter__(self) -> Iterator[bytes]:
        import httpx2

        received = 0
        try:
            for data in self._response.iter_raw():
                received += len(data)
                if received > self._max_bytes:
                    raise HttpProblem(f"the answer is longer than {self._max_bytes:,} bytes", self.status)
                if time.monotonic() > self._deadline:
                    raise HttpProblem("the answer took longer than its total time-out", self.status)
                yield data
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise HttpProblem(_message(error)) from None

    def read(self) -> bytes:
        """Read the whole body and close the response."""
        with self:
            return b"".join(self)

    def close(self) -> None:
        """Close the connection; a server that is still sending notices."""
        self._response.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class HttpClient:
    """Thread-safe HTTP client for a single server, with `key` as the bearer token."""

    def __init__(self, url: str, *, key: str, timeout: float, uses_proxies: bool) -> None:
        _check_url(url)
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise InvalidOption(
                "key", "***", "contains characters that are not valid in a key; was it copied completely?"
            )
        self.url = url.rstrip("/")
        self._key = key
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "satchel"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout = timeout
        self._uses_proxies = uses_proxies
        self._lock = Lock()
        self._client: httpx2.Client | None = None

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        max_bytes: int,
        accept: str = "*/*",
        timeout: float | None = None,
        deadline: float = math.inf,
    ) -> HttpResponse:
        """Send a request (`body` as JSON) and return the response of any status.

        `timeout` is the longest silence of the server in seconds.
        """
        import httpx2

        seconds = timeout or self._timeout
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        try:
            client = self._opened()
            request = client.build_request(
                method,
                f"{self.url}/{path}",
                content=content,
                headers={"Accept": accept} | ({} if body is None else {"Content-Type": "application/json"}),
                timeout=httpx2.Timeout(seconds, connect=min(seconds, _MAX_CONNECT_SECONDS)),
            )
            response = _send(client, request)
        # ValueError and ImportError: an invalid host name, an unknown proxy scheme, a proxy that needs another package.
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, ImportError) as error:
            raise HttpProblem(self.printable(_message(error))) from None
        return HttpResponse(response, max_bytes=max_bytes, deadline=deadline)

    def printable(self, text: str) -> str:
        """A server's text without the key and without terminal control characters."""
        text = text.replace(self._key, "…") if self._key else text
        return "".join(c if c.isprintable() else " " for c in text)[:_MAX_MESSAGE_CHARS].strip()

    def close(self) -> None:
        """Close all open connections; the next request opens new connections."""
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def _opened(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(
                    headers=self._headers,
                    follow_redirects=False,
                    trust_env=False,
                    proxy=_proxy_of(self.url) if self._uses_proxies else None,
                    # Loading the certificates takes 20 ms; an http:// URL needs none.
                    verify=httpx2.create_ssl_context() if self.url.startswith("https:") else False,
                    limits=httpx2.Limits(max_connections=None),
                )
                weakref.finalize(self, self._client.close)
            return self._client


def _proxy_of(url: str) -> str | None:
    """The proxy for a URL from the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), by urllib's rules."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _send(client: httpx2.Client, request: httpx2.Request) -> httpx2.Response:
    """Send the request; retry if a reused keep-alive connection was closed by the server."""
    import httpx2

    traced: list[str] = []
    request.extensions["trace"] = lambda event, _: traced.append(event)
    while True:
        try:
            return client.send(request, stream=True)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            if "connection.connect_tcp.started" in traced:
                raise


def _check_url(url: str) -> None:
    """Raise InvalidOption unless the URL is a printable HTTP URL without password, query or fragment."""
    safe_url = "***" if "@" in url else url  # the URL may contain a password
    if not url.startswith(("https://", "http://")):
        raise InvalidOption("url", safe_url, "must begin with https:// or http://")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidOption("url", safe_url, f"not a valid URL: {error}") from None
    if "@" in parts.netloc:
        raise InvalidOption("url", safe_url, "must not contain a user or a password; use the key instead")
    if not host or not (url.isascii() and url.isprintable()) or any(c in url for c in " ?#"):
        raise InvalidOption("url", safe_url, "not a valid URL: it needs a host, and neither spaces nor ? nor #")


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__


ERROR_EVENT: Final = "error"
"""The kind of the event with the reason for the end of the stream."""


class Event(NamedTuple):
    """The data and the kind ('' for the default kind) of a server-sent event."""

    data: str
    kind: str = ""


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Parse server-sent events. The end of the stream ends the last event: many servers omit the final blank line."""
    data: list[str] = []
    kind = ""
    for line in _event_lines(chunks):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event("\n".join(data), kind)
            data, kind = [], ""
        elif name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == ERROR_EVENT:
            # llama.cpp servers until September 2025 send errors in a field named `error`.
            yield Event(value, ERROR_EVENT)


def _event_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    # Not `splitlines` (as in httpx): the JSON of a line may contain U+2028 and other Unicode line separators.
    decoder = IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
    unfinished: list[str] = []
    for chunk in chunks:
        *whole, rest = decoder.decode(chunk).split("\n")
        for line in whole:
            yield "".join([*unfinished, line])
            unfinished = []
        unfinished.append(rest)
    yield "".join(unfinished)
    yield ""
