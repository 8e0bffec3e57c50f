"""From the method that the options name to the counter that does it."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from satchel.errors import InvalidOption
from satchel.models.options import TokenEstimationMethod
from satchel.tokens.counter import CountingByCalls
from satchel.tokens.registry import counter_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.tokens.counter import TokenCounter


CHARS_PER_TOKEN: Final = 4.0
WORDS_PER_TOKEN: Final = 0.75
SPECIAL_CHARS_PER_TOKEN: Final = 3
LONG_WORD_CHARS: Final = 10

_LETTER_OR_DIGIT: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"})
_ASCII_ORDINARY: Final = bytes(c for c in range(128) if chr(c).isalnum() or c in b"\t\n\x0b\x0c\r ")
# Python calls the four separators U+001C to U+001F white space; Unicode and the specification's language do not.
_NO_SPACES: Final = "\x1c\x1d\x1e\x1f"
_WHITE_SPACE: Final = re.compile(rf"[^\S{_NO_SPACES}]+")


def character_based(text: str) -> int:
    """A token for every four characters, and one more for every three that are neither letter, digit nor space."""
    return math.ceil(len(text) / CHARS_PER_TOKEN) + special_characters(text) // SPECIAL_CHARS_PER_TOKEN


def word_based(text: str) -> int:
    """A token for every 0.75 words; a word over ten characters counts twice, one in mixed case once more."""
    count = 0
    for word in _WHITE_SPACE.split(text):
        if word:
            count += 1 + (len(word) > LONG_WORD_CHARS) + has_mixed_case(word)
    return math.ceil(count / WORDS_PER_TOKEN)


def special_characters(text: str) -> int:
    """How many characters are neither letter, digit nor white space."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_ORDINARY))
    return sum(times for char, times in Counter(text).items() if _is_special(char))


def has_mixed_case(word: str) -> bool:
    """Whether the word has both an upper-case and a lower-case letter."""
    return not (word.islower() or word.isupper()) and any(map(str.isupper, word)) and any(map(str.islower, word))


def _is_special(char: str) -> bool:
    return (not char.isspace() or char in _NO_SPACES) and unicodedata.category(char) not in _LETTER_OR_DIGIT


class FormulaCounter(CountingByCalls):
    """Counts by a formula."""

    exact = False

    def __init__(self, name: str, formula: Callable[[str], int], max_chars_per_token: int | None = None) -> None:
        self.name = name
        self.max_chars_per_token = max_chars_per_token
        self._formula = formula

    def count(self, text: str) -> int:
        """The estimate."""
        return self._formula(text)


_CHARACTERS = FormulaCounter("character_based", character_based, max_chars_per_token=4)
_WORDS = FormulaCounter("word_based", word_based)

DEFAULT_TOKENIZER = "o200k_base"


def counter_for_method(method: TokenEstimationMethod, tokenizer: str | None = None) -> TokenCounter:
    """The counter for a method; `tokenizer` says which one when the method is to count exactly."""
    if method is TokenEstimationMethod.CHARACTER_BASED:
        return _CHARACTERS
    if method is TokenEstimationMethod.WORD_BASED:
        return _WORDS
    return counter_for(tokenizer or DEFAULT_TOKENIZER)


def estimate_tokens(
    text: str,
    method: TokenEstimationMethod = TokenEstimationMethod.CHARACTER_BASED,
    tokenizer: str | None = None,
) -> int:
    """How many tokens the text has, counted by the given method, or by the tokenizer of the given name."""
    if tokenizer is not None and method == TokenEstimationMethod.WORD_BASED:
        raise InvalidOption("tokenizer", tokenizer, "cannot be used while the method is word_based")
    if tokenizer is not None:
        method = TokenEstimationMethod.TOKENIZER
    return counter_for_method(TokenEstimationMethod(method), tokenizer).count(text)
