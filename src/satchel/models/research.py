"""S3's result: a context made of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from satchel.models.citation import SourceDocument
from satchel.models.context import Context, ContextKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchContext(Context):
    """A context under the names of the specification of research; `truncated` if a page had to go or was cut."""

    kind: ContextKind = ContextKind.RESEARCH
    sources: Sequence[SourceDocument] = ()
    truncated: bool = False

    @property
    def formatted_text(self) -> str:
        """The text."""
        return self.text

    @property
    def total_tokens(self) -> int:
        """The tokens of the text."""
        return self.tokens

    def get_citation_map(self) -> dict[int, SourceDocument]:
        """The page behind each number, from 1 on."""
        return dict(enumerate(self.sources, start=1))

    def to_specification(self) -> dict[str, Any]:
        """The context under the specification's names."""
        return {
            "formatted_text": self.text,
            "sources": [source.to_dict() for source in self.sources],
            "total_tokens": self.tokens,
            "truncated": self.truncated,
        }
