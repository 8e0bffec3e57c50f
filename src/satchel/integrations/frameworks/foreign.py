"""What the hits of other libraries have in common: a text, free-form metadata, perhaps a score and an id."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from satchel.integrations.frameworks.scores import ScoreKind, relevances
from satchel.models.chunk import KnowledgeChunk
from satchel.models.language import detect_language

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Under which names loaders put a thing, the most telling first.
_PATH_KEYS = ("file_path", "source", "path", "filename", "file_name", "url")
_MODIFIED_KEYS = ("last_modified", "last_modified_date", "modified_at", "lastmod")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A hit as another library has it."""

    text: str
    metadata: Mapping[str, Any]
    score: float | None
    id: str | None


def chunks_from(hits: Sequence[Foreign], scores: ScoreKind) -> list[KnowledgeChunk]:
    """A chunk for each hit, in the same order."""
    found = relevances([hit.score for hit in hits], scores)
    return [_chunk(hit, relevance) for hit, relevance in zip(hits, found, strict=True)]


def _chunk(hit: Foreign, relevance: float) -> KnowledgeChunk:
    start, end = _lines(hit.metadata)
    path = str(_first(hit.metadata, _PATH_KEYS) or "")
    return KnowledgeChunk(
        hit.text,
        file_path=path,
        start_line=start,
        end_line=end,
        relevance=relevance,
        language=_text(hit.metadata.get("language")) or detect_language(path),
        id=str(hit.id or ""),
        type=_text(hit.metadata.get("type")) or "",
        name=_text(hit.metadata.get("title")) or "",
        last_modified=_moment(_first(hit.metadata, _MODIFIED_KEYS)),
        metadata=hit.metadata,
    )


def _first(metadata: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((metadata[key] for key in keys if metadata.get(key)), None)


def _text(value: Any) -> str | None:
    """Strings, and the values of enums that are strings (LangChain's `Language`)."""
    value = getattr(value, "value", value)
    return value if isinstance(value, str) and value else None


def _lines(metadata: Mapping[str, Any]) -> tuple[int, int] | tuple[None, None]:
    start, end = metadata.get("start_line"), metadata.get("end_line")
    # LangChain.js and its descendants: {"loc": {"lines": {"from": 1, "to": 9}}}
    loc = metadata.get("loc")
    if start is None and isinstance(loc, dict) and isinstance(loc.get("lines"), dict):
        start, end = loc["lines"].get("from"), loc["lines"].get("to")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else (None, None)


def _moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
