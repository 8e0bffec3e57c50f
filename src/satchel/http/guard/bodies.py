"""Request bodies: read within limits of size, time and memory, and checked as strict JSON (RFC 8259 and I-JSON)."""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from satchel.errors import shown
from satchel.http.guard.request_checks import SAFE_METHODS, RequestHead
from satchel.http.problems import Refused, problem_for_status, refused

if TYPE_CHECKING:
    from starlette.types import Message, Receive

    from satchel.http.guard.request_checks import Limits

_MAX_BYTES_IN_LOOP: Final = 16_384  # a larger body is checked in a thread, so that other requests are not delayed

# Each value costs many times its bytes, and each unknown field an error: 4 MB of them would keep the server busy.
_MAX_DIGITS: Final = 1_000  # of one number
_MAX_FIELDS: Final = 1_000  # of one object
_MAX_TOTAL_FIELDS: Final = 150_000  # of all objects
_MAX_CONTAINERS: Final = 300_000  # lists and objects
_MAX_LOCATED_CHARS: Final = 100_000  # finding the place of a fault costs more than finding the fault

_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|-?[0-9][0-9.eE+-]*|-?Infinity|NaN', re.DOTALL)


class ClientGone(OSError):
    """The client has left; there is nobody to respond to."""


def check_declared_body(head: RequestHead, limits: Limits) -> None:
    """Refuse a body for what the head says of it, before any of it is read."""
    if not head.has_body:
        return
    if head.method in SAFE_METHODS:
        raise refused("unexpected-body", method=head.method)
    if not head.is_upload and not head.is_json:
        raise Refused(problem_for_status(415))
    length = head.headers.get(b"content-length", b"")
    if length.isdigit():
        _check_size(int(length), limits.upload_bytes if head.is_upload else limits.body_bytes)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise refused("body-too-large", {"most_bytes": max_bytes}, most=max_bytes)


class BodyMemoryLimit:
    """Reads JSON bodies, and counts their bytes together so that many clients cannot fill the memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.received_bytes = 0

    async def read(self, receive: Receive) -> bytes:
        """The whole body. Refuses bodies that are too large or too slow (slow client)."""
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
                    _check_size(size, self._limits.body_bytes)
                    if self.received_bytes > self._limits.total_body_bytes:
                        raise refused("server-busy/bodies")
        except TimeoutError:
            raise refused("body-too-slow") from None
        finally:
            self.received_bytes -= size
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Upload:
    """A document that is being received: limited in size, and never slower than `upload_rate` for long."""

    __slots__ = ("_limits", "_size", "_waited_seconds")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waited_seconds = 0.0
        self._size = 0

    async def next_message(self, receive: Receive) -> Message:
        """The client's next message. Refuses uploads that are too large or too slow (slow client)."""
        # The more has arrived, the longer the next part may take.
        seconds = self._limits.body_seconds + self._size / self._limits.upload_rate - self._waited_seconds
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                message = await receive()
        except TimeoutError:
            raise refused("body-too-slow") from None
        # Only waiting counts against the client, not the time that the application takes between two parts.
        self._waited_seconds += loop.time() - began
        self._size += len(message.get("body", b""))
        _check_size(self._size, self._limits.upload_bytes)
        return message


async def check_json(body: bytes, max_depth: int) -> None:
    """Refuse a body that is not strict JSON, with line and column of the fault."""
    if len(body) > _MAX_BYTES_IN_LOOP:
        await asyncio.to_thread(check_strict_json, body, max_depth)
    elif body:
        check_strict_json(body, max_depth)


def _bad_json(fault: str, position: int | None = None, text: str = "") -> Refused:
    """The refusal of a text that is not strict JSON, with the position of the fault in it (None: not known)."""
    line = column = None
    place = ""
    if position is not None:
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        place = f" (line {line}, column {column})"
    return refused("bad-json", {"position": position, "line": line, "column": column}, fault=fault, place=place)


def check_strict_json(body: bytes, max_depth: int) -> None:
    """Refuse all that Python's decoder accepts beyond RFC 8259 and I-JSON, and for deeper nesting."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad_json("it is not UTF-8", error.start, body[: error.start].decode("utf-8")) from None
    containers = body.count(b"[") + body.count(b"{")
    if containers > _MAX_CONTAINERS:
        raise _bad_json(f"it has more than {_MAX_CONTAINERS:,} lists and objects")
    try:
        value = _DECODER.decode(text)
        if containers > min(max_depth, _MAX_TOTAL_FIELDS // _MAX_FIELDS):  # fewer can break neither limit
            _check_containers(value, max_depth)
    except json.JSONDecodeError as error:
        raise _bad_json(error.msg[:1].lower() + error.msg[1:], error.pos, text) from None
    except (RecursionError, _NotStrict) as error:
        fault = str(error) if isinstance(error, _NotStrict) else f"it is nested deeper than {max_depth} levels"
        raise _bad_json(fault, _fault_position(text, max_depth), text) from None
    if b"\\u" in body:
        for lone in (match.start() for match in _ESCAPE.finditer(text) if match[1]):
            raise _bad_json("half of a surrogate pair stands alone", lone, text)


class _NotStrict(ValueError):
    """A value that Python's decoder accepts and we do not."""


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MAX_FIELDS:
        raise _NotStrict(f"an object has more than {_MAX_FIELDS:,} fields")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise _NotStrict(f"{shown(repeated)} is there twice in one object")
    return fields


def _no_constant(text: str) -> NoReturn:
    raise _NotStrict(f"{text} is no value of JSON's")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotStrict("a number is too large")
    return number


def _short(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise _NotStrict(f"a number has more than {_MAX_DIGITS:,} digits")
    return int(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_fields, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
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


def _fault_position(text: str, max_depth: int) -> int | None:
    """Where the first value stands that is not strict, or too deep: Python's decoder does not tell."""
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
            return None  # no single value is the fault (too many fields), and what follows is no JSON
        before = part
    return None
