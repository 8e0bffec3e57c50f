"""Results as they come over the wire, made into what they were: the same values that the engine gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from satchel.models.search import Expansion, SearchHit, SearchResult


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
