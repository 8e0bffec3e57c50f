"""Candidates that were not asked for, and candidates that say what another says, step aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from satchel.models.candidate import Candidate, CandidateKind
from satchel.models.language import canonical_language, detect_language
from satchel.models.ledger import Reason
from satchel.text.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from satchel.models.options import ContextBuildOptions


class Admitted(NamedTuple):
    """The candidates that may be shown, why others may not, and which candidate each merged one says again."""

    candidates: list[Candidate]
    dropped: Mapping[int, Reason]
    merged: Mapping[int, Merged]


class Merged(NamedTuple):
    """Why a candidate stepped aside for another."""

    into: Candidate
    reason: Reason = Reason.DUPLICATE


def admit(candidates: Iterable[Candidate], options: ContextBuildOptions) -> Admitted:
    """Keep what the filters let through, and of equal hits (place, type, name and text) the most relevant."""
    languages = {canonical_language(name) for name in options.languages or ()}
    dropped: dict[int, Reason] = {}
    unique: dict[object, Candidate] = {}
    merged: dict[int, Merged] = {}
    for candidate in candidates:
        reason = _objection(candidate, options.min_relevance, options.file_patterns, languages)
        if reason is not None:
            dropped[candidate.place] = reason
            continue
        key = (
            *(candidate.kind, candidate.path, candidate.first_line, candidate.type, candidate.name),
            *(candidate.text, candidate.summary),
        )
        first = unique.setdefault(key, candidate)
        if candidate.relevance > first.relevance:
            unique[key] = candidate
            merged[first.place] = Merged(candidate)
        elif candidate is not first:
            merged[candidate.place] = Merged(first)
    return Admitted(sorted(unique.values(), key=lambda one: one.place), dropped, merged)


def _objection(
    candidate: Candidate, min_relevance: float, file_patterns: Sequence[str] | None, languages: set[str]
) -> Reason | None:
    if candidate.relevance < min_relevance:
        return Reason.BELOW_RELEVANCE
    if file_patterns and not matches(candidate.path, file_patterns):
        return Reason.PATTERN
    if languages:
        language = canonical_language(candidate.language) if candidate.language else detect_language(candidate.path)
        if language not in languages:
            return Reason.LANGUAGE
    if candidate.kind is CandidateKind.CHUNK and not candidate.text.strip():
        return Reason.EMPTY
    return None
