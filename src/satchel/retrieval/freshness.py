"""The indexed folder as it is on disk now: what has changed, where lines have gone, and the exact text behind an id."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import InvalidOption, UnknownBlock
from satchel.models.block import BlockType
from satchel.models.checks import as_count, as_text
from satchel.models.files import SAME_AS, FileState, is_untouched
from satchel.models.search import Expansion

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.indexing.documents.policy import DocumentPolicy
    from satchel.models.outline import Outline
    from satchel.models.search import Filters
    from satchel.ports.store import Store


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


class LineRange(NamedTuple):
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
        data = self._read(path, self._documents.max_bytes)
        return None if data is None else DiskDocument(data, blake2b(data, digest_size=16).digest())

    def judge(self, path: str, state: FileState) -> Verdict:
        """The verdict alone, without reading anew what has changed."""
        return self._compare(path, state)[0]

    def _compare(self, path: str, state: FileState) -> tuple[Verdict, bytes]:
        with suppress(OSError):
            info = os.stat(path, dir_fd=self._root, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode) and is_untouched(state, info.st_size, info.st_mtime_ns, info.st_ctime_ns):
                return Verdict.SAME, b""
        most = self._documents.max_bytes if self._documents.takes(path) else self._max_bytes
        data = self._read(path, most)
        if data is None:
            return Verdict.GONE, b""
        same = blake2b(data, digest_size=16).digest() == state.content_hash
        return (Verdict.SAME, b"") if same else (Verdict.CHANGED, data)

    def _read(self, path: str, max_bytes: int) -> bytes | None:
        """The file's bytes; None for what may not be read."""
        from satchel.indexing.read import read_bytes

        data = read_bytes(self._root, path, max_bytes)
        return data if isinstance(data, bytes) else None

    def _look(self, path: str, state: FileState) -> DiskFile:
        verdict, data = self._compare(path, state)
        if verdict is not Verdict.CHANGED:
            return DiskFile(verdict)
        if self._documents.takes(path):
            from satchel.indexing.documents.kinds import is_document

            if is_document(path, data):
                return self._read_again(path, data)
        return DiskFile(Verdict.CHANGED, data.decode("utf-8", "surrogateescape"))

    def _read_again(self, path: str, data: bytes) -> DiskFile:
        from satchel.indexing.documents.outline import outline_document
        from satchel.indexing.documents.policy import readers_for
        from satchel.models.document import Unreadable

        with readers_for(self._documents, workers=1) as readers:
            document = readers.read(path, data)
        if isinstance(document, Unreadable):
            return DiskFile(Verdict.CHANGED)
        read = outline_document(path, document)
        return DiskFile(Verdict.CHANGED, read.text, read.outline)


class Folder(NamedTuple):
    """The folder that was indexed, and what of it is read."""

    root: Path
    max_file_bytes: int
    documents: DocumentPolicy
    is_here: bool = True
    """Whether it is on this machine; otherwise what is kept of it is all there is."""

    @contextmanager
    def opened(self) -> Iterator[Disk | Elsewhere]:
        """Its files as they are now."""
        from satchel.indexing.safe_open import opened_workspace

        if not self.is_here:
            yield Elsewhere()
            return
        with opened_workspace(self.root) as handle:
            yield Disk(handle, self.max_file_bytes, self.documents)


def find_again(path: str, disk: DiskFile, old: LineRange, qualified: str) -> LineRange | None:
    """Where lines of the old text are in the new one: the same lines elsewhere, or what now goes by their name."""
    text, outline = disk.text, disk.outline
    position = _line_of(text, old)
    if position:
        last = position + old.last_line - old.first_line
        return LineRange(position, last, old.text, _page_at(outline, position, last))
    from satchel.indexing.parse import is_tame
    from satchel.indexing.read_outline import read_outline

    if not qualified or (outline is None and not is_tame(text)):
        return None
    outline = outline or read_outline(path, text)
    block = next((i for i, one in enumerate(outline.blocks) if one.qualified == qualified), None)
    if block is None:
        return None
    found = outline.blocks[block]
    for piece in outline.pieces:
        if piece.block == block or block in piece.defines or found.first_line <= piece.first_line <= found.last_line:
            return LineRange(piece.first_line, piece.last_line, text[piece.start : piece.end], piece.page or None)
    return None


def _page_at(outline: Outline | None, first: int, last: int) -> int | None:
    """The page on which lines stand, if they stand on one."""
    pages = outline.pages if outline else ()
    return next((page.number for page in pages if page.first_line <= first and last <= page.last_line), None)


def _line_of(text: str, old: LineRange) -> int:
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


LONGEST_NUMBER: Final = 9
"""No file has lines with longer numbers."""


