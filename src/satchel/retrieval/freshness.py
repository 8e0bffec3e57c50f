"""Compares indexed files with the disk: detects changes, finds moved lines, and expands ids to exact text."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import InvalidOption, UnknownBlock
from satchel.indexing.walk import DocumentPolicy, read_bytes
from satchel.models.block import BlockType
from satchel.models.checks import as_count, as_text
from satchel.models.files import SAME_AS, FileState, is_untouched
from satchel.models.search import Expansion, Filters
from satchel.text.decoding import decode_text
from satchel.text.secrets import redact

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.indexing.walk import DocumentPolicy
    from satchel.models.outline import Outline
    from satchel.ports.store import Store


class Verdict(StrEnum):
    """The state of an indexed file on disk."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"


class DiskFile(NamedTuple):
    """A file on disk; `text` only if the file has changed, `outline` only if a document was read again."""

    verdict: Verdict
    text: str = ""
    outline: Outline | None = None


class LineRange(NamedTuple):
    """A run of lines with their text, and the page for documents."""

    first_line: int
    last_line: int
    text: str
    page: int | None = None


@dataclass(slots=True)
class Disk:
    """The files of an open folder as they are now; each file is compared once.

    Without a root the folder is on another machine: every file counts as unchanged.
    """

    root: int | None
    max_bytes: int
    documents: DocumentPolicy
    _looked_at: dict[str, DiskFile] = field(default_factory=dict)

    def look(self, path: str, state: FileState) -> DiskFile:
        """Compare the file on disk with the indexed state; the changed text is included."""
        if path not in self._looked_at:
            self._looked_at[path] = self._look(path, state)
        return self._looked_at[path]

    def document(self, path: str, doc_id: str) -> bytes | None:
        """The bytes of a document on disk; None if unreadable or if the content no longer matches the id."""
        data = self._read(path, self.documents.max_bytes)
        return data if data is not None and _hash(data).hex() == doc_id else None

    def judge(self, path: str, state: FileState) -> Verdict:
        """The verdict alone, without parsing a changed document again."""
        return self._compare(path, state)[0]

    def _compare(self, path: str, state: FileState) -> tuple[Verdict, bytes]:
        if self.root is None:
            return Verdict.SAME, b""
        with suppress(OSError):
            info = os.stat(path, dir_fd=self.root, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode) and is_untouched(state, info.st_size, info.st_mtime_ns, info.st_ctime_ns):
                return Verdict.SAME, b""
        data = self._read(path, self.documents.max_bytes if self.documents.takes(path) else self.max_bytes)
        if data is None:
            return Verdict.GONE, b""
        return (Verdict.SAME, b"") if _hash(data) == state.content_hash else (Verdict.CHANGED, data)

    def _read(self, path: str, max_bytes: int) -> bytes | None:
        """The bytes of the file; None if unreadable."""
        if self.root is None:
            return None

        data = read_bytes(self.root, path, max_bytes)
        return data if isinstance(data, bytes) else None

    def _look(self, path: str, state: FileState) -> DiskFile:
        verdict, data = self._compare(path, state)
        if verdict is not Verdict.CHANGED:
            return DiskFile(verdict)
        if self.documents.takes(path):
            from satchel.indexing.documents.read_document import is_document

            if is_document(path, data):
                return self._read_again(path, data)
        return DiskFile(Verdict.CHANGED, redact(decode_text(data)))

    def _read_again(self, path: str, data: bytes) -> DiskFile:
        from satchel.indexing.documents.document_outline import outline_document
        from satchel.indexing.documents.readers import readers_for
        from satchel.models.document import Unreadable

        with readers_for(self.documents, workers=1) as readers:
            document = readers.read(path, data)
        if isinstance(document, Unreadable):
            return DiskFile(Verdict.CHANGED)
        read = outline_document(path, document)
        return DiskFile(Verdict.CHANGED, read.text, read.outline)


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class Folder(NamedTuple):
    """The indexed folder, with the limits on files and documents to read."""

    root: Path
    max_file_bytes: int
    documents: DocumentPolicy
    is_here: bool = True
    """True if the folder is on this machine; otherwise only the stored copy can be read."""

    @contextmanager
    def opened(self) -> Iterator[Disk]:
        """Open the folder to compare its files."""
        from satchel.indexing.walk import opened_folder

        with opened_folder(self.root) if self.is_here else nullcontext() as handle:
            yield Disk(handle, self.max_file_bytes, self.documents)


