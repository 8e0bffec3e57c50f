"""Hits of foreign retrievers as chunks and entities: from JSON, and from objects of LangChain and LlamaIndex.

JSON is a list, an object that holds one, or one object to a line. Neither library is imported: anything shaped like
their objects will do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidHit, InvalidInput, InvalidOption
from satchel.integrations.frameworks.scores import ScoreKind, relevances
from satchel.models.checks import as_choice
from satchel.models.chunk import Entity, EntityResult, KnowledgeChunk
from satchel.models.files import detect_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Hit = KnowledgeChunk | EntityResult

_LIST_KEYS: Final = ("hits", "chunks", "results", "matches", "documents", "entities")

# Satchel's name first, then the names in foreign retrievers.
_CHUNK_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "content": ("content", "text", "page_content"),
    "file_path": ("file_path", "filePath", "file", "path", "source"),
    "start_line": ("start_line", "startLine", "line_start"),
    "end_line": ("end_line", "endLine", "line_end"),
    "relevance": ("relevance", "score", "relevance_score"),
    "language": ("language", "lang"),
    "expanded_context": ("expanded_context", "expandedContext"),
    "id": ("id", "chunk_id"),
    "type": ("type",),
    "name": ("name", "title"),
    "last_modified": ("last_modified", "lastModified"),
    "metadata": ("metadata",),
    "page": ("page", "page_number", "pageNumber"),
}
_ENTITY_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "entity_id", "entityId"),
    "name": ("name",),
    "type": ("type",),
    "file_path": ("file_path", "filePath", "file"),
    "start_line": ("start_line", "startLine", "line"),
    "summary": ("summary",),
    "content": ("content",),
}


def hits_from_bytes(data: bytes) -> list[Any]:
    """The raw hits in a JSON or JSON Lines file; bytes outside of UTF-8 are preserved, for display as bytes."""
    text = data.decode("utf-8-sig", "surrogateescape")
    if not text.strip():
        return []
    try:
        document = json.loads(text)
    except RecursionError:
        raise InvalidInput("hits", text[:20], "is nested too deeply to be a list of hits") from None
    except ValueError as error:
        return _from_lines(text, error)
    return _listed(document)


def _from_lines(text: str, whole: ValueError) -> list[Any]:
    hits = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            hits.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            reason = whole if number == 1 else error
            raise InvalidInput(f"line {number}", line[:60], f"is not JSON ({reason})") from None
    return hits


def _listed(document: Any) -> list[Any]:
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        for key in _LIST_KEYS:
            if isinstance(document.get(key), list):
                return list(document[key])
        if any(name in document for name in (*_CHUNK_NAMES["content"], "entity")):
            return [document]
    raise InvalidInput(
        "hits",
        type(document).__name__,
        f"must be a list of hits, or an object with one under {', '.join(_LIST_KEYS)}",
    )


def with_relevances(hits: list[Any], kind: ScoreKind) -> list[Any]:
    """The raw hits with scores converted to relevances."""
    hits = [_flat(raw) for raw in hits]
    if kind is ScoreKind.RELEVANCE:
        return hits
    return [
        raw | {"relevance": relevance, "score": relevance} if isinstance(raw, dict) else raw
        for raw, relevance in zip(hits, relevances([_score_of(raw) for raw in hits], kind), strict=True)
    ]


def _score_of(raw: Any) -> float | None:
    places = [raw, raw.get("metadata")] if isinstance(raw, dict) else []
    scores = (_first(place, _CHUNK_NAMES["relevance"]) for place in places if isinstance(place, dict))
    score = next((score for score in scores if score is not None), None)
    return score if isinstance(score, (int, float)) else None


def _flat(raw: Any) -> Any:
    """A LangChain pair of document and score merged into a single object; any different value unchanged."""
    if isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], dict):
        return raw[0] | {"relevance": raw[1], "score": raw[1]}
    return raw


def hit_from_json(raw: Any, place: str) -> Hit:
    """The hit described by an object; `place` locates the object in error messages."""
    raw = _flat(raw)
    if not isinstance(raw, dict):
        raise InvalidHit(place, raw, "must be an object with at least content")
    try:
        return _entity(raw) if _is_entity(raw) else _chunk(raw)
    except InvalidHit as error:
        raise InvalidHit(f"{place}.{error.field}", error.value, error.problem) from None


def _is_entity(raw: Mapping[str, Any]) -> bool:
    """True if the object is marked as an entity, or has a name and a type and no text but a summary."""
    if any(name in raw for name in ("entity", "entityId", "entity_id")):
        return True
    has_text = any(raw.get(name) is not None for name in (*_CHUNK_NAMES["content"], "metadata"))
    return (not has_text or "summary" in raw) and "name" in raw and "type" in raw


def _chunk(raw: Mapping[str, Any]) -> KnowledgeChunk:
    fields = _renamed(raw, _CHUNK_NAMES)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        # JSON of LangChain and LlamaIndex has all fields but the text in `metadata`.
        fields = _renamed(metadata, _CHUNK_NAMES) | fields
    if "content" not in fields:
        raise InvalidHit("content", None, "is missing; a hit needs content (or text, or page_content)")
    fields["last_modified"] = _moment(fields.get("last_modified"))
    for name in ("file_path", "id", "type", "name"):
        if name in fields:
            fields[name] = _string(name, fields[name])
    if "language" not in fields:
        fields["language"] = detect_language(fields.get("file_path"))
    return KnowledgeChunk(fields.pop("content"), **fields)


def _entity(raw: Mapping[str, Any]) -> EntityResult:
    inner = raw.get("entity", raw)
    if not isinstance(inner, dict):
        raise InvalidHit("entity", inner, "must be an object")
    fields = _renamed(inner, _ENTITY_NAMES)
    fields.setdefault("id", raw.get("entityId") or raw.get("entity_id") or fields.get("name"))
    for name in ("name", "type"):
        if name not in fields:
            raise InvalidHit(name, None, "is missing; an entity needs a name and a type")
    fields["id"] = _string("id", fields["id"])
    score = _first(raw, _CHUNK_NAMES["relevance"])
    return EntityResult(Entity(**fields), 1.0 if score is None else score)


def _renamed(raw: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The fields under Satchel's names; null counts as missing."""
    fields = {own_name: _first(raw, other_names) for own_name, other_names in names.items()}
    return {name: value for name, value in fields.items() if value is not None}


