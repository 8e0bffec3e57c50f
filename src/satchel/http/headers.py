"""The headers of every answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from satchel.http.heads import Head

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NO_STORE: Final = (b"cache-control", b"no-store")
_FIXED: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_POLICY: Final = b"content-security-policy"
_FOR_PAGES: Final = (_POLICY, CONTENT_SECURITY_POLICY.encode())
# Whatever a browser can be made to open by itself, a picture or a document: it runs and loads nothing.
_FOR_THE_REST: Final = (_POLICY, b"default-src 'none'; frame-ancestors 'none'")
_OURS: Final = frozenset({name for name, _ in _FIXED} | {_POLICY, b"x-request-id", b"server", b"connection"})
_CORS: Final = b"access-control-"

SECURITY_HEADERS: Final = (*_FIXED, _FOR_THE_REST, _NO_STORE)
"""For answers that are given before there is a request."""


def headers_for(
    head: Head, given: Iterable[tuple[bytes, bytes]], *, closes: bool
) -> tuple[list[tuple[bytes, bytes]], bool]:
    """The application's headers with ours, and whether they say how long the answer is."""
    merged: list[tuple[bytes, bytes]] = []
    policy, cached, length_known = _FOR_THE_REST, False, False
    for pair in given:
        name, value = pair[0].lower(), pair[1]
        if name in _OURS or name.startswith(_CORS):
            continue
        if name == b"cache-control":
            if not head.path.startswith("/assets/"):
                continue
            cached = True
        elif name == b"content-type":
            if value.startswith(b"text/html"):
                policy = _FOR_PAGES
        elif name == b"content-length":
            length_known = True
        merged.append((name, value))
    merged += _FIXED
    merged.append(policy)
    merged.append((b"x-request-id", head.request_id.encode("ascii")))
    if not cached:
        merged.append(_NO_STORE)
    if closes:
        merged.append((b"connection", b"close"))
    return merged, length_known
