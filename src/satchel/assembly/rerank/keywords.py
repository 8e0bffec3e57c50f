"""How many of the query's words a hit holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.text.units import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.candidate import Candidate

_STOP_WORDS: Final = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my"
    " no not of on or our should so than that the their them then there these they this to was we were what when"
    " where which who why will with would you your".split()
)


def keyword_signals(items: Sequence[Candidate], query: str) -> dict[int, float]:
    """For each item, the share of the query's keywords that its text, path or name holds (0..1)."""
    keywords = words(query)
    keywords = (keywords - _STOP_WORDS) or keywords
    if not keywords:
        return {item.place: 0.0 for item in items}
    return {
        item.place: len(keywords & words(f"{item.text}\n{item.summary}\n{item.path}\n{item.name}")) / len(keywords)
        for item in items
    }
