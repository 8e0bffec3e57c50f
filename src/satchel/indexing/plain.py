"""How jobs and their results cross process borders: as pickles of which nothing but plain values is taken back."""

from __future__ import annotations

import io
import os
import pickle
import selectors
import time
from typing import IO, Any, Final

_TAKEN: Final = frozenset(
    {("satchel.indexing.parse", "Source")}
    | {("satchel.ports.workers", name) for name in ("Job", "Prepared", "Vectors")}
    | {
        ("satchel.models.outline", name)
        for name in ("Outline", "OutlineBlock", "OutlinePiece", "OutlinePage", "Mention")
    }
)


def packed(thing: object) -> bytes:
    """A value as bytes."""
    return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> object:
    """What `packed` made; anything that is not a plain value of ours raises UnpicklingError."""
    return _Plain(io.BytesIO(data)).load()


def send(pipe: IO[bytes], thing: object) -> None:
    """Write a thing with its length before it."""
    send_bytes(pipe, packed(thing))


def send_within(pipe: IO[bytes], thing: object, seconds: float) -> None:
    """The same to somebody who may not be listening: raises TimeoutError when it is not taken in time."""
    data = packed(thing)
    left = memoryview(len(data).to_bytes(8, "little") + data)
    until = time.monotonic() + seconds
    os.set_blocking(pipe.fileno(), False)
    while left:
        try:
            left = left[os.write(pipe.fileno(), left) :]
        except BlockingIOError:
            if not _comes(pipe, selectors.EVENT_WRITE, until - time.monotonic()):
                raise TimeoutError from None


def comes_within(pipe: IO[bytes], seconds: float) -> bool:
    """Whether there is something to read in time."""
    return _comes(pipe, selectors.EVENT_READ, seconds)


def _comes(pipe: IO[bytes], event: int, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, event)
        return bool(selector.select(max(0.0, seconds)))


def receive(pipe: IO[bytes]) -> object:
    """Read what `send` wrote."""
    return unpacked(receive_bytes(pipe))


def send_bytes(pipe: IO[bytes], data: bytes) -> None:
    """Write bytes with their length before them."""
    pipe.write(len(data).to_bytes(8, "little"))
    pipe.write(data)
    pipe.flush()


def receive_bytes(pipe: IO[bytes]) -> bytes:
    """Read what `send_bytes` wrote."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    length = int.from_bytes(head, "little")
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data


class _Plain(pickle.Unpickler):
    """Takes nothing but plain values: whoever has taken over a child has not taken over us."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _TAKEN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value of ours")
