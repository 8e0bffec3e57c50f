"""Ranks files and pieces by a learned linear model, and calibrates scores to probabilities of relevance."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from heapq import nlargest
from importlib import resources
from itertools import pairwise, repeat
from typing import Final, NamedTuple, TypeAlias

from satchel.models.files import FileKind, kind_of
from satchel.ports.file_index import Candidate
from satchel.retrieval.intents import Intent, holds_answer
from satchel.retrieval.query import ParsedQuestion
from satchel.text.languages import is_in_english, shared_path
from satchel.text.reports import shared_ending
from satchel.text.words import IDENTIFIER, terms_of

_NEAR_WORDS: Final = 40
"""About two sentences: the window of the feature `near` (docs/decisions/0030)."""
_PAIR_WORDS: Final = 3  # neighbours may have two small words in between: "cost of the goods"


class Closeness(NamedTuple):
    """Closeness of a passage to the question: shares of matched words (rare words weigh more) and of numbers."""

    near: float
    """The share of the question's words in the best two sentences."""
    pairs: float
    """The share of the question's neighbouring word pairs that are neighbours in the passage."""
    figures: float
    """The share of numbers among the passage's words, if the question asks for a number."""


def with_closeness(
    question: ParsedQuestion, passages: Sequence[Candidate], texts: Mapping[int, str]
) -> list[Candidate]:
    """The passages with closeness added to their signals; passages without text are left out."""
    passages = [passage for passage in passages if passage.piece in texts]
    close = closeness(question, [texts[passage.piece] for passage in passages])
    return [
        passage._replace(of_file={**passage.of_file, **values._asdict()})
        for passage, values in zip(passages, close, strict=True)
    ]


Occurrence: TypeAlias = tuple[int, str]
"""The position of a word in a passage, and the matching term of the question."""


def closeness(question: ParsedQuestion, passages: Sequence[str]) -> list[Closeness]:
    """The closeness of each passage; the rarity of words is counted within the given passages."""
    split = [IDENTIFIER.findall(passage) for passage in passages]
    occurrences = _occurrences(frozenset(question.terms), split)
    figures = [_figures(words) for words in split] if Intent.FIGURES in question.intents else ()
    return closeness_of(question, occurrences, figures)


def closeness_of(
    question: ParsedQuestion, occurrences: Sequence[Sequence[Occurrence]], figures: Sequence[float] = ()
) -> list[Closeness]:
    """The closeness of passages by the occurrences of the question's terms in each."""
    passages_with = Counter(term for in_passage in occurrences for term in {term for _, term in in_passage})
    weights = {
        term: weight * math.log(1 + (len(occurrences) + 0.5) / (passages_with[term] + 0.5))
        for term, weight in question.terms.items()
        if passages_with[term]
    }
    pairs = _pairs(question.text, weights)
    return [
        Closeness(_near(in_passage, weights), _beside(in_passage, pairs), share)
        for in_passage, share in zip(occurrences, figures or repeat(0.0), strict=False)
    ]


def _occurrences(terms: frozenset[str], split: Sequence[Sequence[str]]) -> list[list[Occurrence]]:
    """The occurrences of the terms in each passage, in order."""
    # Most words match no term: each distinct word is looked up once.
    telling = {
        word: [term for term in terms_of(word) if term in terms]
        for word in set().union(*split)
        if not terms.isdisjoint(terms_of(word))
    }
    return [
        [(place, term) for place, word in enumerate(words) if word in telling for term in telling[word]]
        for words in split
    ]


def _figures(words: Sequence[str]) -> float:
    return sum(word[0].isdigit() for word in words) / max(1, len(words))


