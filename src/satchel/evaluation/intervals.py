"""How sure a mean is, and a difference of two: bootstrap over the questions, the same draws each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS: Final = 10_000
_SEED: Final = 20261116
_OUTSIDE_PERCENT: Final = (2.5, 97.5)
_AT_ONCE: Final = 2_000_000
_NOTHING: Final = 1e-6
"""A smaller difference is one of rounding."""
LEAST_QUESTIONS: Final = 5
"""Fewer say nothing of others like them, however much they agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean, and where 95 of 100 samples of as many questions have theirs."""

    mean: float
    low: float
    high: float
    questions: int


def interval(values: Sequence[float]) -> Interval | None:
    """The mean of the values and its interval; None where there are none."""
    if not values:
        return None
    import numpy as np

    means = resampled_means(np.asarray(values, dtype=np.float64))
    low, high = np.percentile(means, _OUTSIDE_PERCENT)
    return Interval(mean=float(np.mean(values)), low=float(low), high=float(high), questions=len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """By how much the second is better than the first on the same questions."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    better: int
    worse: int
    questions: int

    @property
    def verdict(self) -> str:
        """`better` or `worse` when the interval leaves out zero."""
        if self.questions < LEAST_QUESTIONS:
            return "too few questions"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no clear difference"


def difference(before: Sequence[float], after: Sequence[float]) -> Difference | None:
    """The paired difference of two lists of values, question by question; None where there are none."""
    if len(before) != len(after):
        raise ValueError(f"{len(before)} values cannot be paired with {len(after)}")
    if not before:
        return None
    import numpy as np

    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    apart = second - first
    apart[np.abs(apart) < _NOTHING] = 0.0
    low, high = np.percentile(resampled_means(apart), _OUTSIDE_PERCENT)
    return Difference(
        before=float(first.mean()),
        after=float(second.mean()),
        difference=float(apart.mean()),
        low=float(low),
        high=float(high),
        better=int((apart > 0).sum()),
        worse=int((apart < 0).sum()),
        questions=len(before),
    )


def json_fields(record: Interval | Difference) -> dict[str, Any]:
    """The fields as reports hold them: numbers of six decimals, and `n` for the number of questions."""
    rounded = {name: round(value, 6) if isinstance(value, float) else value for name, value in asdict(record).items()}
    return {"n" if name == "questions" else name: value for name, value in rounded.items()}


def resampled_means(values: NDArray[np.float64], draws: int = DRAWS) -> NDArray[np.float64]:
    """The means of samples of the values, as large as they are many."""
    import numpy as np

    chooser = np.random.default_rng(_SEED)
    means = []
    left = draws
    while left > 0:  # in parts, so that many questions don't fill the memory
        rows = max(1, min(left, _AT_ONCE // len(values)))
        means.append(values[chooser.integers(0, len(values), (rows, len(values)))].mean(axis=1))
        left -= rows
    return np.concatenate(means)
