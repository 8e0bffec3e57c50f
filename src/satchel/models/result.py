"""S0's and S2's result: a context made of chunks and entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from satchel.models.context import Context

if TYPE_CHECKING:
    from datetime import timedelta

    from satchel.models.citation import ContextSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildResult(Context):
    """A context under the names of the specification of context building."""

    sources: tuple[ContextSource, ...] = ()
    chunks_included: int = 0
    chunks_truncated: int = 0
    chunks_merged: int = 0
    files_included: tuple[str, ...] = ()
    was_truncated: bool = False
    average_relevance: float = 0.0
    summary: str | None = None

    EMPTY: ClassVar[ContextBuildResult]

    @property
    def context(self) -> str:
        """The text."""
        return self.text

    @property
    def estimated_tokens(self) -> int:
        """The tokens of the text, counted or estimated as the options say."""
        return self.tokens

    @property
    def build_time(self) -> timedelta:
        """How long the build took."""
        return self.statistics.build_time

    @property
    def total_chunks_available(self) -> int:
        """How many chunks there were to choose from."""
        return self.chunks_included + self.chunks_truncated

    @property
    def inclusion_percentage(self) -> float:
        """How many of them are in the context, in percent; 0 when there were none."""
        total = self.total_chunks_available
        return self.chunks_included / total * 100 if total else 0.0

    @property
    def file_count(self) -> int:
        """How many different files are in the context."""
        return len(self.files_included)

    def to_specification(self) -> dict[str, Any]:
        """The result under the specification's names."""
        return {
            "context": self.text,
            "estimated_tokens": self.tokens,
            "chunks_included": self.chunks_included,
            "chunks_truncated": self.chunks_truncated,
            "files_included": list(self.files_included),
            "was_truncated": self.was_truncated,
            "format": str(self.format),
            "build_time_ms": self.build_time.total_seconds() * 1000,
            "average_relevance": round(self.average_relevance, 6),
            "sources": [source.to_dict() for source in self.sources],
            "summary": self.summary,
        }


ContextBuildResult.EMPTY = ContextBuildResult()
