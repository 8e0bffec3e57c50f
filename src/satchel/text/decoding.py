"""The text of a file's bytes: the only decoding of files that are read as text."""

from __future__ import annotations

import codecs
from typing import Final

_NUL_SEARCH_BYTES: Final = 8192  # about as far as git looks (8,000) to tell binary files from text

# Byte order marks of the encodings that editors write with one; UTF-32 has NULs in UTF-16, and is binary.
_ENCODINGS: Final = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def decode_text(data: bytes) -> str:
    """The text without the byte order mark: UTF-16 with a mark, else UTF-8 with other bytes escaped.

    Every line an editor shows ends in a line feed: a text with carriage returns alone gets line feeds instead.
    """
    encoding, mark = _encoding_of(data)
    text = data[mark:].decode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")
    return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def has_byte_order_mark(data: bytes) -> bool:
    """True if the bytes begin with the mark of UTF-8 or UTF-16."""
    return data.startswith(tuple(_ENCODINGS))


def is_binary(data: bytes) -> bool:
    """True if a NUL near the start marks the bytes as binary; in UTF-16, a NUL character or an invalid pair."""
    encoding, mark = _encoding_of(data)
    start = data[mark:_NUL_SEARCH_BYTES]
    if encoding == "utf-8":
        return b"\0" in start
    try:
        return "\0" in codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return True


def _encoding_of(data: bytes) -> tuple[str, int]:
    """The encoding, and the length of the byte order mark."""
    return next(((name, len(mark)) for mark, name in _ENCODINGS.items() if data.startswith(mark)), ("utf-8", 0))
