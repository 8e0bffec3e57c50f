"""What building a context for a request gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import UnknownPiece
from satchel.models.citation import ContextSource
from satchel.models.ledger import Ledger

if TYPE_CHECKING:
    from satchel.models.item import Trim
    from satchel.models.request import ContextRequest


class SectionType(StrEnum):
    """The sections of a context, in the order in which they are written."""

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
    """Where an item stands: its page, its breadcrumb from the outside in, and when it was changed last."""

    page_title: str | None = None
    path: tuple[str, ...] = ()
    last_modified: datetime | None = None


class Place(NamedTuple):
    """Where in a file something stands; a document's pages are counted from 1."""

    path: str
    line: int
    end_line: int
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """A block as it goes into a context: what is shown of it, how relevant it is (0..1), and who found it why."""

    block_id: str
    block_type: str
    content: str
    relevance: float
    metadata: ItemMetadata = ItemMetadata()
    section: SectionType = SectionType.FOCUS
    reasons: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    language: str | None = None
    number: int = 0
    source_path: str = ""
    file_path: str = ""
    place: Place | None = None
    weak: bool = False
    """Whether its place alone says little for it: it is shown only if the question has something to do with it."""
    holds: tuple[str, ...] = ()
    """Other blocks of which something stands in it, too: who may no longer read one of them is not shown it."""
    trim: Trim | None = None
    whole: str | None = field(default=None, repr=False)
    """The text before it was trimmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSection:
    """A titled part of the context; `token_count` is what it takes as written."""

    type: SectionType
    title: str
    items: tuple[ContextItem, ...] = ()
    token_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMetadata:
    """What there is to know about a context beside its text."""

    total_tokens: int
    timestamp: str
    focus_block_id: str | None = None
    focus_page_id: str | None = None
    collectors_used: tuple[str, ...] = ()
    collectors_failed: Mapping[str, str] = field(default_factory=dict)
    blocks_included: int = 0
    blocks_considered: int = 0
    generation: int = 0
    cached: bool = False
    build_ms: float = 0.0
    characters_made_visible: int = 0
    token_budget: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPayload:
    """The sections, what is known about them, and the one text for the model.

    `ledger` says what became of every block that was considered, `notes` what the caller should know.
    """

    sections: tuple[ContextSection, ...]
    metadata: ContextMetadata
    serialized: str
    ledger: Ledger = field(default_factory=Ledger)
    notes: tuple[str, ...] = ()
    request: ContextRequest | None = field(default=None, repr=False)
    spans: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """Where in `serialized` each of the items stands."""

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items of all sections, as they are written."""
        return tuple(item for section in self.sections for item in section.items)

    @property
    def text(self) -> str:
        """The one text for the model; every kind of context has it under this name."""
        return self.serialized

    @property
    def tokens(self) -> int:
        """How many tokens the text has."""
        return self.metadata.total_tokens

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found to put into it."""
        return not any(item.number or item.section is SectionType.HISTORY for item in self.items)

    @property
    def sources(self) -> tuple[ContextSource, ...]:
        """What can be cited, in the order of the numbers."""
        numbered = sorted((item for item in self.items if item.number), key=lambda item: item.number)
        return tuple(
            ContextSource(
                item.block_id,
                item.metadata.page_title or item.block_id,
                str(item.block_type),
                item.place.path if item.place else item.file_path or item.source_path or None,
                item.place.line if item.place else None,
                item.relevance,
                item.number,
                item.place.end_line if item.place else None,
                item.place.page if item.place else None,
            )
            for item in numbered
        )

    def section(self, kind: SectionType | str) -> ContextSection | None:
        """The section of that type, if it is there."""
        return next((section for section in self.sections if section.type == kind), None)

    def expand(self, block_id: str) -> str:
        """The whole text of an item of this context."""
        for item in sorted(self.items, key=lambda item: not item.number):  # blocks before what only has their id
            if item.block_id == block_id:
                return item.content if item.whole is None else item.whole
        raise UnknownPiece(block_id, len(self.items))

    def to_dict(self) -> dict[str, Any]:
        """The payload as JSON can hold it."""
        meta = self.metadata
        return {
            "kind": "sections",
            "sections": [_section_dict(section) for section in self.sections],
            "metadata": {
                "totalTokens": meta.total_tokens,
                "focusBlockId": meta.focus_block_id,
                "focusPageId": meta.focus_page_id,
                "timestamp": meta.timestamp,
                "collectorsUsed": list(meta.collectors_used),
                "collectorsFailed": dict(meta.collectors_failed),
                "blocksIncluded": meta.blocks_included,
                "blocksConsidered": meta.blocks_considered,
                "generation": meta.generation,
                "cached": meta.cached,
                "buildMs": round(meta.build_ms, 3),
                "charactersMadeVisible": meta.characters_made_visible,
                "tokenBudget": meta.token_budget,
            },
            "serialized": self.serialized,
            "ledger": self.ledger.to_dicts(),
            "notes": list(self.notes),
            "spans": [list(span) for span in self.spans],
        }


def _section_dict(section: ContextSection) -> dict[str, Any]:
    return {
        "type": section.type.value,
        "title": section.title,
        "tokenCount": section.token_count,
        "items": [_item_dict(item) for item in section.items],
    }


def _item_dict(item: ContextItem) -> dict[str, Any]:
    told = item.metadata
    fields: dict[str, Any] = {
        "blockId": item.block_id,
        "blockType": str(item.block_type),
        "content": item.content,
        "relevance": round(item.relevance, 4),
        "metadata": {
            "pageTitle": told.page_title,
            "path": list(told.path),
            "lastModified": told.last_modified.isoformat() if told.last_modified else None,
        },
        "reasons": list(item.reasons),
        "signals": {name: round(value, 6) for name, value in item.signals.items()},
    }
    if item.number:
        fields["number"] = item.number
    if item.file_path:
        fields["filePath"] = item.file_path
    if item.place:
        fields["place"] = item.place._asdict()
    if item.source_path:
        fields["sourcePath"] = item.source_path
    if item.language:
        fields["language"] = item.language
    if item.trim:
        fields["truncated"] = {
            "id": item.trim.id,
            "lines": item.trim.missing_lines,
            "characters": item.trim.missing_characters,
        }
    return fields


@dataclass(frozen=True, slots=True)
class ValidationCheck:
    """One thing that was checked, and what was found."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ContextValidationResult:
    """Whether a payload is what it has to be, check by check."""

    checks: tuple[ValidationCheck, ...]

    @property
    def valid(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[ValidationCheck, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def __bool__(self) -> bool:
        return self.valid
