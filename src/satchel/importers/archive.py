"""Files of an export: a folder, a zip, or a zip of zips, read without unpacking the export anywhere."""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Final, NamedTuple

from satchel.errors import WorkspaceMissing
from satchel.importers.storable import file_time, not_read, storable_line
from satchel.indexing.walk import PassedOver, Skip, read_bytes, walk
from satchel.models.block import Notice
from satchel.text.zip_entries import BROKEN_ZIP, grows_too_much
from satchel.workspace.sources import list_files

# Every entry is held in memory; the files beyond are not read, and a notice reports the limit.
MAX_ENTRIES: Final = 200_000
_MAX_DIRECTORY_BYTES: Final = 100_000_000  # zipfile reads the central directory into memory; a longer one is refused
_MAX_PART_BYTES: Final = 8_000_000_000  # an inner zip is copied to a temporary file; the limit protects the disk
_MAX_ZIP_DEPTH: Final = 2  # Notion's parts are zips inside the zip; zips inside those would only serve a zip bomb

_MAX_INSPECTED_NAMES: Final = 200  # enough to see what a folder holds, few enough for a large disk
_MAX_IN_MEMORY_BYTES: Final = 16_000_000  # a larger inner zip spills from memory to a temporary file

_DAMAGED: Final = "this file of the archive is damaged"
_NO_ZIP: Final = "not a zip file, or a damaged one"


class ListTooLong(zipfile.BadZipFile):
    """The archive declares a longer list of files (central directory) than any export has."""


