"""From the method that the options name to the counter that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.errors import InvalidOption
from satchel.models.options import TokenEstimationMethod
from satchel.tokens.counter import CountingByCalls
from satchel.tokens.formulas import character_based, word_based
from satchel.tokens.registry import counter_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.tokens.counter import TokenCounter


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
