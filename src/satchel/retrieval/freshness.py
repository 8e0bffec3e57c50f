"""Whether what the index holds is still what the file says, and where it has gone if not."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from satchel.indexing.walk import DocumentPolicy, Skip, read_bytes
from satchel.models.files import FileState, is_untouched

if TYPE_CHECKING:
    from satchel.models.outline import Outline


class Verdict(StrEnum):
    """How an indexed file stands to the one on disk."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"


class DiskFile(NamedTuple):
    """A file as it is now: its text is only there when it has changed, an outline only where reading it gave one."""

    verdict: Verdict
    text: str = ""
    outline: Outline | None = None


class Place(NamedTuple):
    """A run of lines and what they say, and the page of a document that they are on."""

    first_line: int
    last_line: int
    text: str
    page: int | None = None


class DiskDocument(NamedTuple):
    """The bytes of a document, and their hash."""

    data: bytes
    content_hash: bytes


class Elsewhere:
    """The files of a folder on another machine: nobody here can say more of them than what is kept."""

    def look(self, path: str, state: FileState) -> DiskFile:  # noqa: ARG002
        """The file is taken to be as it was read."""
        return DiskFile(Verdict.SAME)

    def document(self, path: str) -> DiskDocument | None:  # noqa: ARG002
        """Its bytes are not here."""
        return None

    def judge(self, path: str, state: FileState) -> Verdict:  # noqa: ARG002
        """As it was read."""
        return Verdict.SAME


class Disk:
    """The files of an open folder as they are now; each is looked at once."""

    def __init__(self, root: int, max_bytes: int, documents: DocumentPolicy) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._documents = documents
        self._looked_at: dict[str, DiskFile] = {}

    def look(self, path: str, state: FileState) -> DiskFile:
        """Compare the file on disk with what was read."""
        found = self._looked_at.get(path)
        if found is None:
            found = self._looked_at[path] = self._look(path, state)
        return found

    def document(self, path: str) -> DiskDocument | None:
        """A document's bytes as they are now, or None where there is none that may be read."""
        data = read_bytes(self._root, path, self._documents.max_bytes)
        return None if isinstance(data, Skip) else DiskDocument(data, blake2b(data, digest_size=16).digest())

    def judge(self, path: str, state: FileState) -> Verdict:
        """The verdict alone, without reading anew what has changed."""
        return self._compare(path, state)[0]

    def _compare(self, path: str, state: FileState) -> tuple[Verdict, bytes]:
        with suppress(OSError):
            info = os.stat(path, dir_fd=self._root, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode) and is_untouched(state, info.st_size, info.st_mtime_ns, info.st_ctime_ns):
                return Verdict.SAME, b""
        most = self._documents.max_bytes if self._documents.takes(path) else self._max_bytes
        data = read_bytes(self._root, path, most)
        if isinstance(data, Skip):
            return Verdict.GONE, b""
        same = blake2b(data, digest_size=16).digest() == state.content_hash
        return (Verdict.SAME, b"") if same else (Verdict.CHANGED, data)

    def _look(self, path: str, state: FileState) -> DiskFile:
        verdict, data = self._compare(path, state)
        if verdict is not Verdict.CHANGED:
            return DiskFile(verdict)
        if self._documents.takes(path):
            from satchel.indexing.documents.read_document import is_document

            if is_document(path, data):
                return self._read_again(path, data)
        return DiskFile(Verdict.CHANGED, data.decode("utf-8", "surrogateescape"))

    def _read_again(self, path: str, data: bytes) -> DiskFile:
        from satchel.indexing.documents.outline import outline_document
        from satchel.indexing.documents.readers import readers_for
        from satchel.models.document import Unreadable

        with readers_for(self._documents, workers=1) as readers:
            document = readers.read(path, data)
        if isinstance(document, Unreadable):
            return DiskFile(Verdict.CHANGED)
        read = outline_document(path, document)
        return DiskFile(Verdict.CHANGED, read.text, read.outline)


def find_again(path: str, disk: DiskFile, old: Place, qualified: str) -> Place | None:
    """Where lines of the old text are in the new one: the same lines elsewhere, or what now goes by their name."""
    text, outline = disk.text, disk.outline
    position = _line_of(text, old)
    if position:
        last = position + old.last_line - old.first_line
        return Place(position, last, old.text, _page_at(outline, position, last))
    from satchel.indexing.parse import is_tame, read_outline

    if not qualified or (outline is None and not is_tame(text)):
        return None
    outline = outline or read_outline(path, text)
    block = next((i for i, one in enumerate(outline.blocks) if one.qualified == qualified), None)
    if block is None:
        return None
    found = outline.blocks[block]
    for piece in outline.pieces:
        if piece.block == block or block in piece.defines or found.first_line <= piece.first_line <= found.last_line:
            return Place(piece.first_line, piece.last_line, text[piece.start : piece.end], piece.page or None)
    return None


def _page_at(outline: Outline | None, first: int, last: int) -> int | None:
    """The page on which lines stand, if they stand on one."""
    pages = outline.pages if outline else ()
    return next((page.number for page in pages if page.first_line <= first and last <= page.last_line), None)


def _line_of(text: str, old: Place) -> int:
    """The line at which the old lines stand now, the nearest to where they were; 0 if nowhere."""
    best = 0
    at = text.find(old.text) if old.text else -1
    while at >= 0:
        end = at + len(old.text)
        if (at == 0 or text[at - 1] == "\n") and (end == len(text) or text[end] == "\n"):
            line = text.count("\n", 0, at) + 1
            if not best or abs(line - old.first_line) < abs(best - old.first_line):
                best = line
        at = text.find(old.text, at + 1)
    return best
