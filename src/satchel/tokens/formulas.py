"""The two estimates that need no tokenizer. They are cheap to explain, not cheap to trust: see docs/tokenizers.md."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from typing import Final

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
