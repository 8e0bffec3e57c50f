"""The least that figures must reach, for continuous integration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from satchel.errors import InvalidOption
from satchel.evaluation.ranking import DEPTH, RECALLED_AT
from satchel.evaluation.rows import Evaluation


def thresholds_from(given: Iterable[str], budgets: Sequence[int]) -> dict[str, float]:
    """The least value by figure; a number alone is for the coverage at the largest budget."""
    known = [f"{name}@{budget}" for name in ("cover", "complete", "precision") for budget in budgets]
    known += [f"ndcg@{DEPTH}", *(f"recall@{k}" for k in RECALLED_AT), "mrr"]
    found = {}
    for one in given:
        name, sign, value = one.rpartition("=")
        name = name.strip() if sign else f"cover@{budgets[-1]}"
        if name not in known:
            raise InvalidOption("fail_under", one, f"there is no such figure; known are {', '.join(known)}")
        try:
            least = float(value)
        except ValueError:
            least = -1.0
        if not 0 <= least <= 1:
            raise InvalidOption("fail_under", one, "must end in a number from 0 to 1")
        found[name] = least
    return found


def failures(evaluation: Evaluation, thresholds: dict[str, float]) -> list[str]:
    """A line for each figure that is too low, or that could not be had."""
    figures = evaluation.figures()
    lines = []
    for name, least in thresholds.items():
        one = figures.get(name)
        if one is None:
            lines.append(f"{name} could not be measured; at least {least:g} is wanted")
        elif one.mean < least:
            lines.append(f"{name} is {one.mean:.3f}; at least {least:g} is wanted")
    return lines