def find_again(path: str, disk: DiskFile, old: LineRange, qualified: str) -> LineRange | None:
    """Find old lines in the changed file: the same lines elsewhere, else the block with the same qualified name."""
    text, outline = disk.text, disk.outline
    position = _line_of(text, old)
    if position:
        last = position + old.last_line - old.first_line
        return LineRange(position, last, old.text, _page_at(outline, position, last))
    from satchel.indexing.parse import is_tame, read_outline

    if not qualified or (outline is None and not is_tame(text)):
        return None
    outline = outline or read_outline(path, text)
    number = next((i for i, block in enumerate(outline.blocks) if block.qualified == qualified), None)
    if number is None:
        return None
    block = outline.blocks[number]
    for piece in outline.pieces:
        is_inside = block.first_line <= piece.first_line <= block.last_line
        if is_inside or piece.block == number or number in piece.defines:
            return LineRange(piece.first_line, piece.last_line, text[piece.start : piece.end], piece.page or None)
    return None


def _page_at(outline: Outline | None, first: int, last: int) -> int | None:
    """The page that contains all the lines, or None."""
    pages = outline.pages if outline else ()
    return next((page.number for page in pages if page.first_line <= first and last <= page.last_line), None)


def _line_of(text: str, old: LineRange) -> int:
    """The first line of the old text in the new text, nearest to the old position; 0 if not found."""
    best, line, counted = 0, 1, 0
    at = text.find(old.text) if old.text else -1
    while at >= 0:
        end = at + len(old.text)
        if (at == 0 or text[at - 1] == "\n") and (end == len(text) or text[end] == "\n"):
            line, counted = line + text.count("\n", counted, at), at
            if not best or abs(line - old.first_line) < abs(best - old.first_line):
                best = line
        at = text.find(old.text, at + 1)
    return best


