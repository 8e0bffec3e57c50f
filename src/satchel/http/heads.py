"""What a request says before its body, and the checks that need nothing else: sizes, path, host, origin."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from satchel.http.problems import Problem, Refused, of_status, problem

if TYPE_CHECKING:
    from starlette.types import Scope

    from satchel.http.limits import Limits

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
UPLOADS: Final = "/v1/documents/"
PAGES: Final = frozenset({"/", "/login"})
"""What a browser may open by following a link from elsewhere."""

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_ODD_IN_HOST: Final = re.compile(rb"[^A-Za-z0-9.:\[\]_-]")
_HEADER_OVERHEAD: Final = len(b": \r\n")
_SAID_ONCE: Final = frozenset(
    {
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"transfer-encoding",
        b"expect",
        b"sec-fetch-site",
        b"sec-fetch-mode",
        b"sec-fetch-dest",
        b"sec-purpose",
        b"x-request-id",
        b"accept",
    }
)
_MAY_BE_DOUBLED: Final = frozenset({b"accept", b"x-request-id", b"expect"})


class Head:
    """The request line and the headers that matter here, read once."""

    __slots__ = ("cookies", "doubled", "method", "path", "request_id", "said", "size", "target_size")

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        said: dict[bytes, bytes] = {}
        self.cookies: list[bytes] = []
        self.doubled: bytes = b""
        size = 0
        for name, value in scope["headers"]:
            size += len(name) + len(value) + _HEADER_OVERHEAD
            if name in _SAID_ONCE:
                if name in said and name not in _MAY_BE_DOUBLED:
                    self.doubled = name
                said[name] = value
            elif name == b"cookie":
                self.cookies.append(value)
        self.said = said
        self.size = size
        self.target_size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        given = said.get(b"x-request-id", b"")
        self.request_id = given.decode("ascii") if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)

    @property
    def has_body(self) -> bool:
        """Whether something follows the head."""
        return b"transfer-encoding" in self.said or self.said.get(b"content-length", b"0").strip(b"0 ") != b""

    @property
    def is_upload(self) -> bool:
        """Whether the body is a document rather than JSON."""
        return self.method == "PUT" and self.path.startswith(UPLOADS)

    @property
    def is_json(self) -> bool:
        """Whether the body is said to be JSON, in UTF-8."""
        kind, _, rest = self.said.get(b"content-type", b"").lower().partition(b";")
        charset = rest.strip().partition(b"charset=")
        return kind.strip() == b"application/json" and charset[2].strip(b'" ') in (b"", b"utf-8", b"utf8")


def check_sizes(head: Head, limits: Limits) -> None:
    """Refuse heads that are too large."""
    if head.target_size > limits.url_bytes:
        told = f"The path and query may have {limits.url_bytes:,} bytes; send long questions in a body."
        raise Refused(problem(414, "url-too-long", "The URL is too long", told))
    if head.size > limits.header_bytes:
        told = f"The headers may have {limits.header_bytes:,} bytes together."
        raise Refused(problem(431, "headers-too-large", "The headers are too large", told))
    if head.doubled and head.doubled != b"host":
        told = f"{head.doubled.decode('latin-1')} is there more than once."
        raise Refused(problem(400, "doubled-header", "A header is there twice", told))


def check_framing(head: Head, scope: Scope) -> None:
    """Refuse what two servers could read as different requests."""
    version = scope.get("http_version", "1.1")
    if version not in ("1.0", "1.1"):
        told = "HTTP/1.1 is spoken here."
        raise Refused(problem(505, "unknown-version", "This version of HTTP is not spoken here", told))
    if b"transfer-encoding" in head.said and (b"content-length" in head.said or version == "1.0"):
        told = "Transfer-Encoding goes neither with Content-Length nor with HTTP/1.0."
        raise Refused(problem(400, "bad-request", "The body's length is said twice", told))


def check_target(head: Head, scope: Scope) -> None:
    """Refuse paths and queries that are not text, or that mean another path than they name."""
    raw: bytes = scope.get("raw_path") or head.path.encode("utf-8", "surrogatepass")
    query: bytes = scope["query_string"]
    if b"%" in raw or b"%" in query:
        for part in (raw, query):
            _check_text(unquote_to_bytes(part))
    else:
        _check_text(raw)
        _check_text(query)
    path = head.path
    if not path.startswith("/"):
        raise Refused(_bad_url("the path must begin with a slash"))
    if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
        raise Refused(_bad_url("the path must not hold . or .. as a segment"))


def check_host(head: Head, hosts: frozenset[bytes]) -> None:
    """Only who means this server is answered: a page whose name was bound to our address names itself."""
    host = head.said.get(b"host")
    if host in hosts and head.doubled != b"host":
        return
    title = "This server does not go by that name"
    if not host or head.doubled == b"host" or _ODD_IN_HOST.search(host):
        raise Refused(problem(400, "unknown-host", title, "The Host header is missing, doubled or malformed."))
    told = "The Host header names another server. Use the address that the server printed when it started."
    raise Refused(problem(421, "unknown-host", title, told))


def check_site(head: Head, origins: frozenset[bytes]) -> None:
    """Refuse what a page of another site asks for; such a page may only link to ours."""
    said = head.said
    origin = said.get(b"origin")
    if origin is not None and origin not in origins:
        raise Refused(_cross_site())
    site = said.get(b"sec-fetch-site")
    if site is None or site in (b"same-origin", b"none"):
        return
    follows_link = (
        head.method == "GET"
        and said.get(b"sec-fetch-mode") == b"navigate"
        and said.get(b"sec-fetch-dest") == b"document"
        and head.path in PAGES
    )
    if not follows_link:
        raise Refused(_cross_site())


def check_own_page(head: Head) -> None:
    """A cookie is sent by the browser unasked: what changes something must come from our own page, and say so.

    Whoever comes here has passed `check_site`, so an origin that is named is ours.
    """
    said = head.said
    if said.get(b"sec-fetch-site") != b"same-origin" and b"origin" not in said:
        raise Refused(_cross_site())
    if not head.is_upload and (head.method != "DELETE" or head.has_body) and not head.is_json:
        raise Refused(of_status(415))


def check_method(head: Head) -> None:
    """Refuse methods that no route has; preflights of other origins are among them."""
    if head.method not in METHODS:
        raise Refused(of_status(405, {"Allow": ", ".join(sorted(METHODS))}))


def _check_text(part: bytes) -> None:
    if b"\0" in part:
        raise Refused(_bad_url("it holds a NUL"))
    try:
        part.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(_bad_url("it is not UTF-8")) from None


def _bad_url(why: str) -> Problem:
    return problem(400, "bad-url", "The URL cannot be right", f"In the path or the query: {why}.")


def _cross_site() -> Problem:
    told = "Only this server's own page and programs may ask. Requests from pages of other origins are refused."
    return problem(403, "cross-site", "This comes from another site", told)
