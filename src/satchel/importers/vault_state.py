"""What is remembered of a vault between two imports, so that only changed notes are read again."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from satchel.indexing.prepared_files import reader_version
from satchel.models.block import Block
from satchel.models.files import FileState, is_untouched


class NoteReference(NamedTuple):
    """A link as written in a block of a note, and the block that the link led to at the last import."""

    source: str
    destination: str
    embeds: bool
    wiki: bool
    target: str | None = None


@dataclass(slots=True)
class NoteState:
    """A note as read: its page, and everything by which links of other notes find it."""

    page_id: str
    state: FileState
    page: Block | None = None
    """None for a canvas, and for a page that cannot be remembered exactly."""
    blocks: list[str] = field(default_factory=list)
    headings: list[tuple[str, str, str]] = field(default_factory=list)
    """Path, title and block id of each heading."""
    anchors: list[tuple[str, str]] = field(default_factory=list)
    """Explicit id and block id of each block with an explicit id."""
    aliases: list[str] = field(default_factory=list)
    references: list[NoteReference] = field(default_factory=list)


class _StoredState(NamedTuple):
    """The stored form."""

    version: str
    notes: dict[str, NoteState]


class VaultState:
    """The notes of the last import, by path."""

    def __init__(self, notes: Mapping[str, NoteState] | None = None) -> None:
        self._notes = dict(notes or {})

    @classmethod
    def from_text(cls, text: str) -> VaultState:
        """The state of an earlier import; empty if another version made it."""
        try:
            stored = msgspec.msgpack.decode(zlib.decompress(b64decode(text)), type=_StoredState)
        except (ValueError, zlib.error, msgspec.MsgspecError):
            return cls()
        return cls(stored.notes if stored.version == reader_version() else None)

    def to_text(self) -> str:
        """The state as text; "" if a name cannot be stored."""
        notes = {path: replace(note, page=_exact(note.page)) for path, note in self._notes.items()}
        try:
            return b64encode(zlib.compress(msgspec.msgpack.encode(_StoredState(reader_version(), notes)), 1)).decode()
        except UnicodeEncodeError:  # a path that is not UTF-8
            return ""

    def unchanged(self, path: str, page_id: str, size: int, modified_ns: int, changed_ns: int) -> NoteState | None:
        """The note at the path, if its file cannot have changed since it was read, and its page has the same id."""
        note = self._notes.get(path)
        if note is None or note.page is None or note.page_id != page_id:
            return None
        return note if is_untouched(note.state, size, modified_ns, changed_ns) else None


def _exact(page: Block | None) -> Block | None:
    """The page if it can be stored and read back unchanged, else None."""
    try:
        return page if page == msgspec.msgpack.decode(msgspec.msgpack.encode(page), type=Block | None) else None
    except (UnicodeEncodeError, TypeError, msgspec.MsgspecError, OverflowError):
        return None
