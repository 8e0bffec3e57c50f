"""What an importer has to say about a source: collected while it reads, handed out between the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from satchel.importers.storable import decoded, storable_line
from satchel.indexing.walk import Skip, is_binary
from satchel.models.block import Notice

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
