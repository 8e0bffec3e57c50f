"""External text in storable form, and notices about content left out."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from satchel.indexing.walk import Skip
from satchel.models.block import Notice
from satchel.text.decoding import decode_text, is_binary
from satchel.text.visible import make_visible, make_visible_line

# Invalid UTF-8 bytes are decoded as lone surrogates, which no database accepts; NUL ends a text in many databases.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

_MAX_VALUE_DEPTH: Final = 20  # deeper values become text; the limit bounds the recursion over untrusted values
_MAX_LISTED_EXTENSIONS: Final = 20  # a notice lists the most frequent extensions only, to stay readable
_MAX_EXTENSION_CHARS: Final = 20  # whatever follows the last dot of a name counts as extension, and may be a sentence


def storable(text: str) -> str:
    """The text with unstorable characters (NUL, lone surrogates) made visible."""
    return _UNSTORABLE.sub(_visible, text)


def storable_line(text: str) -> str:
    """A path or a name in storable form, on a single line."""
    return make_visible_line(text).text if not text.isprintable() else text


def as_json(value: object, depth: int = 0) -> Any:
    """The value as JSON: dates as ISO 8601, keys as text, and types unknown to JSON as text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if depth < _MAX_VALUE_DEPTH and isinstance(value, Mapping):
        return {storable(str(key)): as_json(inner, depth + 1) for key, inner in value.items()}
    if depth < _MAX_VALUE_DEPTH and isinstance(value, list | tuple | set):
        return [as_json(inner, depth + 1) for inner in value]
    return storable(str(value))


def unused(block_id: str, used: dict[str, int], mark: str = "-") -> str:
    """A unique id: the given id, with a number appended if taken; `used` maps each id to the last number."""
    free_id, number = block_id, used.get(block_id, 1)
    while free_id in used:
        number += 1
        free_id = f"{block_id}{mark}{number}"
    used[block_id] = number
    used.setdefault(free_id, 1)
    return free_id


def moment_in(text: str | None) -> datetime | None:
    """The moment of an ISO 8601 text, in UTC if the text has no time zone; None if unreadable."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and not moment.tzinfo else moment


def file_time(modified_ns: int) -> datetime | None:
    """The moment of a file system's time stamp; None outside of the calendar's range."""
    try:
        return datetime.fromtimestamp(modified_ns // 1_000_000 / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _visible(match: re.Match[str]) -> str:
    return make_visible(match[0]).text


def not_read(path: str, reason: str) -> Notice:
    """The Notice about a file left out."""
    return Notice(where=storable_line(path), problem=f"not read: {reason}")


class Notices(list[Notice]):
    """Pending notices: collected while a source is read, yielded between records."""

    def add(self, where: str, problem: str) -> None:
        """Add a problem of a file."""
        self.append(Notice(where=where, problem=problem))

    def take(self) -> Iterator[Notice]:
        """All pending notices; afterwards none are pending."""
        yield from self
        self.clear()

    def add_unread(self, endings: Counter[str], what: str) -> None:
        """Add a notice with the count of unread files by extension, if there are any."""
        if endings:
            counts = endings.most_common(_MAX_LISTED_EXTENSIONS)
            kinds = ", ".join(f"{storable_line(ending)[:_MAX_EXTENSION_CHARS]}: {count}" for ending, count in counts)
            self.add("", f"{what} were not read ({kinds})")

    def text_of(self, where: str, data: bytes) -> str:
        """The text of a file, with a notice if some bytes are not text; empty for a binary file."""
        if is_binary(data):
            self.add(where, f"not read: {Skip.BINARY}")
            return ""
        text, unreadable = _UNSTORABLE.subn(_visible, decode_text(data))
        if unreadable:
            self.add(where, f"{unreadable} bytes that are not UTF-8 were escaped")
        return text.replace("\r\n", "\n").replace("\r", "\n")
