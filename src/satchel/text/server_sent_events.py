"""Reading a stream of server-sent events, however its bytes are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK: Final = "\ufeff"
ERROR: Final = "error"
"""The kind of an event that says why there will be no more."""


class Event(NamedTuple):
    """What an event says, and its kind ('' where it has none)."""

    data: str
    kind: str = ""


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream; one that its end leaves without a blank line counts, for many servers end so."""
    data: list[str] = []
    kind = ""
    for line in _lines(chunks):
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
        elif name == ERROR:
            # llama.cpp's servers have said it in a field of its own.
            yield Event(value, ERROR)
        # What begins with a colon keeps the connection alive; other fields are of no interest.
    if data:
        yield Event("\n".join(data), kind)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines, decoded when they are whole: a character may be cut, a line end too."""
    begun: list[bytes] = []
    after_return = False
    is_first = True
    for chunk in chunks:
        rest = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
        after_return = chunk.endswith(b"\r") or (after_return and not chunk)
        *whole, tail = _LINE_END.split(rest)
        for line in whole:
            text = b"".join([*begun, line]).decode("utf-8", "replace")
            begun = []
            yield text.removeprefix(_BYTE_ORDER_MARK) if is_first else text
            is_first = False
        if tail:
            begun.append(tail)
    if begun:
        yield b"".join(begun).decode("utf-8", "replace").removeprefix(_BYTE_ORDER_MARK if is_first else "")
