"""What the page is made of: every outcome as a few numbers with their intervals, small enough to be committed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.scoreboard.outcomes import Outcome
from satchel.evaluation.outcome import Evaluation, compare

OURS: Final = "satchel"
COMPARED: Final = ("cover@1000", "cover@2000", "cover@4000", "cover@8000", "ndcg@10")
SHOWN: Final = (*COMPARED, "complete@4000", "recall@1", "recall@5")


def of_outcome(outcome: Outcome, ours: Outcome | None) -> dict[str, Any]:
    """An outcome's figures, and its differences to ours on the questions that both answered."""
    figures = outcome.questions.figures()
    told: dict[str, Any] = {
        "version": outcome.version,
        "questions": len(outcome.questions.rows),
        "figures": {name: _rounded(figures[name]) for name in SHOWN if name in figures},
        "over": outcome.questions.over,
        "texts": sum(len(row.at) for row in outcome.questions.rows),
        "worst_over": _worst_over(outcome.questions),
        "stands": outcome.stands,
        "cites": outcome.cites,
        "failed": dict(outcome.failed),
    }
    if outcome.claims:
        told["claims"] = claims(outcome.claims)
    if ours is not None and ours is not outcome and outcome.questions.rows:
        found = compare(outcome.questions, ours.questions).differences
        told["ours_better_by"] = {
            name: {"difference": round(one.difference, 4), "low": round(one.low, 4), "high": round(one.high, 4)}
            for name, one in found.items()
            if name in COMPARED
        }
    return told


def _rounded(one: Any) -> list[float]:
    return [round(one.mean, 4), round(one.low, 4), round(one.high, 4)]


def _worst_over(evaluation: Evaluation) -> float:
    """The longest text over its budget, in budgets; 1 where none is over."""
    return round(max((at.tokens / at.budget for row in evaluation.rows for at in row.at), default=1.0), 3)


def claims(pairs: Sequence[tuple[int, int]]) -> dict[str, float]:
    """How far what a tool says its texts cost is from what they cost."""
    errors = [said / real - 1 for said, real in pairs if real]
    if not errors:
        return {}
    return {
        "mean": round(statistics.mean(errors), 4),
        "worst": round(furthest(errors), 4),
        "texts": len(errors),
    }


def behind(sets: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every figure in which a peer's mean is higher than ours on the same questions, largest first."""
    found = [
        {"set": name, "peer": peer, "figure": figure, **apart}
        for name, one in sets.items()
        for peer, told in one["outcomes"].items()
        for figure, apart in told.get("ours_better_by", {}).items()
        if apart["difference"] < 0
    ]
    return sorted(found, key=lambda one: one["difference"])


def best_peer(one: Mapping[str, Any], figure: str) -> tuple[str, list[float]] | None:
    """The peer with the highest mean of a figure, of those that were asked what we were asked."""
    known = [
        (name, told["figures"][figure])
        for name, told in one["outcomes"].items()
        if name != OURS and figure in told["figures"] and told["questions"] == one["outcomes"][OURS]["questions"]
    ]
    return max(known, key=lambda pair: pair[1][0]) if known else None


def moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The figures of quality that lie outside the interval that an earlier run stated for them."""
    lines = []
    for name, one in now.get("sets", {}).items():
        was = before.get("sets", {}).get(name)
        if was is None:
            continue
        for contestant, told in one["outcomes"].items():
            old = was["outcomes"].get(contestant, {}).get("figures", {})
            for figure, (mean, *_) in told["figures"].items():
                if figure in old and not old[figure][1] <= mean <= old[figure][2]:
                    low, high = old[figure][1:]
                    lines.append(f"{name}, {contestant}, {figure}: {mean:.3f}, before {low:.3f} to {high:.3f}")
    return lines


def furthest(errors: Sequence[float]) -> float:
    """The error that is furthest from none."""
    return max(errors) if abs(max(errors)) >= abs(min(errors)) else min(errors)
