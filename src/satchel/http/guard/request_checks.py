"""Checks of a request's head: sizes, request smuggling, path traversal, DNS rebinding, CSRF, method.

Checks of the body: limits of size, time and memory, and strict JSON (RFC 8259 and I-JSON).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import unquote_to_bytes

from satchel.errors import shown
from satchel.http.problems import Refused, problem_for_status, refused

if TYPE_CHECKING:
    from starlette.types import Receive, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of sizes, times, rates and connections of the HTTP server."""

    body_bytes: int = 4_000_000  # a JSON body, held in memory
    upload_bytes: int = 100_000_000  # a document, written to disk as received
    total_body_bytes: int = 256_000_000  # all JSON bodies in receipt at the same time: 64 bodies of 4 MB
    header_bytes: int = 32_768  # as much as nginx takes by default (4 x 8 kB)
    url_bytes: int = 8_192  # as nginx and Apache by default
    json_depth: int = 64  # far above every valid body; deeper nesting could exhaust a parser's recursion

    header_seconds: float = 10  # from connecting, or from the last response, to the end of the request's head
    idle_seconds: float = 5  # an idle keep-alive connection is closed after this
    body_seconds: float = 30  # for a JSON body; an upload gets this plus its size divided by `upload_rate`
    upload_rate: int = 10_000  # bytes per second that a document must keep up after `body_seconds`
    stalled_seconds: float = 30  # a client that reads less than `download_rate` for this long is cut off
    download_rate: int = 1_000  # bytes per second
    request_seconds: float = 120  # from the end of the request to the beginning of its response
    stop_seconds: float = 10  # for running requests when the server is stopped

    # After a refusal the rest of the request is still read: closing earlier would reset the connection, and the client
    # could not read the refusal.
    linger_seconds: float = 2
    linger_bytes: int = 16_000_000

    concurrent: int = 64  # requests in the application; further requests get 503
    connections: int = 1_000  # open at the same time; each is an open file


DEFAULT_LIMITS: Final = HttpLimits()


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_LINKED_PAGES: Final = frozenset({"/", "/login"})  # paths open to links from foreign sites

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_INVALID_IN_HOST: Final = re.compile(rb"[^A-Za-z0-9.:\[\]_-]")
_HEADER_OVERHEAD: Final = len(b": \r\n")
_REPEATABLE_HEADERS: Final = frozenset({b"accept", b"x-request-id", b"expect"})
_READ_HEADERS: Final = _REPEATABLE_HEADERS.union(
    b"host origin authorization content-type content-length transfer-encoding".split(),
    b"sec-fetch-site sec-fetch-mode sec-fetch-dest sec-purpose".split(),
)


class RequestHead:
    """The request line and the headers for the guard, parsed once."""

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


def check_head(head: RequestHead, limits: HttpLimits, hosts: frozenset[bytes], origins: frozenset[bytes]) -> None:
    """Refuse a request with a bad head. Runs before authentication."""
    _check_sizes(head, limits)
    _check_framing(head)
    _check_url(head)
    _check_host(head, hosts)
    _check_site(head, origins)
    if head.method not in METHODS:  # CORS preflights (OPTIONS) among them
        raise Refused(problem_for_status(405, {"Allow": ", ".join(sorted(METHODS))}))


def check_same_origin(head: RequestHead) -> None:
    """Refuse CSRF: browsers send cookies unasked; requests with side effects must come from the server's own page.

    Call after `check_head`: a present Origin header is one of the server's origins by then.
    """
    if head.headers.get(b"sec-fetch-site") != b"same-origin" and b"origin" not in head.headers:
        raise refused("cross-site")
    if not head.is_upload and (head.method != "DELETE" or head.has_body) and not head.is_json:
        raise Refused(problem_for_status(415))


def _check_sizes(head: RequestHead, limits: HttpLimits) -> None:
    if len(head.scope.get("raw_path") or b"") + len(head.scope["query_string"]) > limits.url_bytes:
        raise refused("url-too-long", most=limits.url_bytes)
    if head.size > limits.header_bytes:
        raise refused("headers-too-large", most=limits.header_bytes)


def _check_framing(head: RequestHead) -> None:
    """Refuse request smuggling: ambiguous heads, read differently by a proxy and this server."""
    if head.repeated_header and head.repeated_header != b"host":
        raise refused("doubled-header", name=head.repeated_header.decode("latin-1"))
    version = head.scope.get("http_version", "1.1")
    if version not in ("1.0", "1.1"):
        raise refused("unknown-version")
    if b"transfer-encoding" in head.headers and (b"content-length" in head.headers or version == "1.0"):
        raise refused("bad-request/length")


