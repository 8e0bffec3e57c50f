"""Search results as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from satchel.models.search import SearchHit, SearchResult

T = TypeVar("T")


def search_to_dict(result: SearchResult) -> dict[str, Any]:
    """A search result as JSON can hold it."""
    return {"hits": [asdict(hit) for hit in result.hits], "generation": result.generation, "notes": list(result.notes)}


def search_from_dict(values: Mapping[str, Any]) -> SearchResult:
    """The search result that `search_to_dict` has written."""
    hits = tuple(record_from_dict(SearchHit, hit) for hit in values["hits"])
    return SearchResult(hits, values["generation"], tuple(values["notes"]))


def record_from_dict(kind: type[T], values: Mapping[str, Any]) -> T:
    """A dataclass or named tuple from its JSON; keys of a newer server are ignored, a missing one is a KeyError."""
    names = getattr(kind, "_fields", None) or [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _as_tuples(values[name]) for name in names})


def _as_tuples(value: Any) -> Any:
    """The value with tuples for lists, as our records have them."""
    return tuple(_as_tuples(element) for element in value) if isinstance(value, list) else value
