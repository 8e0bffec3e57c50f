"""The folders of a question: each with a short label that is unique among them, and none indexed twice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Final, NamedTuple

from satchel.errors import InvalidOption
from satchel.indexing.walk import enters
from satchel.service.factory.opening import workspace
from satchel.text.visible import make_visible_line

MAX_ROOTS: Final = 16
"""Each root is searched for every question, and has files and memory of its own; a monorepo is one root."""


class Root(NamedTuple):
    """A folder to search, and its label in paths and ids ('' for the only folder)."""

    path: Path
    label: str


class Roots(NamedTuple):
    """The folders of a question in the order given, and notes on those left out."""

    folders: tuple[Root, ...]
    notes: tuple[str, ...]


def roots_of(paths: Sequence[str | os.PathLike[str]]) -> Roots:
    """The folders to search: a folder given twice, or inside another that reads it, is left out with a note.

    A folder inside another that its ignore files or the rules for folders leave out is a root of its own.
    """
    if len(paths) > MAX_ROOTS:
        raise InvalidOption("path", len(paths), f"at most {MAX_ROOTS} folders can be asked together; give their parent")
    notes: list[str] = []
    folders: dict[Path, object] = {}
    for path in paths:
        folder = workspace(path) if len(paths) == 1 else _folder(path)
        if folder in folders:
            notes.append(f"{path} is given twice")
        folders.setdefault(folder, path)
    around = {folder: _around(folder, folders) for folder in folders}
    notes += [f"{folders[folder]} is searched as part of {folders[outer]}" for folder, outer in around.items() if outer]
    outermost = [folder for folder in folders if not around[folder]]
    labels = labels_of(outermost) if len(outermost) > 1 else [""]
    return Roots(tuple(map(Root, outermost, labels)), tuple(notes))


def labels_of(folders: Sequence[Path]) -> list[str]:
    """A label for each folder: its name, with as many of its parents' names as make it unique."""
    depths = [1] * len(folders)
    most = [len(folder.parts) - 1 for folder in folders]
    while True:
        labels = [_label(folder, depth) for folder, depth in zip(folders, depths, strict=True)]
        clashes = [
            # A folder near the top of the disk has no more parents: the other one's label grows instead.
            place if depths[place] < most[place] else other
            for place, other in permutations(range(len(folders)), 2)
            if f"{labels[other]}/".startswith(f"{labels[place]}/")
        ]
        growing = {place for place in clashes if depths[place] < most[place]}
        if not growing:
            return labels
        for place in growing:
            depths[place] += 1


def _folder(path: str | os.PathLike[str]) -> Path:
    scheme, separator, _ = str(path).partition("://")
    if separator:
        # A URL may hold a password: show only the scheme.
        problem = "only folders can be asked together; ask a server or a database alone"
        raise InvalidOption("path", f"{scheme}://...", problem)
    return workspace(path)


def _around(folder: Path, folders: Iterable[Path]) -> Path | None:
    """The outermost of the folders that contains the folder and reads it."""
    outer = [other for other in folders if other != folder and folder.is_relative_to(other) and enters(other, folder)]
    return min(outer, key=lambda other: len(other.parts), default=None)


def _label(folder: Path, depth: int) -> str:
    return make_visible_line("/".join(folder.parts[1:][-depth:])).text or "root"
