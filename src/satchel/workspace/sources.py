"""Imported sources: where they are, whether they have changed, and what changed since the last import."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from satchel.models.block import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder or file read by an importer, with the fingerprint of the files at import time."""

    kind: str
    """The importer's name."""
    path: str
    prefix: str = ""
    """Prefix of the block ids, for sources whose ids would collide."""
    replaces: tuple[str, ...] = ()
    """Suffixes of files that are now blocks and are no longer indexed as files."""
    fingerprint: str = ""
    imported_ns: int = 0
    told: tuple[str, ...] = ()
    """Hashes of the notes of earlier imports: a note is told once, not at each refresh."""

    @property
    def name(self) -> str:
        """The name of the source in the workspace: kind, path and prefix."""
        return f"{self.kind}:{self.path}" + (f" as {self.prefix}" if self.prefix else "")

    @property
    def is_there(self) -> bool:
        """True if the source's path still exists."""
        return os.path.exists(self.path)

    def has_changed(self, path: str) -> bool:
        """True if a file of the source was written to after the import."""
        try:
            return os.lstat(os.path.join(self.path, path)).st_mtime_ns > self.imported_ns
        except OSError:
            return True


def fingerprint(path: str) -> str:
    """A hash of the names, sizes and times of all files below the path; no file is opened."""
    digest = blake2b(digest_size=16)
    for name, info in sorted(list_files(path)):
        digest.update(f"{name}\0{info.st_size}\0{info.st_mtime_ns}\0{info.st_ctime_ns}\n".encode("utf-8", "replace"))
    return digest.hexdigest()


def list_files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the relative path and status of each file below a folder (not in hidden folders).

    For the path of a file, yield that file under an empty name.
    """
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


def note_hash(note: str) -> str:
    """A short hash of a note, to recognize the note later."""
    return blake2b(note.encode("utf-8", "replace"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class SourceUpdate:
    """The records of a source that may have changed since an earlier import; all records without an earlier import.

    `kept` and `state` are called after all records have been taken.
    """

    records: Iterable[Record]
    kept: Callable[[], Collection[str]] = tuple
    """The ids of the unchanged blocks, which are not among the records."""
    state: Callable[[], str] = str
    """What the importer needs to know at the next update; "" if the next import must read everything."""
