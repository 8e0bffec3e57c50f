"""Counting tokens: two formulas, exact tokenizers, and cutting text to a number of tokens."""

from satchel.tokens.counter import TokenCounter
from satchel.tokens.method import counter_for_method, estimate_tokens
from satchel.tokens.registry import counter_for, describe_tokenizer

__all__ = ["TokenCounter", "counter_for", "counter_for_method", "describe_tokenizer", "estimate_tokens"]
