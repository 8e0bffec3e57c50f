"""Reads a change: the hunks of a diff, and the lines of an indexed text that they touch.

A diff is untrusted text; what is no diff has no hunks. Its lines are compared with the text, so that it does not matter
whether the change is applied already, or on which version it was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, islice
from typing import Final, NamedTuple

MAX_DIFF_CHARS: Final = 2_000_000
"""A larger diff is a sweep over everything, of which nothing in particular follows."""

MAX_HUNKS: Final = 2_000
"""Of a diff; what the others change is not followed."""

_HUNK: Final = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE: Final = re.compile(r'^(?:---|\+\+\+) ("(?:[^"\\]|\\.)*"|[^\t]*)')
_DEFINED: Final = re.compile(
    r"\b(?:def|class|fn|func|function|fun|struct|enum|trait|interface|type|module|const|static|var|let|val|record)"
    r"\s+(?:\([^()]{0,80}\)\s*)?([A-Za-z_$][\w$]*)"
)
_NOWHERE: Final = "/dev/null"
_MAX_WORDS_CHARS: Final = 6_000  # of a change, as a question to the ranker


@dataclass(frozen=True)
class Change:
    """A change as given: a diff, or a text that names places (a stack trace, a review), and a question about it."""

    diff: str = ""
    trace: str = ""
    question: str = ""

    @cached_property
    def hunks(self) -> list[Hunk]:
        """The hunks of the diff, at most `MAX_HUNKS`."""
        return read_diff(self.diff)

    @cached_property
    def words(self) -> str:
        """The question with the words of the change, for the ranker and for the choice of lines."""
        names = [name for hunk in self.hunks for name in defined_names([line[1:] for line in hunk.lines])]
        changed = chain.from_iterable(hunk.signed("-") + hunk.signed("+") for hunk in self.hunks)
        parts = (self.question, " ".join(dict.fromkeys(names)), self.trace, "\n".join(changed))
        return "\n".join(filter(None, parts))[:_MAX_WORDS_CHARS] or "change"


class Hunk(NamedTuple):
    """Neighbouring changed lines of a file, with the lines around them; each line begins with its sign."""

    old_path: str
    path: str
    """The path after the change; empty for a file that the change removes."""
    old_first: int
    first: int
    lines: tuple[str, ...]

    def signed(self, sign: str) -> list[str]:
        """The lines with a sign: `-` for the removed and `+` for the added ones."""
        return [line[1:] for line in self.lines if line.startswith(sign)]


def read_diff(text: str) -> list[Hunk]:
    """The hunks of a unified diff, of git or any other program, at most `MAX_HUNKS`."""
    return list(islice(_hunks(text[:MAX_DIFF_CHARS].split("\n")), MAX_HUNKS))


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    old_path = path = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith(("--- ", "+++ ")) and (named := _FILE.match(line)):
            if line.startswith("---"):
                old_path = _plain_path(named[1])
            else:
                path = _plain_path(named[1])
        elif match := _HUNK.match(line):
            old_left, left = (int(match[group] or 1) for group in (2, 4))
            signed: list[str] = []
            while at < len(lines) and (old_left > 0 or left > 0):
                line = lines[at].removesuffix("\r")
                sign = line[:1] or " "  # some programs strip the space of an empty line
                if sign not in " +-\\":
                    break
                at += 1
                if sign == "\\":  # "No newline at end of file"
                    continue
                old_left -= sign != "+"
                left -= sign != "-"
                signed.append(line or " ")
            yield Hunk(old_path, path, int(match[1]), int(match[3]), tuple(signed))


def _plain_path(written: str) -> str:
    """The path of a file's line in a diff, without quotes and the prefix of git; empty for no file."""
    path = written.strip()
    if path.startswith('"'):
        path = path[1:-1].encode("latin-1", "replace").decode("unicode_escape", "replace")
        path = path.encode("latin-1", "replace").decode("utf-8", "replace")
    if path == _NOWHERE:
        return ""
    return re.sub(r"^[abciow]/", "", path).removeprefix("./")


def touched_lines(hunk: Hunk, text: Sequence[str]) -> list[int]:
    """The numbers of the lines of a text that a hunk changes, or between which it removes or will add lines.

    Found where the text has the lines of the hunk as they are after the change, or else before it; [] if nowhere.
    """
    for first, own, other in ((hunk.first, "+", "-"), (hunk.old_first, "-", "+")):
        shown = [line[1:] for line in hunk.lines if not line.startswith(other)]
        start = _find(shown, text, first)
        if start:
            return sorted(set(_changed(hunk, start, own, len(text))))
    return []


def _changed(hunk: Hunk, start: int, own: str, count: int) -> Iterator[int]:
    number = start
    for is_changed, run in groupby(hunk.lines, key=lambda line: not line.startswith(" ")):
        here = sum(not is_changed or line.startswith(own) for line in run)
        if is_changed:
            # Lines that are not here stood, or will stand, before this one.
            yield from range(number, number + here) if here else (min(number, count),)
        number += here


def _find(shown: Sequence[str], text: Sequence[str], expected: int) -> int:
    """The number of the line at which the lines stand in the text, the nearest to the expected one; 0 if nowhere."""
    wanted = [line.rstrip() for line in shown]
    if not any(wanted):
        return min(max(expected, 1), len(text)) if text else 0
    last_start = len(text) - len(wanted)
    # Outwards from the expected place: an applied change is there, or not far.
    for distance in range(len(text)):
        for start in {expected - 1 - distance, expected - 1 + distance}:
            if 0 <= start <= last_start and all(text[start + i].rstrip() == line for i, line in enumerate(wanted)):
                return start + 1
    return 0


def defined_names(lines: Sequence[str]) -> list[str]:
    """The names that lines of code seem to define, in whatever language."""
    return list(dict.fromkeys(match[1] for line in lines for match in _DEFINED.finditer(line)))
