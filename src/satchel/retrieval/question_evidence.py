"""Evidence for whether a context answers its question: words, names, meaning and relevance compared.

All evidence comes from what the caller may read: words of other files count as unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.ports.file_index import WordCounts
from satchel.retrieval.query import understand
from satchel.text.languages import is_written_in
from satchel.text.words import IDENTIFIER, STOP_WORDS, parts_of, stem, terms_of

if TYPE_CHECKING:
    from satchel.models.search import Filters, SearchHit
    from satchel.ports.searched_store import SearchedStore

# Words of a long report that are looked up: the first ones name the subject, later ones are logs and boilerplate.
_MAX_WORDS: Final = 80

# Hits that are compared with the question: the answer is rarely further down, and each costs a tenth of a millisecond.
_COMPARED_HITS: Final = 10

# The rarest known words of a question: whether these occur together tells a question's subject from its wording.
_RAREST_WORDS: Final = 3

# A title names the subject: its words count twice, as in the ranking.
_TITLE_WEIGHT: Final = 2.0
_TITLE_CHARS: Final = 160  # a longer first line is a paragraph


class AskedWord(NamedTuple):
    """A word of the question as written, its search term, and its weight in the question."""

    word: str
    term: str
    weight: float
    is_name: bool
    """True for a word that starts with a capital within a sentence."""


class AskedWords(NamedTuple):
    """The words of a question that tell what it is about, and the identifiers in it."""

    words: tuple[AskedWord, ...]
    names: Mapping[str, tuple[str, ...]]
    """The identifiers as written, each with the terms of its parts."""
    paths: tuple[str, ...]
    is_long: bool
    language: str = ""
    """The language, if it is known and not English."""

    @property
    def terms(self) -> list[str]:
        """All terms to look up."""
        named = [term for terms in self.names.values() for term in terms]
        return list(dict.fromkeys([*(word.term for word in self.words), *named]))


def asked_words(question: str) -> AskedWords:
    """The words, identifiers and paths of a question."""
    parsed = understand(question)
    text = parsed.text.strip()
    head = text.partition("\n")[0][:_TITLE_CHARS]
    weights: Counter[str] = Counter()
    first_seen: dict[str, tuple[str, bool]] = {}
    for match in IDENTIFIER.finditer(text):
        in_head = match.start() < len(head) < len(text)
        is_name = match[0][0].isupper() and not _starts_sentence(text, match.start())
        for part in parts_of(match[0]):
            if part in STOP_WORDS or (len(part) < 2 and part.isascii()):
                continue
            term = stem(part)
            weights[term] += _TITLE_WEIGHT if in_head else 1.0  # type: ignore[assignment]
            first_seen.setdefault(term, (part, is_name))
    words = tuple(
        AskedWord(first_seen[term][0], term, 1 + math.log(max(1.0, weight)), first_seen[term][1])
        for term, weight in weights.most_common(_MAX_WORDS)
    )
    names = {name: _name_terms(name) for name in parsed.names}
    return AskedWords(
        words=words,
        names={name: terms for name, terms in names.items() if terms},
        paths=parsed.paths,
        is_long=parsed.is_long,
        language=parsed.language,
    )


def _starts_sentence(text: str, place: int) -> bool:
    before = text[:place].rstrip(" \t#*_-`\"'([")
    return not before or before[-1] in ".!?:\n"


def _name_terms(name: str) -> tuple[str, ...]:
    """The terms of an identifier: for each component all its parts joined, as the index has them."""
    return tuple(terms_of(component)[-1] for component in IDENTIFIER.findall(name) if parts_of(component))


class Evidence(NamedTuple):
    """What the estimate is made from: the question's words, their counts, the best hits and the shown texts."""

    asked: AskedWords
    counts: WordCounts
    hits: Sequence[SearchHit]
    shown: Sequence[str]
    """The texts of the pieces in the context, each with its name."""


def gather_evidence(
    question: str, hits: Sequence[SearchHit], shown: Sequence[str], store: SearchedStore, filters: Filters
) -> Evidence:
    """The evidence for a question, from the words that the filters' readers may read."""
    asked = asked_words(question)
    return Evidence(asked, store.word_counts(asked.terms, filters), hits[:_COMPARED_HITS], shown)


def rarity(term: str, counts: WordCounts) -> float:
    """The rarity of a term in the readable pieces: 1 for an unknown term, near 0 for a term in every piece."""
    most = math.log(1 + (counts.pieces + 0.5) / 0.5)
    return math.log(1 + (counts.pieces + 0.5) / (counts.with_term.get(term, 0) + 0.5)) / most


def is_foreign(evidence: Evidence) -> bool:
    """True if the question is in another language than the best hits: then its words cannot be compared."""
    language = evidence.asked.language
    return bool(language) and not any(is_written_in(hit.content, language) for hit in evidence.hits)


def terms_in(text: str) -> set[str]:
    """The distinct terms of a text."""
    found: set[str] = set()
    for word in set(IDENTIFIER.findall(text)):
        found.update(terms_of(word))
    return found


WORD_FEATURES: Final = frozenset(
    "known unknown_words cover_first cover_best cover_shown cover_lead title_first rare_together agree_words "
    "cover_by_length rare_known rare_best words_and_meaning names_unknown names_found names_shown "
    "capitals_unknown".split()
)
"""The features that compare words: without meaning for a question in another language than the texts."""


