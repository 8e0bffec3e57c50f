"""How much of everything a client gets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server takes from one client, and how long it waits for it."""

    body_bytes: int = 4_000_000
    """Of a body of JSON."""
    upload_bytes: int = 100_000_000
    """Of a document."""
    held_bytes: int = 256_000_000
    """Of all bodies of JSON that are being received at once."""
    header_bytes: int = 32_768
    url_bytes: int = 8_192
    json_depth: int = 64

    header_seconds: float = 10
    """From connecting, or from the answer before, to the end of the request's head."""
    idle_seconds: float = 5
    """A connection that asks for nothing more is closed after this."""
    body_seconds: float = 30
    """For a whole body of JSON. A document may take this and the time that `upload_rate` gives it."""
    upload_rate: int = 10_000
    """The fewest bytes a second in which a document has to arrive after `body_seconds`."""
    stalled_seconds: float = 30
    """A client that reads less than `download_rate` of its answer for this long is cut off."""
    download_rate: int = 1_000
    request_seconds: float = 120
    """For an answer to begin, once the request is there."""
    stop_seconds: float = 10
    """Requests in work may take this to finish when the server is stopped."""

    linger_seconds: float = 2
    """After a refusal, what the client still sends is taken this long: or it would not get to read the refusal."""
    linger_bytes: int = 16_000_000

    concurrent: int = 64
    """Requests in work."""
    connections: int = 1_000
