"""OpenAI's encodings, counted exactly and offline by toktok."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, Protocol

from satchel.text.boundaries import boundary_at_or_before
from satchel.text.visible import show_lone_bytes
from satchel.tokens.counter import CountingByCalls

ENCODINGS: Final = ("o200k_base", "cl100k_base", "o200k_harmony")

# The longest entry of either vocabulary is 128 bytes.
_MAX_BYTES_PER_TOKEN: Final = 128

# Characters counted between two checks of the limit.
_STRIDE_CHARS: Final = 32_768

# Apostrophe + LONG S is a contraction to OpenAI's pattern (case folding makes it 's) and not to toktok's.
_LONG_S: Final = "'\u017f"


# Characters of Unicode 17 known to toktok as letters and marks, but unknown to OpenAI's tables: the two split words
# differently. A stand-in character of equal byte length, unknown to both, is split as OpenAI splits and costs the most
# for its bytes; its first and last byte may merge with neighbours where the real bytes do not. With the lost merges
# added, the count is an upper bound.
_DISPUTED: Final = re.compile(
    "[\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce\ua7cf\ua7d2\ua7d4\ua7f1"
    "\U00010940-\U00010959\U00010ec5-\U00010ec7\U00010efa\U00010efb\U00011b60-\U00011b67\U00011db0-\U00011ddb"
    "\U00011de0-\U00011de9\U00016ea0-\U00016eb8\U00016ebb-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff"
    "\U00018d09-\U00018d1e\U00018d80-\U00018df2\U0001e6c0-\U0001e6de\U0001e6e0-\U0001e6f5\U0001e6fe\U0001e6ff"
    "\U0002b73a-\U0002b73f\U0002cea2-\U0002cead\U000323b0-\U00033479]"
)
_UNKNOWN_OF_THREE_BYTES: Final = "\ufdd0"
_UNKNOWN_OF_FOUR_BYTES: Final = "\U0003ffff"
_LOST_MERGE_TOKENS: Final = 2  # for each stand-in: its first and its last byte may merge with neighbours


# First UTF-8 bytes of the disputed characters, grouped by the first byte. Searching a single byte is sixty times faster
# than searching two or three, and most text has none of these four.
_LEADS: Final = [
    bytes.fromhex(lead)
    for lead in (
        "e0a28f e0b19c e0b39c e1ab ea9f f090a5 f090bb f091ad f091b6 f091b7 f096ba f096bb f096bf f0989f f098b4 f098b6"
        " f098b7 f09e9b f0ab9c f0acba f0b2 f0b3"
    ).split()
]
_DISPUTED_LEADS: Final = {lead[:1]: tuple(other for other in _LEADS if other[:1] == lead[:1]) for lead in _LEADS}


def _may_be_disputed(data: bytes) -> bool:
    return any(first in data and any(lead in data for lead in leads) for first, leads in _DISPUTED_LEADS.items())


def _stand_in(disputed: re.Match[str]) -> str:
    return _UNKNOWN_OF_THREE_BYTES if disputed[0] < "\U00010000" else _UNKNOWN_OF_FOUR_BYTES


def _as_counted(text: str) -> tuple[str, int]:
    """The text to pass to toktok in place of `text`, and the tokens to add to toktok's count.

    Each character is replaced independently of its neighbours; counts still add up at a certain border.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = show_lone_bytes(text).text
        data = text.encode()
    if not _may_be_disputed(data):
        return text, 0
    text, disputed = _DISPUTED.subn(_stand_in, text)
    return text, disputed * _LOST_MERGE_TOKENS


def _is_counted_by_toktok_alone(text: str) -> bool:
    """True if toktok alone gives the exact count; toktok can then also truncate the text."""
    return text.isascii() or (_as_counted(text) == (text, 0) and _LONG_S not in text)