def features(evidence: Evidence) -> dict[str, float]:
    """The features of the estimate, by name."""
    asked, counts = evidence.asked, evidence.counts
    hits = evidence.hits[:_COMPARED_HITS]
    rarities = {word.term: rarity(word.term, counts) for word in asked.words}
    weights = {word.term: word.weight * rarities[word.term] for word in asked.words}
    rare = {term: weight * rarities[term] ** 2 for term, weight in weights.items()}
    known = {term: weight for term, weight in weights.items() if counts.with_term.get(term)}
    hit_terms = [terms_in(f"{hit.content}\n{hit.title}\n{hit.path}") for hit in hits]
    covers = [cover(weights, terms) for terms in hit_terms]
    shown = set().union(*map(terms_in, evidence.shown))
    length = math.log1p(len(weights))
    return {
        **_relevance_features(hits),
        **_meaning_features(hits),
        **_name_features(evidence, hits, hit_terms, shown),
        "known": cover(weights, known.keys()),
        "unknown_words": min(4, len(weights) - len(known)) / 4,
        "cover_first": covers[0] if covers else 0.0,
        "cover_best": max(covers, default=0.0),
        "cover_by_length": max(covers, default=0.0) * length,
        "cover_shown": cover(weights, shown),
        "cover_lead": max(covers, default=0.0) - sum(covers) / max(1, len(covers)),
        "title_first": max((cover(weights, terms_in(f"{h.title} {h.path}")) for h in hits[:3]), default=0.0),
        "rare_together": _together(known, hit_terms),
        "rare_known": cover(rare, known.keys()),
        "rare_best": max((cover(rare, terms) for terms in hit_terms), default=0.0),
        "words_and_meaning": max((c * hit.likeness for c, hit in zip(covers, hits, strict=True)), default=0.0),
        "agree_words": 1 / (1 + covers.index(max(covers))) if covers else 0.0,
        "long": float(asked.is_long),
        "words": length,
        "like_by_length": max((hit.likeness for hit in hits), default=0.0) * length,
    }


def _relevance_features(hits: Sequence[SearchHit]) -> dict[str, float]:
    top = hits[0].relevance if hits else 0.0
    other = next((hit.relevance for hit in hits if _place(hit) != _place(hits[0])), 0.0)
    return {
        "top": top,
        "top_logit": math.log((top + 0.01) / (1.01 - top)),
        "lead": top - other,
        "relevance_sum": min(2.0, sum(hit.relevance for hit in hits)),
        "passage": float(bool(hits) and hits[0].is_passage),
        "block": float(bool(hits) and not hits[0].path),
    }


def _meaning_features(hits: Sequence[SearchHit]) -> dict[str, float]:
    alike = [hit.likeness for hit in hits]
    best = max(alike, default=0.0)
    return {
        "like_top": best,
        "like_first": alike[0] if alike else 0.0,
        "like_best_three": sum(sorted(alike)[-3:]) / 3,
        "like_lead": best - sum(alike) / max(1, len(alike)),
        "agree_meaning": 1 / (1 + alike.index(best)) if alike else 0.0,
    }


def _name_features(
    evidence: Evidence, hits: Sequence[SearchHit], hit_terms: Sequence[set[str]], shown: set[str]
) -> dict[str, float]:
    asked, counts = evidence.asked, evidence.counts
    unknown = [name for name, terms in asked.names.items() if not all(counts.with_term.get(term) for term in terms)]
    in_hits = [name for name, terms in asked.names.items() if any(found.issuperset(terms) for found in hit_terms)]
    in_shown = [name for name, terms in asked.names.items() if shown.issuperset(terms)]
    capitals = [word for word in asked.words if word.is_name]
    foreign = [word for word in capitals if not counts.with_term.get(word.term)]
    paths = [path for path in asked.paths if any(hit.path.endswith(path.rpartition("/")[2]) for hit in hits)]
    return {
        "names": min(4, len(asked.names)) / 4,
        "names_unknown": len(unknown) / len(asked.names) if asked.names else 0.0,
        "names_found": len(in_hits) / len(asked.names) if asked.names else 0.0,
        "names_shown": len(in_shown) / len(asked.names) if asked.names else 0.0,
        "capitals_unknown": len(foreign) / len(capitals) if capitals else 0.0,
        "paths": float(bool(asked.paths)),
        "paths_found": len(paths) / len(asked.paths) if asked.paths else 0.0,
    }


def _place(hit: SearchHit) -> str:
    return hit.path or hit.block_id


def cover(weights: Mapping[str, float], terms: Container[str]) -> float:
    """The share of the weights that these terms cover."""
    return sum([weight for term, weight in weights.items() if term in terms]) / (sum(weights.values()) or 1.0)


def _together(known: Mapping[str, float], hit_terms: Sequence[set[str]]) -> float:
    """The largest share of the rarest known words in one hit."""
    rarest = sorted(known, key=lambda term: (-known[term], term))[:_RAREST_WORDS]
    if not rarest:
        return 0.0
    return max((len(found.intersection(rarest)) / len(rarest) for found in hit_terms), default=0.0)
