"""Which paths ignore files leave out, as git reads them.

The rules are git's: the last pattern that matches decides, `!` takes back, a pattern with a slash is anchored to the
folder of its file, one that ends in a slash is for folders only, `**` crosses folders. Nothing is run to find out, and
a pattern cannot make matching slow: a star never tries a place twice, and patterns beyond reason are not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# What nobody writes by hand. Matching is linear in a star, but each `**` multiplies with the folders of the path.
_MAX_PATTERN_CHARS: Final = 500
_MAX_DOUBLE_STARS: Final = 4

_POSIX_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}


_NAMED_CLASS: Final = re.compile(r"\[:([^\]]*):\]")


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
    expression = _segment(glob) if by_name else _path(glob.removeprefix("/"))
    return _Pattern(expression, ignores, folders_only, by_name)


def _grouped(run: list[_Pattern]) -> _Group:
    def compiled(by_name: bool, for_folders: bool) -> re.Pattern[str] | None:
        chosen = [p.expression for p in run if p.by_name is by_name and (for_folders or not p.folders_only)]
        return re.compile("|".join(f"(?:{expression})" for expression in chosen), re.DOTALL) if chosen else None

    return _Group(
        run[0].ignores, compiled(True, False), compiled(True, True), compiled(False, False), compiled(False, True)
    )


def _path(glob: str) -> str:
    """An expression for a whole path below the ignore file's folder."""
    expression = ""
    segments = _split(glob, "/")
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == "**":
            # At the end: everything inside, but not the folder itself; elsewhere: any number of folders.
            expression += "[^/].*" if last else "(?:[^/]+/)*"
        else:
            expression += _segment(segment) + ("" if last else "/")
    return expression


def _segment(glob: str) -> str:
    """An expression for one name. Each star but the last stops at the first place where what follows it fits."""
    chunks = [_literal(chunk) for chunk in _split(glob, "*")]
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def _split(glob: str, at: str) -> list[str]:
    """The parts between slashes or runs of stars; one in brackets or behind a backslash is none."""
    parts, start, i = [], 0, 0
    while i < len(glob):
        if glob[i] == "\\":
            i += 2
        elif glob[i] == "[" and (found := _bracketed(glob, i)):
            i = found[1]
        elif glob[i] == at:
            parts.append(glob[start:i])
            i += 1
            while at == "*" and i < len(glob) and glob[i] == "*":
                i += 1
            start = i
        else:
            i += 1
    return [*parts, glob[start:]]


def _literal(glob: str) -> str:
    """An expression for a part without stars."""
    expression, i = "", 0
    while i < len(glob):
        char = glob[i]
        if char == "\\":
            if i + 1 == len(glob):
                # A lone backslash at the end matches nothing, as in git.
                raise ValueError("ends in a backslash")
            expression += re.escape(glob[i + 1])
            i += 2
        elif char == "?":
            expression += "[^/]"
            i += 1
        elif char == "[":
            found = _bracketed(glob, i)
            if found is None:
                raise ValueError("unclosed bracket")
            expression += found[0]
            i = found[1]
        else:
            expression += re.escape(char)
            i += 1
    return expression


def _bracketed(glob: str, start: int) -> tuple[str, int] | None:
    """The bracket expression that opens at `start`, and the place behind it; None where it is not closed.

    It never matches a slash. A range that runs backwards adds nothing, and what follows its hyphen is no class.
    """
    i = start + 1
    negated = glob[i : i + 1] in ("!", "^")
    i += negated
    body, before, first = "", "", True
    while i < len(glob) and (glob[i] != "]" or first):
        first = False
        named = _NAMED_CLASS.match(glob, i)
        if glob[i] == "-" and before and glob[i + 1 : i + 2] not in ("", "]"):
            high, i = _member(glob, i + 1)
            body += f"{re.escape(before)}-{re.escape(high)}" if before <= high else ""
            before = ""
        elif named:
            if named[1] not in _POSIX_CLASSES:
                raise ValueError("unknown class")
            body += _POSIX_CLASSES[named[1]]
            before, i = "", named.end()
        else:
            before, i = _member(glob, i)
            body += re.escape(before)
    if i >= len(glob):
        return None
    inside = f"[{'^' if negated else ''}{body}]" if body else ("." if negated else "(?!)")
    return f"(?!/){inside}", i + 1


def _member(glob: str, i: int) -> tuple[str, int]:
    """The character at `i` of a bracket expression, behind its backslash if it has one, and the place after it."""
    if glob[i] == "\\":
        i += 1
    return glob[i : i + 1], i + 1
