"""Uploads to a workspace: stored in a folder below the workspace, with path traversal prevented.

A file is written under a temporary name and renamed when complete. Symbolic links are never followed, so nothing
outside the folder is ever written or removed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from satchel.errors import InvalidInput
from satchel.indexing.walk import UNFINISHED

UPLOADS: Final = "uploads"
"""Name of the folder for uploads, below the workspace's folder."""

_SEGMENT: Final = re.compile(r"[^\W_][\w .,()+@=&#'-]{0,149}")
_MAX_PATH_SEGMENTS: Final = 8  # with 200 bytes each, 1,600 bytes: below Linux's limit of 4,096 bytes for a path
_MAX_SEGMENT_BYTES: Final = 200  # file systems allow 255 bytes for a name
_STALE_UPLOAD_S: Final = 24 * 3600  # a younger temporary file may belong to a running upload
_DEVICES: Final = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_INTO: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def checked_name(name: str) -> str:
    """Return the name if every segment is a safe file name; raise InvalidInput on path traversal or odd characters."""
    segments = name.split("/")
    for segment in segments:
        if (
            len(segment.encode()) > _MAX_SEGMENT_BYTES
            or not _SEGMENT.fullmatch(segment)
            or segment.endswith((" ", "."))
            or _DEVICES.fullmatch(segment)
        ):
            raise InvalidInput(
                "path",
                name,
                "must be a path like reports/2026.pdf: letters, digits, spaces and .,()+@=&#'-_ , and each part begins "
                "with a letter or a digit",
            )
    if len(segments) > _MAX_PATH_SEGMENTS:
        raise InvalidInput("path", name, f"must have at most {_MAX_PATH_SEGMENTS} folders")
    return name


class Upload:
    """A file in the process of upload; appears under its name after `keep`, and is removed on `close` otherwise."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = f"{UPLOADS}/{checked_name(name)}"
        self.size = 0
        self._opened = ExitStack()
        try:
            *parents, self._name = self.path.split("/")
            self._folder = _folder(self._opened, root, parents, make=True)
            if _kind(self._folder, self._name) not in (None, stat.S_IFREG):
                raise InvalidInput("path", name, "exists and is not a file")
            _sweep(self._folder)
            self._beside = f"{UNFINISHED}{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._file = os.open(self._beside, flags, 0o644, dir_fd=self._folder)
        except BaseException:
            self._opened.close()
            raise

    def write(self, data: bytes) -> None:
        """Append data to the file."""
        while data:
            written = os.write(self._file, data)
            self.size += written
            data = data[written:]

    def keep(self) -> None:
        """Complete the upload: flush the file to disk and rename the file to its final name."""
        os.fsync(self._file)
        os.rename(self._beside, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def close(self) -> None:
        """Close the file; without `keep` the data is removed."""
        with suppress(OSError):
            os.close(self._file)
        with suppress(OSError):
            os.unlink(self._beside, dir_fd=self._folder)
        self._opened.close()

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove(root: Path, name: str) -> bool:
    """Remove an uploaded file; returns True if the file existed."""
    *parents, last = f"{UPLOADS}/{checked_name(name)}".split("/")
    with ExitStack() as opened:
        try:
            folder = _folder(opened, root, parents, make=False)
            if _kind(folder, last) != stat.S_IFREG:
                return False
            os.unlink(last, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _folder(opened: ExitStack, root: Path, parents: list[str], *, make: bool) -> int:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    opened.callback(os.close, folder)
    for parent in parents:
        if make:
            with suppress(FileExistsError):
                os.mkdir(parent, dir_fd=folder)
        try:
            folder = os.open(parent, _INTO, dir_fd=folder)
        except OSError as error:
            if make:
                problem = "is not a folder, or is a symbolic link; files are not written there"
                raise InvalidInput("path", parent, problem) from error
            raise
        opened.callback(os.close, folder)
    return folder


def _sweep(folder: int) -> None:
    """Remove old temporary files of uploads interrupted by the end of the process."""
    for name in os.listdir(folder):
        if name.startswith(UNFINISHED):
            with suppress(OSError):
                if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > _STALE_UPLOAD_S:
                    os.unlink(name, dir_fd=folder)


def _kind(folder: int, name: str) -> int | None:
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
