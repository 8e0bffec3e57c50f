"""Checks of a request's head: sizes, request smuggling, path traversal, DNS rebinding, CSRF, method."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from satchel.http.problems import Refused, problem_for_status, refused

if TYPE_CHECKING:
    from starlette.types import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server takes from one client, and how long it waits for it."""

    body_bytes: int = 4_000_000  # a JSON body
    upload_bytes: int = 100_000_000  # a document
    total_body_bytes: int = 256_000_000  # all JSON bodies that are being received at the same time
    header_bytes: int = 32_768
    url_bytes: int = 8_192
    json_depth: int = 64

    header_seconds: float = 10  # from connecting, or from the last response, to the end of the request's head
    idle_seconds: float = 5  # an idle keep-alive connection is closed after this
    body_seconds: float = 30  # for a JSON body; a document gets this and the time that `upload_rate` gives it
    upload_rate: int = 10_000  # bytes per second that a document must keep up after `body_seconds`
    stalled_seconds: float = 30  # a client that reads less than `download_rate` for this long is cut off
    download_rate: int = 1_000  # bytes per second
    request_seconds: float = 120  # from the end of the request to the beginning of its response
    stop_seconds: float = 10  # for running requests when the server is stopped

    # After a refusal the rest of the request is still read: closing earlier would reset the connection, and the client
    # could not read the refusal.
    linger_seconds: float = 2
    linger_bytes: int = 16_000_000

    concurrent: int = 64  # requests in the application
    connections: int = 1_000


DEFAULT_LIMITS: Final = Limits()


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_LINKED_PAGES: Final = frozenset({"/", "/login"})  # what a link on another site may open

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_INVALID_IN_HOST: Final = re.compile(rb"[^A-Za-z0-9.:\[\]_-]")
_HEADER_OVERHEAD: Final = len(b": \r\n")
_REPEATABLE_HEADERS: Final = frozenset({b"accept", b"x-request-id", b"expect"})
_READ_HEADERS: Final = _REPEATABLE_HEADERS.union(
    b"host origin authorization content-type content-length transfer-encoding".split(),
    b"sec-fetch-site sec-fetch-mode sec-fetch-dest sec-purpose".split(),
)


class RequestHead:
    """The request line and the headers that the guard reads, parsed once."""

    __slots__ = ("cookies", "headers", "method", "path", "repeated_header", "request_id", "scope", "size")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.cookies: list[bytes] = []
        self.repeated_header = b""
        self.size = 0
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            self.size += len(name) + len(value) + _HEADER_OVERHEAD
            if name in _READ_HEADERS:
                if name in headers and name not in _REPEATABLE_HEADERS:
                    self.repeated_header = name
                headers[name] = value
            elif name == b"cookie":
                self.cookies.append(value)
        self.headers = headers
        client_id = headers.get(b"x-request-id", b"")
        self.request_id = client_id.decode("ascii") if _REQUEST_ID.fullmatch(client_id) else secrets.token_hex(8)

    @property
    def has_body(self) -> bool:
        """True if a body follows the head."""
        return b"transfer-encoding" in self.headers or self.headers.get(b"content-length", b"0").strip(b"0 ") != b""

    @property
    def is_upload(self) -> bool:
        """True if the body is a document rather than JSON."""
        return self.method == "PUT" and self.path.startswith("/v1/documents/")

    @property
    def is_json(self) -> bool:
        """True if the content type is JSON in UTF-8."""
        kind, _, rest = self.headers.get(b"content-type", b"").lower().partition(b";")
        charset = rest.strip().partition(b"charset=")
        return kind.strip() == b"application/json" and charset[2].strip(b'" ') in (b"", b"utf-8", b"utf8")


def check_head(head: RequestHead, limits: Limits, hosts: frozenset[bytes], origins: frozenset[bytes]) -> None:
    """Refuse a request for what its head says, before anybody is authenticated."""
    _check_sizes(head, limits)
    _check_framing(head)
    _check_url(head)
    _check_host(head, hosts)
    _check_site(head, origins)
    if head.method not in METHODS:  # CORS preflights (OPTIONS) among them
        raise Refused(problem_for_status(405, {"Allow": ", ".join(sorted(METHODS))}))


def check_same_origin(head: RequestHead) -> None:
    """Refuse CSRF: browsers send cookies unasked, so a request that changes something must come from our own page.

    `check_head` has passed, so an Origin header, where there is one, is ours.
    """
    if head.headers.get(b"sec-fetch-site") != b"same-origin" and b"origin" not in head.headers:
        raise refused("cross-site")
    if not head.is_upload and (head.method != "DELETE" or head.has_body) and not head.is_json:
        raise Refused(problem_for_status(415))


def _check_sizes(head: RequestHead, limits: Limits) -> None:
    if len(head.scope.get("raw_path") or b"") + len(head.scope["query_string"]) > limits.url_bytes:
        raise refused("url-too-long", most=limits.url_bytes)
    if head.size > limits.header_bytes:
        raise refused("headers-too-large", most=limits.header_bytes)


def _check_framing(head: RequestHead) -> None:
    """Refuse request smuggling: heads that two servers could read as different requests."""
    if head.repeated_header and head.repeated_header != b"host":
        raise refused("doubled-header", name=head.repeated_header.decode("latin-1"))
    version = head.scope.get("http_version", "1.1")
    if version not in ("1.0", "1.1"):
        raise refused("unknown-version")
    if b"transfer-encoding" in head.headers and (b"content-length" in head.headers or version == "1.0"):
        raise refused("bad-request/length")


def _check_url(head: RequestHead) -> None:
    """Refuse URLs that are not text, and path traversal (`.` and `..` as segments, also percent-encoded)."""
    raw_path: bytes = head.scope.get("raw_path") or head.path.encode("utf-8", "surrogatepass")
    for part in (raw_path, head.scope["query_string"]):
        decoded = unquote_to_bytes(part) if b"%" in part else part
        if b"\0" in decoded:
            raise refused("bad-url", reason="it holds a NUL")
        try:
            decoded.decode("utf-8")
        except UnicodeDecodeError:
            raise refused("bad-url", reason="it is not UTF-8") from None
    if not head.path.startswith("/"):
        raise refused("bad-url", reason="the path must begin with a slash")
    if "/." in head.path and not {".", ".."}.isdisjoint(head.path.split("/")):
        raise refused("bad-url", reason="the path must not hold . or .. as a segment")


def _check_host(head: RequestHead, hosts: frozenset[bytes]) -> None:
    """Refuse unknown Host headers (DNS rebinding: a page whose name resolves to our address sends its own name)."""
    host = head.headers.get(b"host")
    is_repeated = head.repeated_header == b"host"
    if host in hosts and not is_repeated:
        return
    is_malformed = not host or is_repeated or _INVALID_IN_HOST.search(host)
    raise refused("unknown-host/malformed" if is_malformed else "unknown-host")


def _check_site(head: RequestHead, origins: frozenset[bytes]) -> None:
    """Refuse requests that pages of other sites make (CSRF); such a page may only link to ours."""
    headers = head.headers
    origin = headers.get(b"origin")
    if origin is not None and origin not in origins:
        raise refused("cross-site")
    follows_link = (
        head.method == "GET"
        and headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
        and head.path in _LINKED_PAGES
    )
    if headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none") and not follows_link:
        raise refused("cross-site")
