"""How a document travels from the child that read it: numbers and texts, one after the other, and nothing else.

Whoever takes over a child through a parser can send what they like. No answer makes the parent run, resolve or nest
anything, and none takes more memory than a few times its length, which is bounded.
"""

from __future__ import annotations

import struct
from typing import Final

from satchel.models.document import Bookmark, Document, Page, Unreadable

_DOCUMENT: Final = 1
_UNREADABLE: Final = 2
_NUMBER: Final = struct.Struct("<I")
_MOST_ENTRIES: Final = 100_000


class Garbled(Exception):
    """The answer is not one that a child of ours gives."""


def encode(answer: Document | Unreadable) -> bytes:
    """The answer as bytes."""
    out = bytearray()
    if isinstance(answer, Unreadable):
        _put_number(out, _UNREADABLE)
        _put_text(out, answer.reason)
        return bytes(out)
    _put_number(out, _DOCUMENT)
    _put_text(out, answer.title)
    _put_number(out, len(answer.notes))
    for note in answer.notes:
        _put_text(out, note)
    _put_number(out, len(answer.bookmarks))
    for level, title, page in answer.bookmarks:
        _put_number(out, level)
        _put_text(out, title)
        _put_number(out, page)
    _put_number(out, len(answer.pages))
    for one in answer.pages:
        _put_number(out, one.number)
        for text in (one.markdown, one.name, one.seen):
            _put_text(out, text)
        _put_number(out, len(one.captions))
        for caption in one.captions:
            _put_text(out, caption)
        _put_number(out, one.pictures)
        _put_number(out, one.is_recognized)
    return bytes(out)


def decode(data: bytes) -> Document | Unreadable:
    """The answer that bytes are; raises Garbled when they are none."""
    given = _Reader(data)
    kind = given.number()
    if kind == _UNREADABLE:
        answer: Document | Unreadable = Unreadable(given.text())
    elif kind == _DOCUMENT:
        title = given.text()
        notes = tuple([given.text() for _ in range(given.count())])
        bookmarks = tuple([Bookmark(given.number(), given.text(), given.number()) for _ in range(given.count())])
        answer = Document(tuple([given.page() for _ in range(given.count())]), title, bookmarks, notes)
    else:
        raise Garbled
    given.finish()
    return answer


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        end = self._at + _NUMBER.size
        if end > len(self._data):
            raise Garbled
        (value,) = _NUMBER.unpack_from(self._data, self._at)
        self._at = end
        return int(value)

    def count(self) -> int:
        value = self.number()
        if value > _MOST_ENTRIES:
            raise Garbled
        return value

    def text(self) -> str:
        length = self.number()
        end = self._at + length
        if end > len(self._data):
            raise Garbled
        try:
            value = self._data[self._at : end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise Garbled from error
        self._at = end
        return value

    def page(self) -> Page:
        return Page(
            number=self.number(),
            markdown=self.text(),
            name=self.text(),
            seen=self.text(),
            captions=tuple([self.text() for _ in range(self.count())]),
            pictures=self.number(),
            is_recognized=bool(self.number()),
        )

    def finish(self) -> None:
        if self._at != len(self._data):
            raise Garbled


def _put_number(out: bytearray, value: int) -> None:
    out += _NUMBER.pack(max(0, min(int(value), 0xFFFFFFFF)))


def _put_text(out: bytearray, text: str) -> None:
    data = text.encode("utf-8", "replace")
    _put_number(out, len(data))
    out += data
