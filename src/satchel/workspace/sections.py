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

import numpy as np

from satchel.assembly.units import LineWorths, UnitText, best_runs, unit_text
from satchel.models.block import BlockType
from satchel.retrieval.ranking import BestScore, WeightSet, closeness_of, learned_weights, probability, score_of
from satchel.text.statements import LineRun
from satchel.workspace.page_cache import STANDING, PageCache, PageTree, SectionWords
from satchel.workspace.pages import PageText

if TYPE_CHECKING:
    from satchel.models.search import Filters, SearchHit
    from satchel.ports.block_tree import Step
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store
    from satchel.retrieval.query import ParsedQuestion

# Sections ranked for a question, those with the best blocks. On 96 questions over notes 90 show two answers more whole
# at 4,000 tokens and three fewer at 1,000, and take a seventh more time.
_MAX_SECTIONS: Final = 60

# Pages of which all sections are ranked, also those without a found block: the answer is often beside what was found.
_WHOLE_PAGES: Final = 6

# Sections looked at on such a page: more than a long note has; bounds the time of a question.
_MAX_PAGE_SECTIONS: Final = 80

_INSIDE_PAGES: Final = frozenset({BlockType.HEADING, BlockType.SECTION})
"""Types of sections that are read with their page."""

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
    """A section with found blocks, or beside one, or another block that stands on its own."""

    tree: PageTree
    text: PageText
    lines: LineRun
    """The lines of the section without the larger sections inside."""
    trail: tuple[str, ...]
    """The titles of the pages and sections around the section, outermost first, and its own."""
    found: Sequence[SearchHit]
    """The found blocks, the best first."""

    @property
    def root(self) -> str:
        """The id of the block that the section begins with."""
        return self.text.page.id

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
    hits: Sequence[SearchHit],
    store: Store,
    filters: Filters,
    excluded: frozenset[str] = frozenset(),
    cache: PageCache | None = None,
) -> list[PageSection]:
    """The sections around the found blocks and beside them, without the excluded blocks."""
    trails = store.trails([hit.block_id for hit in hits], filters)
    found: dict[str, list[SearchHit]] = {}
    steps: dict[str, Sequence[Step]] = {}
    for hit in hits:
        if trail := trails.get(hit.block_id):
            standing = _from_standing(trail)
            found.setdefault(standing[0].id, []).append(hit)
            steps[standing[0].id] = standing
    roots = [root for root in found if root not in excluded][:_MAX_SECTIONS]
    trees = _trees_of({root: steps[root] for root in roots}, store, filters, excluded, cache or PageCache())
    by_unit: dict[tuple[str, str], list[SearchHit]] = {}
    for root in roots:
        if root in trees:
            by_unit[trees[root].page.id, root] = found[root]
    by_page = {trees[root].page.id: (trees[root], steps[root]) for root in roots if root in trees}
    for page in _best_pages(by_unit):
        for root in _unit_roots(by_page[page][0]):
            by_unit.setdefault((page, root), [])
    sections = (_section(*by_page[page], root, hits_here) for (page, root), hits_here in by_unit.items())
    return [section for section in sections if section.text.lines and (section.found or _has_own_text(section))]


def _trees_of(
    steps: Mapping[str, Sequence[Step]], store: Store, filters: Filters, excluded: frozenset[str], cache: PageCache
) -> dict[str, PageTree]:
    """For each root the page around it."""
    pages = {root: _page_around(trail) for root, trail in steps.items()}
    trees = cache.trees(list(dict.fromkeys(pages.values())), store, filters)
    # Of a very long page only the beginning is read: what is found beyond is read alone.
    beyond = [root for root, page in pages.items() if page not in trees or root not in trees[page].blocks]
    alone = cache.trees(beyond, store, filters)
    around = {root: alone.get(root) or trees.get(page) for root, page in pages.items()}
    left = {id(tree): tree.without(excluded) for tree in around.values() if tree}
    return {root: left[id(tree)] for root, tree in around.items() if tree is not None and root in left[id(tree)].blocks}


def _from_standing(trail: Sequence[Step]) -> Sequence[Step]:
    """The trail from the nearest block that stands on its own, the found block included."""
    place = next((place for place, step in enumerate(trail) if step.type in STANDING), 0)
    return trail[place:]


def _page_around(trail: Sequence[Step]) -> str:
    """The page, row or card around a heading; another block is read alone."""
    if trail[0].type not in _INSIDE_PAGES:
        return trail[0].id
    return next((step.id for step in trail if step.type in STANDING and step.type not in _INSIDE_PAGES), trail[0].id)


def _unit_root(tree: PageTree, root: str) -> str:
    """The root, or a block around it that is small enough to be one section with all sections inside."""
    unit = root
    above = tree.around(root)
    while above is not None and tree.size(above) <= _SMALL_SECTION_CHARS and above not in tree.excluded:
        unit, above = above, tree.around(above)
    return unit


def _unit_roots(tree: PageTree) -> list[str]:
    return list(dict.fromkeys(_unit_root(tree, root) for root in tree.roots[:_MAX_PAGE_SECTIONS]))


def _best_pages(by_unit: Mapping[tuple[str, str], Sequence[SearchHit]]) -> list[str]:
    """The pages with the most relevant found blocks."""
    relevance: Counter[str] = Counter()
    for (page, _), hits in by_unit.items():
        relevance[page] += sum(hit.relevance for hit in hits)  # type: ignore[assignment]
    return [page for page, _ in relevance.most_common(_WHOLE_PAGES)]


