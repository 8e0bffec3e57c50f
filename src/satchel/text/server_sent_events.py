"""Server-sent events from bytes that may be cut anywhere."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from io import IncrementalNewlineDecoder
from typing import Final, NamedTuple

ERROR: Final = "error"
"""The kind of an event that says why the stream ends."""


class Event(NamedTuple):
    """The data of an event and its kind ('' for the default kind)."""

    data: str
    kind: str = ""


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream. Its end ends the last one, too: many servers send no blank line after it."""
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
            # Servers of llama.cpp until September 2025 send errors in a field of their own.
            yield Event(value, ERROR)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    # Not `splitlines` (as httpx has it): U+2028 and others may stand in the JSON of one line.
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
