"""The second stage: hits that were not asked for, and hits that say what another says, step aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from satchel.models.item import Item, ItemKind
from satchel.models.language import canonical_language, detect_language
from satchel.models.ledger import Reason
from satchel.text.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel.models.options import ContextBuildOptions


class Sieved(NamedTuple):
    """What went through, what did not and why, and which item each duplicate repeats."""

    kept: list[Item]
    dropped: dict[int, Reason]
    duplicate_of: dict[int, Item]


def sieve(items: Iterable[Item], options: ContextBuildOptions) -> Sieved:
    """Keep what the filters let through, and of equal hits (place, type, name and text) the most relevant."""
    languages = {canonical_language(name) for name in options.languages or ()}
    dropped: dict[int, Reason] = {}
    unique: dict[object, Item] = {}
    duplicate_of: dict[int, Item] = {}
    for item in items:
        reason = _objection(item, options.min_relevance, options.file_patterns, languages)
        if reason is not None:
            dropped[item.place] = reason
            continue
        key = (item.kind, item.path, item.first_line, item.type, item.name, item.text, item.summary)
        first = unique.get(key)
        if first is None:
            unique[key] = item
        elif item.relevance > first.relevance:
            unique[key] = item
            duplicate_of[first.place] = item
        else:
            duplicate_of[item.place] = first
    kept = sorted(unique.values(), key=lambda item: item.place)
    return Sieved(kept, dropped, _resolved(duplicate_of))


def _objection(
    item: Item, min_relevance: float, file_patterns: Sequence[str] | None, languages: set[str]
) -> Reason | None:
    if item.relevance < min_relevance:
        return Reason.BELOW_RELEVANCE
    if file_patterns and not matches(item.path, file_patterns):
        return Reason.PATTERN
    if languages:
        language = canonical_language(item.language) if item.language else detect_language(item.path)
        if language not in languages:
            return Reason.LANGUAGE
    if item.kind is ItemKind.CHUNK and not item.text.strip():
        return Reason.EMPTY
    return None


def _resolved(duplicate_of: dict[int, Item]) -> dict[int, Item]:
    """Each duplicate pointing at the item that stayed, not at another duplicate."""
    resolved = {}
    for index, other in duplicate_of.items():
        target = other
        while target.place in duplicate_of:
            target = duplicate_of[target.place]
        resolved[index] = target
    return resolved
