"""How paths, texts and moments are kept in columns."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime


def path_bytes(path: str) -> bytes:
    """A path as it is kept: the bytes that the file system knows."""
    return path.encode("utf-8", "surrogateescape")


def path_text(kept: bytes) -> str:
    """A kept path as the rest of the program sees it."""
    return kept.decode("utf-8", "surrogateescape")


def plain(text: str) -> str:
    """Without what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def moment(nanoseconds: int) -> datetime:
    """A file's time."""
    with suppress(OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return datetime.fromtimestamp(0, UTC)


class Lines:
    """Where the lines of a text begin and end, in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._starts = [0]
        position = data.find(b"\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = data.find(b"\n", position + 1)
        self._starts.append(len(data))

    def start(self, line: int) -> int:
        """Where a line begins; the first is 1."""
        return self._starts[line - 1]

    def end(self, line: int) -> int:
        """Where it ends, without its line feed."""
        end = self._starts[line]
        return end - 1 if end and self._data[end - 1 : end] == b"\n" else end
