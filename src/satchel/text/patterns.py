"""Which paths a list of patterns lets through.

A pattern without a slash matches the file's name; one with a slash matches the whole path, where `*` stays
within a folder and `**` crosses folders; a pattern that ends in a slash matches everything below a folder; a
leading `!` takes away again. The time is linear in the path for every pattern: `fnmatch` matches a segment
without backtracking, and segments are matched by dynamic programming.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        return fnmatchcase(segments[-1], pattern)
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
                before and fnmatchcase(segment, want) for before, segment in zip(reachable, segments, strict=False)
            ]
    return reachable[-1]
