"""Which paths ignore files leave out, as git reads them.

The rules are git's: the last pattern that matches decides, `!` takes back, a pattern with a slash is anchored to the
folder of its file, one that ends in a slash is for folders only, `**` crosses folders. Nothing is run to find out, and
a pattern cannot make matching slow: a star never tries a place twice, and patterns beyond reason are not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from satchel.text.patterns import segment_expression, split_glob

# What nobody writes by hand. Matching is linear in a star, but each `**` multiplies with the folders of the path.
_MAX_PATTERN_CHARS: Final = 500
_MAX_DOUBLE_STARS: Final = 4


@dataclass(frozen=True, slots=True)
class _Group:
    """Patterns of one sign that follow each other, as one expression for names and one for paths."""

    ignores: bool
    names: re.Pattern[str] | None
    folder_names: re.Pattern[str] | None
    paths: re.Pattern[str] | None
    folder_paths: re.Pattern[str] | None

    def matches(self, name: str, path: str, is_folder: bool) -> bool:
        names, paths = (self.folder_names, self.folder_paths) if is_folder else (self.names, self.paths)
        return bool((names and names.fullmatch(name)) or (paths and paths.fullmatch(path)))


class IgnoreRules:
    """The patterns of one ignore file, which stands in the folder `base` ('' is the root)."""

    def __init__(self, text: str, base: str = "") -> None:
        self.base = base
        self.refused: list[str] = []
        self._groups: list[_Group] = []
        run: list[_Pattern] = []
        for line in text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"):
            pattern = self._read(line)
            if pattern is None:
                continue
            if run and pattern.ignores is not run[0].ignores:
                self._groups.append(_grouped(run))
                run = []
            run.append(pattern)
        if run:
            self._groups.append(_grouped(run))
        self._groups.reverse()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def ignores(self, path: str, is_folder: bool) -> bool | None:
        """True to leave the path out, False to take it back in, None where no pattern has a say."""
        below = path[len(self.base) + 1 :] if self.base else path
        name = path.rpartition("/")[2]
        for group in self._groups:
            if group.matches(name, below, is_folder):
                return group.ignores
        return None

    def _read(self, line: str) -> _Pattern | None:
        if not line.strip() or line.startswith("#"):
            return None
        try:
            pattern = _parsed(_without_trailing_spaces(line))
            if pattern is not None:
                re.compile(pattern.expression)
            return pattern
        except (ValueError, re.error):
            self.refused.append(line)
            return None


@dataclass(frozen=True, slots=True)
class _Pattern:
    expression: str
    ignores: bool
    folders_only: bool
    by_name: bool


def _without_trailing_spaces(line: str) -> str:
    """The line without spaces at its end, but for those behind a backslash."""
    stripped = line.rstrip(" \t")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and stripped != line else stripped


def _parsed(line: str) -> _Pattern | None:
    ignores = not line.startswith("!")
    glob = line if ignores else line[1:]
    folders_only = glob.endswith("/")
    glob = glob.rstrip("/") if folders_only else glob
    if not glob:
        return None
    if len(glob) > _MAX_PATTERN_CHARS or glob.count("**") > _MAX_DOUBLE_STARS:
        raise ValueError("beyond reason")
    by_name = "/" not in glob
    expression = segment_expression(glob) if by_name else _path(glob.removeprefix("/"))
    return _Pattern(expression=expression, ignores=ignores, folders_only=folders_only, by_name=by_name)


def _grouped(run: list[_Pattern]) -> _Group:
    def compiled(by_name: bool, for_folders: bool) -> re.Pattern[str] | None:
        chosen = [p.expression for p in run if p.by_name is by_name and (for_folders or not p.folders_only)]
        return re.compile("|".join(f"(?:{expression})" for expression in chosen), re.DOTALL) if chosen else None

    return _Group(
        ignores=run[0].ignores,
        names=compiled(by_name=True, for_folders=False),
        folder_names=compiled(by_name=True, for_folders=True),
        paths=compiled(by_name=False, for_folders=False),
        folder_paths=compiled(by_name=False, for_folders=True),
    )


def _path(glob: str) -> str:
    """An expression for a whole path below the ignore file's folder."""
    expression = ""
    segments = split_glob(glob, "/")
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == "**":
            # At the end: everything inside, but not the folder itself; elsewhere: any number of folders.
            expression += "[^/].*" if last else "(?:[^/]+/)*"
        else:
            expression += segment_expression(segment) + ("" if last else "/")
    return expression
