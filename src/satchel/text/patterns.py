"""Glob patterns by git's rules within a name, and matching of paths against a list of patterns.

A pattern without a slash matches the file's name; a pattern with a slash matches the whole path, where `*` stays
within a folder and `**` crosses folders; a pattern that ends in a slash matches everything below a folder; a
leading `!` excludes matching paths. The time is linear in the path for every pattern: a segment is matched without
backtracking, and segments are matched by dynamic programming.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import or_
from typing import Final

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
    """True if the last matching pattern includes the path, or if no pattern matches and all patterns start with `!`."""
    allowed = all(pattern.startswith("!") for pattern in patterns)
    for pattern in patterns:
        if _matches_one(path, pattern.removeprefix("!")):
            allowed = not pattern.startswith("!")
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
    """The pattern's segments, without repeated `**`."""
    parts = pattern.split("/")
    return tuple(part for part, before in zip(parts, ["", *parts], strict=False) if not (part == before == "**"))


def _match_segments(segments: Sequence[str], globs: Sequence[str]) -> bool:
    # reachable[i]: the globs so far can account for the first i path segments
    reachable = [True] + [False] * len(segments)
    if sum(glob != "**" for glob in globs) > len(segments):
        return False
    for glob in globs:
        if glob == "**":
            reachable = list(accumulate(reachable, or_))
        else:
            matched = [
                before and bool(_segment(glob).fullmatch(segment))
                for before, segment in zip(reachable, segments, strict=False)
            ]
            reachable = [False, *matched]
    return reachable[-1]


@lru_cache(maxsize=1_000)
def _segment(glob: str) -> re.Pattern[str]:
    """The expression of a segment; a bracket or a backslash refused by git stands for itself."""
    try:
        return re.compile(segment_expression(glob), re.DOTALL)
    except (ValueError, re.error):
        return re.compile(segment_expression(glob.replace("\\", r"\\").replace("[", r"\[")), re.DOTALL)


def segment_expression(glob: str) -> str:
    """A regular expression for a file name; raises ValueError for patterns refused by git.

    Each star but the last stops at the first match of the following characters; matching is therefore linear.
    """
    chunks = ["".join(map(_expression, _signs(chunk))) for chunk in split_glob(glob, "*")]
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def split_glob(glob: str, at: str) -> list[str]:
    """The parts between slashes or runs of stars; a separator in brackets or behind a backslash does not count."""
    parts: list[list[str]] = [[]]
    before = ""
    for sign in _signs(glob):
        if sign != at:
            parts[-1].append(sign)
        elif at != "*" or before != "*":
            parts.append([])
        before = sign
    return ["".join(part) for part in parts]


def _signs(glob: str) -> Iterator[str]:
    """The characters of a glob, each with the backslash before; a bracket expression counts as a character."""
    i = 0
    while i < len(glob):
        bracket = _bracketed(glob, i) if glob[i] == "[" else None
        end = bracket[1] if bracket else i + 1 + (glob[i] == "\\")
        yield glob[i:end]
        i = end


def _expression(sign: str) -> str:
    """A regular expression for a glob character except `*`."""
    if sign == "\\":
        # A lone backslash at the end matches nothing, as in git.
        raise ValueError("ends in a backslash")
    if sign == "?":
        return "[^/]"
    if sign[0] == "[":
        bracket = _bracketed(sign, 0)
        if bracket is None:
            raise ValueError("unclosed bracket")
        return bracket[0]
    return re.escape(sign[-1])


def _bracketed(glob: str, start: int) -> tuple[str, int] | None:
    """The regular expression for the bracket expression at `start`, and the end position; None without closing bracket.

    The expression never matches a slash. A backward range adds nothing, and no class follows the hyphen of a range.
    """
    i = start + 1
    negated = glob[i : i + 1] in ("!", "^")
    i += negated
    body, before, first = "", "", True
    while i < len(glob) and (glob[i] != "]" or first):
        first = False
        class_name = _NAMED_CLASS.match(glob, i)
        if glob[i] == "-" and before and glob[i + 1 : i + 2] not in ("", "]"):
            high, i = _member(glob, i + 1)
            body += f"{re.escape(before)}-{re.escape(high)}" if before <= high else ""
            before = ""
        elif class_name:
            if class_name[1] not in _POSIX_CLASSES:
                raise ValueError("unknown class")
            body += _POSIX_CLASSES[class_name[1]]
            before, i = "", class_name.end()
        else:
            before, i = _member(glob, i)
            body += re.escape(before)
    if i >= len(glob):
        return None
    inside = f"[{'^' if negated else ''}{body}]" if body else ("." if negated else "(?!)")
    return f"(?!/){inside}", i + 1


def _member(glob: str, i: int) -> tuple[str, int]:
    """The character at `i` of a bracket expression, without an escaping backslash, and the next position."""
    if glob[i] == "\\":
        i += 1
    return glob[i : i + 1], i + 1
