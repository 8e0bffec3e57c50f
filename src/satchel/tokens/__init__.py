"""Counting tokens: two formulas, exact tokenizers, and cutting text to a number of tokens."""

from satchel.tokens.counter import TokenCounter
from satchel.tokens.registry import counter_for, counter_for_method, describe_tokenizer, estimate_tokens

__all__ = ["TokenCounter", "counter_for", "counter_for_method", "describe_tokenizer", "estimate_tokens"]
