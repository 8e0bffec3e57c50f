"""Turns a retriever's hits into candidates, filters and deduplicates them, and reranks them by the chosen strategy.

Filtered and duplicate hits stay in the ledger with a reason. Every signal that contributed to a score is reported.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from satchel.assembly.pipeline import Admitted, Merged, Ranking, by_relevance
from satchel.errors import InvalidHit, RerankerMissing
from satchel.models.chunk import Candidate, CandidateKind, EntityResult, KnowledgeChunk, categorize
from satchel.models.context import Reason
from satchel.models.files import canonical_language, detect_language
from satchel.models.options import ContextBuildOptions, RerankingStrategy
from satchel.text.patterns import matches
from satchel.text.secrets import redact
from satchel.text.visible import make_visible, make_visible_line, make_visible_lines
from satchel.text.words import distinct_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel.ports.cross_encoder import CrossEncoder


def prepare(hits: Iterable[KnowledgeChunk | EntityResult], *, expand_context: bool) -> list[Candidate]:
    """Return a candidate with a unique id for each hit, in the order of the hits."""
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
    """The adapter that converts the object into hits, where the object's library is known."""
    if hasattr(hit, "page_content") or (isinstance(hit, tuple) and hit and hasattr(hit[0], "page_content")):
        return "; convert LangChain documents with from_langchain(documents)"
    if hasattr(hit, "node") or hasattr(hit, "get_content"):
        return "; convert LlamaIndex nodes with from_llamaindex(nodes)"
    return ""


def _from_chunk(index: int, chunk: KnowledgeChunk, expand_context: bool, taken: dict[str, int]) -> Candidate:
    widened = chunk.expanded_context if expand_context else None
    text, shown_in_text = make_visible_lines(redact(chunk.content if widened is None else widened))
    path, shown_in_path = make_visible_line(redact(chunk.file_path))
    name = make_visible_line(redact(chunk.name)).text if chunk.name else ""
    language = make_visible_line(redact(chunk.language)).text if chunk.language else None
    first, last = chunk.start_line, chunk.end_line
    if widened is not None and first is not None and last is not None:
        first, last = _widened_lines(chunk.content, widened, first, last)
    return Candidate(
        place=index,
        id=_own_id(chunk.id, taken),
        kind=CandidateKind.CHUNK,
        path=path,
        name=name or path or "untitled",
        type=make_visible_line(redact(chunk.type)).text if chunk.type else "",
        section=categorize(chunk.type, canonical_language(chunk.language) if chunk.language else detect_language(path)),
        text=text,
        language=language,
        first_line=first,
        last_line=last,
        whole_lines=first is not None and last is not None and line_count(text) == last - first + 1,
        relevance=float(chunk.relevance),
        score=float(chunk.relevance),
        modified=chunk.last_modified,
        made_visible=shown_in_text + shown_in_path,
        origin=chunk,
        page=chunk.page,
        collector=chunk.metadata.get("satchel.collector", "given"),
        signals=chunk.metadata.get("satchel.signals", {}),
        is_passage=chunk.metadata.get("satchel.passage", False),
        why=make_visible_line(chunk.metadata.get("satchel.why", "")).text,
    )


