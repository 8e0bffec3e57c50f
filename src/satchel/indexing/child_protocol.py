"""Messages between this process and its children: msgpack in frames, decoded into types of ours.

Whoever takes over a child through a parser can send what they like. No answer makes the receiver run, import or nest
anything, a frame over the receiver's limit is refused before it is read, and decoding one takes a bounded multiple of
its length (a list of n bytes holds at most n entries).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from functools import cache
from typing import IO, Any, Final, TypeVar, cast

import msgspec

FRAME_HEADER: Final = struct.Struct("<Q")
"""The length of the payload that follows, in bytes."""

_PLAIN: Final = b"\0"
_ESCAPED: Final = b"\1"

Message = TypeVar("Message")


class Garbled(Exception):
    """The bytes are not a message that a process of ours sends."""


def encode(message: object) -> bytes:
    """The message as bytes."""
    try:
        return _PLAIN + msgspec.msgpack.encode(message)
    except UnicodeEncodeError:  # a byte of a file that is not UTF-8 is a lone surrogate, which msgpack cannot hold
        return _ESCAPED + msgspec.msgpack.encode(_map_texts(message, _escape))


def decode(data: bytes | bytearray, message_type: type[Message]) -> Message:
    """The message of that type; raises Garbled when the bytes are none."""
    try:
        message: Message = _decoder(cast(Hashable, message_type)).decode(memoryview(data)[1:])
        if data[:1] == _ESCAPED:
            message = _map_texts(message, _unescape)
        elif data[:1] != _PLAIN:
            raise Garbled
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Garbled from error
    return message


def frame(payload: bytes) -> bytes:
    """The payload with its length before it."""
    return FRAME_HEADER.pack(len(payload)) + payload


def send(pipe: IO[bytes], message: object) -> None:
    """Write a message as a frame."""
    pipe.write(frame(encode(message)))
    pipe.flush()


def receive(pipe: IO[bytes], message_type: type[Message], max_bytes: int) -> Message:
    """The next message; raises EOFError when the pipe ends, and Garbled for what is not one or is too long."""
    return decode(receive_payload(pipe, max_bytes), message_type)


def receive_payload(pipe: IO[bytes], max_bytes: int) -> bytes:
    """The payload of the next frame; raises EOFError when the pipe ends, and Garbled for a frame that is too long."""
    (length,) = FRAME_HEADER.unpack(_read_exactly(pipe, FRAME_HEADER.size))
    if length > max_bytes:
        raise Garbled
    return _read_exactly(pipe, length)


def _read_exactly(pipe: IO[bytes], length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data


@cache
def _decoder(message_type: Hashable) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(message_type)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if not isinstance(value, list | tuple):
        return value
    changed = (_map_texts(entry, change) for entry in value)
    return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)


def _escape(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _unescape(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "surrogatepass")
