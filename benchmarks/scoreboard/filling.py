"""A context from what a tool ranked: the same way for every tool that knows no budget.

Windows that overlap, or touch, become one piece in the place of the better: otherwise tools would pay for lines twice.
That is done where a passage is made of whole lines of its file; where a tool cuts inside of lines, nobody could say
what the joined text is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from satchel.evaluation.judging import RankedHit
from satchel.tokens.counter import TokenCounter

InLines = Callable[[RankedHit], RankedHit | None]


def filled(
    passages: Sequence[RankedHit], budget: int, counter: TokenCounter, in_lines: InLines = lambda _: None
) -> tuple[str, list[RankedHit]]:
    """The passages in their order as far as the budget reaches, and those that stand there whole.

    `in_lines` gives a passage as exactly the lines that it names, if that is what it is.
    """
    pieces: list[RankedHit] = []
    costs: dict[RankedHit, int] = {}
    whole: list[RankedHit] = []
    for passage in passages:
        lines = in_lines(passage)
        joined = [*pieces, passage] if lines is None else _joined(pieces, lines)
        for piece in joined:
            if piece not in costs:
                costs[piece] = counter.count(_written(piece))
        if sum(costs[piece] for piece in joined) > budget:
            return _ended(pieces, passage, budget, counter), whole
        pieces = joined
        whole.append(passage)
    # Tokens can fall otherwise across a seam, so the sum of the pieces is near the count of the whole, but not it.
    return cut("".join(map(_written, pieces)), budget, counter), whole


def _ended(pieces: Sequence[RankedHit], last: RankedHit, budget: int, counter: TokenCounter) -> str:
    """What fits, when the last passage does so only in part."""
    text = "".join(map(_written, pieces))
    longer = cut(text + _written(last), budget, counter)
    # Only with at least one line of the passage: a heading alone would claim what isn't there.
    return longer if len(longer) > len(text) + len(heading(last)) else cut(text, budget, counter)


def _joined(pieces: Sequence[RankedHit], passage: RankedHit) -> list[RankedHit]:
    """The pieces with the passage among them: by itself, or within those that it overlaps or touches."""
    met = [one for one in pieces if _meet(one, passage)]
    if not met:
        return [*pieces, passage]
    lines: dict[int, str] = {}
    for one in (passage, *met):
        lines |= dict(enumerate(one.text.split("\n"), one.first or 0))
    numbers = sorted(lines)
    union = replace(met[0], first=numbers[0], last=numbers[-1], text="\n".join(lines[number] for number in numbers))
    return [union if one is met[0] else one for one in pieces if one is met[0] or one not in met]


def _meet(one: RankedHit, other: RankedHit) -> bool:
    """Whether two passages have lines in common, or one begins where the other ends."""
    if one.path != other.path or None in (one.first, one.last, other.first, other.last):
        return False
    return (one.first or 0) <= (other.last or 0) + 1 and (other.first or 0) <= (one.last or 0) + 1


def _written(passage: RankedHit) -> str:
    return f"{heading(passage)}{passage.text.rstrip()}\n\n"


def heading(passage: RankedHit) -> str:
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