def _pairs(text: str, weights: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """The pairs of neighbouring terms in the question, each with its share of the total weight."""
    terms = [term for word in IDENTIFIER.findall(text) for term in terms_of(word)[:1] if term in weights]
    worth = {(a, b): weights[a] + weights[b] for a, b in pairwise(terms) if a != b}
    total = sum(worth.values())
    return {pair: value / total for pair, value in worth.items()}


def _near(occurrences: Sequence[Occurrence], weights: Mapping[str, float]) -> float:
    inside: Counter[str] = Counter()
    first = 0
    value = best = 0.0
    for place, term in occurrences:
        if not inside[term]:
            value += weights[term]
        inside[term] += 1
        while occurrences[first][0] < place - _NEAR_WORDS:
            gone = occurrences[first][1]
            inside[gone] -= 1
            if not inside[gone]:
                value -= weights[gone]
            first += 1
        best = max(best, value)
    return best / (sum(weights.values()) or 1.0)


def _beside(occurrences: Sequence[Occurrence], pairs: Mapping[tuple[str, str], float]) -> float:
    neighbours = {
        (term, after)
        for i, (place, term) in enumerate(occurrences)
        for other, after in occurrences[i + 1 : i + 1 + _PAIR_WORDS]
        if other - place <= _PAIR_WORDS
    }
    return sum(pairs.get(pair, 0.0) for pair in neighbours)


_AS_GIVEN: Final = tuple(
    "file_text file_coverage best_text best_coverage best_name best_name_precision"
    " best_meaning stem folder folder_precision file_name file_name_precision path_words".split()
)
_RELATIVE: Final = {
    "relative_file_text": "file_text",
    "relative_text": "best_text",
    "relative_meaning": "best_meaning",
    "relative_file_coverage": "file_coverage",
    "relative_coverage": "best_coverage",
    "relative_name": "best_name",
    "relative_file_name": "file_name",
    "relative_path_words": "path_words",
    "relative_trace": "trace",
}
_FIRST: Final = {"first_file_text": "file_text", "first_text": "best_text", "first_meaning": "best_meaning"}
_LEADS: Final = {"lead_text": "best_text", "lead_coverage": "best_coverage", "lead_meaning": "best_meaning"}
_WANTED_KINDS: Final = {"test": Intent.TESTS, "example": Intent.EXAMPLES, "config": Intent.CONFIGURATION}
_WHERE_IS_SHARE: Final = 1.5  # how much more documentation stands back when the question asks where something is
_WHAT_CHANGED_RECENT: Final = 5.0  # how much more the last changes say when the question asks what changed
_CHANGE_LOG_WANTED: Final = 2.0  # a change log is the one kind of file in which this is answered


def feature_meanings() -> dict[str, str]:
    """Every feature of a file with what it says, in words; features with the same words are one reason."""
    return tomllib.loads(resources.files("satchel.retrieval").joinpath("features.toml").read_text("utf-8"))


def reasons_of(signals: Mapping[str, float], path: str) -> list[tuple[str, float]]:
    """Why a file is ranked as it is: reasons in words with their contributions, the strongest first."""
    meanings = feature_meanings()
    name, folder = _names_in(path)
    added: dict[str, float] = defaultdict(float)
    for signal, value in signals.items():
        added[meanings.get(signal, signal).replace("{name}", name).replace("{folder}", folder)] += value
    return sorted(added.items(), key=lambda reason: -abs(reason[1]))


def _names_in(path: str) -> tuple[str, str]:
    """The name of a file without its ending, and its folders, as reasons write them."""
    folder, _, file = path.partition(":")[0].rpartition("/")
    name = file.rpartition(".")[0] or file
    return f"*{name}*", f"*{folder}*" if folder else "the uppermost folder"


def file_features(
    question: ParsedQuestion,
    path: str,
    of_file: Mapping[str, float],
    signals: Sequence[Mapping[str, float]],
    *,
    recent: float = 0.0,
) -> dict[str, float]:
    """The features of a file, from the signals of the file and of its candidate pieces."""
    features = {name: of_file[name] for name in _AS_GIVEN}
    features["second_text"] = _second(piece["text"] for piece in signals)
    features["second_meaning"] = _second(piece["meaning"] for piece in signals)
    features["file_name_rarity"] = of_file["file_name_rarity"] / 10
    features["file_name_match"] = of_file["file_name"] * of_file["file_name_precision"]
    for name in ("title", "near", "pairs", "figures"):
        features[name] = of_file.get(name, 0.0)
    features["size"] = of_file["file_size"] / 10
    features["central"] = of_file.get("central", 0.0) / 5
    features["recent"] = recent * (_WHAT_CHANGED_RECENT if Intent.WHAT_CHANGED in question.intents else 1.0)
    defines = max(piece["defines"] for piece in signals)
    features["defines"] = defines * (not question.is_symbol) * (not question.is_long)
    features["defines_symbol"] = defines * question.is_symbol
    features["defines_long"] = defines * question.is_long
    features["path_named"] = float(_is_named(path.lower(), question.paths))
    features["trace"] = _nearness_in_trace(path, question.frames)
    features["module_named"] = float(any(_is_module(path, name) for name in question.names))
    kind = kind_of(path)
    features["depth"] = kind.depth / 10
    _add_wanted(features, kind, question.intents, path)
    features["build"] = float(kind.build)
    for name in ("vendor", "legacy", "declarations", "locale", "unknown"):
        features[name] = float(getattr(kind, name))
    return features


def _add_wanted(features: dict[str, float], kind: FileKind, intents: frozenset[Intent], path: str) -> None:
    """Add the features for kinds of files that the question asks for, or does not ask for."""
    is_config, is_docs = kind.config or kind.build, kind.prose or kind.docs
    kinds = {"test": kind.test, "example": kind.example, "config": is_config}
    for name, is_kind in kinds.items():
        is_wanted = _WANTED_KINDS[name] in intents
        features[name] = float(is_kind and not is_wanted)
        features[f"{name}_wanted"] = float(is_kind and is_wanted)
    wants_docs, is_how_to = Intent.DOCUMENTATION in intents, Intent.HOW_TO in intents
    is_answer = holds_answer(intents, path.lower())
    lowered = _WHERE_IS_SHARE if Intent.WHERE_IS in intents else 1.0
    if wants_docs or is_how_to or is_answer:
        lowered = 0.0
    features["docs"] = kind.docs * lowered
    features["prose"] = kind.prose * lowered
    features["prose_wanted"] = float(is_docs and wants_docs)
    if is_answer and Intent.WHAT_CHANGED in intents:
        features["prose_wanted"] = _CHANGE_LOG_WANTED
    features["how_to"] = float(is_docs and is_how_to and not wants_docs and not is_background(path))


def add_relative(files: Sequence[dict[str, float]]) -> None:
    """Add the features that compare a file with all files: relative value, rank and lead."""
    for relative, name in _RELATIVE.items():
        best = max((features[name] for features in files), default=0.0)
        for features in files:
            features[relative] = features[name] / best if best > 0 else 0.0
    for first, name in _FIRST.items():
        # Files with the same value share a rank: their order in the index says nothing.
        ordered = sorted((features[name] for features in files), reverse=True)
        ranks = {value: rank for rank, value in reversed([*enumerate(ordered)])}
        for features in files:
            features[first] = 1 / (1 + ranks[features[name]])
    for lead, name in _LEADS.items():
        # A low second value predicts a right first file better than the first value itself.
        by_value = sorted(files, key=lambda features, by=name: -features[by])  # type: ignore[misc]
        for place, features in enumerate(by_value):
            second = by_value[1][name] if len(by_value) > 1 else 0.0
            features[lead] = (features[name] - second) / features[name] if not place and features[name] > 0 else 0.0


def _second(values: Iterable[float]) -> float:
    ordered = sorted(values, reverse=True)
    return ordered[1] if len(ordered) > 1 else 0.0


def _is_named(path: str, mentioned: Iterable[str]) -> bool:
    names = [mention.lower() for mention in mentioned]
    return any(path == name or path.endswith(f"/{name}") or name.replace(".", "/") in path for name in names)


def _nearness_in_trace(path: str, frames: Sequence[str]) -> float:
    """1 for the file of the innermost frame, 1/2 for that of the next, …; 0 for a file outside the stack trace."""
    return next((1 / (1 + place) for place, frame in enumerate(frames) if shared_ending(path, frame)), 0.0)


def _is_module(path: str, name: str) -> bool:
    """True if a dotted name points to the file: `django.db.models.query.QuerySet` to django/db/models/query.py."""
    module = name.replace("::", ".").rpartition(".")[0].replace(".", "/")
    return bool(module) and module in path


_FURTHER_PIECE_SHARE: Final = 0.1
"""Relevance of a further piece of a file, as a share of the piece before.

Measured on the development questions (docs/decisions/0017): with 0.5 instead, the share of right files in 1,000 tokens
falls from 0.92 to 0.87.
"""

_FURTHER_PIECE_SHARE_LONG: Final = 0.6
"""The share for a long report: a report is about one place, and the question is where in the file."""

_MIN_SIGNAL: Final = 0.005  # smaller contributions round to 0.00 in `satchel explain`

_MAX_LEAD: Final = 4.0
"""Cap on the lead of the best score: a larger lead makes the best no more certain."""
_LEAD_WITHOUT_SECOND: Final = 2.0
"""Lead of the only candidate: a middle value, since nobody knows how well a second candidate would have scored."""

_PIECE_WEIGHTS: Final = {
    "text": 1.0,
    "coverage": 0.4,
    "name": 0.6,
    "name_precision": 0.2,
    "meaning": 0.8,
    "defines": 1.0,
    "named": 0.1,
}


class Weights(NamedTuple):
    """Learned weights of the features, and the calibration from score to probability."""

    features: Mapping[str, float]
    intercept: float
    slope: float
    gap: float
    lead: float = 0.0
    """The weight of the best score's lead over the second best."""
    meaning: float = 0.0
    """The weight of the best similarity of meaning: questions that nothing here answers resemble nothing here."""


# Relevance of a translation beside its original, as a share: it says the same again.
_TRANSLATION_SAY: Final = 0.1


class Ranked(NamedTuple):
    """A ranked candidate."""

    piece: int
    file: int
    relevance: float
    score: float
    worth: float
    features: Mapping[str, float]
    weights: Weights
    is_passage: bool = False

    def signals(self) -> dict[str, float]:
        """The contribution of each feature to the file's score, and the score of the piece within the file."""
        weight = self.weights.features.get
        added = {name: value * weight(name, 0.0) for name, value in self.features.items() if value}
        added = {name: round(value, 4) for name, value in added.items() if abs(value) >= _MIN_SIGNAL}
        return {**added, "piece": round(self.worth, 4)}


class WeightSet(StrEnum):
    """The training data: questions about code, long reports, meaning alone, blocks and sections of notes, passages."""

    SHORT = "short"
    LONG = "long"
    MEANING = "meaning"
    NOTES = "notes"
    DOCUMENTS = "documents"
    SECTIONS = "sections"


@cache
def learned_weights(kind: WeightSet) -> Weights:
    """The packaged weights, learned by scripts/ranker for each kind of question and text."""
    learned = json.loads(resources.files("satchel.retrieval").joinpath("weights.json").read_bytes())[kind]
    return Weights(learned["features"], **learned["calibration"])


def rank(
    question: ParsedQuestion,
    candidates: Sequence[Candidate],
    paths: Mapping[int, str],
    *,
    recent: Mapping[int, float] | None = None,
    weights: Weights | None = None,
) -> list[Ranked]:
    """The candidates, best first: files by the learned weights, pieces within a file by their own signals."""
    weights = weights or learned_weights(WeightSet.LONG if question.is_long else WeightSet.SHORT)
    by_file: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.file in paths:
            # The subject of a document says little about a passage: each passage is ranked alone (decision 0030).
            by_file[candidate.file, candidate.piece if candidate.is_passage else -1].append(candidate)
    features = {
        place: file_features(
            question,
            paths[place[0]],
            pieces[0].of_file,
            [piece.signals for piece in pieces],
            recent=recent.get(place[0], 0.0) if recent else 0.0,
        )
        for place, pieces in by_file.items()
    }
    add_relative(list(features.values()))
    scores = {place: score_of(values, weights) for place, values in features.items()}
    best = best_of(scores.values(), (values["best_meaning"] for values in features.values()))
    further = _FURTHER_PIECE_SHARE_LONG if question.is_long else _FURTHER_PIECE_SHARE
    ranked = [
        Ranked(
            piece=candidate.piece,
            file=candidate.file,
            relevance=relevance,
            score=scores[place],
            worth=worth,
            features=features[place],
            weights=weights,
            is_passage=candidate.is_passage,
        )
        for place, pieces in by_file.items()
        for candidate, worth, relevance in _pieces(pieces, probability(scores[place], best, weights), further)
    ]
    ranked.sort(key=lambda entry: (-entry.relevance, -entry.score, paths[entry.file], entry.piece))
    return ranked


class BackgroundKind(NamedTuple):
    """A kind of files that mention everything and explain little, and the words that ask for them."""

    path: re.Pattern[str]
    words: frozenset[str]
    say: float
    """The factor for the relevance of such files."""


@cache
def background_kinds() -> tuple[BackgroundKind, ...]:
    """The kinds of files in background.toml."""
    table = tomllib.loads(resources.files("satchel.retrieval").joinpath("background.toml").read_text("utf-8"))
    return tuple(
        BackgroundKind(re.compile(kind["path"]), frozenset(kind["words"].split()), kind["say"])
        for kind in table.values()
    )


def is_background(path: str) -> bool:
    """True for a file of a kind that mentions everything and explains little."""
    return any(kind.path.search(path.lower()) for kind in background_kinds())


def in_the_background(question: ParsedQuestion, ranked: Sequence[Ranked], paths: Mapping[int, str]) -> list[Ranked]:
    """The candidates, with less relevance for pictures, change logs and the like, unless the question asks for them."""
    # A long report mentions much; its title says what it asks for.
    asked = {word.lower() for word in IDENTIFIER.findall(question.title if question.is_long else question.text)}
    kinds = [kind for kind in background_kinds() if asked.isdisjoint(kind.words)]
    says: dict[int, float] = {}
    for file in {entry.file for entry in ranked}:
        path = paths.get(file, "").lower()
        is_named = bool(path) and (_is_named(path, question.paths) or holds_answer(question.intents, path))
        says[file] = 1.0 if is_named else min((kind.say for kind in kinds if kind.path.search(path)), default=1.0)
    return [entry._replace(relevance=entry.relevance * says[entry.file]) for entry in ranked]


def behind_originals(question: ParsedQuestion, ranked: Sequence[Ranked], paths: Mapping[int, str]) -> list[Ranked]:
    """The candidates, with less relevance for the translations of a text that is there in a better language.

    That is the language of the best candidate for a question in another language, and English otherwise.
    """
    best: dict[int, float] = {}
    for entry in ranked:
        best[entry.file] = max(best.get(entry.file, 0.0), entry.relevance)
    groups: dict[str, list[int]] = defaultdict(list)
    for file in best:
        if path := paths.get(file, ""):
            groups[shared_path(path)].append(file)
    says = dict.fromkeys(best, 1.0)
    for files in groups.values():
        if len(files) < 2 or not any(is_in_english(paths[file]) for file in files):
            continue
        original = max(files, key=lambda file: (is_in_english(paths[file]) and not question.language, best[file]))
        for file in files:
            says[file] = _TRANSLATION_SAY
        says[original] = max(best[file] for file in files) / (best[original] or 1.0)
    return [entry._replace(relevance=entry.relevance * says[entry.file]) for entry in ranked]


def beside(passages: list[Ranked], files: Sequence[Ranked]) -> list[Ranked]:
    """The passages with relevance capped by how their text score compares with that of the files.

    The relevance of passages is calibrated among passages only; the text score of the best passage decides whether
    documents answer at all (docs/decisions/0030).
    """
    in_files = max((file.features["best_text"] for file in files), default=0.0)
    in_passages = max((passage.features["best_text"] for passage in passages), default=0.0)
    if in_passages >= in_files:
        return passages
    best = max(file.relevance for file in files) * (in_passages / in_files) ** 2
    share = min(1.0, best / max(passage.relevance for passage in passages))
    return [passage._replace(relevance=passage.relevance * share) for passage in passages]


def _pieces(pieces: Sequence[Candidate], likely: float, further: float) -> Iterator[tuple[Candidate, float, float]]:
    """The pieces of a file, best first, each with its score within the file and its relevance."""
    own = [(sum([weight * piece.signals[name] for name, weight in _PIECE_WEIGHTS.items()]), piece) for piece in pieces]
    own.sort(key=lambda entry: (-entry[0], entry[1].piece))
    top = own[0][0] or 1.0
    for place, (worth, piece) in enumerate(own):
        yield piece, worth, likely * (worth / top) * further**place if place else likely


def score_of(features: Mapping[str, float], weights: Weights) -> float:
    """The weighted sum of the features."""
    value = features.get
    return sum([weight * value(name, 0.0) for name, weight in weights.features.items()])


class BestScore(NamedTuple):
    """The best score of a question, its lead over the second best, and the best similarity of meaning."""

    score: float
    lead: float = 0.0
    meaning: float = 0.0


def best_of(scores: Iterable[float], meanings: Iterable[float] = ()) -> BestScore:
    """The best of the scores, and the best of the similarities of meaning."""
    first, *others = nlargest(2, scores) or [0.0]
    lead = min(first - others[0], _MAX_LEAD) if others else _LEAD_WITHOUT_SECOND
    return BestScore(first, lead, max(meanings, default=0.0))


def probability(score: float, best: BestScore, weights: Weights) -> float:
    """The calibrated probability that a file is relevant, from its score and the best score of the question."""
    exponent = weights.intercept + weights.slope * score + weights.gap * (score - best.score)
    exponent += weights.meaning * best.meaning
    if score == best.score:
        exponent += weights.lead * best.lead
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, exponent))))
