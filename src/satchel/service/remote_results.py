"""Results as they come over the wire, made into what they were: the same values that the engine gives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from satchel.models.citation import ContextSource
from satchel.models.item import Trim
from satchel.models.ledger import Fate, Ledger, LedgerEntry, Reason
from satchel.models.options import ContextFormat
from satchel.models.payload import (
    ContextItem,
    ContextMetadata,
    ContextPayload,
    ContextSection,
    ItemMetadata,
    Place,
    SectionType,
)
from satchel.models.result import ContextBuildResult
from satchel.models.search import Expansion, SearchHit, SearchResult

if TYPE_CHECKING:
    from satchel.service.build import Context


def hit_to_dict(hit: SearchHit) -> dict[str, Any]:
    """A hit as JSON can hold it."""
    return {name: getattr(hit, name) for name in SearchHit.__slots__}


def search_to_dict(found: SearchResult) -> dict[str, Any]:
    """What a search found, as JSON can hold it."""
    return {
        "hits": [hit_to_dict(hit) for hit in found.hits],
        "generation": found.generation,
        "notes": list(found.notes),
    }


def expansion_to_dict(found: Expansion) -> dict[str, Any]:
    """The text behind an id, as JSON can hold it."""
    return {name: getattr(found, name) for name in Expansion.__slots__}


def search_from_dict(told: Mapping[str, Any]) -> SearchResult:
    """What a search found."""
    hits = tuple(SearchHit(**hit) for hit in told["hits"])
    return SearchResult(hits, told["generation"], tuple(told["notes"]))


def expansion_from_dict(told: Mapping[str, Any]) -> Expansion:
    """The text behind an id."""
    return Expansion(**told)


def context_from_dict(told: Mapping[str, Any]) -> Context:
    """A context, of whichever kind."""
    return _payload(told) if told["kind"] == "sections" else _result(told)


def _ledger(entries: list[dict[str, Any]]) -> Ledger:
    return Ledger(
        tuple(
            LedgerEntry(**{**entry, "fate": Fate(entry["fate"]), "reason": Reason(entry["reason"])})
            for entry in entries
        )
    )


def _spans(spans: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end in spans)


def _result(told: Mapping[str, Any]) -> ContextBuildResult:
    return ContextBuildResult(
        context=told["context"],
        estimated_tokens=told["estimated_tokens"],
        max_tokens=told["max_tokens"],
        chunks_included=told["chunks_included"],
        chunks_truncated=told["chunks_truncated"],
        chunks_merged=told["chunks_merged"],
        files_included=tuple(told["files_included"]),
        was_truncated=told["was_truncated"],
        average_relevance=told["average_relevance"],
        format=ContextFormat(told["format"]),
        build_time=timedelta(milliseconds=told["build_time_ms"]),
        sources=tuple(ContextSource(**source) for source in told["sources"]),
        shown=tuple(told["shown"]),
        spans=_spans(told["spans"]),
        ledger=_ledger(told["ledger"]),
        notes=tuple(told["notes"]),
        characters_made_visible=told["characters_made_visible"],
        provider_content=tuple(told["provider_content"]),
        summary=told["summary"],
    )


def _payload(told: Mapping[str, Any]) -> ContextPayload:
    meta = told["metadata"]
    return ContextPayload(
        sections=tuple(_section(section) for section in told["sections"]),
        metadata=ContextMetadata(
            total_tokens=meta["totalTokens"],
            timestamp=meta["timestamp"],
            focus_block_id=meta["focusBlockId"],
            focus_page_id=meta["focusPageId"],
            collectors_used=tuple(meta["collectorsUsed"]),
            collectors_failed=meta["collectorsFailed"],
            blocks_included=meta["blocksIncluded"],
            blocks_considered=meta["blocksConsidered"],
            generation=meta["generation"],
            cached=meta["cached"],
            build_ms=meta["buildMs"],
            characters_made_visible=meta["charactersMadeVisible"],
            token_budget=meta["tokenBudget"],
        ),
        serialized=told["serialized"],
        ledger=_ledger(told["ledger"]),
        notes=tuple(told["notes"]),
        spans=_spans(told["spans"]),
    )


def _section(told: Mapping[str, Any]) -> ContextSection:
    kind = SectionType(told["type"])
    return ContextSection(
        type=kind,
        title=told["title"],
        items=tuple(_item(item, kind) for item in told["items"]),
        token_count=told["tokenCount"],
    )


def _item(told: Mapping[str, Any], section: SectionType) -> ContextItem:
    meta, cut = told["metadata"], told.get("truncated")
    modified = meta["lastModified"]
    return ContextItem(
        block_id=told["blockId"],
        block_type=told["blockType"],
        content=told["content"],
        relevance=told["relevance"],
        metadata=ItemMetadata(
            page_title=meta["pageTitle"],
            path=tuple(meta["path"]),
            last_modified=datetime.fromisoformat(modified) if modified else None,
        ),
        section=section,
        reasons=tuple(told["reasons"]),
        signals=told["signals"],
        language=told.get("language"),
        number=told.get("number", 0),
        source_path=told.get("sourcePath", ""),
        file_path=told.get("filePath", ""),
        place=Place(**told["place"]) if "place" in told else None,
        trim=Trim(cut["id"], cut["lines"], cut["characters"]) if cut else None,
    )
