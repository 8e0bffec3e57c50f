"""The unified diff that `satchel install` shows before it writes."""

from __future__ import annotations

import os
from difflib import unified_diff
from typing import Final

from satchel.text.visible import make_visible, make_visible_line

_CONTEXT_LINES: Final = 2
# Characters: a few lines of a terminal. Settings that a program writes on one line have thousands.
_LONG_LINE: Final = 300
# Characters that stay on either side of a change in a long line.
_NEAR: Final = 60


def difference(name: str, before: bytes | None, after: bytes | None) -> str:
    """A unified diff whose hidden characters are visible and whose long lines are cut. None stands for no file."""
    shown_name = make_visible_line(name).text
    old_name, new_name = ("/dev/null" if data is None else shown_name for data in (before, after))
    texts = [(data or b"").decode("utf-8", "replace").removeprefix("\ufeff") for data in (before, after)]
    if any(len(line) > _LONG_LINE for text in texts for line in text.split("\n")):
        texts = _cut_long_lines(*texts)
    old, new = (text.removesuffix("\n").split("\n") if text else [] for text in texts)
    lines = unified_diff(old, new, old_name, new_name, n=_CONTEXT_LINES, lineterm="")
    return "\n".join(_visible(line) for line in lines)


def _cut_long_lines(old: str, new: str) -> list[str]:
    """Both texts, with the lines in which the change begins and ends cut to what is near it."""
    start = _common_start(old, new)
    same_end = _common_start(old[start:][::-1], new[start:][::-1])
    head, tail = old[:start], old[len(old) - same_end :]
    line_before, line_after = head.rpartition("\n")[2], tail.partition("\n")[0]
    if len(line_before) > _NEAR:
        head = f"{head[: len(head) - len(line_before)]}…{line_before[-_NEAR:]}"
    if len(line_after) > _NEAR:
        tail = f"{line_after[:_NEAR]}…{tail[len(line_after) :]}"
    return [head + text[start : len(text) - same_end] + tail for text in (old, new)]


def _common_start(old: str, new: str) -> int:
    return len(os.path.commonprefix([old, new]))  # noqa: RUF071 - characters are to be compared, not folders


def _visible(line: str) -> str:
    text = make_visible(line.removesuffix("\r")).text
    return text if len(text) <= 2 * _LONG_LINE else f"{text[: 2 * _LONG_LINE]}…"
