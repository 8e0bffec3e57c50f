"""S3's result: a context made of pages, and the pages it cites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidInput
from satchel.models.context import Context, ContextKind

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
    """Where the library found the file; not part of S3's source, but what opens it."""
    number: int = 0
    """The citation number, from 1 once the page is in a context."""

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
    def from_metadata(cls, metadata: PageMetadata, *, markdown: str = "", score: float = 0.0) -> SourceDocument:
        """The source that a page's metadata and text make."""
        return cls(
            doc_id=metadata.doc_id,
            filename=metadata.filename,
            page=metadata.page,
            extension=metadata.extension,
            thumbnail_path=metadata.thumb_path,
            image_path=metadata.image_path,
            timestamp=metadata.timestamp,
            section_path=metadata.section_path,
            parent_heading=metadata.parent_heading,
            markdown_content=markdown,
            relevance_score=score,
            source_path=metadata.source_path,
        )

    @property
    def id(self) -> str:
        """The id of the document."""
        return self.doc_id

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.filename

    @property
    def type(self) -> str:
        """Every source of research is a page."""
        return "page"

    @property
    def path(self) -> str:
        """The file, with its folder where the library knows it."""
        return self.source_path or self.filename

    @property
    def line(self) -> None:
        """Pages have no lines that a reader could open."""

    @property
    def end_line(self) -> None:
        """Pages have no lines that a reader could open."""

    @property
    def relevance(self) -> float:
        """The relevance under the name that every source has it."""
        return self.relevance_score

    @property
    def section(self) -> str:
        """Research has no sections."""
        return ""

    @property
    def text(self) -> str:
        """What was shown of the page."""
        return self.markdown_content

    def with_content(self, markdown: str) -> SourceDocument:
        """The page with another text."""
        return replace(self, markdown_content=markdown)

    def to_dict(self) -> dict[str, Any]:
        """The source under S3's names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "number"}


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
