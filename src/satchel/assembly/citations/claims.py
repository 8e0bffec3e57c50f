"""Compares each sentence of an answer with the sentences of its sources, by rules and without a model.

A sentence is doubted only for something that it states and its sources do not: a number, a day, a name, an identifier,
a negation or an opposite word, or because the words stand in another source than the cited one. Sentences that share
too few words with their sources cannot be judged in this way: they are `not-checkable`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from satchel.assembly.citations.facts import Fact, FactKind, Facts, facts_of, is_negation, opposites
from satchel.models.context import CitableSource, Claim, Verdict
from satchel.text.boundaries import sentences
from satchel.text.words import STOP_WORDS, stem

_MAX_SENTENCES: Final = 50_000  # of all sources; more are not compared
_MAX_EVIDENCE_CHARS: Final = 300  # a sentence is quoted up to here

# A line break within a paragraph; lines of code are shorter or indented.
_WRAPPED: Final = re.compile(r"^([^\n|#>]{50,}[^\n.!?:;{}|])\n(?=[\w(\"'“‘])", re.MULTILINE)

# Shares of a sentence's words, weighted by rarity, that a sentence of the source has; benchmarks/claims_bench.py.
_SUPPORTS: Final = 0.55
_SAME_SUBJECT: Final = 0.5
_SAME_STATEMENT: Final = 0.7
_CLEARLY_BETTER: Final = 0.25
_OTHER_SOURCE: Final = 0.35
_NEARLY_ALL: Final = 0.85
_UNRELATED: Final = 0.35
_SUBJECT_SENTENCES: Final = 3  # a name in so many sentences of a source is what it is about: others say "it"

_MAX_ALIGNED_WORDS: Final = 200  # aligning takes time with the product of both lengths
_ALIGNED_NEIGHBOURS: Final = 3  # words beside a change that both sentences have
_ALIGNED_AT_AN_END: Final = 5  # of a change at the start or the end of the sentence
_MAX_REPLACED_WORDS: Final = 5
_MAX_NEGATION_WORDS: Final = 2
_NAMING: Final = frozenset({FactKind.NAME, FactKind.MONTH, FactKind.WEEKDAY})
_MAX_COUNTED: Final = 10  # people count up to here what a source lists
_MAX_SHORT_FORM_CHARS: Final = 5
_NO_NAMES: Final = STOP_WORDS | frozenset(
    "his him hers yes well although though however while many several despite since during he she it we both".split()
)


class _Sentence(NamedTuple):
    """A sentence of a source."""

    number: int
    text: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class _Doubt:
    """What a sentence states otherwise than its source."""

    verdict: Verdict
    reason: str
    sentence: _Sentence | None = None


class ClaimChecker:
    """The sources of an answer, prepared for comparing sentences with them."""

    def __init__(self, sources: Iterable[CitableSource]) -> None:
        self._sentences: list[_Sentence] = []
        self._of: dict[int, list[int]] = {}
        self._holding: dict[str, list[int]] = {}
        self._names: dict[int, set[str]] = {}
        for source in sources:
            heading = facts_of(
                f"{source.name} {source.file or ''}".replace("_", " ").replace("/", " ").replace(".", " ")
            )
            self._names.setdefault(source.number, set()).update(heading.stems)
            for text in sentences(_WRAPPED.sub(r"\1 ", source.text)):
                if len(self._sentences) < _MAX_SENTENCES and text.strip():
                    self._add(source.number, text.strip())

    def _add(self, number: int, text: str) -> None:
        at = len(self._sentences)
        sentence = _Sentence(number, text, facts_of(text))
        self._sentences.append(sentence)
        self._of.setdefault(number, []).append(at)
        for word in sentence.facts.stems:
            self._holding.setdefault(word, []).append(at)

    def check(self, text: str, bare: str, position: int, cited: Sequence[int]) -> Claim:
        """Compare a sentence of the answer with the sources that it cites; with all sources if it cites none.

        `bare` is the sentence without its citations.
        """
        numbers = [number for number in cited if number in self._of] or sorted(self._of)
        facts = facts_of(bare)
        comparison = _Comparison(self, facts, numbers)
        doubt = comparison.doubt()
        if doubt is None and comparison.is_supported():
            best = comparison.best
            assert best is not None
            return _claim(text, position, Verdict.SUPPORTED, "", best)
        if doubt is None:
            return Claim(text=text, position=position, verdict=Verdict.NOT_CHECKABLE)
        if doubt.verdict is Verdict.NOT_IN_SOURCES and cited:
            elsewhere = self._elsewhere(facts, numbers)
            if elsewhere is not None:
                reason = f"it is in [{elsewhere.number}], not in what is cited"
                return _claim(text, position, Verdict.NOT_IN_SOURCES, reason, elsewhere)
        return _claim(text, position, doubt.verdict, doubt.reason, doubt.sentence)

    def _elsewhere(self, facts: Facts, cited: Sequence[int]) -> _Sentence | None:
        """The sentence of a source that is not cited and states the same."""
        others = self.others(cited)
        if not others:
            return None
        comparison = _Comparison(self, facts, others)
        return comparison.best if comparison.is_supported() and comparison.doubt() is None else None

    # -- what comparisons look up

    def sentences_of(self, numbers: Iterable[int]) -> list[int]:
        """The places of all sentences of some sources, in order."""
        return [at for number in numbers for at in self._of[number]]

    def at(self, place: int) -> _Sentence:
        """The sentence at a place."""
        return self._sentences[place]

    def beside(self, place: int) -> Iterator[int]:
        """The place and those of the sentences before and after, in the same source."""
        number = self._sentences[place].number
        for near in (place - 1, place, place + 1):
            if 0 <= near < len(self._sentences) and self._sentences[near].number == number:
                yield near

    def names(self, number: int) -> set[str]:
        """The stems in the name and path of a source."""
        return self._names.get(number, set())

    def weight(self, word: str) -> float:
        """How much a stem says: rare words say more."""
        return math.log(1 + len(self._sentences) / (1 + len(self._holding.get(word, ()))))

    def holding(self, word: str) -> Sequence[int]:
        """The places of the sentences with a stem."""
        return self._holding.get(word, ())

    def others(self, numbers: Iterable[int]) -> list[int]:
        """The numbers of all other sources."""
        known = set(numbers)
        return [number for number in self._of if number not in known]


class _Comparison:
    """A sentence of the answer beside the sentences of some sources."""

    def __init__(self, checker: ClaimChecker, facts: Facts, numbers: Sequence[int]) -> None:
        self._checker, self._facts, self._numbers = checker, facts, numbers
        self._places = checker.sentences_of(numbers)
        self._weights = {word: checker.weight(word) for word in facts.stems}
        places = set(self._places)
        self._shared: dict[int, set[str]] = {}
        for word in facts.stems:
            for place in checker.holding(word):
                if place in places:
                    self._shared.setdefault(place, set()).add(word)
        for fact in facts.facts:  # `300 seconds` are the words of `five minutes` too
            for place in self._shared:
                if _states(checker.at(place), fact):
                    self._shared[place] |= fact.stems & facts.stems
        self._near = {place: self._beside(place) for place in self._shared}

    def _beside(self, place: int) -> set[str]:
        """The words of the answer's sentence that a sentence, those beside it and its source's name have."""
        beside = (self._shared.get(near, set()) for near in self._checker.beside(place))
        return set().union(*beside) | (self._checker.names(self._checker.at(place).number) & self._facts.stems)

    def _share(self, stems: set[str], without: frozenset[str] = frozenset()) -> float:
        total = sum(weight for word, weight in self._weights.items() if word not in without)
        found = sum(self._weights[word] for word in stems if word not in without)
        return found / total if total else 1.0

    @property
    def best(self) -> _Sentence | None:
        """The sentence with the most in common."""
        place = self._best(frozenset())
        return None if place is None else self._checker.at(place)

    def _best(self, without: frozenset[str]) -> int | None:
        return max(self._shared, key=lambda place: (self._share(self._shared[place], without), -place), default=None)

    def is_supported(self) -> bool:
        """True if sentences beside each other have most of the words."""
        return self.most_shared() >= _SUPPORTS

    def most_shared(self) -> float:
        """The greatest share of the words that sentences beside each other have."""
        return max(map(self._share, self._near.values()), default=0.0)

    def doubt(self) -> _Doubt | None:
        """The first thing that the sentence states otherwise; None if there is none."""
        if not self._facts.stems:
            return None
        altered = self._doubt_wording()
        if altered is not None:
            return altered
        missing = None
        for fact in self._facts.facts:
            doubt = self._doubt_fact(fact)
            if doubt is not None and doubt.verdict is Verdict.CONTRADICTED:
                return doubt
            missing = missing or doubt
        return missing or self._doubt_direction() or self._doubt_source()

    # -- a sentence of the source with something changed

    def _doubt_wording(self) -> _Doubt | None:
        """A doubt if a sentence of the source says the same in the same words but for a number, a name or a `not`."""
        place = self._best(frozenset())
        if place is None or self._share(self._shared[place]) < _SAME_STATEMENT:
            return None
        sentence = self._checker.at(place)
        reason = _altered(self._facts, sentence.facts)
        return _Doubt(Verdict.CONTRADICTED, reason, sentence) if reason else None

    # -- facts

    def _doubt_fact(self, fact: Fact) -> _Doubt | None:
        holders = [place for place in self._places if _states(self._checker.at(place), fact)]
        best = self._best(fact.stems)
        best_share = self._share(self._shared[best], fact.stems) if best is not None else 0.0
        if not holders:
            if fact.kind is FactKind.NAME and fact.stems <= set().union(*map(self._checker.names, self._numbers)):
                return None
            rival = self._rival(best, fact) if best is not None and best_share >= _SAME_SUBJECT else None
            if rival is not None and best is not None:
                return _contradicts(fact, rival, self._checker.at(best))
            return None if _may_be_missing(fact) else _Doubt(Verdict.NOT_IN_SOURCES, f"{fact.text} is not there")
        if best is None or best_share < _SAME_SUBJECT:
            return None
        sentence = self._checker.at(best)
        if _states(sentence, fact):
            other = _counted_otherwise(sentence.facts.facts, fact)
            return _contradicts(fact, other, sentence) if other else None
        held = max(self._share(self._shared.get(place, set()), fact.stems) for place in holders)
        held_near = max(self._share(self._near.get(place, set()), fact.stems) for place in holders)
        is_other = best_share >= _SAME_STATEMENT and best_share - held >= _CLEARLY_BETTER
        if not is_other and best_share - held_near < _OTHER_SOURCE:
            return None
        if fact.kind is FactKind.NAME and len(holders) >= _SUBJECT_SENTENCES:
            return None
        rival = self._rival(best, fact, is_any=best_share >= _NEARLY_ALL or held_near < _UNRELATED)
        return _contradicts(fact, rival, sentence) if rival else None

    def _rival(self, place: int, fact: Fact, *, is_any: bool = False) -> Fact | None:
        """What the sentence at a place states in place of a fact."""
        for other in self._checker.at(place).facts.facts:
            if other.kind is fact.kind and (is_any or _is_comparable(other, fact)) and not self._is_stated(other):
                return other
        return None

    def _is_stated(self, other: Fact) -> bool:
        return any(_is_same(fact, other) for fact in self._facts.facts) or other.stems <= self._facts.stems

    # -- negations and opposites

    def _doubt_direction(self) -> _Doubt | None:
        agreeing = False
        first: _Doubt | None = None
        best_share = 0.0
        for place, shared in sorted(self._shared.items(), key=lambda item: -self._share(item[1])):
            share = self._share(shared)
            if share < _SUPPORTS or share < best_share - 0.1:
                break
            best_share = max(best_share, share)
            reason = self._turned(self._checker.at(place), is_same=share >= _SAME_STATEMENT)
            if not reason:
                agreeing = True
                break
            first = first or _Doubt(Verdict.CONTRADICTED, reason, self._checker.at(place))
        return None if agreeing else first

    def _turned(self, sentence: _Sentence, *, is_same: bool) -> str:
        """In which direction a sentence says the opposite; empty if in none."""
        ours, theirs = self._facts, sentence.facts
        shared = ours.stems & theirs.stems
        if ours.negates and not theirs.has_negation:
            return "the source does not negate it"
        if theirs.negated & shared and not ours.has_negation:
            return "the source negates it"
        return _opposite(set(map(str.lower, ours.words)), set(map(str.lower, theirs.words))) if is_same else ""

    # -- the cited source

    def _doubt_source(self) -> _Doubt | None:
        """A doubt if another source has clearly more of the words than the cited ones."""
        cited = self.most_shared()
        if cited >= _SAME_STATEMENT:
            return None
        others = self._checker.others(self._numbers)
        if not others:
            return None
        elsewhere = _Comparison(self._checker, self._facts, others)
        share = elsewhere.most_shared()
        if share >= _SAME_STATEMENT and share - cited >= _OTHER_SOURCE:
            return _Doubt(Verdict.NOT_IN_SOURCES, "its words are in no source that it cites")
        return None


def _claim(text: str, position: int, verdict: Verdict, reason: str, sentence: _Sentence | None) -> Claim:
    evidence = " ".join(sentence.text.split())[:_MAX_EVIDENCE_CHARS] if sentence else ""
    return Claim(
        text=text,
        position=position,
        verdict=verdict,
        reason=reason,
        source=sentence.number if sentence else None,
        evidence=evidence,
    )


def _contradicts(fact: Fact, rival: Fact, sentence: _Sentence) -> _Doubt:
    return _Doubt(Verdict.CONTRADICTED, f"{fact.text}: the source says {rival.text}", sentence)


def _altered(our_facts: Facts, their_facts: Facts) -> str:
    """What two wordings of a statement have in place of each other; empty if nothing that matters."""
    ours, theirs = our_facts.words, their_facts.words
    if max(len(ours), len(theirs)) > _MAX_ALIGNED_WORDS:
        return ""
    lower = [[word.lower() for word in words] for words in (ours, theirs)]
    steps = SequenceMatcher(None, lower[0], lower[1], autojunk=False).get_opcodes()
    for at, (kind, start, end, other_start, other_end) in enumerate(steps):
        # Between words that both have.
        if kind == "equal" or (kind != "replace" and not 0 < at < len(steps) - 1):
            continue
        before = steps[at - 1][2] - steps[at - 1][1] if at else 0
        after = steps[at + 1][2] - steps[at + 1][1] if at + 1 < len(steps) else 0
        if before + after < _ALIGNED_NEIGHBOURS:
            continue
        said, instead = ours[start:end], theirs[other_start:other_end]
        if max(len(said), len(instead)) > _MAX_REPLACED_WORDS:
            continue
        is_negated, is_source_negated = (any(map(is_negation, words)) for words in (said, instead))
        # `but not required by law` is a remark that an answer may leave out.
        is_remark = kind != "replace" and len(said) + len(instead) > _MAX_NEGATION_WORDS
        if is_negated != is_source_negated and not is_remark:
            return "the source negates it" if is_source_negated else "the source does not negate it"
        if min(before, after) or max(before, after) >= _ALIGNED_AT_AN_END:
            numbers = [_numbers_in(words) for words in (said, instead)]
            names = [_names_in(said, our_facts, lower[1]), _names_in(instead, their_facts, lower[0])]
            are_other = [all(pair) and not pair[0] & pair[1] for pair in (numbers, names)]
            if any(are_other) and not _is_abbreviated(said, instead):
                return f"{' '.join(said)}: the source says {' '.join(instead)}"
            if reason := _opposite(set(map(str.lower, said)), set(map(str.lower, instead))):
                return reason
    return ""


def _numbers_in(words: Sequence[str]) -> set[float | str]:
    return {fact.value for fact in facts_of(" ".join(words)).facts if fact.kind is FactKind.NUMBER}


def _names_in(words: Sequence[str], facts: Facts, others: Sequence[str]) -> set[str]:
    """The words that belong to names and do not stand anywhere among the other words."""
    named = {stem(word.lower()) for word in facts.words[:1] if word[:1].isupper() and word.lower() not in _NO_NAMES}
    named |= {
        stem(part) for fact in facts.facts if fact.kind in _NAMING for part in re.findall(r"\w+", fact.text.lower())
    }
    return named & {stem(word.lower()) for word in words} - {stem(word) for word in others}


def _is_abbreviated(said: Sequence[str], instead: Sequence[str]) -> bool:
    """True if a word of one wording has the first letters of words of the other: EU, European Union."""
    for short, long in ((said, instead), (instead, said)):
        letters = "".join(word[0] for word in long if word[0].isupper())
        for word in short:
            if word.isupper() and len(word) > 1 and (word in letters or any(_shortens(word, other) for other in long)):
                return True
    return False


def _shortens(short: str, word: str) -> bool:
    """True if the letters of a short form stand in a word in the same order: TN, Tennessee."""
    rest = iter(word.lower())
    return len(short) <= _MAX_SHORT_FORM_CHARS and short[0] == word[0] and all(char in rest for char in short.lower())


def _opposite(ours: set[str], theirs: set[str]) -> str:
    """The word that says the opposite of a word of the source; empty if there is none."""
    for left, right in opposites():
        for said, opposite in ((left, right), (right, left)):
            if ours & said and not ours & opposite and theirs & opposite and not theirs & said:
                return f"{min(ours & said)}: the source says {min(theirs & opposite)}"
    return ""


def _states(sentence: _Sentence, fact: Fact) -> bool:
    """True if a sentence states a fact."""
    if fact.kind is FactKind.NAME:
        has_words = fact.stems <= sentence.facts.stems or _is_short_for(sentence.facts.facts, fact)
        return has_words or _letters(str(fact.value)) in _letters(sentence.text)
    if fact.kind is FactKind.CODE:
        return str(fact.value) in sentence.text.lower()
    if fact.kind is FactKind.NUMBER and fact.value == 1 and "one" in sentence.facts.stems:
        return True
    return any(_is_same(fact, other) for other in sentence.facts.facts)


def _is_same(fact: Fact, other: Fact) -> bool:
    kinds = {fact.kind, other.kind}
    if kinds == {FactKind.NUMBER, FactKind.ORDINAL}:  # June 7th, June 7
        return fact.value == other.value
    if len(kinds) > 1 or fact.kind is not FactKind.NUMBER:
        return len(kinds) == 1 and fact.value == other.value
    if fact.is_measured and other.is_measured and fact.unit != other.unit:
        return False
    room = max(fact.precision, other.precision, 1e-9 * abs(float(fact.value)))
    return abs(float(fact.value) - float(other.value)) <= room


def _is_comparable(other: Fact, fact: Fact) -> bool:
    """True if one value can stand in place of the other: the same kind of quantity, both years or both not."""
    if fact.kind is not FactKind.NUMBER:
        return True
    if fact.is_measured and other.is_measured:
        return fact.unit == other.unit
    return _is_year(fact) == _is_year(other)


def _may_be_missing(fact: Fact) -> bool:
    """True for what an answer may add to its source: a count of what is listed, the place in an order, a short form."""
    if fact.kind is FactKind.NUMBER:
        return fact.text.isalpha() and 0 < float(fact.value) <= _MAX_COUNTED
    is_short = fact.text.isupper() and len(fact.text) <= 3
    return fact.kind is FactKind.ORDINAL or (fact.kind is FactKind.NAME and is_short)


def _is_year(fact: Fact) -> bool:
    return (
        not fact.is_measured
        and float(fact.value).is_integer()
        and 1000 <= float(fact.value) <= 2100
        and "," not in fact.text
    )


def _counted_otherwise(facts: Sequence[Fact], fact: Fact) -> Fact | None:
    """Another number of the same things, where the number itself counts other things."""
    if fact.kind is not FactKind.NUMBER or not fact.unit:
        return None
    same = [other for other in facts if _is_same(fact, other)]
    if any(other.unit in ("", fact.unit) for other in same):
        return None
    return next((other for other in facts if other.kind is FactKind.NUMBER and other.unit == fact.unit), None)


def _is_short_for(facts: Sequence[Fact], fact: Fact) -> bool:
    """True if one name is the other's first letters: WHO for World Health Organization."""
    for other in facts:
        if other.kind is FactKind.NAME and (_initials(other) == fact.value or _initials(fact) == other.value):
            return True
    return False


def _letters(text: str) -> str:
    """The letters and digits alone: COVID-19 and COVID19 are the same name."""
    return "".join(filter(str.isalnum, text.lower()))


def _initials(fact: Fact) -> str:
    words = str(fact.value).split()
    return "".join(word[0] for word in words) if len(words) > 1 else ""
