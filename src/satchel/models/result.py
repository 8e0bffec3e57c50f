"""What building a context gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from satchel.errors import UnknownPiece
from satchel.models.ledger import Ledger
from satchel.models.options import ContextFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.models.citation import ContextSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildResult:
    """The context and everything about it: its cost, its sources, and what became of every hit.

    `sources`, `spans` (where in `context` a piece stands) and `shown` (its text without wrappers) go together:
    the n-th of each belongs to citation number n.
    """

    context: str = ""
    estimated_tokens: int = 0
    chunks_included: int = 0
    chunks_truncated: int = 0
    files_included: tuple[str, ...] = ()
    was_truncated: bool = False
    format: ContextFormat = ContextFormat.MARKDOWN
    build_time: timedelta = timedelta(0)
    average_relevance: float = 0.0

    sources: tuple[ContextSource, ...] = ()
    summary: str | None = None
    chunks_merged: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    shown: tuple[str, ...] = field(default=(), repr=False)
    ledger: Ledger = field(default_factory=Ledger)
    notes: tuple[str, ...] = ()
    characters_made_visible: int = 0
    provider_content: tuple[Mapping[str, Any], ...] = ()
    originals: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_tokens: int = 0

    EMPTY: ClassVar[ContextBuildResult]

    @property
    def text(self) -> str:
        """The one text for the model; every kind of context has it under this name."""
        return self.context

    @property
    def tokens(self) -> int:
        """How many tokens the text has."""
        return self.estimated_tokens

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

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read in the context."""
        return not self.context.strip()

    @property
    def citations(self) -> dict[int, ContextSource]:
        """The sources by citation number, from 1 without gaps."""
        return {source.number: source for source in self.sources}

    def expand(self, piece_id: str) -> str:
        """The exact text of a hit as it was given, whatever became of it."""
        try:
            return self.originals[piece_id]
        except KeyError:
            raise UnknownPiece(piece_id, len(self.originals)) from None

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        return {
            "kind": "pieces",
            "context": self.context,
            "estimated_tokens": self.estimated_tokens,
            "max_tokens": self.max_tokens,
            "chunks_included": self.chunks_included,
            "chunks_truncated": self.chunks_truncated,
            "chunks_merged": self.chunks_merged,
            "files_included": list(self.files_included),
            "was_truncated": self.was_truncated,
            "average_relevance": round(self.average_relevance, 6),
            "format": self.format.value,
            "build_time_ms": self.build_time.total_seconds() * 1000,
            "sources": [source.to_dict() for source in self.sources],
            "shown": list(self.shown),
            "spans": [list(span) for span in self.spans],
            "ledger": self.ledger.to_dicts(),
            "notes": list(self.notes),
            "characters_made_visible": self.characters_made_visible,
            "provider_content": [dict(part) for part in self.provider_content],
            "summary": self.summary,
        }


ContextBuildResult.EMPTY = ContextBuildResult()