def _first(raw: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _string(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InvalidHit(name, value, "must be text")
    return str(value)


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidHit("last_modified", value, "must be a date and time such as 2026-11-15T09:30:00Z") from None


# Metadata keys of document loaders, most specific first.
_PATH_KEYS = ("file_path", "source", "path", "filename", "file_name", "url")
_MODIFIED_KEYS = ("last_modified", "last_modified_date", "modified_at", "lastmod")


@dataclass(frozen=True, slots=True, kw_only=True)
class _LibraryHit:
    """The common fields of LangChain and LlamaIndex hits."""

    text: str
    metadata: Mapping[str, Any]
    score: float | None
    id: str | None


def from_langchain(documents: Iterable[Any], *, scores: ScoreKind | str = ScoreKind.RELEVANCE) -> list[KnowledgeChunk]:
    """A chunk for each `Document`, or for each `(Document, score)` of `similarity_search_with_score`."""
    return _chunks([_langchain_hit(i, document) for i, document in enumerate(documents)], scores)


def from_llamaindex(nodes: Iterable[Any], *, scores: ScoreKind | str = ScoreKind.RELEVANCE) -> list[KnowledgeChunk]:
    """A chunk for each `NodeWithScore` of a retriever, or for each plain node."""
    return _chunks([_llamaindex_hit(i, node) for i, node in enumerate(nodes)], scores)


def _langchain_hit(index: int, value: Any) -> _LibraryHit:
    document, score = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    text = getattr(document, "page_content", None)
    if not isinstance(text, str):
        raise InvalidHit(f"documents[{index}]", value, "must be a LangChain Document or a (Document, score) pair")
    metadata = dict(getattr(document, "metadata", None) or {})
    if score is None:
        score = metadata.get("relevance_score", metadata.get("score"))
    return _LibraryHit(text=text, metadata=metadata, score=score, id=getattr(document, "id", None))


def _llamaindex_hit(index: int, value: Any) -> _LibraryHit:
    node = getattr(value, "node", value)
    get_content = getattr(node, "get_content", None)
    text = get_content() if callable(get_content) else None
    if not isinstance(text, str):
        raise InvalidHit(f"nodes[{index}]", value, "must be a LlamaIndex NodeWithScore or a node with text")
    metadata = dict(getattr(node, "metadata", None) or {})
    return _LibraryHit(
        text=text, metadata=metadata, score=getattr(value, "score", None), id=getattr(node, "node_id", None)
    )


def _chunks(hits: Sequence[_LibraryHit], scores: str) -> list[KnowledgeChunk]:
    kind = as_choice(InvalidOption, "scores", scores, ScoreKind)
    return list(map(_chunk_of_hit, hits, relevances([hit.score for hit in hits], kind)))


def _chunk_of_hit(hit: _LibraryHit, relevance: float) -> KnowledgeChunk:
    start, end = _lines(hit.metadata)
    path = str(_first_filled(hit.metadata, _PATH_KEYS) or "")
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
        last_modified=_moment_or_none(_first_filled(hit.metadata, _MODIFIED_KEYS)),
        metadata=hit.metadata,
    )


def _first_filled(metadata: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((metadata[key] for key in keys if metadata.get(key)), None)


def _text(value: Any) -> str | None:
    """The value if a non-empty string, or the value of a string enum (LangChain's `Language`); else None."""
    value = getattr(value, "value", value)
    return value if isinstance(value, str) and value else None


def _lines(metadata: Mapping[str, Any]) -> tuple[int, int] | tuple[None, None]:
    start, end = metadata.get("start_line"), metadata.get("end_line")
    # LangChain.js and its descendants: {"loc": {"lines": {"from": 1, "to": 9}}}
    loc = metadata.get("loc")
    if start is None and isinstance(loc, dict) and isinstance(loc.get("lines"), dict):
        start, end = loc["lines"].get("from"), loc["lines"].get("to")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else (None, None)


def _moment_or_none(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