def _from_entity(index: int, hit: EntityResult, taken: dict[str, int]) -> Candidate:
    entity = hit.entity
    text, shown_in_text = make_visible_lines(redact(entity.content or ""))
    summary, shown_in_summary = make_visible(redact(entity.summary or ""))
    path, shown_in_path = make_visible_line(redact(entity.file_path or ""))
    return Candidate(
        place=index,
        id=_own_id(entity.id, taken),
        kind=CandidateKind.ENTITY,
        path=path,
        name=make_visible_line(redact(entity.name)).text,
        type=make_visible_line(redact(entity.type)).text,
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


def _own_id(given_id: str, taken: dict[str, int]) -> str:
    """The id, made unique by a number where an earlier hit has the same id."""
    visible_id = make_visible_line(redact(given_id)).text
    unique_id = visible_id
    while unique_id in taken:
        taken[visible_id] += 1
        unique_id = f"{visible_id}~{taken[visible_id]}"
    taken[unique_id] = 1
    return unique_id


def line_count(text: str) -> int:
    """The number of lines in the text; a trailing line end does not begin a new line."""
    return text.count("\n") + (not text.endswith("\n"))


def _widened_lines(content: str, widened: str, first: int, last: int) -> tuple[int, int]:
    """The first and last line of the widened text; the given lines where the match is not found whole and only once."""
    widened = widened.replace("\r\n", "\n")
    content = content.replace("\r\n", "\n").removesuffix("\n")
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


_WHAT_IT_SAYS: Final = attrgetter(*"kind path first_line type name text summary".split())


def admit(candidates: Sequence[Candidate], options: ContextBuildOptions) -> Admitted:
    """Drop candidates by the filters, and of equal candidates (place, type, name and text) keep the most relevant."""
    languages = {canonical_language(name) for name in options.languages or ()}
    dropped: dict[int, Reason] = {}
    unique: dict[object, Candidate] = {}
    merged: dict[int, Merged] = {}
    for candidate in candidates:
        reason = _objection(candidate, options, languages)
        if reason is not None:
            dropped[candidate.place] = reason
            continue
        key = _WHAT_IT_SAYS(candidate)
        first = unique.setdefault(key, candidate)
        if candidate.relevance > first.relevance:
            unique[key] = candidate
            merged[first.place] = Merged(candidate)
        elif candidate is not first:
            merged[candidate.place] = Merged(first)
    return Admitted.among(candidates, dropped, merged)


def _objection(candidate: Candidate, options: ContextBuildOptions, languages: set[str]) -> Reason | None:
    if candidate.relevance < options.min_relevance:
        return Reason.BELOW_RELEVANCE
    if options.file_patterns and not matches(candidate.path, options.file_patterns):
        return Reason.PATTERN
    if languages:
        language = canonical_language(candidate.language) if candidate.language else detect_language(candidate.path)
        if language not in languages:
            return Reason.LANGUAGE
    if candidate.kind is CandidateKind.CHUNK and not candidate.text.strip():
        return Reason.EMPTY
    return None


_STOP_WORDS: Final = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my"
    " no not of on or our should so than that the their them then there these they this to was we were what when"
    " where which who why will with would you your".split()
)


def keyword_signals(items: Sequence[Candidate], query: str) -> dict[int, float]:
    """For each item, the share (0..1) of the query's keywords found in the item's text, summary, path or name."""
    keywords = distinct_words(query)
    keywords = (keywords - _STOP_WORDS) or keywords
    texts = ((item.place, f"{item.text}\n{item.summary}\n{item.path}\n{item.name}") for item in items)
    return {place: len(keywords & distinct_words(text)) / len(keywords) if keywords else 0.0 for place, text in texts}


FADES_OVER = timedelta(days=30)  # the recency signal of S4: max(0, 1 - age / 30 days)

# A hit without a date is known to be neither old nor new: the middle of 0..1.
UNDATED = 0.5


def recency_signals(items: Sequence[Candidate], now: datetime | None) -> tuple[dict[int, float], datetime | None]:
    """For each item a recency from 1 (changed at the reference time) to 0 (30 days earlier); and the reference time.

    Without `now`, the newest hit is the reference: the same hits then give the same bytes on any day.
    """
    dates = {item.place: _aware(item.modified) for item in items if item.modified is not None}
    reference = _aware(now) if now is not None else max(dates.values(), default=None)
    signals = dict.fromkeys((item.place for item in items), UNDATED)
    if reference is not None:
        for index, modified in dates.items():
            signals[index] = min(1.0, max(0.0, 1 - (reference - modified) / FADES_OVER))
    return signals, reference


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Carbonell and Goldstein's lambda: relevance weighs more than novelty, so an off-topic hit does not win by
# being different.
RELEVANCE_WEIGHT = 0.7


