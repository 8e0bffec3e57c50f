"""Untrusted JSON: the values of a huge array read incrementally, and typed access to an object's fields."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from satchel.errors import InvalidInput

# Smaller reads repeat the parsing of a cut value more often, larger ones take more memory.
_CHUNK_BYTES: Final = 1 << 20
# A single conversation is held in memory as a whole; the export is streamed.
_MAX_CONVERSATION_CHARS: Final = 32_000_000
_HEAD_BYTES: Final = 65_536  # a first line that is longer is not parsed
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class Values:
    """The values of a JSON array, read incrementally, or the single value of a file without an array."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = ""
        self._at = 0

    def __iter__(self) -> Iterator[Any]:
        if self._next() == "\ufeff":
            self._at += 1
        if not self._next():
            raise self._broken("it is empty")
        if self._next() != "[":
            while self._next():
                yield self._value()
            return
        # `gh api --paginate` writes an array for each page, one behind the other.
        while self._next() == "[":
            yield from self._array()
        if self._next():
            raise self._broken("unexpected text after the end of the value")

    def _array(self) -> Iterator[Any]:
        self._at += 1
        if self._next() == "]":
            self._at += 1
            return
        yield self._value()
        while self._next() == ",":
            self._at += 1
            self._next()
            yield self._value()
        if self._next() != "]":
            raise self._broken("the JSON is incomplete, or a comma is missing")
        self._at += 1

    def _next(self) -> str:
        """The next non-space character, or an empty text at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._is_cut(error) or not self._more():
                    raise self._broken(error.msg) from None
                continue
            except (ValueError, RecursionError) as error:
                raise self._broken(str(error)) from None
            # A number at the end of the text in memory may continue in the next chunk.
            if end < len(self._text) or isinstance(value, dict | list) or not self._more():
                self._at = end
                return value

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """True if the value may continue beyond the text in memory, rather than being invalid already."""
        return error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 16

    def _more(self) -> bool:
        rest = len(self._text) - self._at
        if rest > _MAX_CONVERSATION_CHARS:
            problem = f"contains a conversation of more than {_MAX_CONVERSATION_CHARS:,} characters"
            raise InvalidInput("path", self._name, problem)
        # Doubling the text each time: repeated parsing costs at most twice the whole.
        data = self._file.read(max(_CHUNK_BYTES, min(rest, _MAX_CONVERSATION_CHARS - rest)))
        added = self._decoder.decode(data, final=not data)
        if not data and not added:
            return False
        self._text, self._at = self._text[self._at :] + added, 0
        return True

    def _broken(self, problem: str) -> InvalidInput:
        near = self._text[self._at : self._at + 40]
        return InvalidInput("path", self._name, f"is not valid JSON near {near!a} ({problem}); export it again")


def first_value(path: Path) -> Any:
    """The JSON value in a file's first line; [] or {} if the line only begins it, None if the line is not JSON."""
    with path.open("rb") as file:
        line = file.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        if line.startswith(b"["):
            return []
        return {} if line.strip() == b"{" else None


def field_of(value: Mapping[str, Any], *names: str) -> Any:
    """The value of the first named field present; None if all are missing."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def text_of(value: Mapping[str, Any], *names: str) -> str:
    """The first of the named fields with a non-empty text; '' if there is none."""
    return next((text for name in names if isinstance(text := value.get(name), str) and text), "")


def dict_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The field if the value is an object, else an empty dict."""
    return inner if isinstance(inner := value.get(name), dict) else {}


def list_of(value: Mapping[str, Any], name: str) -> list[Any]:
    """The field if the value is a list, else an empty list."""
    return inner if isinstance(inner := value.get(name), list) else []