def _check_url(head: RequestHead) -> None:
    """Refuse malformed URLs, and path traversal (segments `.` and `..`, also percent-encoded)."""
    raw_path: bytes = head.scope.get("raw_path") or head.path.encode("utf-8", "surrogatepass")
    for part in (raw_path, head.scope["query_string"]):
        decoded = unquote_to_bytes(part) if b"%" in part else part
        if b"\0" in decoded:
            raise refused("bad-url", reason="it contains a NUL byte")
        try:
            decoded.decode("utf-8")
        except UnicodeDecodeError:
            raise refused("bad-url", reason="it is not UTF-8") from None
    if not head.path.startswith("/"):
        raise refused("bad-url", reason="the path must begin with a slash")
    if "/." in head.path and not {".", ".."}.isdisjoint(head.path.split("/")):
        raise refused("bad-url", reason="the path must not contain . or .. as a segment")


def _check_host(head: RequestHead, hosts: frozenset[bytes]) -> None:
    """Refuse unknown Host headers (DNS rebinding: an attacker's domain resolves to this server's address)."""
    host = head.headers.get(b"host")
    is_repeated = head.repeated_header == b"host"
    if host in hosts and not is_repeated:
        return
    is_malformed = not host or is_repeated or _INVALID_IN_HOST.search(host)
    raise refused("unknown-host/malformed" if is_malformed else "unknown-host")


def _check_site(head: RequestHead, origins: frozenset[bytes]) -> None:
    """Refuse requests from pages of foreign sites (CSRF), except plain links to `/` and `/login`."""
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


_MAX_BYTES_IN_LOOP: Final = 16_384  # a larger body is checked in a thread, without delaying the event loop

# A parsed value takes many times its bytes, and each unknown field makes an error: 4 MB of small values or unknown
# fields would keep the server busy.
_MAX_DIGITS: Final = 1_000  # of a number: int() takes quadratic time, and Python refuses more than 4,300 digits
_MAX_FIELDS: Final = 1_000  # of an object: no model has nearly as many, and each unknown field makes an error
_MAX_TOTAL_FIELDS: Final = 150_000  # of all objects: room for 10,000 chunks (the most of a request) with 15 fields each
_MAX_CONTAINERS: Final = 300_000  # lists and objects: bounds the memory (an empty list takes many times its two bytes)
_MAX_LOCATED_CHARS: Final = 100_000  # locating a fault is slow; faults in longer texts are reported without a position

_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|-?[0-9][0-9.eE+-]*|-?Infinity|NaN', re.DOTALL)


class ClientGone(OSError):
    """The client has closed the connection before the response."""


def check_declared_body(head: RequestHead, limits: HttpLimits) -> None:
    """Refuse a body by method, content type or content length, before the body is read."""
    if not head.has_body:
        return
    if head.method in SAFE_METHODS:
        raise refused("unexpected-body", method=head.method)
    if not head.is_upload and not head.is_json:
        raise Refused(problem_for_status(415))
    length = head.headers.get(b"content-length", b"")
    if length.isdigit():
        check_size(int(length), limits.upload_bytes if head.is_upload else limits.body_bytes)


def check_size(size: int, max_bytes: int) -> None:
    """Refuse a body of more than `max_bytes`."""
    if size > max_bytes:
        raise refused("body-too-large", {"most_bytes": max_bytes}, most=max_bytes)


class BodyMemoryLimit:
    """Reads JSON bodies, and limits the total bytes of all bodies in memory (many clients at once)."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self.received_bytes = 0

    async def read(self, receive: Receive) -> bytes:
        """The whole body. Refuses too large bodies and slow clients."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientGone
                    parts.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    size += len(parts[-1])
                    self.received_bytes += len(parts[-1])
                    check_size(size, self._limits.body_bytes)
                    if self.received_bytes > self._limits.total_body_bytes:
                        raise refused("server-busy/bodies")
        except TimeoutError:
            raise refused("body-too-slow") from None
        finally:
            self.received_bytes -= size
        return parts[0] if len(parts) == 1 else b"".join(parts)


async def check_json(body: bytes, max_depth: int) -> None:
    """Refuse a body of invalid JSON, with line and column of the fault."""
    if len(body) > _MAX_BYTES_IN_LOOP:
        await asyncio.to_thread(check_strict_json, body, max_depth)
    elif body:
        check_strict_json(body, max_depth)