# Each choice is compared with every hit that is left, so the time grows with the square. The hits that
# fit into a context are among the most relevant few hundred; the rest keep their order behind them.
POOL = 200


def diversity_scores(items: Sequence[Candidate]) -> dict[int, float]:
    """A score for each item by maximal marginal relevance (MMR): scores fall in the order of choice."""
    ranked = sorted(items, key=lambda item: -item.relevance)
    scores = _chosen(ranked[:POOL])
    floor = min(scores.values(), default=1.0)
    for item in ranked[POOL:]:
        scores[item.place] = floor * item.relevance
    return scores


def _chosen(items: Sequence[Candidate]) -> dict[int, float]:
    bags = [distinct_words(item.text or item.summary) for item in items]
    likeness = [0.0] * len(items)
    left = set(range(len(items)))
    scores: dict[int, float] = {}
    ceiling = 1.0
    while left:
        gain, best = max(
            (RELEVANCE_WEIGHT * items[i].relevance - (1 - RELEVANCE_WEIGHT) * likeness[i], -i) for i in left
        )
        best = -best
        left.remove(best)
        # Scores stay in 0..1 and never rise: sorting by score gives the order of choice.
        ceiling = min(ceiling, max(0.0, gain / RELEVANCE_WEIGHT))
        scores[items[best].place] = ceiling
        for i in left:
            likeness[i] = max(likeness[i], _jaccard(bags[i], bags[best]))
    return scores


def _jaccard(words: set[str], others: set[str]) -> float:
    shared = len(words & others)
    return shared / (len(words) + len(others) - shared or 1)


# A hit in which every keyword of the query stands closes this share of its distance to 1. A boost can only
# lift, so hits that the retriever found for other reasons keep their place among themselves.
KEYWORD_BOOST = 0.3

# Recency decides between hits of similar relevance; a larger share would lift irrelevant hits over relevant ones.
RECENCY_SHARE = 0.3


def rerank(
    items: Sequence[Candidate],
    strategy: RerankingStrategy,
    *,
    query: str | None,
    now: datetime | None,
    cross_encoder: CrossEncoder | None,
) -> Ranking:
    """Score the items by the strategy; by relevance where the strategy lacks a query."""
    scores = by_relevance(items).scores
    match strategy:
        case RerankingStrategy.KEYWORD_BOOST if query:
            keyword_shares = keyword_signals(items, query)
            boosted = {i: s + (1 - s) * KEYWORD_BOOST * keyword_shares[i] for i, s in scores.items()}
            return Ranking(boosted, {i: {"keywords": share} for i, share in keyword_shares.items()})
        case RerankingStrategy.DIVERSITY:
            diverse = diversity_scores(items)
            return Ranking(diverse, {i: {"diversity": score} for i, score in diverse.items()})
        case RerankingStrategy.RECENCY:
            fresh, reference = recency_signals(items, now)
            mixed = {i: (1 - RECENCY_SHARE) * s + RECENCY_SHARE * fresh[i] for i, s in scores.items()}
            note = f"recency is measured from {reference.isoformat()}" if reference else "recency: no hit has a date"
            return Ranking(mixed, {i: {"recency": value} for i, value in fresh.items()}, note)
        case RerankingStrategy.CROSS_ENCODER:
            return _by_cross_encoder(items, query, cross_encoder)
    return Ranking(scores)


def _by_cross_encoder(items: Sequence[Candidate], query: str | None, cross_encoder: CrossEncoder | None) -> Ranking:
    if cross_encoder is None:
        raise RerankerMissing(RerankingStrategy.CROSS_ENCODER)
    if not query:
        note = "reranking by a cross-encoder needs a query; the hits are ranked by relevance"
        return by_relevance(items)._replace(note=note)
    judged = cross_encoder.score(query, [item.text or item.summary for item in items])
    new = {item.place: min(1.0, max(0.0, float(s))) for item, s in zip(items, judged, strict=True)}
    return Ranking(new, {i: {"cross_encoder": score} for i, score in new.items()})
