"""Estimates how likely a context answers its question, and says in words why not.

The weights are learned by scripts/ranker/fit_sufficiency.py from questions put to the right and to wrong collections
(docs/decisions/0058): one scale for short questions and long reports, for files, notes and documents.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from satchel.errors import BudgetCannotBeMet
from satchel.models.context import Context, Sufficiency
from satchel.retrieval.question_evidence import (
    WORD_FEATURES,
    Evidence,
    features,
    gather_evidence,
    is_foreign,
    rarity,
    terms_in,
)
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from satchel.models.search import Filters, SearchHit
    from satchel.ports.searched_store import SearchedStore

AnyContext = TypeVar("AnyContext", bound=Context)

NOTICE: Final = "Note: nothing here seems to answer this question."
"""The first line of a context below the sufficiency that the caller asks for; the reasons follow on the same line."""

LOW_SUFFICIENCY: Final = 0.3
"""Below this a context says why it may not answer: 6 % of those that answer and 83 % of the questions put to a wrong
collection are below (docs/sufficiency.md)."""

# The smallest collections that the weights were learned from; in a smaller one a missing word says less, so that the
# estimate stays nearer to one half.
_LEARNED_PIECES: Final = 100

# More words than these tell a reader no more about what is missing.
_MAX_REASON_WORDS: Final = 4

# A word as rare as this is one of the subject: rarer than in one of a hundred pieces of a large workspace.
_RARE_WORD: Final = 0.5

# A longer title is a sentence; the path says where it is.
_MAX_TITLE_CHARS: Final = 80


class SufficiencyWeights(NamedTuple):
    """Learned weights of the features, those added for long reports, and the values of a typical question."""

    intercept: float
    features: Mapping[str, float]
    for_reports: Mapping[str, float]
    typical: Mapping[str, float]

    def probability(self, values: Mapping[str, float], certainty: float = 1.0) -> float:
        """The probability that a context with these features answers; with less certainty, nearer to one half."""
        exponent = self.intercept + sum(weight * values[name] for name, weight in self.features.items())
        if values["long"]:
            exponent += sum(weight * values[name] for name, weight in self.for_reports.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, certainty * exponent))))


@cache
def learned_weights() -> SufficiencyWeights:
    """The packaged weights."""
    return SufficiencyWeights(
        **json.loads(resources.files("satchel.retrieval").joinpath("sufficiency.json").read_bytes())
    )


def judge(
    question: str, context: Context, hits: Sequence[SearchHit], store: SearchedStore, filters: Filters
) -> Sufficiency | None:
    """The sufficiency of a context, with the best hits of its question; None while nothing is indexed."""
    if not store.generation:
        return None
    shown = [f"{source.name}\n{source.path or ''}\n{source.text}" for source in context.sources]
    return estimate(gather_evidence(question, hits, shown, store, filters))


def with_notice(build: Callable[[str], AnyContext], min_sufficiency: float) -> AnyContext:
    """The context made by `build(notice)`: without a notice if it is sufficient, else with the longest that fits."""
    context = build("")
    if not context.sources or not is_below(context, min_sufficiency):
        return context
    assert context.sufficiency is not None
    for notice in (notice_of(context.sufficiency), NOTICE):
        try:
            noted = build(notice)
        except BudgetCannotBeMet:
            continue
        if noted.sources:
            return noted
    return context


def is_below(context: Context, min_sufficiency: float) -> bool:
    """True if the context has an estimate below the sufficiency asked for."""
    return context.sufficiency is not None and context.sufficiency.probability < min_sufficiency


def notice_of(sufficiency: Sufficiency) -> str:
    """One line that says that the context does not seem to answer, and why."""
    if not sufficiency.reasons:
        return NOTICE
    reasons = "; ".join(sufficiency.reasons)
    return f"{NOTICE} {reasons[:1].upper()}{reasons[1:]}."


def estimate(evidence: Evidence) -> Sufficiency:
    """The sufficiency from the evidence; without a hit or a shown piece, 0."""
    if not evidence.hits:
        return Sufficiency(0.0, tuple(_reasons(evidence)))
    if not evidence.shown:
        return Sufficiency(0.0, ("nothing is shown", *_reasons(evidence)))
    certainty = min(1.0, math.log1p(evidence.counts.pieces) / math.log1p(_LEARNED_PIECES))
    weights = learned_weights()
    probability = weights.probability(comparable_features(evidence, weights.typical), certainty)
    return Sufficiency(probability, tuple(_reasons(evidence)) if probability < LOW_SUFFICIENCY else ())


def comparable_features(evidence: Evidence, typical: Mapping[str, float]) -> dict[str, float]:
    """The features; for a question in another language than the texts, words count like those of a typical question."""
    values = features(evidence)
    if is_foreign(evidence):
        values |= {name: typical[name] for name in WORD_FEATURES}
    return values


def _reasons(evidence: Evidence) -> Iterator[str]:
    """Why the context may not answer, the strongest reason first."""
    if not evidence.counts.pieces:
        yield "there is nothing here to search"
        return
    if is_foreign(evidence):
        yield "the question is in another language than these texts, so only its meaning could be compared"
    else:
        yield from _missing_words(evidence)
    if evidence.hits:
        yield f"the closest is {_title(evidence.hits[0])}"
    else:
        yield "nothing was found"


def _missing_words(evidence: Evidence) -> Iterator[str]:
    asked, counts = evidence.asked, evidence.counts
    known = [word for word in asked.words if counts.with_term.get(word.term)]
    unknown = [word.word for word in asked.words if not counts.with_term.get(word.term)]
    whole_names = [
        name
        for name, terms in asked.names.items()
        if not all(counts.with_term.get(term) for term in terms) and name.lower() not in unknown
    ]
    if missing := [*unknown, *whole_names][:_MAX_REASON_WORDS]:
        yield f"nothing here mentions {_listed(missing, 'or')}"
    rare = sorted(known, key=lambda word: (-rarity(word.term, counts) * word.weight, word.term))
    rare = [word for word in rare if rarity(word.term, counts) > _RARE_WORD][:_MAX_REASON_WORDS]
    hit_terms = [terms_in(f"{hit.content}\n{hit.title}\n{hit.path}") for hit in evidence.hits]
    if len(rare) > 1 and not any(found.issuperset(word.term for word in rare) for found in hit_terms):
        yield f"{_listed([word.word for word in rare], 'and')} do not occur together in what was found"


def _listed(words: Sequence[str], last: str) -> str:
    """`*a*, *b* or *c*`."""
    marked = [f"*{make_visible_line(word).text}*" for word in words]
    return f"{', '.join(marked[:-1])} {last} {marked[-1]}" if len(marked) > 1 else marked[0]


def _title(hit: SearchHit) -> str:
    """The name and the place of a hit."""
    name = make_visible_line(hit.title or hit.path or hit.block_id).text
    name = f"{name[:_MAX_TITLE_CHARS]}…" if len(name) > _MAX_TITLE_CHARS else name
    return (
        f"*{name}* in {make_visible_line(hit.path).text}"
        if hit.path and hit.title not in ("", hit.path)
        else f"*{name}*"
    )
