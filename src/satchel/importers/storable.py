"""Text from outside as it can be stored, and the notices about what could not be taken over."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from satchel.indexing.read import is_binary
from satchel.indexing.walk import Skip
from satchel.models.block import Notice
from satchel.text.visible import make_visible, make_visible_line

# Bytes that were not UTF-8 arrive as lone surrogates, which no database takes; NUL ends a text in many of them.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

_DEEPEST_VALUE: Final = 20


def decoded(data: bytes) -> tuple[str, int]:
    """The text that the bytes are, with `\\n` between its lines, and how many of them had to be shown as bytes."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    text, shown = _UNSTORABLE.subn(_shown, text)
    return text.replace("\r\n", "\n").replace("\r", "\n"), shown


def storable(text: str) -> str:
    """The text with what no store takes made visible."""
    return _UNSTORABLE.sub(_shown, text)


def storable_line(text: str) -> str:
    """The same for a path or a name, which stays on one line."""
    return make_visible_line(text).text if not text.isprintable() else text


def as_json(value: object, depth: int = 0) -> Any:
    """The value in JSON's terms: dates as ISO 8601, keys as text, and text for what JSON does not have."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if depth < _DEEPEST_VALUE and isinstance(value, Mapping):
        return {storable(str(key)): as_json(one, depth + 1) for key, one in value.items()}
    if depth < _DEEPEST_VALUE and isinstance(value, list | tuple | set):
        return [as_json(one, depth + 1) for one in value]
    return storable(str(value))


def unused(wanted: str, given: dict[str, int], mark: str = "-") -> str:
    """The id, with a number behind it if it was given before; `given` holds the last number of each."""
    found, number = wanted, given.get(wanted, 1)
    while found in given:
        number += 1
        found = f"{wanted}{mark}{number}"
    given[wanted] = number
    given.setdefault(found, 1)
    return found


def moment_in(text: str | None) -> datetime | None:
    """The moment that an ISO 8601 text stands for, in UTC where it says no zone; None where it is none."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and not found.tzinfo else found


def file_time(modified_ns: int) -> datetime | None:
    """The moment of a file system's time stamp, or nothing where no calendar has it."""
    try:
        return datetime.fromtimestamp(modified_ns // 1_000_000 / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _shown(match: re.Match[str]) -> str:
    return make_visible(match[0]).text


_MOST_ENDINGS = 20
_MOST_ENDING_CHARS = 20


class Notices:
    """The notices that were not handed out yet."""

    def __init__(self) -> None:
        self._waiting: list[Notice] = []

    def add(self, where: str, problem: str) -> None:
        """Note a problem of a file."""
        self._waiting.append(Notice(where=where, problem=problem))

    def take(self) -> Iterator[Notice]:
        """Those that came since the last call."""
        yield from self._waiting
        self._waiting.clear()

    def add_unread(self, endings: Counter[str], what: str) -> None:
        """Note how many files of each ending were not read, if there are any."""
        if endings:
            counts = endings.most_common(_MOST_ENDINGS)
            kinds = ", ".join(f"{storable_line(ending)[:_MOST_ENDING_CHARS]}: {count}" for ending, count in counts)
            self.add("", f"{what} were not read ({kinds})")

    def text_of(self, where: str, data: bytes) -> str:
        """The text of a file, with a notice where bytes of it are none; empty for a binary file."""
        if is_binary(data):
            self.add(where, f"not read: {Skip.BINARY}")
            return ""
        text, shown = decoded(data)
        if shown:
            self.add(where, f"{shown} bytes that are not text were made visible")
        return text
