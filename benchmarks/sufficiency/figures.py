"""Figures of how well sufficiency tells answered questions from others: AUC, calibration, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks.sufficiency.asking import Put

BINS: Final = 10
THRESHOLDS: Final = (0.05, 0.1, 0.2, 0.3, 0.5)


class Judged(NamedTuple):
    """A question put to a collection, and the probability that its context answers."""

    set_name: str
    put: Put
    is_answered: bool
    probability: float
    here: str = ""


def auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The probability that a positive value is above a negative one; None without either."""
    if not positive or not negative:
        return None
    ordered = sorted([(value, 1) for value in positive] + [(value, 0) for value in negative])
    total, i = 0.0, 0
    while i < len(ordered):
        end = i
        while end < len(ordered) and ordered[end][0] == ordered[i][0]:
            end += 1
        rank = (i + 1 + end) / 2
        total += rank * sum(kind for _, kind in ordered[i:end])
        i = end
    n = len(positive)
    return (total - n * (n + 1) / 2) / (n * len(negative))


def calibration_error(judged: Sequence[Judged]) -> float:
    """The expected calibration error over ten bins, with as much weight on answered questions as on the rest."""
    answered = sum(one.is_answered for one in judged)
    if not answered or answered == len(judged):
        return 0.0
    weights = {True: 0.5 / answered, False: 0.5 / (len(judged) - answered)}
    error = 0.0
    for i in range(BINS):
        inside = [one for one in judged if min(BINS - 1, int(one.probability * BINS)) == i]
        gap = sum(weights[one.is_answered] * (one.probability - one.is_answered) for one in inside)
        error += abs(gap)
    return error


def figures_of(judged: Sequence[Judged], best_relevance: Sequence[float] = ()) -> dict[str, Any]:
    """The figures of each set, and of all together on one scale; beside them those of the best relevance."""
    beside = [one._replace(probability=best) for one, best in zip(judged, best_relevance, strict=False)]

    def figures(name: str | None) -> dict[str, Any]:
        own, other = ([one for one in some if name in (None, one.set_name)] for some in (judged, beside))
        return _figures(own) | {"auc_best_relevance": _figures(other)["auc_wrong"]}

    return {"sets": {name: figures(name) for name in _names(judged)}, "all": figures(None)}


def _names(judged: Sequence[Judged]) -> list[str]:
    return list(dict.fromkeys(one.set_name for one in judged))


def _figures(judged: Sequence[Judged]) -> dict[str, Any]:
    def values(put: Put, *, only_answered: bool = False) -> list[float]:
        return [one.probability for one in judged if one.put is put and (one.is_answered or not only_answered)]

    right, answered = values(Put.RIGHT), values(Put.RIGHT, only_answered=True)
    wrong, removed = values(Put.WRONG), values(Put.REMOVED)
    missed = [one.probability for one in judged if one.put is Put.RIGHT and not one.is_answered]
    return {
        "right": len(right),
        "answered": len(answered),
        "wrong": len(wrong),
        "auc_wrong": _rounded(auc(right, wrong)),
        "auc_answered": _rounded(auc(answered, [*wrong, *missed])),
        "auc_removed": _rounded(auc(answered, removed)),
        "calibration_error": _rounded(calibration_error([one for one in judged if one.put is not Put.REMOVED])),
        "refused": {
            f"{least:g}": [_rounded(_below(answered, least)), _rounded(_below(wrong, least))] for least in THRESHOLDS
        },
    }


def _below(values: Sequence[float], least: float) -> float | None:
    return sum(value < least for value in values) / len(values) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
