"""Results of finding symbols and exact text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

MAX_MATCHES: Final = 1_000
"""Matches that are returned at most; the rest is counted."""


class FindKind(StrEnum):
    """What is looked for."""

    DEFINITION = "definition"
    """Where a symbol is defined."""
    REFERENCES = "references"
    """Every line that names a symbol, certain ones first."""
    IMPLEMENTATIONS = "implementations"
    """Classes with a base class of that name; for Class.method, their methods of that name."""
    OUTLINE = "outline"
    """The definitions of a file, or the files of a folder with their names."""
    TEXT = "text"
    """Every line with an exact string."""
    PATTERN = "pattern"
    """Every line with a regular expression (RE2, in linear time)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A place that was found."""

    path: str
    line: int
    end_line: int
    kind: str
    """What is there: a type of block (`function`), a kind of reference (`calls`, `imports`, `names` …), or `text`."""
    text: str
    name: str = ""
    """The qualified name of a definition."""
    is_certain: bool = True
    """False for a reference by name alone."""

    @property
    def id(self) -> str:
        """The id that `expand` takes."""
        if self.name:
            return f"{self.path}#{self.name}"
        return f"{self.path}:{self.line}-{self.end_line}" if self.line else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The matches, in order, and how many there are in all."""

    what: str
    kind: FindKind
    matches: tuple[Match, ...] = ()
    total: int = 0
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON-compatible dictionary."""
        return {
            "what": self.what,
            "kind": str(self.kind),
            "total": self.total,
            "matches": [asdict(match) | {"id": match.id} for match in self.matches],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Found:
        """The result that `to_dict` gave."""
        matches = [{name: value for name, value in match.items() if name != "id"} for match in values["matches"]]
        return cls(
            what=values["what"],
            kind=FindKind(values["kind"]),
            total=values["total"],
            matches=tuple(Match(**match) for match in matches),
            notes=tuple(values["notes"]),
        )

    def to_text(self, counts: Callable[[str], int], budget: int) -> str:
        """The matches by file within a budget of tokens; the last line says how many are not shown."""
        lines: list[str] = []
        shown = 0
        for path, matches in groupby(self.matches, key=lambda match: match.path):
            block = [path]
            for match in matches:
                block.append(
                    f"  {_place(match):>11}  {match.kind}{'' if match.is_certain else ' (by name)'}: {match.text}"
                )
                text = "\n".join([*lines, *block, _rest(self.total)])
                if counts(text) > budget:
                    block.pop()
                    lines += block if len(block) > 1 else []
                    return "\n".join([*lines, _rest(self.total - shown)])
                shown += 1
            lines += block
        return "\n".join([*lines, *([_rest(self.total - shown)] if self.total > shown else [])])


def _place(match: Match) -> str:
    return f"{match.line}-{match.end_line}" if match.end_line > match.line else str(match.line) if match.line else ""


def _rest(count: int) -> str:
    return f"… {count:,} more"
