"""What research gives back: the text for the model, and the pages it cites."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidInput
from satchel.models.citation import CitableSource
from satchel.models.ledger import Ledger

if TYPE_CHECKING:
    from satchel.models.page import PageMetadata


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A page that is cited. `page` counts from 1; `relevance_score` is from 0 to 1, and 0 unless a search set it."""

    doc_id: str
    filename: str
    page: int
    extension: str
    thumbnail_path: str | None = None
    image_path: str | None = None
    timestamp: str = ""
    section_path: str | None = None
    parent_heading: str | None = None
    markdown_content: str = ""
    relevance_score: float = 0.0
    source_path: str | None = None
    """Where the library found the file; not part of what others call a source, but what opens it."""

    def __post_init__(self) -> None:
        for name in ("doc_id", "filename", "extension", "markdown_content"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(name, getattr(self, name), "must be text")
        if isinstance(self.page, bool) or not isinstance(self.page, int) or self.page < 1:
            raise InvalidInput("page", self.page, "must be a whole number from 1 on")
        score = self.relevance_score
        if not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
            raise InvalidInput("relevance_score", score, "must be a number from 0 to 1")

    @classmethod
    def from_metadata(cls, kept: PageMetadata, *, markdown: str = "", score: float = 0.0) -> SourceDocument:
        """The source that a page's metadata and text make."""
        return cls(
            kept.doc_id,
            kept.filename,
            kept.page,
            kept.extension,
            thumbnail_path=kept.thumb_path,
            image_path=kept.image_path,
            timestamp=kept.timestamp,
            section_path=kept.section_path,
            parent_heading=kept.parent_heading,
            markdown_content=markdown,
            relevance_score=score,
            source_path=kept.source_path,
        )

    def with_content(self, markdown: str) -> SourceDocument:
        """The same page with another text."""
        return replace(self, markdown_content=markdown)

    def to_dict(self) -> dict[str, Any]:
        """Every field, as JSON can hold it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ResearchContext:
    """The text for the model. `sources` stand in the order in which they are cited; `truncated` if some had to go."""

    formatted_text: str
    sources: list[SourceDocument]
    total_tokens: int
    truncated: bool
    ledger: Ledger = field(default_factory=Ledger)
    """What became of every page that was found."""
    notes: tuple[str, ...] = ()

    def get_citation_map(self) -> dict[int, SourceDocument]:
        """The source behind each number, from 1 on."""
        return dict(enumerate(self.sources, start=1))

    def citable_sources(self) -> tuple[CitableSource, ...]:
        """What an answer may cite, as it was shown: for `verify`."""
        return tuple(
            CitableSource(number, one.markdown_content, one.filename, one.filename, one.page)
            for number, one in self.get_citation_map().items()
        )

    def to_dict(self) -> dict[str, Any]:
        """The context as JSON can hold it."""
        return {
            "formatted_text": self.formatted_text,
            "sources": [source.to_dict() for source in self.sources],
            "total_tokens": self.total_tokens,
            "truncated": self.truncated,
            "ledger": self.ledger.to_dicts(),
            "notes": list(self.notes),
        }
