"""Whether what the index holds is still what the file says, and where it has gone if not."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from satchel.ingest.read import read_bytes
from satchel.ingest.walk import Skip
from satchel.ports.store import FileState, is_untouched


class Verdict(StrEnum):
    """How an indexed file stands to the one on disk."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"


class DiskFile(NamedTuple):
    """A file as it is now: its text is only there when it has changed."""

    verdict: Verdict
    text: str = ""


class Place(NamedTuple):
    """A run of lines and what they say."""

    first_line: int
    last_line: int
    text: str


def look(root: int, path: str, state: FileState, max_bytes: int) -> DiskFile:
    """Compare the file on disk with what was read."""
    with suppress(OSError):
        info = os.stat(path, dir_fd=root, follow_symlinks=False)
        if stat.S_ISREG(info.st_mode) and is_untouched(state, info.st_size, info.st_mtime_ns, info.st_ctime_ns):
            return DiskFile(Verdict.SAME)
    data = read_bytes(root, path, max_bytes)
    if isinstance(data, Skip):
        return DiskFile(Verdict.GONE)
    if blake2b(data, digest_size=16).digest() == state.content_hash:
        return DiskFile(Verdict.SAME)
    return DiskFile(Verdict.CHANGED, data.decode("utf-8", "surrogateescape"))


def find_again(path: str, text: str, old: Place, qualified: str) -> Place | None:
    """Where lines of the old text are in the new one: the same lines elsewhere, or what now goes by their name."""
    position = _line_of(text, old)
    if position:
        return Place(position, position + old.last_line - old.first_line, old.text)
    from satchel.ingest.parse import is_tame
    from satchel.ingest.read_outline import read_outline

    if not qualified or not is_tame(text):
        return None
    outline = read_outline(path, text)
    block = next((i for i, one in enumerate(outline.blocks) if one.qualified == qualified), None)
    if block is None:
        return None
    found = outline.blocks[block]
    for piece in outline.pieces:
        if piece.block == block or block in piece.defines or found.first_line <= piece.first_line <= found.last_line:
            return Place(piece.first_line, piece.last_line, text[piece.start : piece.end])
    return None


def _line_of(text: str, old: Place) -> int:
    """The line at which the old lines stand now, the nearest to where they were; 0 if nowhere."""
    best = 0
    at = text.find(old.text)
    while at >= 0:
        end = at + len(old.text)
        if (at == 0 or text[at - 1] == "\n") and (end == len(text) or text[end] == "\n"):
            line = text.count("\n", 0, at) + 1
            if not best or abs(line - old.first_line) < abs(best - old.first_line):
                best = line
        at = text.find(old.text, at + 1)
    return best
