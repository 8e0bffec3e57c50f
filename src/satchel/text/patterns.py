"""Glob patterns as git reads them within a name, and which paths a list of them lets through.

A pattern without a slash matches the file's name; one with a slash matches the whole path, where `*` stays
within a folder and `**` crosses folders; a pattern that ends in a slash matches everything below a folder; a
leading `!` takes away again. The time is linear in the path for every pattern: a segment is matched without
backtracking, and segments are matched by dynamic programming.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether the path is let through: by the last pattern that matches it, or by there being only `!` ones."""
    allowed = all(pattern.startswith("!") for pattern in patterns)
    for pattern in patterns:
        negated = pattern.startswith("!")
        if _matches_one(path, pattern.removeprefix("!")):
            allowed = not negated
    return allowed


def _matches_one(path: str, pattern: str) -> bool:
    segments = path.replace("\\", "/").removeprefix("./").split("/")
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    if "/" not in pattern:
        return bool(_segment(pattern).fullmatch(segments[-1]))
    return _match_segments(segments, _segments_of(pattern.removeprefix("/")))


@lru_cache(maxsize=1_000)
def _segments_of(pattern: str) -> tuple[str, ...]:
    """The pattern's segments; `**` after `**` says nothing new."""
    parts = pattern.split("/")
    return tuple(one for one, before in zip(parts, ["", *parts], strict=False) if not (one == before == "**"))


def _match_segments(segments: Sequence[str], wanted: Sequence[str]) -> bool:
    # reachable[i]: the wanted segments so far can account for the first i path segments
    reachable = [True] + [False] * len(segments)
    if sum(want != "**" for want in wanted) > len(segments):
        return False
    for want in wanted:
        if want == "**":
            first = reachable.index(True) if True in reachable else len(reachable)
            reachable = [i >= first for i in range(len(reachable))]
        else:
            reachable = [False] + [
                before and bool(_segment(want).fullmatch(segment))
                for before, segment in zip(reachable, segments, strict=False)
            ]
    return reachable[-1]


@lru_cache(maxsize=1_000)
def _segment(glob: str) -> re.Pattern[str]:
    """The expression of a segment; a bracket or a backslash that git refuses stands for itself."""
    try:
        return re.compile(segment_expression(glob), re.DOTALL)
    except (ValueError, re.error):
        return re.compile(segment_expression(glob.replace("\\", r"\\").replace("[", r"\[")), re.DOTALL)


def segment_expression(glob: str) -> str:
    """A regular expression for one name; raises ValueError for what git refuses.

    Each star but the last stops at the first place where what follows it fits, so that matching is linear.
    """
    chunks = [_literal(chunk) for chunk in split_glob(glob, "*")]
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def split_glob(glob: str, at: str) -> list[str]:
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
