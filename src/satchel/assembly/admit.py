"""Candidates that were not asked for, and candidates that say what another says, step aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from satchel.errors import InvalidHit
from satchel.models.chunk import Candidate, CandidateKind, EntityResult, KnowledgeChunk, Shortened, Trim, categorize
from satchel.models.context import Reason
from satchel.models.files import canonical_language, detect_language
from satchel.text.boundaries import boundary_at_or_before
from satchel.text.patterns import matches
from satchel.text.visible import make_visible, make_visible_line, make_visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from satchel.assembly.render.format import Format
    from satchel.models.options import ContextBuildOptions


UNTITLED = "untitled"


def prepare(hits: Iterable[KnowledgeChunk | EntityResult], *, expand_context: bool) -> list[Candidate]:
    """A candidate for each hit, in the order given, each under an id of its own."""
    taken: dict[str, int] = {}
    candidates = []
    for index, hit in enumerate(hits):
        if isinstance(hit, KnowledgeChunk):
            candidates.append(_from_chunk(index, hit, expand_context, taken))
        elif isinstance(hit, EntityResult):
            candidates.append(_from_entity(index, hit, taken))
        else:
            raise InvalidHit(f"hits[{index}]", hit, f"must be a KnowledgeChunk or an EntityResult{_hint(hit)}")
    return candidates


def _hint(hit: object) -> str:
    """How to turn what was given into a hit, where that is known."""
    if hasattr(hit, "page_content") or (isinstance(hit, tuple) and hit and hasattr(hit[0], "page_content")):
        return "; use from_langchain(documents)"
    if hasattr(hit, "node") or hasattr(hit, "get_content"):
        return "; use from_llamaindex(nodes)"
    return ""


def _from_chunk(index: int, chunk: KnowledgeChunk, expand_context: bool, taken: dict[str, int]) -> Candidate:
    widened = chunk.expanded_context if expand_context else None
    text, shown_in_text = make_visible_lines(chunk.content if widened is None else widened)
    path, shown_in_path = make_visible_line(chunk.file_path)
    name = make_visible_line(chunk.name).text if chunk.name else ""
    language = make_visible_line(chunk.language).text if chunk.language else None
    first, last = chunk.start_line, chunk.end_line
    if widened is not None and first is not None:
        first, last = _widened_lines(chunk, widened)
    return Candidate(
        place=index,
        id=_own_id(chunk.id, taken),
        kind=CandidateKind.CHUNK,
        path=path,
        name=name or path or UNTITLED,
        type=make_visible_line(chunk.type).text if chunk.type else "",
        section=categorize(chunk.type, canonical_language(chunk.language) if chunk.language else detect_language(path)),
        text=text,
        language=language,
        first_line=first,
        last_line=last,
        whole_lines=first is not None and last is not None and line_count(text) == last - first + 1,
        relevance=float(chunk.relevance),
        modified=chunk.last_modified,
        made_visible=shown_in_text + shown_in_path,
        origin=chunk,
        page=chunk.page,
    )


def _from_entity(index: int, hit: EntityResult, taken: dict[str, int]) -> Candidate:
    entity = hit.entity
    text, shown_in_text = make_visible_lines(entity.content or "")
    summary, shown_in_summary = make_visible(entity.summary or "")
    path, shown_in_path = make_visible_line(entity.file_path or "")
    return Candidate(
        place=index,
        id=_own_id(entity.id, taken),
        kind=CandidateKind.ENTITY,
        path=path,
        name=make_visible_line(entity.name).text,
        type=make_visible_line(entity.type).text,
        section=categorize(entity.type),
        text=text,
        summary=summary,
        language=detect_language(path),
        first_line=entity.start_line,
        last_line=entity.start_line,
        relevance=float(hit.score),
        made_visible=shown_in_text + shown_in_summary + shown_in_path,
        origin=hit,
    )


def shorten_entities(candidates: Iterable[Candidate], options: ContextBuildOptions, format: Format) -> Shortened:
    """Entities with only what their format shows, cut to the length that the options give them, with receipts."""
    shortened: list[Candidate] = []
    trims: dict[int, Trim] = {}
    for candidate in candidates:
        is_entity = candidate.kind is CandidateKind.ENTITY
        shorter, trim = _shorten_entity(candidate, options, format) if is_entity else (candidate, None)
        shortened.append(shorter)
        if trim:
            trims[candidate.place] = trim
    return Shortened(shortened, trims)


def _shorten_entity(entity: Candidate, options: ContextBuildOptions, format: Format) -> tuple[Candidate, Trim | None]:
    if (format.has_one_body and entity.summary) or not (format.has_one_body or options.include_code_content):
        entity = entity._replace(text="")
    full = entity.text or (entity.summary if format.has_one_body else "")
    if not format.cuts_entities or len(full) <= options.entity_content_chars:
        return entity, None
    end = boundary_at_or_before(full, options.entity_content_chars)
    trim = Trim(entity.id, full.count("\n", end) + 1, len(full) - end)
    return (entity._replace(text=full[:end]) if entity.text else entity._replace(summary=full[:end])), trim


def _own_id(wanted: str, taken: dict[str, int]) -> str:
    """The id, or the id with a number where another hit had it first."""
    shown = make_visible_line(wanted).text
    own = shown
    while own in taken:
        taken[shown] += 1
        own = f"{shown}~{taken[shown]}"
    taken[own] = 1
    return own


def line_count(text: str) -> int:
    """How many lines the text has; a line end at its end closes the last one."""
    return text.count("\n") + (not text.endswith("\n"))


def _widened_lines(chunk: KnowledgeChunk, widened: str) -> tuple[int, int]:
    """The lines that the widened text really shows, where the match can be found in it line by line."""
    first, last = chunk.start_line, chunk.end_line
    assert first is not None
    assert last is not None
    widened = widened.replace("\r\n", "\n")
    content = chunk.content.replace("\r\n", "\n").removesuffix("\n")
    at = widened.find(content)
    after = at + len(content)
    certain = (
        bool(content)
        and line_count(content) == last - first + 1
        and at >= 0
        and widened.find(content, at + 1) < 0
        and (at == 0 or widened[at - 1] == "\n")
        and (after == len(widened) or widened[after] == "\n")
    )
    before = widened.count("\n", 0, at) if certain else 0
    if not certain or before > first:
        return first, last
    start = first - before
    return start, start + line_count(widened) - 1


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
