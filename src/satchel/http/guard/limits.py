"""How much of everything a client gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


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
