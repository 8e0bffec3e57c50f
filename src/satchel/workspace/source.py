"""Where blocks were imported from, and whether that has changed since."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place that an importer read, with what it looked like then."""

    kind: str
    """The importer's name."""
    path: str
    prefix: str = ""
    """What the ids of its blocks begin with, where two sources have the same ids."""
    replaces: tuple[str, ...] = ()
    """How the files end that are blocks now, and are not indexed as files any more."""
    fingerprint: str = ""
    imported_ns: int = 0

    @property
    def name(self) -> str:
        """What the source is called in its workspace."""
        return f"{self.kind}:{self.path}" + (f" as {self.prefix}" if self.prefix else "")

    @property
    def is_there(self) -> bool:
        """True if there is still something at its path."""
        return os.path.exists(self.path)

    def has_changed(self, path: str) -> bool:
        """True if a file of the source was written to after the import."""
        try:
            return os.lstat(os.path.join(self.path, path)).st_mtime_ns > self.imported_ns
        except OSError:
            return True


def fingerprint(path: str) -> str:
    """A hash that changes with every file below the path: of names, sizes and times, without opening a file."""
    digest = blake2b(digest_size=16)
    for name, info in sorted(list_files(path)):
        digest.update(f"{name}\0{info.st_size}\0{info.st_mtime_ns}\0{info.st_ctime_ns}\n".encode("utf-8", "replace"))
    return digest.hexdigest()


def list_files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, hidden folders apart, or the file itself under an empty name."""
    if not os.path.isdir(path):
        yield "", os.stat(path)
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            place = os.path.join(folder, name)
            try:
                yield os.path.relpath(place, path), os.lstat(place)
            except OSError:
                continue
