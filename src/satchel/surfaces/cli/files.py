"""The text files that a path on the command line stands for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from satchel.ingest.read import read_file
from satchel.ingest.walk import PassedOver, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILE_BYTES: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text, and its path below the folder that was named ('' if the file itself was)."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Passed:
    """What was passed over, and why."""

    path: str
    reason: str


def text_files(path: Path) -> Iterator[TextFile | Passed]:
    """The file itself, or every text file below the folder that no ignore file leaves out."""
    # Whoever names a link means what it points to; links below it are another matter.
    real = path.resolve()
    folder = os.open(real if real.is_dir() else real.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not real.is_dir():
            yield _read(folder, real.name, str(path), shown_as="")
            return
        for found in walk(folder, max_file_bytes=MAX_FILE_BYTES):
            where = f"{path}/{found.path}"
            if isinstance(found, PassedOver):
                yield Passed(where, found.reason.value)
            else:
                yield _read(folder, found.path, where, shown_as=found.path)
    finally:
        os.close(folder)


def _read(folder: int, path: str, where: str, *, shown_as: str) -> TextFile | Passed:
    read = read_file(folder, path, MAX_FILE_BYTES)
    return TextFile(shown_as, read.text) if read.reason is None else Passed(where, read.reason.value)
