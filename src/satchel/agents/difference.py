"""A small unified diff of a change in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from satchel.text.visible import make_visible, make_visible_line

_CONTEXT: Final = 2
_LONGEST: Final = 300
_NEAR: Final = 60


def difference(name: str, before: bytes | None, after: bytes | None) -> str:
    """What changes, with two lines around it; hidden characters are shown, long lines are cut."""
    old, new = (_lines(data) for data in (before, after))
    same = _same(old, new)
    end = _same(old[same:][::-1], new[same:][::-1])
    gone, come = old[same : len(old) - end], new[same : len(new) - end]
    first = max(0, same - _CONTEXT)
    above, below = old[first:same], old[len(old) - end :][:_CONTEXT]
    shown = make_visible_line(name).text
    if any(len(line) > _LONGEST for line in (*gone, *come)):
        gone, come = _cut(gone, come)
    return "\n".join(
        [
            f"--- {'/dev/null' if before is None else shown}",
            f"+++ {'/dev/null' if after is None else shown}",
            f"@@ -{_range(first, above, gone, below)} +{_range(first, above, come, below)} @@",
            *(f" {_shown(line)}" for line in above),
            *(f"-{_shown(line)}" for line in gone),
            *(f"+{_shown(line)}" for line in come),
            *(f" {_shown(line)}" for line in below),
        ]
    )


def _lines(data: bytes | None) -> list[str]:
    text = (data or b"").decode("utf-8", "replace").removeprefix("\ufeff")
    return text.removesuffix("\n").split("\n") if text else []


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines, or characters, they begin with in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _range(first: int, above: list[str], middle: list[str], below: list[str]) -> str:
    length = len(above) + len(middle) + len(below)
    return f"{first + 1 if length else first},{length}"


def _cut(gone: list[str], come: list[str]) -> tuple[list[str], list[str]]:
    """Of lines that are too long, what is around the place in which they differ."""
    old, new = "\n".join(gone), "\n".join(come)
    start = max(0, _same(old, new) - _NEAR)
    same = _same(old[start:][::-1], new[start:][::-1])
    end = max(0, same - _NEAR)
    near = [f"{'…' if start else ''}{text[start : len(text) - end]}{'…' if end else ''}" for text in (old, new)]
    return near[0].split("\n"), near[1].split("\n")


def _shown(line: str) -> str:
    short = line.removesuffix("\r")
    text = make_visible(short).text
    return text if len(text) <= 2 * _LONGEST else f"{text[: 2 * _LONGEST]}…"
