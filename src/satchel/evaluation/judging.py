"""Whether what was expected really stands in what was shown.

A file counts when some of its text is shown, lines by the share of them that is shown, a page when some of its text is
shown, a phrase when its words stand there in their order (of a long one, nine tenths of its runs of five words).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from satchel.evaluation.answers import Answer, Shown
from satchel.evaluation.dataset import Expected

# Scripts that put no spaces between words are taken sign by sign.
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_WORD: Final = re.compile(f"[{_UNSPACED}]|[^\\W{_UNSPACED}]+")
_RUN: Final = 5
_LONG_PHRASE: Final = 12

Texts = Callable[[str], str | None]
"""The text of a file by its path, where it can be had."""


def coverage(expected: Sequence[Expected], answer: Answer, texts: Texts) -> list[float]:
    """For each thing that is expected, how much of it is in the context: from 0 to 1."""
    words = [Words(piece.text) for piece in answer.shown] if any(one.phrases for one in expected) else []
    return [_share(one, answer.shown, words, texts) for one in expected]


def is_right(piece: Shown, expected: Iterable[Expected]) -> bool:
    """Whether a piece is part of what is expected, or holds it."""
    return any(matches(piece, one) for one in expected)


def matches(piece: Shown, one: Expected) -> bool:
    """Whether a piece is, overlaps or holds one thing that is expected."""
    if one.phrases:
        return Words(piece.text).hold_one(one)
    if piece.path != one.path:
        return False
    if one.page is not None:
        return piece.page == one.page
    if one.first is None or one.last is None or piece.first is None or piece.last is None:
        return True
    return piece.first <= one.last and one.first <= piece.last


class Words:
    """The words of a text, to look for phrases in."""

    __slots__ = ("_flat", "_runs", "_words")

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._flat = f" {' '.join(self._words)} "
        self._runs: set[tuple[str, ...]] | None = None

    def hold_one(self, one: Expected) -> bool:
        """Whether one of the phrases that are expected stands here."""
        return any(self.hold(phrase, one.enough) for phrase in one.phrases)

    def hold(self, phrase: str, enough: float = 0.9) -> bool:
        """Whether the phrase stands here, whatever its case, spaces and punctuation; a long one nearly so."""
        words = _words(phrase)
        if not words:  # a phrase of signs only
            return False
        if f" {' '.join(words)} " in self._flat:
            return True
        return len(words) >= _LONG_PHRASE and self._share_of_runs(words) >= enough

    def _share_of_runs(self, words: list[str]) -> float:
        if self._runs is None:
            self._runs = runs(self._words)
        wanted = runs(words)
        return len(wanted & self._runs) / len(wanted)


def runs(words: list[str]) -> set[tuple[str, ...]]:
    """Every five words that follow each other."""
    return {tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _share(one: Expected, shown: Sequence[Shown], words: Sequence[Words], texts: Texts) -> float:
    if one.phrases:
        # In the pieces, not in headings or in the question, which may stand in the text as well.
        return float(any(piece.hold_one(one) for piece in words))
    pieces = [piece for piece in shown if piece.text.strip() and matches(piece, one)]
    if one.first is None or one.last is None or not pieces:
        return float(bool(pieces))
    return _share_of_lines(one.first, one.last, pieces, texts(one.path))


def _share_of_lines(first: int, last: int, pieces: Sequence[Shown], text: str | None) -> float:
    """The share of the lines that stand in the pieces; where the file cannot be had, by the numbers of the lines."""
    if text is None:
        wanted = set(range(first, last + 1))
        had = {
            line
            for piece in pieces
            for line in range(max(first, piece.first or first), min(last, piece.last or last) + 1)
        }
        return len(wanted & had) / len(wanted)
    lines = [line.strip() for line in text.split("\n")[first - 1 : last]]
    wanted_lines = [line for line in lines if line]
    there = {line.strip() for piece in pieces for line in piece.text.split("\n")}
    return sum(line in there for line in wanted_lines) / len(wanted_lines) if wanted_lines else 0.0