class SmallReads:
    """File with a limit of `most` bytes per read: an archive itself declares the size of its central directory."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._most = most
        self.seek: Callable[..., int] = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        """The next bytes; raises ListTooLong for more bytes than a list of files may have."""
        data = self._file.read(min(size, self._most + 1) if size >= 0 else self._most + 1)
        if len(data) > self._most:
            raise ListTooLong("its list of files is too long")
        return data


class ExportFile(NamedTuple):
    """A file of the export: path with `/` as separator, and modification time."""

    path: str
    modified: datetime | None


def first_names(path: Path) -> list[str]:
    """The names of the first files in a folder or a ZIP; an empty list for any file of another format."""
    if path.is_dir():
        return [name for name, _ in islice(list_files(str(path)), _MAX_INSPECTED_NAMES)]
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()[:_MAX_INSPECTED_NAMES]


@contextmanager
def open_export(path: Path, max_file_bytes: int) -> Iterator[Export]:
    """The export at a path, closed after use."""
    if path.is_dir():
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield FolderExport(root, max_file_bytes)
        finally:
            os.close(root)
    elif path.is_file():
        with ExitStack() as opened:
            yield ZipExport(path, max_file_bytes, opened)
    else:
        raise WorkspaceMissing("export", str(path), "must be a folder, or the .zip of a Notion export")


@dataclass(frozen=True, slots=True)
class FolderExport:
    """The files of an export in an open folder."""

    root: int
    max_file_bytes: int

    def files(self) -> Iterator[ExportFile | Notice]:
        """Every file worth reading, and notices about skipped files."""
        for entry in walk(self.root, max_file_bytes=self.max_file_bytes):
            if not isinstance(entry, PassedOver):
                yield ExportFile(entry.path, file_time(entry.modified_ns))
            elif entry.path.lower().endswith(".zip"):
                yield not_read(entry.path, "unpack it, or import it by itself")
            elif entry.reason is not Skip.BINARY:
                yield not_read(entry.path, entry.reason)

    def read(self, path: str) -> bytes | Notice:
        """The bytes of a listed file, or a Notice with the reason why the file was not read."""
        data = read_bytes(self.root, path, self.max_file_bytes)
        return not_read(path, data) if isinstance(data, Skip) else data


class _Member(NamedTuple):
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo


@dataclass(frozen=True, slots=True)
class ZipExport:
    """The files of a zip, or of zips inside the zip, merged into a single tree."""

    path: Path
    max_file_bytes: int
    opened: ExitStack
    members: dict[str, _Member] = field(default_factory=dict)

    def files(self) -> Iterator[ExportFile | Notice]:
        """Every file worth reading, and notices about skipped files."""
        try:
            file = self.opened.enter_context(self.path.open("rb"))
        except OSError as error:
            raise WorkspaceMissing("export", str(self.path), f"cannot be read: {error.strerror}") from error
        yield from self._listed(file, self.path.name, 1)

    def read(self, path: str) -> bytes | Notice:
        """The bytes of a listed file, or a Notice with the reason why the file was not read."""
        member = self.members[path]
        try:
            with member.archive.open(member.info) as stream:
                # The size declared in the archive is not trustworthy.
                data = stream.read(self.max_file_bytes + 1)
        except BROKEN_ZIP:
            return not_read(path, _DAMAGED)
        return data if len(data) <= self.max_file_bytes else not_read(path, Skip.TOO_LARGE)

    def _listed(self, file: IO[bytes], name: str, depth: int) -> Iterator[ExportFile | Notice]:
        try:
            archive = self.opened.enter_context(zipfile.ZipFile(SmallReads(file, _MAX_DIRECTORY_BYTES)))
        except BROKEN_ZIP as error:
            is_too_long = isinstance(error, ListTooLong)
            yield not_read(name, "its table of contents is too large" if is_too_long else _NO_ZIP)
            return
        for info in archive.infolist():
            if len(self.members) >= MAX_ENTRIES:
                yield Notice(where=storable_line(name), problem=f"only its first {MAX_ENTRIES:,} files were read")
                return
            yield from self._entry(_Member(archive, info), depth)

    def _entry(self, member: _Member, depth: int) -> Iterator[ExportFile | Notice]:
        path = member.info.filename
        # Not `is_dir`: it raises for an entry without a name.
        if not path or path.endswith("/"):
            return
        if problem := self._objection(member.info):
            yield not_read(path, problem)
        elif path.lower().endswith(".zip"):
            yield from self._part(member, depth)
        elif path in self.members:
            yield not_read(path, "the archive has another file with this path")
        else:
            self.members[path] = member
            yield ExportFile(path, _when(member.info))

    def _objection(self, info: zipfile.ZipInfo) -> str:
        path = info.filename
        if path.startswith("/") or "\\" in path or ":" in path.partition("/")[0] or ".." in path.split("/"):
            return "its path leads outside the export (path traversal)"
        if stat.S_ISLNK(info.external_attr >> 16):
            return Skip.LINK
        if info.flag_bits & 1:
            return "it is encrypted"
        if grows_too_much(info):
            return "it unpacks to too many bytes (zip bomb)"
        limit = _MAX_PART_BYTES if path.lower().endswith(".zip") else self.max_file_bytes
        is_text = path.lower().endswith((".md", ".csv", ".zip"))
        return Skip.TOO_LARGE if is_text and info.file_size > limit else ""

    def _part(self, member: _Member, depth: int) -> Iterator[ExportFile | Notice]:
        """The files of a zip inside the zip: Notion splits large exports into several zips."""
        name = member.info.filename
        if depth >= _MAX_ZIP_DEPTH:
            yield not_read(name, "zip files are nested too deeply")
            return
        copy = self.opened.enter_context(tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY_BYTES))  # noqa: SIM115
        try:
            with member.archive.open(member.info) as stream:
                left = min(member.info.file_size, _MAX_PART_BYTES)
                while left > 0 and (chunk := stream.read(min(1 << 20, left))):
                    copy.write(chunk)
                    left -= len(chunk)
            copy.seek(0)
        except BROKEN_ZIP:
            yield not_read(name, _DAMAGED)
            return
        yield from self._listed(copy, name, depth + 1)


Export = FolderExport | ZipExport
"""The files of an export, listed once and read individually."""


def _when(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None
