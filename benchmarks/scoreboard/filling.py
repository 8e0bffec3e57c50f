"""A context from what a tool ranked: the same way for every tool that knows no budget."""

from __future__ import annotations

from collections.abc import Sequence

from satchel.evaluation.answers import Ranked
from satchel.tokens.counter import TokenCounter


def filled(passages: Sequence[Ranked], budget: int, counter: TokenCounter) -> tuple[str, list[Ranked]]:
    """The passages in their order as far as the budget reaches, and those that stand there whole."""
    text, spent = "", 0
    whole: list[Ranked] = []
    for passage in passages:
        block = f"{heading(passage)}{passage.text.rstrip()}\n\n"
        spent += counter.count(block)
        if spent > budget:
            # Only with at least one line of the passage: a heading alone would claim what isn't there.
            longer = cut(text + block, budget, counter)
            shorter = len(longer) <= len(text) + len(heading(passage))
            return (cut(text, budget, counter) if shorter else longer), whole
        text += block
        whole.append(passage)
    # Tokens can fall otherwise across a seam, so the sum of the blocks is near the count of the whole, but not it.
    return cut(text, budget, counter), whole


def heading(passage: Ranked) -> str:
    """Where the passage is from, as far as the tool says."""
    lines = "" if passage.first is None else f":{passage.first}-{passage.last}"
    return f"### {passage.path}{lines}\n"


def cut(text: str, budget: int, counter: TokenCounter) -> str:
    """The text, or as many of its first lines as fit."""
    while not counter.fits(text, budget):
        # One character fewer at least, since a text cut at a line's end can have more tokens than one cut behind it.
        text = counter.prefix(text[:-1], budget)
        end = text.rfind("\n") + 1
        text = text[:end] if end > len(text) // 2 else text
    return text
