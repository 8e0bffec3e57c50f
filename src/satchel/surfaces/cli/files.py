"""The text files that paths on the command line stand for."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Folders that hold nobody's writing: version control, installed packages, caches.
_SKIPPED_FOLDERS: Final = frozenset(
    ".git .hg .svn .jj node_modules __pycache__ .mypy_cache .ruff_cache .pytest_cache .hypothesis .tox .nox".split()
)

MAX_FILE_BYTES: Final = 50_000_000
_LOOKED_AT_FOR_NUL: Final = 8192


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text, or the reason why it has none for us."""

    path: Path
    text: str = ""
    skipped: str = ""


def files_under(path: Path) -> Iterator[Path]:
    """The path itself, or every file below it, in order; links are not followed."""
    if not path.is_dir():
        yield path
        return
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        below = []
        for entry in ordered:
            if entry.is_symlink():
                continue
            if not entry.is_dir():
                yield Path(entry.path)
            elif entry.name not in _SKIPPED_FOLDERS and not Path(entry.path, "pyvenv.cfg").exists():
                below.append(Path(entry.path))
        waiting += reversed(below)


def read_text_file(path: Path) -> TextFile:
    """The file's text; a pipe, a device, something binary or enormous is skipped, never waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        return TextFile(path, skipped=error.strerror or "cannot be read")
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return TextFile(path, skipped="not a regular file")
        if info.st_size > MAX_FILE_BYTES:
            return TextFile(path, skipped=f"larger than {MAX_FILE_BYTES // 1_000_000} MB")
        data = file.read(MAX_FILE_BYTES + 1)
    if b"\0" in data[:_LOOKED_AT_FOR_NUL]:
        return TextFile(path, skipped="binary")
    return TextFile(path, data.decode("utf-8", "surrogateescape"))
