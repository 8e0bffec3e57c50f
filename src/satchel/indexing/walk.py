"""What is in a folder: every file worth reading, and everything that was passed over, with the reason.

The tree may be hostile. Folders are opened one below the other without following links, so that swapping one for a link
while the walk goes on leads nowhere; nothing is opened that is not a regular file or a folder; git is never run.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import translate
from importlib import resources
from typing import Final

from satchel.indexing.ignore import IgnoreRules
from satchel.indexing.safe_open import NotRegular, TooLong, bytes_below, opened_folder
from satchel.models.files import document_suffixes, extension_of

_IGNORE_FILES: Final = (".satchelignore", ".ignore", ".gitignore")
"""The ignore files of a folder, the one that has the last word first."""

_MAX_IGNORE_FILE_BYTES: Final = 1_000_000
_MAX_DEPTH: Final = 200

DEFAULT_MAX_FILE_BYTES: Final = 1_000_000

UNFINISHED: Final = ".satchel-upload-"
"""How the name of a file begins that is still being received: it is nobody's to read."""

NOTE_FILES: Final = (".md", ".canvas")
"""How the names of a vault's notes end."""

_NAMES: Final = tomllib.loads(resources.files("satchel.indexing").joinpath("walk.toml").read_text("utf-8"))
_NEVER_ENTERED: Final = frozenset(_NAMES["never_entered"])
_BUILD_OUTPUT: Final = _NAMES["build_output"]
_BINARY: Final = frozenset(_NAMES["binary_suffixes"])

# One expression for all globs of a list: every file of a tree is held against it.
_SECRETS, _NO_SECRETS, _GENERATED = (
    re.compile("|".join(map(translate, _NAMES[name]))) for name in ("secrets", "no_secrets", "generated")
)

# Where a linked worktree's `.git` file points; a submodule's, also one inside a worktree, points further down.
_WORKTREE: Final = re.compile(r"/worktrees/[^/\n]+/?\s*$")


class Skip(StrEnum):
    """Why something was passed over."""

    IGNORED = "ignored"
    NEVER_ENTERED = "not-source"
    VIRTUAL_ENVIRONMENT = "virtual-environment"
    BUILD_OUTPUT = "build-output"
    WORKTREE = "linked-worktree"
    LINK = "link"
    SPECIAL = "not-a-regular-file"
    SECRET = "may-hold-secrets"  # noqa: S105 - the reason, not one
    BINARY = "binary"
    GENERATED = "generated"
    TOO_LARGE = "too-large"
    TOO_DEEP = "too-deep"
    DOCUMENT = "document"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file worth reading: its path from the root with `/` between, and what tells whether it has changed."""

    path: str
    size: int
    modified_ns: int
    changed_ns: int = 0


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file or a whole folder that was not taken, and why."""

    path: str
    reason: Skip
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a folder inside a repository inherits: its path from the top, and the rules on the way there."""

    path: str = ""
    rules: tuple[IgnoreRules, ...] = ()


def in_repository(folder: str) -> bool:
    """Whether a folder, given by its real path, is a repository's or in one."""
    return bool(_up_to_repository(folder))


def _up_to_repository(folder: str) -> list[str]:
    """The folder and those above it up to the top of their repository; empty outside of one."""
    above = [folder]
    while not os.path.lexists(os.path.join(above[-1], ".git")):
        parent = os.path.dirname(above[-1])
        if parent == above[-1]:
            return []
        above.append(parent)
    return above


def surroundings(folder: str) -> Surroundings:
    """The ignore files between the top of the repository and a folder in it, given by its real path."""
    above = _up_to_repository(folder)
    if len(above) <= 1:
        return Surroundings()
    top = above[-1]
    found: tuple[IgnoreRules, ...] = ()
    for place in reversed(above[1:]):
        base = "" if place == top else os.path.relpath(place, top).replace(os.sep, "/")
        found = (*_rules_in(place, base), *found)
    return Surroundings(os.path.relpath(folder, top).replace(os.sep, "/"), found)


def _rules_in(place: str, base: str) -> list[IgnoreRules]:
    """The rules of one folder above the walk; none where it may not be read."""
    with suppress(OSError), opened_folder(place) as handle:
        rules = _ignore_rules(_Place(handle, base, 0), set(os.listdir(handle)))
        return rules if base else [*rules, *_exclude_rules(handle)]
    return []


def walk(
    root: int,
    *,
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
    within: Surroundings | None = None,
    documents: frozenset[str] = frozenset(),
    max_document_bytes: int = 0,
) -> Iterator[FoundFile | PassedOver]:
    """Everything below an open folder in the order of its names, a folder's files before its folders.

    `documents` are the suffixes of files that are taken although they are no text, up to a size of their own.
    """
    within = within or Surroundings()
    walker = _Walk(max_file_bytes, documents, max_document_bytes)
    start = len(within.path) + 1 if within.path else 0
    for entry in walker.below(_Place(root, within.path, 0), within.rules or _exclude_rules(root)):
        yield replace(entry, path=entry.path[start:]) if start else entry


