"""Where the next page begins. A cursor holds no text and no state: the text is made again and compared by digest."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final

from satchel.errors import InvalidOption

_VERSION: Final = b"\x01"
_OFFSET: Final = 6
_ASKED: Final = 6
_WHOLE: Final = 8
_CHECK: Final = 6
_LENGTH: Final = len(_VERSION) + _OFFSET + _ASKED + _WHOLE + _CHECK


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """So many characters (or hits) into what the arguments gave."""

    offset: int
    asked: bytes
    whole: bytes

    def written(self) -> str:
        """The cursor as it is sent; always of the same length."""
        body = _VERSION + self.offset.to_bytes(_OFFSET, "big") + self.asked + self.whole
        return urlsafe_b64encode(body + _check(body)).decode("ascii")


def read_cursor(text: str) -> Cursor:
    """The cursor that was sent; an error if it is none of ours, or was changed on its way."""
    try:
        data = urlsafe_b64decode(text.encode("ascii"))
    except (Error, ValueError):
        data = b""
    body, check = data[:-_CHECK], data[-_CHECK:]
    if len(data) != _LENGTH or not compare_digest(check, _check(body)) or not body.startswith(_VERSION):
        raise InvalidOption(
            "cursor", text, "is not a cursor that this server gave; leave it out to begin with the first page"
        )
    rest = body[len(_VERSION) :]
    return Cursor(
        offset=int.from_bytes(rest[:_OFFSET], "big"),
        asked=rest[_OFFSET : _OFFSET + _ASKED],
        whole=rest[_OFFSET + _ASKED :],
    )


def digest_of_asked(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """What was asked, whichever page of it."""
    said = sorted((name, value) for name, value in arguments.items() if name != "cursor")
    return blake2b(json.dumps([tool, said]).encode(), digest_size=_ASKED).digest()


def digest_of(whole: str) -> bytes:
    """What was answered, all of it."""
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=_WHOLE).digest()


def _check(body: bytes) -> bytes:
    # No secret: who makes up a cursor gets a page of what they may read anyway.
    return blake2b(body, digest_size=_CHECK, person=b"satchel-cursor").digest()
