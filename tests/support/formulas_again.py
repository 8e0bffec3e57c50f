"""The two formulas once more, character by character, as slowly and plainly as they can be said."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from math import ceil


def is_white_space(char: str) -> bool:
    return char in "\t\n\v\f\r\x85" or unicodedata.category(char) in ("Zs", "Zl", "Zp")


def by_characters(text: str) -> int:
    special = 0
    for char in text:
        letter_or_digit = unicodedata.category(char)[0] == "L" or unicodedata.category(char) == "Nd"
        if not letter_or_digit and not is_white_space(char):
            special += 1
    return ceil(Fraction(len(text), 4)) + special // 3


def by_words(text: str) -> int:
    count = 0
    for word in "".join(" " if is_white_space(char) else char for char in text).split(" "):
        if not word:
            continue
        count += 1
        if len(word) > 10:
            count += 1
        if any(c.isupper() for c in word) and any(c.islower() for c in word):
            count += 1
    return ceil(Fraction(count) / Fraction(3, 4))
