"""Uncertainty of figures: bootstrap intervals over the questions (fixed seed), and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Each bin covers a tenth of the relevance scale; more bins would leave few hits in each.
BINS: Final = 10
# Bootstrap samples per interval (docs/evaluation.md): fewer make the bounds noisier, more take longer.
DRAWS: Final = 10_000
LEAST_QUESTIONS: Final = 5
"""Fewer questions allow no conclusion on similar questions, even if all results agree."""
FEW_QUESTIONS: Final = 20
"""With fewer questions, bootstrap intervals are too narrow."""
# Any fixed number: the same answers must give the same interval (decision 0039).
_SEED: Final = 20261116
# Percentiles that bound a 95 % interval.
_OUTSIDE_PERCENT: Final = (2.5, 97.5)
# Values resampled at a time: 16 MB of indices (int64) and 16 MB of values (float64).
_MAX_SAMPLED_VALUES: Final = 2_000_000
_NOTHING: Final = 1e-6
"""Smaller differences are rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Hits of about the same relevance."""

    low: float
    high: float
    hits: int
    stated: float
    """Mean stated relevance of the hits."""
    right: float
    """Share of right hits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Difference between stated relevance and the share of right hits."""

    hits: int
    brier: float
    """Brier score: mean squared difference; 0 is perfect, always stating 0.5 scores 0.25."""
    error: float
    """Expected calibration error (ECE): mean distance of stated and right over the bins, weighted by hits."""
    bins: tuple[Bin, ...]


def calibrate(judged: Sequence[tuple[float, bool]]) -> Calibration | None:
    """Calibration of hits, each given as relevance and whether the hit was right; None without hits."""
    if not judged:
        return None
    judged = [(min(max(relevance, 0.0), 1.0), right) for relevance, right in judged]
    groups: dict[int, list[tuple[float, bool]]] = {}
    for relevance, right in judged:
        groups.setdefault(min(int(relevance * BINS), BINS - 1), []).append((relevance, right))
    bins = tuple(_bin(number, groups[number]) for number in sorted(groups))
    return Calibration(
        hits=len(judged),
        brier=sum((relevance - right) ** 2 for relevance, right in judged) / len(judged),
        error=sum(group.hits * abs(group.stated - group.right) for group in bins) / len(judged),
        bins=bins,
    )


def _bin(number: int, hits: Sequence[tuple[float, bool]]) -> Bin:
    relevance, right = (sum(values) / len(hits) for values in zip(*hits, strict=True))
    return Bin(low=number / BINS, high=(number + 1) / BINS, hits=len(hits), stated=relevance, right=right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with a 95 % bootstrap interval over the questions."""

    mean: float
    low: float
    high: float
    questions: int


def interval(values: Sequence[float]) -> Interval | None:
    """Mean of the values with a bootstrap interval; None without values."""
    if not values:
        return None
    import numpy as np

    means = resampled_means(np.asarray(values, dtype=np.float64))
    low, high = np.percentile(means, _OUTSIDE_PERCENT)
    return Interval(mean=float(np.mean(values)), low=float(low), high=float(high), questions=len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean improvement of the second evaluation over the first on the same questions."""

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
        """`better` or `worse` if the interval excludes zero."""
        if self.questions < LEAST_QUESTIONS:
            return "too few questions"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no clear difference"


def difference(before: Sequence[float], after: Sequence[float]) -> Difference | None:
    """Paired difference of two lists of values, question by question; None without values."""
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


def json_fields(record: Interval | Difference | Calibration) -> dict[str, Any]:
    """Fields for JSON reports: numbers rounded to six decimals, and `n` for the number of questions."""
    return {"n" if name == "questions" else name: _rounded(value) for name, value in asdict(record).items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_rounded, value)]
    return round(value, 6) if isinstance(value, float) else value


def resampled_means(values: NDArray[np.float64], draws: int = DRAWS) -> NDArray[np.float64]:
    """Bootstrap: means of samples with replacement, each as large as `values`."""
    import numpy as np

    chooser = np.random.default_rng(_SEED)
    means = []
    left = draws
    while left > 0:  # in parts, so that many questions don't fill the memory
        rows = max(1, min(left, _MAX_SAMPLED_VALUES // len(values)))
        means.append(values[chooser.integers(0, len(values), (rows, len(values)))].mean(axis=1))
        left -= rows
    return np.concatenate(means)
