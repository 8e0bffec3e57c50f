"""Judge contexts and rankings: find the expected items in the pieces.

A file or a page counts if the context shows some text of the file or page; lines count by the share in the context; a
phrase counts if the context has the words in order (for a long phrase: nine tenths of the runs of five words).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from satchel.evaluation.dataset import Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A piece in a context, with the stated source of the piece."""

    text: str
    path: str = ""
    first: int | None = None
    last: int | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedHit(Shown):
    """A search hit, with the probability of being relevant if the tool states a probability."""

    relevance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The context for a question within a budget: tokens and pieces."""

    tokens: int
    pieces: tuple[Shown, ...]
    milliseconds: float = 0.0
    piece_shares: tuple[float, ...] = ()
    """Share of the text's tokens in each piece, the rest is around the pieces; empty if not counted."""


# Scripts that put no spaces between words are taken sign by sign.
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_WORD: Final = re.compile(f"[{_UNSPACED}]|[^\\W{_UNSPACED}]+")
# Shorter runs also match by chance in unrelated text; longer runs miss more around each changed word.
_RUN_WORDS: Final = 5
# Shorter phrases have too few runs for a share: one changed word breaks up to five of them.
_LONG_PHRASE_WORDS: Final = 12

Texts = Callable[[str], str | None]
"""Function from a path to the text of the file; None if the file cannot be read."""


def coverage(expected: Sequence[Expected], pieces: Sequence[Shown], texts: Texts) -> list[float]:
    """Share of each expected item in the pieces of a context, from 0 to 1."""
    words = [Words(piece.text) for piece in pieces] if any(thing.phrases for thing in expected) else []
    return [_share(thing, pieces, words, texts) for thing in expected]


def is_right(piece: Shown, expected: Iterable[Expected]) -> bool:
    """True if a piece is part of, or contains, an expected item."""
    return any(matches(piece, thing) for thing in expected)


def token_share(reply: Reply, expected: Iterable[Expected]) -> float | None:
    """Share of the tokens in pieces of expected files; None if no file is expected, or no piece has a file."""
    paths = {thing.path for thing in expected if thing.path}
    if not paths or not reply.piece_shares or not any(piece.path for piece in reply.pieces):
        return None
    pairs = zip(reply.pieces, reply.piece_shares, strict=True)
    return sum(share for piece, share in pairs if piece.path in paths)


def matches(piece: Shown, thing: Expected) -> bool:
    """True if a piece equals, overlaps or contains an expected item."""
    if thing.phrases:
        return Words(piece.text).hold_one(thing)
    if piece.path != thing.path:
        return False
    if thing.page is not None:
        return piece.page == thing.page
    if thing.first is None or thing.last is None or piece.first is None or piece.last is None:
        return True
    return piece.first <= thing.last and thing.first <= piece.last


class Words:
    """The words of a text, for phrase search."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._flat = f" {' '.join(self._words)} "

    @cached_property
    def _runs(self) -> set[tuple[str, ...]]:
        return runs(self._words)

    def hold_one(self, thing: Expected) -> bool:
        """True if the text contains any of the expected phrases."""
        return any(self.hold(phrase, thing.enough) for phrase in thing.phrases)

    def hold(self, phrase: str, enough: float = 0.9) -> bool:
        """True if the text contains the phrase, ignoring case, spaces and punctuation; long phrases may vary."""
        words = _words(phrase)
        if not words:  # a phrase of signs only
            return False
        if f" {' '.join(words)} " in self._flat:
            return True
        if len(words) < _LONG_PHRASE_WORDS:
            return False
        phrase_runs = runs(words)
        return len(phrase_runs & self._runs) / len(phrase_runs) >= enough


def runs(words: list[str]) -> set[tuple[str, ...]]:
    """All runs of five consecutive words (5-grams)."""
    return {tuple(words[i : i + _RUN_WORDS]) for i in range(len(words) - _RUN_WORDS + 1)}


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _share(thing: Expected, pieces: Sequence[Shown], words: Sequence[Words], texts: Texts) -> float:
    if thing.phrases:
        # In the pieces, not in headings or in the question, which may stand in the text as well.
        return float(any(piece.hold_one(thing) for piece in words))
    pieces = [piece for piece in pieces if piece.text.strip() and matches(piece, thing)]
    if thing.first is None or thing.last is None or not pieces:
        return float(bool(pieces))
    return _share_of_lines(thing.first, thing.last, pieces, texts(thing.path))


def _share_of_lines(first: int, last: int, pieces: Sequence[Shown], text: str | None) -> float:
    """Share of the expected lines in the pieces; compares line numbers if the file cannot be read."""
    if text is None:
        spans = [(max(first, piece.first or first), min(last, piece.last or last)) for piece in pieces]
        return len({line for start, end in spans for line in range(start, end + 1)}) / (last - first + 1)
    lines = [stripped for line in text.split("\n")[first - 1 : last] if (stripped := line.strip())]
    there = {line.strip() for piece in pieces for line in piece.text.split("\n")}
    return sum(line in there for line in lines) / len(lines) if lines else 0.0


# Places of a ranking in nDCG and calibration: nDCG@10 is the usual figure of retrieval benchmarks.
DEPTH: Final = 10
# Usual cut-offs: the first hit, a short list, and all places in `DEPTH`.
RECALLED_AT: Final = (1, 5, 10)
RANK_FIGURES: Final = (f"ndcg@{DEPTH}", *(f"recall@{k}" for k in RECALLED_AT), "mrr")
"""The figures of a ranking."""
BUDGET_FIGURES: Final = ("cover", "complete", "precision", "token_share")
"""The figures of contexts, each followed by `@` and a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankScores:
    """Ranking figures of a question: nDCG, recall and reciprocal rank."""

    ndcg: float
    recall: dict[int, float]
    reciprocal_rank: float


def rank(hits: Sequence[Shown], expected: Sequence[Expected]) -> RankScores:
    """Ranking figures: an expected item counts once, at the first matching hit; recall counts distinct files."""
    places = _first_places([[hit] for hit in hits], expected)
    by_file = _first_places(_by_file(hits), expected)
    return RankScores(
        ndcg=ndcg(places, len(expected)),
        recall={k: sum(place <= k for place in by_file) / len(expected) for k in RECALLED_AT},
        reciprocal_rank=1 / min(places) if places else 0.0,
    )


def ndcg(places: Sequence[int], expected: int) -> float:
    """nDCG: the gain of right hits at these places (from 1), as a share of the ideal gain.

    Expected items in the same hit count as a single item.
    """
    gain = sum(_discount(place) for place in set(places) if place <= DEPTH)
    apart = expected - (len(places) - len(set(places)))
    return gain / sum(_discount(place) for place in range(1, min(DEPTH, apart) + 1))


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


def _first_places(groups: Sequence[Sequence[Shown]], expected: Sequence[Expected]) -> list[int]:
    """Place (from 1) of the first matching group, for each expected item with a match."""
    places: list[int] = []
    for thing in expected:
        matching = (place for place, hits in enumerate(groups, 1) if any(matches(hit, thing) for hit in hits))
        places += islice(matching, 1)
    return places


def _by_file(hits: Sequence[Shown]) -> list[list[Shown]]:
    """Hits grouped by file and page, at the place of the first hit: recall@5 is about five files."""
    together: dict[tuple[str, int | None], list[Shown]] = {}
    for hit in hits:
        together.setdefault((hit.path or hit.text, hit.page), []).append(hit)
    return list(together.values())