LONGEST_NUMBER: Final = 9
"""Digits of a line number: no file has a billion lines."""


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands ids to their exact text in the current file on disk."""

    folder: Folder
    store: Store
    _texts: dict[tuple[str, Filters], str | None] = field(default_factory=dict)
    """Texts read for an id, which are asked for several times and may have many megabytes."""

    def expand(self, piece_id: str, lines: int, filters: Filters) -> Expansion:
        """The exact text of an id: a path, a path with lines (`a.py:3-9`), or a block (`a.py#Class.method`).

        `lines` more lines are added on either side. Ids with hidden characters made visible are accepted too.
        """
        try:
            return self._expanded(piece_id, lines, filters)
        except UnknownBlock:
            indexed_id = self._as_it_was(piece_id, filters)
            if indexed_id is None:
                raise
            return self._expanded(indexed_id, lines, filters)

    def _text_of(self, path: str, filters: Filters) -> str | None:
        key = (path, filters)
        if key not in self._texts:
            self._texts[key] = self.store.text_of(path, filters)
        return self._texts[key]

    def _as_it_was(self, shown_id: str, filters: Filters) -> str | None:
        """The indexed id for an id whose path was shown with hidden characters made visible, or None."""
        from satchel.text.visible import make_visible_line

        if shown_id.isascii():
            return None
        for path in self.store.files():
            if path.isprintable():
                continue
            rest = shown_id.removeprefix(make_visible_line(path).text)
            if rest != shown_id and rest[:1] in ("", ":", "#") and self._text_of(path, filters) is not None:
                return path + rest
        return None

    def _expanded(self, piece_id: str, lines: int, filters: Filters) -> Expansion:
        as_text(InvalidOption, "id", piece_id)
        as_count(InvalidOption, "lines", lines, 0)
        piece_id = self._held_by_another(piece_id, filters) or piece_id
        block = self.store.block(piece_id, filters)
        if block is not None and not (block.qualified_name or block.type == BlockType.FILE):
            return Expansion(piece_id, "", 1, block.content.count("\n") + 1, block.content, block.language)
        path, old, qualified = self._located(piece_id, filters)
        state = self.store.files()[path]
        language = next((block.language for block in self.store.blocks_of(path, filters)), None)
        with self.folder.opened() as folder:
            disk = folder.look(path, state)
        is_changed = disk.verdict is Verdict.CHANGED
        place = find_again(path, disk, old, qualified) if is_changed else old
        is_stale = disk.verdict is Verdict.GONE or place is None
        first, last, content, page = place or old
        if not is_stale:
            text = disk.text if is_changed else self._text_of(path, filters) or ""
            first, last, content = widened(lines_of(text), first, last, lines)
        return Expansion(piece_id, path, first, last, content, language, stale=is_stale, page=page)

    def _held_by_another(self, piece_id: str, filters: Filters) -> str | None:
        """The id in the file that stores the text, if the given file is a duplicate of the same content."""
        paths = dict.fromkeys((piece_id, piece_id.partition("#")[0], piece_id.partition(":")[0]))
        path = next((path for path in paths if self._text_of(path, filters) is not None), None)
        if path is None or self._text_of(path, filters):
            return None
        note = self.store.notes().get(path, "")
        holder = note.removeprefix(SAME_AS)
        if not note.startswith(SAME_AS):
            return None
        # The path of an unreadable file must not leak.
        if self._text_of(holder, filters) is None:
            raise UnknownBlock(piece_id)
        return holder + piece_id[len(path) :]

    def _located(self, piece_id: str, filters: Filters) -> tuple[str, LineRange, str]:
        """The path, the lines and the qualified name of an id, as indexed."""
        text = self._text_of(piece_id, filters)
        if text is not None:
            return piece_id, LineRange(1, max(1, text.rstrip("\n").count("\n") + 1), text), ""
        block = self.store.block(piece_id, filters) if "#" in piece_id else None
        if block is not None:
            place = LineRange(block.start_line, block.end_line, block.content, block.page)
            return block.source_path, place, block.qualified_name
        path, _, span = piece_id.rpartition(":")
        first, _, last = span.partition("-")
        text = self._text_of(path, filters) if path else None
        numbers = (first, last or first)
        if text is None or not all(number.isdecimal() and len(number) <= LONGEST_NUMBER for number in numbers):
            near, _, name = piece_id.partition("#")
            known = [block.id for block in self.store.blocks_of(near, filters) if name and name in block.id]
            raise UnknownBlock(piece_id, known[:3])
        start, end = int(first), int(last or first)
        lines = text.split("\n")
        if not 1 <= start <= end <= len(lines):
            raise UnknownBlock(piece_id, [f"{path}:1-{len(lines_of(text))}"])
        around = [b for b in self.store.blocks_of(path, filters) if b.start_line <= start and b.end_line >= end]
        page, name = (around[-1].page, around[-1].qualified_name) if around else (None, "")
        return path, LineRange(start, end, "\n".join(lines[start - 1 : end]), page), name


def lines_of(text: str) -> list[str]:
    """The lines of a text, without an empty line after a trailing line end."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def widened(lines: Sequence[str], first: int, last: int, more: int) -> tuple[int, int, str]:
    """The lines with up to `more` lines on either side, within the page and without blank lines at the ends."""
    if not more:
        return first, last, "\n".join(lines[first - 1 : last])
    from satchel.models.document import is_border  # imported late: most questions do not expand

    # Stop at page borders: lines beyond belong to another page.
    min_line, max_line = max(1, first - more), min(len(lines), last + more)
    while first > min_line and not is_border(lines[first - 2]):
        first -= 1
    while last < max_line and not is_border(lines[last]):
        last += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    while first < last and not lines[first - 1].strip():
        first += 1
    return first, last, "\n".join(lines[first - 1 : last])