def _bad_json(fault: str, position: int | None = None, text: str = "") -> Refused:
    """The refusal of invalid JSON, with the position of the fault (None: not known)."""
    line = column = None
    place = ""
    if position is not None:
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        place = f" (line {line}, column {column})"
    return refused("bad-json", {"position": position, "line": line, "column": column}, fault=fault, place=place)


def check_strict_json(body: bytes, max_depth: int) -> None:
    """Refuse JSON outside RFC 8259 and I-JSON (Python's decoder accepts more), and too deep nesting."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad_json("it is not UTF-8", error.start, body[: error.start].decode("utf-8")) from None
    containers = body.count(b"[") + body.count(b"{")
    if containers > _MAX_CONTAINERS:
        raise _bad_json(f"it has more than {_MAX_CONTAINERS:,} lists and objects")
    too_deep = f"it is nested deeper than {max_depth} levels"
    try:
        value = _DECODER.decode(text)
        if containers > min(max_depth, _MAX_TOTAL_FIELDS // _MAX_FIELDS):  # fewer can break neither limit
            _check_containers(value, max_depth)
    except json.JSONDecodeError as error:
        # From Python 3.13 on the decoder goes thousands of levels deep, and reports a later fault of such a text.
        deep = _depth_position(text[: error.pos], max_depth) if containers > max_depth else None
        if deep is not None:
            raise _bad_json(too_deep, deep, text) from None
        raise _bad_json(error.msg[:1].lower() + error.msg[1:], error.pos, text) from None
    except (RecursionError, _NotStrict) as error:
        fault = str(error) if isinstance(error, _NotStrict) else too_deep
        raise _bad_json(fault, _fault_position(text, max_depth), text) from None
    if b"\\u" in body:
        for lone in (match.start() for match in _ESCAPE.finditer(text) if match[1]):
            raise _bad_json("a string contains a lone surrogate", lone, text)


class _NotStrict(ValueError):
    """A value accepted by Python's decoder but invalid in strict JSON."""


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MAX_FIELDS:
        raise _NotStrict(f"an object has more than {_MAX_FIELDS:,} fields")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise _NotStrict(f"{shown(repeated)} is a duplicate field of an object")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise _NotStrict(f"{text} is not a JSON value")


def _parse_finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotStrict("a number is too large")
    return number


def _parse_limited_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise _NotStrict(f"a number has more than {_MAX_DIGITS:,} digits")
    return int(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_fields,
    parse_constant=_refuse_constant,
    parse_float=_parse_finite_float,
    parse_int=_parse_limited_int,
)


def _check_containers(value: Any, max_depth: int) -> None:
    level: list[Any] = [[value]]
    fields = 0
    for _ in range(max_depth + 1):
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
        fields += sum(len(container) for container in level if type(container) is dict)
    if fields > _MAX_TOTAL_FIELDS:
        raise _NotStrict(f"there are more than {_MAX_TOTAL_FIELDS:,} fields")
    if level:
        raise RecursionError


def _depth_position(text: str, max_depth: int) -> int | None:
    """The position of the first list or object below `max_depth` others; None if there is none or the text is long."""
    depth = 0
    for match in _TOKEN.finditer(text) if len(text) <= _MAX_LOCATED_CHARS else ():
        depth += (match[0] in ("[", "{")) - (match[0] in ("]", "}"))
        if depth > max_depth:
            return match.start()
    return None


def _fault_position(text: str, max_depth: int) -> int | None:
    """The position of the first non-strict or too deep value (None: not found); Python's decoder reports none."""
    if len(text) > _MAX_LOCATED_CHARS:
        return None
    open_names: list[set[str] | None] = []  # of each object that is open here; None for a list
    before = ""
    for match in _TOKEN.finditer(text):
        part = match[0]
        try:
            if part in "[{":
                open_names.append(set() if part == "{" else None)
                if len(open_names) > max_depth:
                    return match.start()
            elif part in "]}":
                open_names.pop()
            elif part not in ",:":
                value = _DECODER.decode(part)
                names = open_names[-1] if open_names and before in ("{", ",") else None
                if names is not None:
                    if value in names:
                        return match.start()
                    names.add(value)
        except _NotStrict:
            return match.start()
        except (ValueError, IndexError):
            return None  # no single value is at fault (too many fields), or the rest is no JSON
        before = part
    return None