def _section(tree: PageTree, steps: Sequence[Step], root: str, found: Sequence[SearchHit]) -> PageSection:
    text = tree.text(root)
    above = next((place for place, step in enumerate(steps) if step.id == tree.page.id), len(steps) - 1)
    trail = (*(step.title for step in reversed(steps[above + 1 :]) if step.title), *tree.titles(root))
    lines = tree.own_lines.get(root) or tree.own_lines.setdefault(root, _own_lines(text))
    return PageSection(tree=tree, text=text, lines=lines, trail=trail, found=found)


def _own_lines(page: PageText) -> LineRun:
    source = page.source
    members = source.members(0) if source.lines else ()
    if not members or source.size(source.spans[0]) <= _SMALL_SECTION_CHARS:
        return LineRun(1, max(1, len(source.lines)))
    return source.without_blank_ends(LineRun(1, max(1, source.spans[members[0]].first_line - 1)))


def _has_own_text(section: PageSection) -> bool:
    """True if there is text below the heading."""
    return section.lines.last > section.lines.first


def widened(section: PageSection, most_chars: int) -> PageSection:
    """The section with all sections inside, and with those beside it, as far as their parent has `most_chars`."""
    tree, root = section.tree, section.root
    if tree.size(root) > most_chars:
        return section
    above = tree.around(root)
    while above is not None and tree.size(above) <= most_chars and above not in tree.excluded:
        root, above = above, tree.around(above)
    text = tree.text(root)
    trail = section.trail[: len(section.trail) - len(tree.titles(section.root)) + len(tree.titles(root))]
    lines = LineRun(1, max(1, len(text.source.lines)))
    return section._replace(text=text, lines=lines, trail=trail)


def rank_sections(
    question: ParsedQuestion, sections: Sequence[PageSection], embedder: Embedder | None
) -> list[RankedSection]:
    """The sections with their calibrated relevance, best first."""
    weights = learned_weights(WeightSet.SECTIONS)
    ranked = []
    for section, features in zip(sections, features_of(question, sections, embedder), strict=True):
        score = score_of(features, weights)
        certain = _BLOCK_TRUST * features["found"] ** _BLOCK_SHARPNESS
        relevance = 1 - (1 - probability(score, BestScore(score), weights)) * (1 - certain)
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
    words = [_words_of(section) for section in sections]
    places = [
        {term: words_here.places[term] for term in question.terms if term in words_here.places} for words_here in words
    ]
    weights = _weights(question, places)
    total = sum(weights.values()) or 1.0
    mean = sum(words_here.length for words_here in words) / max(1, len(words)) or 1.0
    occurrences = [sorted((place, term) for term in here for place in here[term]) for here in places]
    features = [
        {
            "text": _bm25(here, weights, words_here.length / mean) / total,
            "coverage": sum(weights[term] for term in here) / total,
            "title": sum(weight for term, weight in weights.items() if term in words_here.title_terms) / total,
            "near": close.near,
            "pairs": close.pairs,
            "found": max((hit.relevance for hit in section.found), default=0.0),
            "found_all": math.log1p(sum(hit.relevance for hit in section.found)),
            "length": math.log1p(words_here.length) / 10,
            "meaning": like,
        }
        for section, words_here, here, close, like in zip(
            sections,
            words,
            places,
            closeness_of(question, occurrences),
            _likeness(question, words, embedder),
            strict=True,
        )
    ]
    for name in _RELATIVE:
        best = max((values[name] for values in features), default=0.0) or 1.0
        for values in features:
            values[f"relative_{name}"] = values[name] / best
    return features


def _words_of(section: PageSection) -> SectionWords:
    near, titles = section.near, " › ".join(section.trail)
    key = (section.root, near, titles)
    words = section.tree.words.get(key)
    if words is None:
        words = section.tree.words[key] = SectionWords(titles, section.text.source.text(near))
    return words


def _likeness(question: ParsedQuestion, words: Sequence[SectionWords], embedder: Embedder | None) -> list[float]:
    """The similarity of each section to the question; 0 without an embedder."""
    if embedder is None or not words:
        return [0.0] * len(words)
    missing = [words_here for words_here in words if words_here.vector is None]
    if missing:
        vectors = embedder.embed_texts([words_here.whole for words_here in missing])
        for words_here, vector in zip(missing, vectors, strict=True):
            words_here.vector = vector
    rows = np.stack([words_here.vector for words_here in words if words_here.vector is not None])
    likeness: list[float] = (rows @ embedder.embed_query(question.text)).tolist()
    # The last bits of a product depend on the rows beside it: rounded, both stores give the same bytes.
    return [max(0.0, round(like, 4)) for like in likeness]


def _weights(question: ParsedQuestion, counts: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, float]:
    """The weights of the question's terms in the sections: rare terms weigh more."""
    containing = Counter(term for count in counts for term in count)
    return {
        term: weight * math.log(1 + (len(counts) + 0.5) / (containing[term] + 0.5))
        for term, weight in question.terms.items()
        if containing[term]
    }


def _bm25(places: Mapping[str, Sequence[int]], weights: Mapping[str, float], relative_length: float) -> float:
    norm = _BM25_K1 * (1 - _BM25_B + _BM25_B * relative_length)
    return sum(weights[term] * len(at) / (len(at) + norm) for term, at in places.items())
