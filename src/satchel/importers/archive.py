"""The files of an export, which is a folder or a zip (also one of zips), read without being unpacked anywhere."""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, NamedTuple, Protocol

from satchel.errors import WorkspaceMissing
from satchel.importers.storable import file_time, storable_line
from satchel.indexing.walk import PassedOver, Skip, read_bytes, walk
from satchel.models.block import Notice
from satchel.text.zip_entries import BROKEN_ZIP, grows_too_much

MAX_ENTRIES: Final = 200_000
_MAX_DIRECTORY_BYTES: Final = 100_000_000
_MAX_PART_BYTES: Final = 8_000_000_000
_DEEPEST_ZIP: Final = 2

_IN_MEMORY_BYTES: Final = 16_000_000


class ListTooLong(zipfile.BadZipFile):
    """The archive says that its list of files is longer than any export's."""


class SmallReads:
    """A file that refuses to read more than `most` bytes at once: an archive says itself how long its list is."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._most = most
        self.seek: Callable[..., int] = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        """At most as much as the list of files may have."""
        data = self._file.read(min(size, self._most + 1) if size >= 0 else self._most + 1)
        if len(data) > self._most:
            raise ListTooLong("its list of files is too long")
        return data


class ExportFile(NamedTuple):
    """A file of the export: its path with `/` between, and when it was changed."""

    path: str
    modified: datetime | None


class Export(Protocol):
    """The files of an export, listed once and read one by one."""

    def files(self) -> Iterator[ExportFile | Notice]:
        """Every file worth a look, and what was passed over."""
        ...

    def read(self, path: str) -> bytes | Notice:
        """The bytes of a listed file, or why there are none."""
        ...


def open_export(path: Path, max_file_bytes: int) -> AbstractContextManager[Export]:
    """The export at a path, to be closed after use."""
    if path.is_dir():
        return _Folder(path, max_file_bytes)
    if path.is_file():
        return _Zip(path, max_file_bytes)
    raise WorkspaceMissing("export", str(path), "must be a folder, or the .zip that Notion gives")


class _Folder:
    def __init__(self, path: Path, max_file_bytes: int) -> None:
        self._path = path
        self._max_file_bytes = max_file_bytes
        self._root = -1

    def __enter__(self) -> _Folder:
        self._root = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def files(self) -> Iterator[ExportFile | Notice]:
        for entry in walk(self._root, max_file_bytes=self._max_file_bytes):
            if not isinstance(entry, PassedOver):
                yield ExportFile(entry.path, file_time(entry.modified_ns))
            elif entry.path.lower().endswith(".zip"):
                yield Notice(where=storable_line(entry.path), problem="not read: unpack it, or name it as the export")
            elif entry.reason is not Skip.BINARY:
                yield Notice(where=storable_line(entry.path), problem=f"not read: {entry.reason}")

    def read(self, path: str) -> bytes | Notice:
        data = read_bytes(self._root, path, self._max_file_bytes)
        return Notice(where=storable_line(path), problem=f"not read: {data}") if isinstance(data, Skip) else data


@dataclass(frozen=True, slots=True)
class _Member:
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo


class _Zip:
    """A zip of files, or of further zips, whose entries are taken as one tree."""

    def __init__(self, path: Path, max_file_bytes: int) -> None:
        self._path = path
        self._max_file_bytes = max_file_bytes
        self._members: dict[str, _Member] = {}
        self._opened = ExitStack()

    def __enter__(self) -> _Zip:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def files(self) -> Iterator[ExportFile | Notice]:
        try:
            file = self._opened.enter_context(self._path.open("rb"))
        except OSError as error:
            raise WorkspaceMissing("export", str(self._path), f"cannot be read: {error.strerror}") from error
        yield from self._listed(file, self._path.name, 1)

    def read(self, path: str) -> bytes | Notice:
        member = self._members[path]
        where = storable_line(path)
        try:
            with member.archive.open(member.info) as stream:
                # The size that the archive claims is not to be relied on.
                data = stream.read(self._max_file_bytes + 1)
        except BROKEN_ZIP:
            return Notice(where=where, problem="not read: the archive is damaged there")
        return data if len(data) <= self._max_file_bytes else Notice(where=where, problem=f"not read: {Skip.TOO_LARGE}")

    def _listed(self, file: IO[bytes], name: str, depth: int) -> Iterator[ExportFile | Notice]:
        where = storable_line(name)
        try:
            archive = self._opened.enter_context(zipfile.ZipFile(SmallReads(file, _MAX_DIRECTORY_BYTES)))
        except ListTooLong:
            yield Notice(where=where, problem="not read: its table of contents is too large")
            return
        except BROKEN_ZIP:
            yield Notice(where=where, problem="not read: it is no zip, or a damaged one")
            return
        for info in archive.infolist():
            if len(self._members) >= MAX_ENTRIES:
                yield Notice(where=where, problem=f"only its first {MAX_ENTRIES:,} files were read")
                return
            yield from self._entry(_Member(archive, info), depth)

    def _entry(self, member: _Member, depth: int) -> Iterator[ExportFile | Notice]:
        path = member.info.filename
        # Not `is_dir`, which trips over an entry without a name.
        if not path or path.endswith("/"):
            return
        problem = self._objection(member.info)
        if problem:
            yield Notice(where=storable_line(path), problem=f"not read: {problem}")
        elif path.lower().endswith(".zip"):
            yield from self._part(member, depth)
        elif path in self._members:
            yield Notice(where=storable_line(path), problem="not read: there is another file of that path")
        else:
            self._members[path] = member
            yield ExportFile(path, _when(member.info))

    def _objection(self, info: zipfile.ZipInfo) -> str:
        path = info.filename
        if path.startswith("/") or "\\" in path or ":" in path.partition("/")[0] or ".." in path.split("/"):
            return "its path leads out of the export"
        if stat.S_ISLNK(info.external_attr >> 16):
            return Skip.LINK
        if info.flag_bits & 1:
            return "it is encrypted"
        if grows_too_much(info):
            return "it grows beyond measure when unpacked"
        limit = _MAX_PART_BYTES if path.lower().endswith(".zip") else self._max_file_bytes
        is_text = path.lower().endswith((".md", ".csv", ".zip"))
        return Skip.TOO_LARGE if is_text and info.file_size > limit else ""

    def _part(self, member: _Member, depth: int) -> Iterator[ExportFile | Notice]:
        """A zip in the zip: Notion cuts large exports into such parts."""
        where = storable_line(member.info.filename)
        if depth >= _DEEPEST_ZIP:
            yield Notice(where=where, problem="not read: a zip in a zip in a zip")
            return
        copy = self._opened.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES))  # noqa: SIM115
        try:
            with member.archive.open(member.info) as stream:
                left = min(member.info.file_size, _MAX_PART_BYTES)
                while left > 0 and (chunk := stream.read(min(1 << 20, left))):
                    copy.write(chunk)
                    left -= len(chunk)
            copy.seek(0)
        except BROKEN_ZIP:
            yield Notice(where=where, problem="not read: the archive is damaged there")
            return
        yield from self._listed(copy, member.info.filename, depth + 1)


def _when(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None