# Borders at which the counts of the texts before and after certainly add up to the count of both joined.
_LINE_BORDER: Final = re.compile(r"(?<=\n)(?=[^\S\r\n]*[^\s/])")
_PLAIN_STARTS: Final = frozenset("#`~<{[(-*_=\"'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_LINE_START: Final = re.compile(r"[^\S\r\n]*[^\s/]")


def adds_up(before: str, after: str) -> bool:
    """True if the counts of the two texts add up to the count of both joined."""
    if not before or not after:
        return True
    # Fast path: most parts begin with a heading, a fence, a tag or a letter.
    return before[-1] == "\n" and (after[0] in _PLAIN_STARTS or _LINE_START.match(after) is not None)


def first_border(text: str, start: int) -> int:
    """The first certain border at or after `start`, or the end of the text."""
    border = _LINE_BORDER.search(text, start)
    return border.start() if border else len(text)


def last_border(text: str, end: int) -> int:
    """The last certain border at or before `end`, or the start of the text."""
    newline = text.rfind("\n", 0, end)
    while newline >= 0:
        if _LINE_START.match(text, newline + 1):
            return newline + 1
        newline = text.rfind("\n", 0, newline)
    return 0


def lines_that_add_up(text: str) -> list[str]:
    """The text cut at every certain border."""
    return _LINE_BORDER.split(text)


class CountsAndCuts(Protocol):
    """The required methods of a tokenizer."""

    def count(self, text: str) -> int:
        """Number of tokens in the text."""

    def truncate(self, text: str, limit: int) -> tuple[str, int]:
        """The longest prefix of at most `limit` tokens, and the token count of the whole text."""


def _loaded(encoding: str) -> CountsAndCuts:
    import toktok

    # The documented way to the whole tokenizer; the public `batch_count` costs 40 µs a call more.
    tokenizer: CountsAndCuts = toktok._encoding(encoding)
    return tokenizer


class OpenAICounter(CountingByCalls):
    """Counts tokens with an OpenAI encoding."""

    exact = True
    max_chars_per_token = _MAX_BYTES_PER_TOKEN

    def __init__(self, encoding: str, *, served_by: CountsAndCuts | None = None) -> None:
        self.name = encoding
        self._encoding = served_by or _loaded(encoding)

    def count(self, text: str) -> int:
        """Number of tokens in the text; a lone surrogate counts as the visible mark in its place."""
        if text.isascii():
            return int(self._encoding.count(text))
        text, surcharge = _as_counted(text)
        has_long_s = _LONG_S[1] in text and _LONG_S in text
        count = self._count_with_long_s(text) if has_long_s else int(self._encoding.count(text))
        return count + surcharge

    def count_joined(self, parts: Sequence[str], known: dict[str, int]) -> int:
        """The count of the parts joined: each run between certain borders is counted once and added up."""
        total = 0
        run = ""
        for part in filter(None, parts):
            if run and not adds_up(run, part):
                run += part
                continue
            if run:
                count = known.get(run)
                total += count if count is not None else self._count_and_remember(run, known)
            run = part
        count = known.get(run)
        return total + (count if count is not None else self._count_and_remember(run, known))

    def _count_and_remember(self, text: str, known: dict[str, int]) -> int:
        known[text] = count = self.count(text)
        return count

    def fits(self, text: str, limit: int) -> bool:
        """True if the text has at most `limit` tokens; stops counting beyond the limit."""
        if limit < 0 or len(text) > limit * _MAX_BYTES_PER_TOKEN:
            return False
        used = start = 0
        while start < len(text):
            end = first_border(text, start + _STRIDE_CHARS) if start + _STRIDE_CHARS < len(text) else len(text)
            used += self.count(text[start:end])
            if used > limit:
                return False
            start = end
        return True

    def prefix(self, text: str, limit: int) -> str:
        """A longest prefix of the text within `limit` tokens, cut between graphemes."""
        if limit <= 0:
            return ""
        window = text[: self._reach(text, limit)]
        if not _is_counted_by_toktok_alone(window):
            return super().prefix(text, limit)
        beginning, total = self._encoding.truncate(window, limit)
        if total <= limit and len(window) == len(text) and self.count(text) <= limit:
            return text
        cut = boundary_at_or_before(window, len(beginning))
        # Text before a certain border has a fixed cost: only the rest is counted again.
        base = last_border(window, cut)
        room = limit - self.count(window[:base])
        return window[: base + self._settle_end(window[base:], cut - base, room)]

    def _count_with_long_s(self, text: str) -> int:
        words = _words_pattern(self.name)
        total = 0
        for line in lines_that_add_up(text):
            if _LONG_S in line:
                total += sum(int(self._encoding.count(word)) for word in words.findall(line))
            else:
                total += int(self._encoding.count(line))
        return total

    def suffix(self, text: str, limit: int) -> str:
        """A longest suffix of the text within `limit` tokens, cut between graphemes."""
        start = len(text)
        # Take whole lines from the end while they fit; the binary search then works on a single line.
        tail = 0
        while start > 0:
            border = last_border(text, start - 1)
            cost = self.count(text[border:start])
            if tail + cost > limit:
                break
            tail += cost
            start = border
        if start == 0 or limit <= 0:
            return text[start:] if limit > 0 else ""
        line = text[last_border(text, start - 1) : start]
        piece = super().suffix(line, limit - tail)
        # Only a piece that ends at a certain border adds up with what follows; the border is by construction.
        return piece + text[start:]


@cache
def _words_pattern(encoding: str) -> Any:
    """The encoding's pattern for splitting text into words, for the rare lines split differently by toktok."""
    import regex

    words = tomllib.loads(resources.files("satchel.tokens").joinpath("openai_words.toml").read_text("utf-8"))
    return regex.compile("|".join(words["cl100k" if encoding == "cl100k_base" else "o200k"]))
