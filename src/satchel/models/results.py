"""Result types of the specifications: contexts with specification field names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from satchel.models.context import Context, ContextKind, ContextSource, SourceDocument

if TYPE_CHECKING:
    from satchel.models.chunk import Trim
    from satchel.models.options import ContextConfig
    from satchel.models.request import ContextRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildResult(Context):
    """A context with the field names of the context building specification (S0)."""

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
        """The duration of the build."""
        return self.statistics.build_time

    @property
    def total_chunks_available(self) -> int:
        """The number of available chunks."""
        return self.chunks_included + self.chunks_truncated

    @property
    def inclusion_percentage(self) -> float:
        """The percentage of available chunks in the context; 0 without chunks."""
        total = self.total_chunks_available
        return self.chunks_included / total * 100 if total else 0.0

    @property
    def file_count(self) -> int:
        """The number of different files in the context."""
        return len(self.files_included)

    def to_specification(self) -> dict[str, Any]:
        """The result as a dictionary with the specification's names."""
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


class SectionType(StrEnum):
    """The sections of a context, in rendering order."""

    SYSTEM = "system"
    FOCUS = "focus"
    SEMANTIC = "semantic"
    RELATIONS = "relations"
    ACTIVITY = "activity"
    HISTORY = "history"


SECTION_TITLES: Final[Mapping[SectionType, str]] = {
    SectionType.SYSTEM: "Instructions",
    SectionType.FOCUS: "Focused Content",
    SectionType.SEMANTIC: "Related Content",
    SectionType.RELATIONS: "Connected Items",
    SectionType.ACTIVITY: "Recent Activity",
    SectionType.HISTORY: "Conversation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMetadata:
    """Location and age of an item: page title, breadcrumb (outermost first) and time of the last change."""

    page_title: str | None = None
    path: tuple[str, ...] = ()
    last_modified: datetime | None = None


class Place(NamedTuple):
    """A location in a file: lines, and the page of a document (from 1)."""

    path: str
    line: int
    end_line: int
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """A block as an item of a context: rendered content, relevance (0..1), section and reasons."""

    block_id: str
    block_type: str
    content: str
    relevance: float
    metadata: ItemMetadata = ItemMetadata()
    section: str = SectionType.FOCUS
    reasons: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    language: str | None = None
    number: int = 0
    source_path: str = ""
    file_path: str = ""
    place: Place | None = None
    weak: bool = False
    """True if position alone is weak evidence: the item is shown only if the search finds it relevant, too."""
    holds: tuple[str, ...] = ()
    """Ids of other blocks in the content; the item is shown only to users who may read all of them."""
    found: tuple[str, ...] = ()
    """Ids of the blocks in the content that the search found."""
    elided: int = 0
    """The number of lines that elision lines in the content stand for."""
    trim: Trim | None = None
    whole: str | None = field(default=None, repr=False)
    """The text before trimming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSection:
    """A titled section of a context; `token_count` is for the rendered section."""

    type: str
    title: str
    items: tuple[ContextItem, ...] = ()
    token_count: int = 0

    @property
    def name(self) -> str:
        """`type` under the common name of all sections."""
        return str(self.type)

    @property
    def tokens(self) -> int:
        """`token_count` under the common name of all sections."""
        return self.token_count


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMetadata:
    """The metadata of a context in S4."""

    total_tokens: int
    timestamp: str
    focus_block_id: str | None = None
    focus_page_id: str | None = None
    collectors_used: tuple[str, ...] = ()
    blocks_included: int = 0
    blocks_considered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPayload(Context):
    """A context with the field names of the workspace specification (S4): sections and metadata."""

    kind: ContextKind = ContextKind.WORKSPACE
    sources: tuple[ContextSource, ...] = ()
    sections: tuple[ContextSection, ...] = ()
    metadata: ContextMetadata
    request: ContextRequest | None = field(default=None, repr=False)
    config: ContextConfig | None = field(default=None, repr=False)
    """The configuration that made the payload."""
    counter: Any = field(default=None, repr=False, compare=False)
    """The token counter that measured the payload."""

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items of all sections, in rendering order."""
        return tuple(item for section in self.sections for item in section.items)

    @property
    def serialized(self) -> str:
        """The text."""
        return self.text

    @property
    def is_empty(self) -> bool:
        """True if no block or turn was found; the titles of the template do not count."""
        return not any(item.number or item.section == SectionType.HISTORY for item in self.items)

    def section(self, kind: SectionType | str) -> ContextSection | None:
        """The section of the given type, or None."""
        return next((section for section in self.sections if section.type == kind), None)

    def to_specification(self) -> dict[str, Any]:
        """The payload as a dictionary with the specification's camelCase names."""
        meta = self.metadata
        return {
            "sections": [_section_dict(section) for section in self.sections],
            "metadata": {
                "totalTokens": meta.total_tokens,
                "focusBlockId": meta.focus_block_id,
                "focusPageId": meta.focus_page_id,
                "timestamp": meta.timestamp,
                "collectorsUsed": list(meta.collectors_used),
                "blocksIncluded": meta.blocks_included,
                "blocksConsidered": meta.blocks_considered,
            },
            "serialized": self.text,
        }


def _section_dict(section: ContextSection) -> dict[str, Any]:
    return {
        "type": str(section.type),
        "title": section.title,
        "tokenCount": section.token_count,
        "items": [_item_dict(item) for item in section.items],
    }


def _item_dict(item: ContextItem) -> dict[str, Any]:
    metadata = item.metadata
    return {
        "blockId": item.block_id,
        "blockType": str(item.block_type),
        "content": item.content,
        "relevance": round(item.relevance, 4),
        "metadata": {
            "pageTitle": metadata.page_title,
            "path": list(metadata.path),
            "lastModified": metadata.last_modified.isoformat() if metadata.last_modified else None,
        },
    }


@dataclass(frozen=True, slots=True)
class ValidationCheck:
    """The result of a single check."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ContextValidationResult:
    """The results of all checks on a payload; true if all passed."""

    checks: tuple[ValidationCheck, ...]

    @property
    def valid(self) -> bool:
        """True if every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[ValidationCheck, ...]:
        """The failed checks."""
        return tuple(check for check in self.checks if not check.passed)

    def __bool__(self) -> bool:
        return self.valid


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchContext(Context):
    """A context with the field names of the research specification (S3); `truncated` if a page was cut or dropped."""

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
        """The cited page by citation number, from 1."""
        return dict(enumerate(self.sources, start=1))

    def to_specification(self) -> dict[str, Any]:
        """The context as a dictionary with the specification's names."""
        return {
            "formatted_text": self.text,
            "sources": [source.to_dict() for source in self.sources],
            "total_tokens": self.tokens,
            "truncated": self.truncated,
        }