@dataclass(frozen=True, slots=True)
class _Place:
    """An open folder, its path from the root, and how deep it lies."""

    folder: int
    path: str
    depth: int

    def join(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


class _Walk:
    def __init__(self, max_file_bytes: int, documents: frozenset[str], max_document_bytes: int) -> None:
        self._max_file_bytes = max_file_bytes
        self._documents = documents
        self._max_document_bytes = max_document_bytes
        self._known_documents = document_suffixes(often_source=False)

    def below(self, place: _Place, rules: tuple[IgnoreRules, ...]) -> Iterator[FoundFile | PassedOver]:
        try:
            with os.scandir(place.folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            yield PassedOver(place.path, Skip.UNREADABLE, True)
            return
        names = {entry.name for entry in listed}
        rules = (*_ignore_rules(place, names), *rules)
        folders = []
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                yield self._file(entry, place.join(entry.name), rules)
        for name in folders:
            reason = _objection_to_folder(name, place, names, rules)
            if reason is None:
                yield from self._enter(name, place, rules)
            else:
                yield PassedOver(place.join(name), reason, True)

    def _file(self, entry: os.DirEntry[str], path: str, rules: tuple[IgnoreRules, ...]) -> FoundFile | PassedOver:
        if entry.is_symlink():
            return PassedOver(path, Skip.LINK)
        if _is_ignored(path, False, rules):
            return PassedOver(path, Skip.IGNORED)
        is_document = extension_of(entry.name) in self._documents
        reason = self._objection_to_name(entry.name, is_document)
        if reason is not None:
            return PassedOver(path, reason)
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            return PassedOver(path, Skip.UNREADABLE)
        if not stat.S_ISREG(info.st_mode):
            return PassedOver(path, Skip.SPECIAL)
        if info.st_size > (self._max_document_bytes if is_document else self._max_file_bytes):
            return PassedOver(path, Skip.TOO_LARGE)
        return FoundFile(path, info.st_size, info.st_mtime_ns, info.st_ctime_ns)

    def _objection_to_name(self, name: str, is_document: bool) -> Skip | None:
        lower = name.lower()
        if lower == ".git" or name.startswith(UNFINISHED):
            return Skip.NEVER_ENTERED
        if _SECRETS.match(lower) and not _NO_SECRETS.match(lower):
            return Skip.SECRET
        suffix = lower.rpartition(".")[2] if "." in lower else ""
        if is_document:
            return None
        if suffix in _BINARY:
            return Skip.BINARY
        if suffix in self._known_documents:
            return Skip.DOCUMENT
        if _GENERATED.match(lower):
            return Skip.GENERATED
        return None

    def _enter(self, name: str, place: _Place, rules: tuple[IgnoreRules, ...]) -> Iterator[FoundFile | PassedOver]:
        path = place.join(name)
        try:
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place.folder)
        except OSError:
            yield PassedOver(path, Skip.UNREADABLE, True)
            return
        try:
            reason = _objection_to_contents(folder)
            if reason is None:
                yield from self.below(_Place(folder, path, place.depth + 1), rules)
            else:
                yield PassedOver(path, reason, True)
        finally:
            os.close(folder)


def _is_ignored(path: str, is_folder: bool, rules: tuple[IgnoreRules, ...]) -> bool:
    for rule in rules:
        verdict = rule.ignores(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def _objection_to_folder(name: str, place: _Place, beside: set[str], rules: tuple[IgnoreRules, ...]) -> Skip | None:
    if name in _NEVER_ENTERED:
        return Skip.NEVER_ENTERED
    if _is_ignored(place.join(name), True, rules):
        return Skip.IGNORED
    if any(builder in beside for builder in _BUILD_OUTPUT.get(name, ())):
        return Skip.BUILD_OUTPUT
    return Skip.TOO_DEEP if place.depth >= _MAX_DEPTH else None


def _objection_to_contents(folder: int) -> Skip | None:
    if _exists("pyvenv.cfg", folder) or _exists("conda-meta", folder):
        return Skip.VIRTUAL_ENVIRONMENT
    if _exists("CACHEDIR.TAG", folder):
        return Skip.BUILD_OUTPUT
    # A linked worktree shows the same files once more; a submodule has such a file too, but of another folder.
    pointer = _text_of(folder, ".git", 4096)
    return Skip.WORKTREE if pointer is not None and _WORKTREE.search(pointer.replace("\\", "/")) else None


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _ignore_rules(place: _Place, names: set[str]) -> list[IgnoreRules]:
    found = []
    for name in _IGNORE_FILES:
        if name in names and (text := _text_of(place.folder, name, _MAX_IGNORE_FILE_BYTES)) is not None:
            rules = IgnoreRules(text, place.path)
            if rules:
                found.append(rules)
    return found


def _exclude_rules(root: int) -> tuple[IgnoreRules, ...]:
    """What `.git/info/exclude` leaves out."""
    text = _text_of(root, ".git/info/exclude", _MAX_IGNORE_FILE_BYTES)
    return (IgnoreRules(text),) if text else ()


def _text_of(folder: int, path: str, limit: int) -> str | None:
    try:
        return bytes_below(folder, path, limit).decode("utf-8", "surrogateescape")
    except (OSError, NotRegular, TooLong):
        return None