class Expander:
    """Finds what an id stands for, as the file on disk has it now."""

    def __init__(self, folder: Folder, store: Store) -> None:
        self._folder = folder
        self._store = store

    def expand(self, piece_id: str, lines: int, filters: Filters) -> Expansion:
        """The exact text behind an id: a path, a path with lines (`a.py:3-9`), or a block (`a.py#Class.method`).

        `lines` more are given on either side. An id that was shown with its hidden characters made visible will do.
        """
        try:
            return self._expanded(piece_id, lines, filters)
        except UnknownBlock:
            meant = self._as_it_was(piece_id, filters)
            if meant is None:
                raise
            return self._expanded(meant, lines, filters)

    def _as_it_was(self, shown_id: str, filters: Filters) -> str | None:
        """The id as it was before hidden characters in the path were made visible, if it is such a one."""
        from satchel.text.visible import make_visible_line

        if shown_id.isascii():
            return None
        for path in self._store.files():
            if path.isprintable():
                continue
            shown = make_visible_line(path).text
            rest = shown_id.removeprefix(shown)
            if rest != shown_id and rest[:1] in ("", ":", "#") and self._store.text_of(path, filters) is not None:
                return path + rest
        return None

    def _expanded(self, piece_id: str, lines: int, filters: Filters) -> Expansion:

        as_text(InvalidOption, "id", piece_id)
        as_count(InvalidOption, "lines", lines, 0)
        piece_id = self._held_by_another(piece_id, filters) or piece_id
        block = self._store.block(piece_id, filters)
        if block is not None and not (block.qualified_name or block.type == BlockType.FILE):
            return Expansion(piece_id, "", 1, block.content.count("\n") + 1, block.content, block.language)
        path, old, qualified = self._located(piece_id, filters)
        state = self._store.files()[path]
        language = next((block.language for block in self._store.blocks_of(path, filters)), None)
        with self._folder.opened() as folder:
            disk = folder.look(path, state)
        if disk.verdict is Verdict.GONE:
            return _expansion(piece_id, path, old, language, stale=True)
        if disk.verdict is Verdict.SAME:
            text, place = self._store.text_of(path, filters) or "", old
        else:
            again = find_again(path, disk, old, qualified)
            if again is None:
                return _expansion(piece_id, path, old, language, stale=True)
            text, place = disk.text, again
        first, last, shown = widened(lines_of(text), place.first_line, place.last_line, lines)
        return _expansion(piece_id, path, LineRange(first, last, shown, place.page), language)

    def _held_by_another(self, piece_id: str, filters: Filters) -> str | None:
        """The same id in the file that holds the text, where a document is kept as another of the same content."""
        path = next((one for one in _paths_in(piece_id) if self._store.text_of(one, filters) is not None), None)
        if path is None or self._store.text_of(path, filters):
            return None
        note = self._store.notes().get(path, "")
        holder = note.removeprefix(SAME_AS)
        if not note.startswith(SAME_AS):
            return None
        # The name of what may not be read is not for telling.
        if self._store.text_of(holder, filters) is None:
            raise UnknownBlock(piece_id)
        return holder + piece_id[len(path) :]

    def _located(self, piece_id: str, filters: Filters) -> tuple[str, LineRange, str]:
        """The path, the place and the name that an id stands for, as they were indexed."""

        text = self._store.text_of(piece_id, filters)
        if text is not None:
            return piece_id, LineRange(1, max(1, text.rstrip("\n").count("\n") + 1), text), ""
        block = self._store.block(piece_id, filters) if "#" in piece_id else None
        if block is not None:
            return (
                block.source_path,
                LineRange(block.start_line, block.end_line, block.content, block.page),
                block.qualified_name,
            )
        path, _, span = piece_id.rpartition(":")
        first, _, last = span.partition("-")
        text = self._store.text_of(path, filters) if path else None
        numbers = (first, last or first)
        if text is None or not all(one.isdecimal() and len(one) <= LONGEST_NUMBER for one in numbers):
            near, _, wanted = piece_id.partition("#")
            known = [one.id for one in self._store.blocks_of(near, filters) if wanted and wanted in one.id]
            raise UnknownBlock(piece_id, known[:3])
        start, end = int(first), int(last or first)
        lines = text.split("\n")
        if not 1 <= start <= end <= len(lines):
            raise UnknownBlock(piece_id, [f"{path}:1-{len(lines_of(text))}"])
        inside = [
            one for one in self._store.blocks_of(path, filters) if one.start_line <= start and one.end_line >= end
        ]
        innermost = inside[-1] if inside else None
        place = LineRange(start, end, "\n".join(lines[start - 1 : end]), innermost.page if innermost else None)
        return path, place, innermost.qualified_name if innermost else ""


def _paths_in(piece_id: str) -> Iterator[str]:
    """What of an id may be a path: all of it, or what stands before a sign that parts."""
    yield piece_id
    for sign in "#:":
        path, found, _ = piece_id.partition(sign)
        if found:
            yield path


def _expansion(piece_id: str, path: str, place: LineRange, language: str | None, *, stale: bool = False) -> Expansion:
    return Expansion(
        piece_id, path, place.first_line, place.last_line, place.text, language, stale=stale, page=place.page
    )


def lines_of(text: str) -> list[str]:
    """The lines of a text; what ends in a line's end has none after it."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def widened(lines: Sequence[str], first: int, last: int, more: int) -> tuple[int, int, str]:
    """Lines with so many more on either side, without blank ones at the ends; no further than the page."""
    if not more:
        return first, last, "\n".join(lines[first - 1 : last])
    from satchel.models.document import is_border  # most questions never need it

    # No further than the page goes: what is beyond is another place.
    least, most = max(1, first - more), min(len(lines), last + more)
    while first > least and not is_border(lines[first - 2]):
        first -= 1
    while last < most and not is_border(lines[last]):
        last += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    while first < last and not lines[first - 1].strip():
        first += 1
    return first, last, "\n".join(lines[first - 1 : last])
