"""Boundaries at which to cut a text: between graphemes, and between sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

_FLAG_HALVES: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))

# Characters that attach to the next one although they are letters (Unicode's Prepend, category Lo).
_PREPENDING: Final = frozenset(
    "\u0d4e\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84\U00011a85"
    "\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02"
)


@cache
def _cluster() -> object:
    import regex

    return regex.compile(r"\X")


def boundary_at_or_before(text: str, position: int) -> int:
    """The last boundary between two graphemes at or before `position`."""
    if position <= 0 or position >= len(text):
        return max(0, min(position, len(text)))
    if _surely_between(text[position - 1], text[position]):
        return position
    if _is_flag_half(text[position - 1]) and _is_flag_half(text[position]):
        # Flags are pairs of letters, counted from the start of a run; rstrip finds the start fast.
        head = text[:position]
        return position - (len(head) - len(head.rstrip(_FLAG_HALVES))) % 2
    start = position - 1
    while start > 0 and not _surely_between(text[start - 1], text[start]):
        start -= 1
    last = start
    for end in _ends(text, start):
        if end > position:
            break
        last = end
    return last


def boundary_at_or_after(text: str, position: int) -> int:
    """The first boundary between two graphemes at or after `position`."""
    before = boundary_at_or_before(text, position)
    if before >= position:
        return before
    return next(_ends(text, before), len(text))


def next_boundary(text: str, position: int) -> int:
    """The end of the grapheme starting at `position`."""
    return next(_ends(text, position), len(text))


def _ends(text: str, start: int) -> Iterator[int]:
    for match in _cluster().finditer(text, start):  # type: ignore[attr-defined]
        yield match.end()


def _surely_between(before: str, after: str) -> bool:
    """True if a boundary certainly lies here; False if only the full Unicode rules can tell."""
    if before.isascii() and after.isascii():
        return before != "\r" or after != "\n"
    if before in _PREPENDING or _is_delicate(before) or _is_delicate(after):
        return False
    if _is_flag_half(before) and _is_flag_half(after):
        return False
    return unicodedata.category(before)[0] not in "MC" and unicodedata.category(after)[0] not in "MC"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_delicate(char: str) -> bool:
    """True for skin tones, Hangul letters and letters that attach to the one before, with special joining rules."""
    return (
        "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\u1100" <= char <= "\u11ff"
        or "\ua960" <= char <= "\ua97f"
        or "\uac00" <= char <= "\ud7ff"
        or char in "\uff9e\uff9f\u0e33\u0eb3"  # voicing marks of Japanese, and the vowel AM of Thai and Lao
    )


_END: Final = re.compile(r"(?<=[.!?…])[\"')\]”’»]*\s+(?=\S)|(?<=[。！？])|\n+")
_MAX_SENTENCE_CHARS: Final = 600
"""A longer sentence is cut at a space."""


def sentences(text: str) -> list[str]:
    """The sentences of a text; `"".join` restores the text."""
    borders = [0, *(end.end() for end in _END.finditer(text)), len(text)]
    return [part for start, end in pairwise(borders) for part in _shortened(text[start:end])]


def _shortened(sentence: str) -> list[str]:
    parts: list[str] = []
    while len(sentence) > _MAX_SENTENCE_CHARS:
        at = (
            sentence.rfind(" ", _MAX_SENTENCE_CHARS // 2, _MAX_SENTENCE_CHARS) + 1
            or boundary_at_or_before(sentence, _MAX_SENTENCE_CHARS)
            or _MAX_SENTENCE_CHARS
        )
        parts.append(sentence[:at])
        sentence = sentence[at:]
    return [*parts, sentence] if sentence else parts
