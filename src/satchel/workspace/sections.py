"""Sections of pages: ranked by their text and by the blocks found in them, and shown whole where they fit.

The index holds the blocks of a workspace one by one, each with its access list. Sections are made at question time from
the blocks that the user may read, so that edits, moves and changed access need no second index (decision 0056).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.units import LineWorths, UnitText, best_runs, unit_text
from satchel.models.block import PAGE_TYPES, BlockType
from satchel.retrieval.ranking import WeightSet, closeness, learned_weights, probability, score_of
from satchel.text.statements import LineRun
from satchel.text.words import IDENTIFIER, terms_of
from satchel.workspace.pages import PageText, read_pages

if TYPE_CHECKING:
    from satchel.models.search import Filters, SearchHit
    from satchel.ports.block_tree import Step
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store
    from satchel.retrieval.query import ParsedQuestion

STANDING: Final = PAGE_TYPES | {
    BlockType.HEADING,
    BlockType.SECTION,
    BlockType.DB_ROW,
    BlockType.KANBAN_CARD,
    BlockType.EVENT,
    BlockType.MESSAGE,
    BlockType.DECISION,
}
"""Types of blocks that stand on their own: they have a title, or are complete without one."""

# Sections ranked for a question, those with the best blocks. On 96 questions over notes 90 show two answers more whole
# at 4,000 tokens and three fewer at 1,000, and take a seventh more time.
_MAX_SECTIONS: Final = 60

# A section with all sections inside is one up to this size: about 200 tokens, and a heading of its own costs 30.
_SMALL_SECTION_CHARS: Final = 800

# Of a longer section only the lines around the best found lines are looked at: bounds the time of a question.
_MAX_LINES: Final = 200

# A section is also as relevant as a block in it that is the answer by itself, as a task or a fact: only blocks with a
# relevance near 1 count. On 96 questions over notes this changes nothing (mean reciprocal rank 0.66 and 0.65).
_BLOCK_TRUST: Final = 0.8
_BLOCK_SHARPNESS: Final = 4

_RELATIVE: Final = ("text", "coverage", "title", "near", "found", "meaning")
"""The features that are also compared with the best section."""

_BM25_K1: Final = 1.2  # the usual value: how soon repeating a word stops counting
_BM25_B: Final = 0.6  # as for the pieces of files


class PageSection(NamedTuple):
    """A section with found blocks, or another block that stands on its own."""

    text: PageText
    lines: LineRun
    """The lines of the section without the larger sections inside."""
    trail: tuple[str, ...]
    """The titles of the pages and sections around the section, outermost first, and its own."""
    found: Sequence[SearchHit]
    """The found blocks."""

    @property
    def places(self) -> list[LineRun]:
        """The found lines."""
        return [place for hit in self.found if (place := self.text.place_of(hit))]

    @property
    def near(self) -> LineRun:
        """The lines of the section; of a very long section, those around the best found lines."""
        places = self.places
        if self.lines.last - self.lines.first < _MAX_LINES or not places:
            return self.lines
        return LineRun(
            max(self.lines.first, places[0].first - _MAX_LINES // 2),
            min(self.lines.last, places[0].last + _MAX_LINES // 2),
        )


class RankedSection(NamedTuple):
    """A section with its calibrated relevance, and the contribution of each feature."""

    section: PageSection
    relevance: float
    signals: Mapping[str, float]


def sections_of(
    hits: Sequence[SearchHit], store: Store, filters: Filters, excluded: frozenset[str] = frozenset()
) -> list[PageSection]:
    """The sections around the found blocks, without the excluded blocks."""
    trails = store.trails([hit.block_id for hit in hits], filters)
    found: dict[str, list[SearchHit]] = {}
    for hit in hits:
        if trail := trails.get(hit.block_id):
            found.setdefault(_standing(trail).id, []).append(hit)
    roots = [root for root in found if root not in excluded][:_MAX_SECTIONS]
    steps = {step.id: trail[place:] for trail in trails.values() for place, step in enumerate(trail)}
    return [
        PageSection(
            text=page,
            lines=_own_lines(page),
            trail=tuple(step.title for step in reversed(steps[root]) if step.title),
            found=found[root],
        )
        for root, page in read_pages(roots, store, filters, excluded).items()
        if page.lines
    ]


def _standing(trail: Sequence[Step]) -> Step:
    """The block itself or the nearest block around it that stands on its own."""
    return next((step for step in trail if step.type in STANDING), trail[0])


def _own_lines(page: PageText) -> LineRun:
    source = page.source
    members = source.members(0)
    if not members or source.size(source.spans[0]) <= _SMALL_SECTION_CHARS:
        return LineRun(1, len(source.lines))
    return source.without_blank_ends(LineRun(1, max(1, source.spans[members[0]].first_line - 1)))


def rank_sections(
    question: ParsedQuestion, sections: Sequence[PageSection], embedder: Embedder | None
) -> list[RankedSection]:
    """The sections with their calibrated relevance, best first."""
    weights = learned_weights(WeightSet.SECTIONS)
    ranked = []
    for section, features in zip(sections, features_of(question, sections, embedder), strict=True):
        score = score_of(features, weights)
        certain = _BLOCK_TRUST * features["found"] ** _BLOCK_SHARPNESS
        relevance = 1 - (1 - probability(score, score, weights)) * (1 - certain)
        if len(section.text.lines) == 1:
            relevance = min(relevance, features["found"])  # a block alone: its own relevance is calibrated for blocks
        signals = {name: round(value * weights.features.get(name, 0.0), 4) for name, value in features.items() if value}
        ranked.append(RankedSection(section, relevance, signals))
    return sorted(ranked, key=lambda entry: (-entry.relevance, entry.section.text.page.id))


def section_unit(section: PageSection, question: ParsedQuestion, most_chars: int) -> UnitText:
    """The text of a section: whole, or its heading and the best of its complete paragraphs, lists and rows."""
    source = section.text.source
    everything = LineRun(1, len(source.lines))
    if source.chars(section.lines) <= most_chars:
        return unit_text(source, everything, [section.lines])
    worth_of = partial(LineWorths(question.terms).of_run, source, found=section.places)
    runs = best_runs(source, section.near, [LineRun(1, 1)], worth_of, most_chars)
    return unit_text(source, everything, runs)


def features_of(
    question: ParsedQuestion, sections: Sequence[PageSection], embedder: Embedder | None
) -> list[dict[str, float]]:
    """The features of each section for the ranking."""
    titles = [" › ".join(section.trail) for section in sections]
    texts = [
        f"{title}\n{section.text.source.text(section.near)}" for title, section in zip(titles, sections, strict=True)
    ]
    words = [IDENTIFIER.findall(text) for text in texts]
    telling = _telling(question, words)
    counts = [_counts(words_here, telling) for words_here in words]
    weights = _weights(question, counts)
    total = sum(weights.values()) or 1.0
    mean = sum(map(len, words)) / max(1, len(words)) or 1.0
    likeness = _likeness(question, texts, embedder)
    features = [
        {
            "text": _bm25(count, weights, len(words_here) / mean) / total,
            "coverage": sum(weights[term] for term in count) / total,
            "title": sum(weights[term] for term in _counts(IDENTIFIER.findall(title), telling)) / total,
            "near": close.near,
            "pairs": close.pairs,
            "found": max(hit.relevance for hit in section.found),
            "found_all": math.log1p(sum(hit.relevance for hit in section.found)),
            "length": math.log1p(len(words_here)) / 10,
            "meaning": like,
        }
        for section, title, words_here, count, close, like in zip(
            sections, titles, words, counts, closeness(question, texts), likeness, strict=True
        )
    ]
    for name in _RELATIVE:
        best = max((values[name] for values in features), default=0.0) or 1.0
        for values in features:
            values[f"relative_{name}"] = values[name] / best
    return features


def _likeness(question: ParsedQuestion, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    """The similarity of each text to the question; 0 without an embedder."""
    if embedder is None or not texts:
        return [0.0] * len(texts)
    likeness: list[float] = (embedder.embed_texts(texts) @ embedder.embed_query(question.text)).tolist()
    # The last bits of a product depend on the rows beside it: rounded, both stores give the same bytes.
    return [max(0.0, round(like, 4)) for like in likeness]


def _telling(question: ParsedQuestion, words: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """The terms of the question in each distinct word; words without a term are left out."""
    distinct = {word for words_here in words for word in words_here}
    telling = {word: [term for term in terms_of(word) if term in question.terms] for word in distinct}
    return {word: terms for word, terms in telling.items() if terms}


def _counts(words: Sequence[str], telling: Mapping[str, Sequence[str]]) -> Counter[str]:
    return Counter(term for word in words if word in telling for term in telling[word])


def _weights(question: ParsedQuestion, counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """The weights of the question's terms in the sections: rare terms weigh more."""
    containing = Counter(term for count in counts for term in count)
    return {
        term: weight * math.log(1 + (len(counts) + 0.5) / (containing[term] + 0.5))
        for term, weight in question.terms.items()
        if containing[term]
    }


def _bm25(count: Mapping[str, int], weights: Mapping[str, float], relative_length: float) -> float:
    norm = _BM25_K1 * (1 - _BM25_B + _BM25_B * relative_length)
    return sum(weights[term] * n / (n + norm) for term, n in count.items())
