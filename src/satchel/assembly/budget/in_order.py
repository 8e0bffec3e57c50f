"""Takes hits in a given order while they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def take_in_order(costs: Sequence[int], capacity: int, limit: int, *, stop: bool) -> list[int]:
    """The positions taken; one that does not fit is skipped, or ends it when `stop` is set."""
    taken: list[int] = []
    for i, cost in enumerate(costs):
        if len(taken) >= limit:
            break
        if cost <= capacity:
            taken.append(i)
            capacity -= cost
        elif stop:
            break
    return taken
