"""Where a piece came from, under the number by which an answer cites it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class ContextSource(NamedTuple):
    """One source: what it is, where it is, and its citation number (from 1)."""

    entity_id: str
    name: str
    type: str
    file: str | None = None
    line: int | None = None
    relevance: float = 0.0
    number: int = 0
    end_line: int | None = None

    @property
    def location(self) -> str:
        """`file:line`, the file alone, or the type of something that is in no file."""
        if not self.file:
            return self.type
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def label(self) -> str:
        """How a list names it: by its name, or by its place where it has no name but its file's."""
        return self.location if self.name == self.file else self.name

    def to_dict(self) -> dict[str, Any]:
        """The source as JSON can hold it."""
        return self._asdict()


class CitationProblem(StrEnum):
    """What can be wrong with a citation in an answer."""

    UNKNOWN_NUMBER = "unknown-number"
    QUOTE_NOT_IN_SOURCE = "quote-not-in-source"


@dataclass(frozen=True, slots=True)
class CitationFinding:
    """One thing that is wrong, and where in the answer it stands."""

    problem: CitationProblem
    text: str
    position: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CitationReport:
    """What a check of an answer's citations found."""

    cited: tuple[int, ...]
    uncited: tuple[int, ...]
    findings: tuple[CitationFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether every number resolves and every quote stands in a source it cites."""
        return not self.findings
