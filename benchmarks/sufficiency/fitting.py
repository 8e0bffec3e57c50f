"""Learns the weights of sufficiency by logistic regression, and judges each question by weights that never saw it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from benchmarks.sufficiency.asking import Asked, Put
from benchmarks.sufficiency.figures import Judged
from satchel.retrieval.question_evidence import features
from satchel.retrieval.sufficiency import SufficiencyWeights

FOLDS: Final = 5
PENALTY: Final = 20.0
"""L2 on standardised features (1 / C); of 1 to 300 the best calibration, within 0.003 of the best AUC."""
NEWTON_STEPS: Final = 25  # the loss is convex, and changes no digit after ten
SET_WEIGHT: Final = {"code_semble_whole": 3.0, "code_muloc": 2.0, "documents": 1.0, "notes": 0.5, "notes_imported": 0.5}
"""The weight of each set: by how many projects it has, and how much its labels can be trusted."""
REMOVED_WEIGHT: Final = 0.0
"""Of questions whose answer's files were removed: what is left often answers in part, so the label is a guess."""

Matrix = np.ndarray[Any, Any]


def cross_validated(asked: list[Asked]) -> list[Judged]:
    """Each question judged by weights that saw neither its own project nor the one that it was put to."""
    names, values = table_of(asked)
    groups = sorted({one.here for one in asked} | {one.home for one in asked})
    fold = {group: i % FOLDS for i, group in enumerate(np.random.default_rng(1).permutation(groups))}
    here, home = (np.array([fold[getattr(one, side)] for one in asked]) for side in ("here", "home"))
    found = np.zeros(len(asked))
    for i in range(FOLDS):
        unseen = np.flatnonzero((here != i) & (home != i))
        weights = fit([asked[j] for j in unseen], names, values[unseen])
        for j in np.flatnonzero(here == i):
            found[j] = SufficiencyWeights(**weights).probability(dict(zip(names, values[j].tolist(), strict=True)))
    return [
        Judged(one.set_name, one.put, one.is_answered, float(p), one.here) for one, p in zip(asked, found, strict=True)
    ]


def table_of(asked: list[Asked]) -> tuple[list[str], Matrix]:
    """The names of the features, and their values for each question."""
    rows = [features(one.evidence) for one in asked]
    return list(rows[0]), np.array([list(row.values()) for row in rows])


def fit(asked: list[Asked], names: list[str], values: Matrix) -> dict[str, Any]:
    """The weights for these questions, as the package reads them."""
    is_long = values[:, names.index("long")] > 0
    columns = np.hstack([values, values * is_long[:, None]])
    answers = np.array([one.is_answered for one in asked], int)
    mean, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    intercept, *standardised = _logistic((columns - mean) / scale, answers, _sample_weights(asked, answers))
    raw = np.array(standardised) / scale
    typical = columns[answers > 0][:, : len(names)].mean(axis=0)
    return {
        "intercept": float(intercept - (raw * mean).sum()),
        "features": dict(zip(names, raw[: len(names)].tolist(), strict=True)),
        "for_reports": dict(zip(names, raw[len(names) :].tolist(), strict=True)),
        "typical": dict(zip(names, typical.tolist(), strict=True)),
    }


def _logistic(columns: Matrix, answers: Matrix, weights: Matrix) -> list[float]:
    """The intercept and the coefficients of a logistic regression with L2, by Newton's method."""
    design = np.hstack([np.ones((len(columns), 1)), columns])
    penalty = np.diag([0.0] + [PENALTY] * columns.shape[1])
    found = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        slope = design.T @ (weights * (p - answers)) + penalty @ found
        curve = design.T @ (design * (weights * p * (1 - p))[:, None]) + penalty
        found = found - np.linalg.solve(curve + 1e-9 * np.eye(len(found)), slope)
    coefficients: list[float] = found.tolist()
    return coefficients


def _sample_weights(asked: list[Asked], answers: Matrix) -> Matrix:
    """In each set, contexts that answer weigh as much as those that do not."""
    weights = np.array([REMOVED_WEIGHT if one.put is Put.REMOVED else 1.0 for one in asked])
    sets = np.array([one.set_name for one in asked])
    for set_name in set(sets):
        for answer in (0, 1):
            chosen = (sets == set_name) & (answers == answer)
            if total := weights[chosen].sum():
                weights[chosen] *= SET_WEIGHT[set_name] / total
    scaled: Matrix = weights * (len(asked) / weights.sum())
    return scaled
