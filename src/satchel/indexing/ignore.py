"""Paths excluded by ignore files, by git's rules.

The last matching pattern decides, `!` includes a path again, a pattern with a slash is anchored to the folder of the
ignore file, a pattern with a slash at the end applies to folders only, `**` crosses folders. Git is never run, and no
pattern makes matching slow: a star never tries a position twice, and oversized patterns are not used.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final, NamedTuple

from satchel.text.patterns import segment_expression, split_glob

# Patterns written by hand are shorter. Matching is linear in a star, but `**` multiplies with the folders of a path.
_MAX_PATTERN_CHARS: Final = 500
_MAX_DOUBLE_STARS: Final = 4  # each `**` multiplies the time with the folders of the path


class _Pattern(NamedTuple):
    """A line of an ignore file; `by_name`: matched against the last name of a path alone."""

    expression: str
    ignores: bool
    folders_only: bool
    by_name: bool


class _Group(NamedTuple):
    """Consecutive patterns of the same sign, compiled to an expression for names and another for paths."""

    ignores: bool
    for_files: tuple[re.Pattern[str] | None, re.Pattern[str] | None]
    for_folders: tuple[re.Pattern[str] | None, re.Pattern[str] | None]

    def matches(self, name: str, path: str, is_folder: bool) -> bool:
        names, paths = self.for_folders if is_folder else self.for_files
        return bool((names and names.fullmatch(name)) or (paths and paths.fullmatch(path)))


class IgnoreRules:
    """The patterns of an ignore file in the folder `base` ('' is the root)."""

    def __init__(self, text: str, base: str = "") -> None:
        self.base = base
        lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        runs = groupby(filter(None, map(_read, lines)), key=lambda pattern: pattern.ignores)
        self._groups = [_grouped(ignores, list(run)) for ignores, run in runs][::-1]

    def __bool__(self) -> bool:
        return bool(self._groups)

    def ignores(self, path: str, is_folder: bool) -> bool | None:
        """True to leave the path out, False to include the path again, None if no pattern matches."""
        below = path[len(self.base) + 1 :] if self.base else path
        name = path.rpartition("/")[2]
        for group in self._groups:
            if group.matches(name, below, is_folder):
                return group.ignores
        return None


def _read(line: str) -> _Pattern | None:
    """The pattern of a line; None for blank lines, comments and unusable patterns."""
    if not line.strip() or line.startswith("#"):
        return None
    try:
        pattern = _parsed(_without_trailing_spaces(line))
        if pattern is not None:
            re.compile(pattern.expression)
        return pattern
    except (ValueError, re.error):
        return None


def _without_trailing_spaces(line: str) -> str:
    """The line without trailing spaces, except spaces behind a backslash."""
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
    return _Pattern(expression, ignores, folders_only, by_name)


def _grouped(ignores: bool, run: list[_Pattern]) -> _Group:
    def compiled(by_name: bool, for_folders: bool) -> re.Pattern[str] | None:
        chosen = [p.expression for p in run if p.by_name is by_name and (for_folders or not p.folders_only)]
        return re.compile("|".join(f"(?:{expression})" for expression in chosen), re.DOTALL) if chosen else None

    for_files, for_folders = ((compiled(True, folders), compiled(False, folders)) for folders in (False, True))
    return _Group(ignores, for_files, for_folders)


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
