"""The hits of LangChain and LlamaIndex as chunks. Neither is imported: anything shaped like their objects will do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidHit
from satchel.integrations.frameworks.scores import ScoreKind, relevances, score_kind
from satchel.models.chunk import KnowledgeChunk
from satchel.models.files import detect_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Under which names loaders put a thing, the most telling first.
_PATH_KEYS = ("file_path", "source", "path", "filename", "file_name", "url")
_MODIFIED_KEYS = ("last_modified", "last_modified_date", "modified_at", "lastmod")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """What the hits of both have in common."""

    text: str
    metadata: Mapping[str, Any]
    score: float | None
    id: str | None


def from_langchain(documents: Iterable[Any], *, scores: ScoreKind | str = ScoreKind.RELEVANCE) -> list[KnowledgeChunk]:
    """A chunk for each `Document`, or for each `(Document, score)` as `similarity_search_with_score` gives them."""
    return _chunks([_langchain_hit(i, document) for i, document in enumerate(documents)], score_kind(scores))


def from_llamaindex(nodes: Iterable[Any], *, scores: ScoreKind | str = ScoreKind.RELEVANCE) -> list[KnowledgeChunk]:
    """A chunk for each `NodeWithScore` as a retriever gives them, or for each plain node."""
    return _chunks([_llamaindex_hit(i, node) for i, node in enumerate(nodes)], score_kind(scores))


def _langchain_hit(index: int, value: Any) -> _Hit:
    document, score = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    text = getattr(document, "page_content", None)
    if not isinstance(text, str):
        raise InvalidHit(f"documents[{index}]", value, "must be a LangChain Document or a (Document, score) pair")
    metadata = dict(getattr(document, "metadata", None) or {})
    if score is None:
        score = metadata.get("relevance_score", metadata.get("score"))
    return _Hit(text=text, metadata=metadata, score=score, id=getattr(document, "id", None))


def _llamaindex_hit(index: int, value: Any) -> _Hit:
    node = getattr(value, "node", value)
    get_content = getattr(node, "get_content", None)
    text = get_content() if callable(get_content) else None
    if not isinstance(text, str):
        raise InvalidHit(f"nodes[{index}]", value, "must be a LlamaIndex NodeWithScore or a node with text")
    metadata = dict(getattr(node, "metadata", None) or {})
    return _Hit(text=text, metadata=metadata, score=getattr(value, "score", None), id=getattr(node, "node_id", None))


def _chunks(hits: Sequence[_Hit], scores: ScoreKind) -> list[KnowledgeChunk]:
    found = relevances([hit.score for hit in hits], scores)
    return [_chunk(hit, relevance) for hit, relevance in zip(hits, found, strict=True)]


def _chunk(hit: _Hit, relevance: float) -> KnowledgeChunk:
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
