"""Where a workspace's blocks are imported from: which kind of source it is, and whether it has changed."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Final

from satchel.errors import InvalidInput
from satchel.models.access import Grant
from satchel.models.block import Activity, Block, Link
from satchel.models.records import Record

_NOTION_NAME: Final = re.compile(r" [0-9a-f]{32}(?:_all)?(?:\.md|\.csv|$)")
_LOOKED_AT: Final = 200
_HEAD_BYTES: Final = 65_536


class SourceKind(StrEnum):
    """What can be imported."""

    VAULT = "vault"
    NOTION = "notion"
    CONVERSATIONS = "conversations"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class Source:
    """A source by its kind and its place, with what it looked like when it was imported."""

    kind: SourceKind
    path: str
    fingerprint: str = ""
    prefix: str = ""
    """What the ids of its blocks begin with, where two sources have the same ones."""
    imported_ns: int = 0

    @property
    def name(self) -> str:
        """What it goes by in the workspace."""
        return f"{self.kind}:{self.path}" + (f" as {self.prefix}" if self.prefix else "")

    @property
    def owns_blocks(self) -> bool:
        """Whether what it no longer holds is to be removed: a list of records is added to what is there."""
        return self.kind != SourceKind.JSONL

    def has_changed(self, path: str) -> bool:
        """Whether a file of it was written to after it was imported."""
        try:
            return os.lstat(os.path.join(self.path, path)).st_mtime_ns > self.imported_ns
        except OSError:
            return True

    @property
    def is_there(self) -> bool:
        """Whether it can still be looked at."""
        return os.path.exists(self.path)


def source_at(path: Path, kind: SourceKind | None = None, prefix: str = "") -> Source:
    """The source at a path; its kind is found out where it is not said."""
    if not path.exists():
        raise InvalidInput("path", str(path), "there is nothing there to import")
    return Source(kind or _detected(path), str(path.resolve()), prefix=prefix)


def records_of(source: Source) -> Iterator[Record]:
    """Everything that the source holds, its ids with the source's prefix."""
    records = _records(source)
    return (_prefixed(record, source.prefix) for record in records) if source.prefix else records


def _prefixed(record: Record, prefix: str) -> Record:
    if isinstance(record, Block):
        parent = None if record.parent is None else f"{prefix}{record.parent}"
        return replace(record, id=f"{prefix}{record.id}", parent=parent)
    if isinstance(record, Link):
        target = None if record.target is None else f"{prefix}{record.target}"
        return replace(record, source=f"{prefix}{record.source}", target=target)
    if isinstance(record, (Grant, Activity)):
        return replace(record, block=f"{prefix}{record.block}")
    return record


def _records(source: Source) -> Iterator[Record]:
    path = Path(source.path)
    match source.kind:
        case SourceKind.VAULT:
            from satchel.importers.vault import read_vault

            return read_vault(path)
        case SourceKind.NOTION:
            from satchel.importers.notion import read_notion

            return read_notion(path)
        case SourceKind.CONVERSATIONS:
            from satchel.importers.conversations import read_conversations

            return read_conversations(path)
        case _:
            return _records_in_lines(path)


def _records_in_lines(path: Path) -> Iterator[Record]:
    from satchel.importers.jsonl import read_jsonl

    with path.open("rb") as file:
        yield from read_jsonl(file)


def fingerprint(source: Source) -> str:
    """What changes whenever a file of the source does: names, sizes and times, without opening any."""
    digest = blake2b(digest_size=16)
    for name, info in sorted(_files(source.path)):
        digest.update(f"{name}\0{info.st_size}\0{info.st_mtime_ns}\0{info.st_ctime_ns}\n".encode("utf-8", "replace"))
    return digest.hexdigest()


def _files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    if not os.path.isdir(path):
        yield "", os.stat(path)
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for name in names:
            place = os.path.join(folder, name)
            try:
                yield os.path.relpath(place, path), os.lstat(place)
            except OSError:
                continue


def _detected(path: Path) -> SourceKind:
    if path.is_dir():
        names = [name for name, _ in _first(_files(str(path)))]
        if (path / "conversations.json").is_file():
            return SourceKind.CONVERSATIONS
        if any(map(_NOTION_NAME.search, names)):
            return SourceKind.NOTION
        notes = any(name.endswith((".md", ".canvas")) for name in names)
        turns = any(name.endswith(".jsonl") for name in names)
        return SourceKind.CONVERSATIONS if turns and not notes else SourceKind.VAULT
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()[:_LOOKED_AT]
        inside = any(name.rpartition("/")[2] == "conversations.json" for name in names)
        return SourceKind.CONVERSATIONS if inside else SourceKind.NOTION
    return _of_a_file(path)


def _of_a_file(path: Path) -> SourceKind:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):
        line = None
    if isinstance(line, dict) and "record" in line:
        return SourceKind.JSONL
    if isinstance(line, dict) or first.startswith(b"["):
        return SourceKind.CONVERSATIONS
    kinds = ", ".join(SourceKind)
    raise InvalidInput("path", str(path), f"it does not show what it is; say so with --kind ({kinds})")


def _first(files: Iterator[tuple[str, os.stat_result]]) -> Iterator[tuple[str, os.stat_result]]:
    for count, one in enumerate(files):
        if count >= _LOOKED_AT:
            return
        yield one
