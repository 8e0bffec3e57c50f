"""What the text of a passage tells beyond its words.

Words of the question that stand together answer more often than scattered ones; and who asks for a figure looks for it
where there are numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Final, NamedTuple

from satchel.ports.file_index import Candidate
from satchel.retrieval.query import Question
from satchel.text.words import IDENTIFIER, terms_of

_NEAR: Final = 40
"""So many words are about two sentences."""
_BESIDE: Final = 3


class Closeness(NamedTuple):
    """Shares of the question, its rarer words counting more; and how much of a table the passage is."""

    near: float
    """What the best two sentences hold of its words."""
    pairs: float
    """How many of its neighbouring words are neighbours here, too."""
    figures: float
    """The share of the passage's words that are numbers, where the question asks for one."""


def with_closeness(question: Question, passages: Sequence[Candidate], texts: Mapping[int, str]) -> list[Candidate]:
    """The passages with their closeness beside what else speaks for them; without those whose text is gone."""
    kept = [one for one in passages if one.piece in texts]
    close = closeness(question, [texts[one.piece] for one in kept])
    return [one._replace(of_file={**one.of_file, **found._asdict()}) for one, found in zip(kept, close, strict=True)]


class _Said(NamedTuple):
    """Where a passage says a term of the question."""

    place: int
    term: str


def closeness(question: Question, passages: Sequence[str]) -> list[Closeness]:
    """The closeness of each passage; how rare a word is, is counted in these passages."""
    split = [IDENTIFIER.findall(passage) for passage in passages]
    said = _said(question.terms, split)
    held = Counter(term for one in said for term in {place.term for place in one})
    weights = {
        term: weight * math.log(1 + (len(said) + 0.5) / (held[term] + 0.5))
        for term, weight in question.terms.items()
        if held[term]
    }
    pairs = _pairs(question.text, weights)
    figures = map(_figures, split) if question.wants_figures else repeat(0.0)
    return [
        Closeness(_near(one, weights), _beside(one, pairs), share) for one, share in zip(said, figures, strict=False)
    ]


def _said(asked: Mapping[str, float], split: Sequence[Sequence[str]]) -> list[list[_Said]]:
    """Where each passage says the terms, in their order."""
    wanted = frozenset(asked)
    # Most words say nothing that was asked: each is looked at once, however often it stands there.
    telling = {
        word: [term for term in terms_of(word) if term in wanted]
        for word in set().union(*split)
        if not wanted.isdisjoint(terms_of(word))
    }
    return [
        [_Said(place, term) for place, word in enumerate(words) if word in telling for term in telling[word]]
        for words in split
    ]


def _figures(words: Sequence[str]) -> float:
    return sum(word[0].isdigit() for word in words) / max(1, len(words))


def _pairs(text: str, weights: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """The neighbours in the question, and what each pair is worth of all."""
    told = [term for word in IDENTIFIER.findall(text) for term in terms_of(word)[:1] if term in weights]
    worth = {(a, b): weights[a] + weights[b] for a, b in pairwise(told) if a != b}
    total = sum(worth.values())
    return {pair: value / total for pair, value in worth.items()}


def _near(said: Sequence[_Said], weights: Mapping[str, float]) -> float:
    inside: Counter[str] = Counter()
    first = 0
    value = best = 0.0
    for place, term in said:
        if not inside[term]:
            value += weights[term]
        inside[term] += 1
        while said[first].place < place - _NEAR:
            gone = said[first].term
            inside[gone] -= 1
            if not inside[gone]:
                value -= weights[gone]
            first += 1
        best = max(best, value)
    return best / (sum(weights.values()) or 1.0)


def _beside(said: Sequence[_Said], pairs: Mapping[tuple[str, str], float]) -> float:
    return sum(pairs.get(pair, 0.0) for pair in set(_neighbours(said)))


def _neighbours(said: Sequence[_Said]) -> Iterable[tuple[str, str]]:
    for i, (place, term) in enumerate(said):
        for other, after in said[i + 1 : i + 1 + _BESIDE]:
            if other - place <= _BESIDE:
                yield term, after
