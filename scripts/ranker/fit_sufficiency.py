"""Learns how likely a context answers its question, and writes the weights to the package.

    SATCHEL_EVAL=EVAL SATCHEL_NOTES=NOTES python scripts/ranker/fit_sufficiency.py --work FOLDER [--gathered]

Run it from the root of the repository after every change of the ranking or the packing. EVAL is the evaluation folder
with its trees checked out, NOTES the folder of notes (benchmarks/data/notes/README.md); FOLDER keeps the indexes for
the next time. `--gathered` fits again without asking again.

Questions are put to the collection that answers them and to wrong ones (benchmarks/sufficiency/asking.py). A context
answers if it shows the answer. The weights are those of a logistic regression with L2 (half of the weight of each set
on contexts that answer), so that their sum is a log-odds. What is printed is cross-validated: every question is judged
by weights that saw neither its own project nor the one that it was put to.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.sufficiency.asking import Asked, Put, ask_all, plan_asks
from benchmarks.sufficiency.collections import SETS, collections_of, tasks_of
from benchmarks.sufficiency.figures import Judged, figures_of
from satchel.retrieval.question_evidence import features

WEIGHTS: Final = Path("src/satchel/retrieval/sufficiency.json")
FOLDS: Final = 5
L2: Final = 0.05  # C of scikit-learn; of 0.003 to 1 the best calibration, within 0.003 of the best AUC
SET_WEIGHT: Final = {"code_semble_whole": 3.0, "code_muloc": 2.0, "documents": 1.0, "notes": 0.5, "notes_imported": 0.5}
"""The weight of each set: by how many projects it has, and how much its labels can be trusted."""
REMOVED_WEIGHT: Final = 0.0
"""Of questions whose answer's files were removed: what is left often answers in part, so the label is a guess."""

Matrix = np.ndarray[Any, Any]


def main() -> int:
    """Gather, cross-validate, fit on everything, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for indexes and gathered evidence")
    parser.add_argument("--gathered", action="store_true", help="use the evidence gathered before")
    parser.add_argument("--trees", type=int, default=4, help="trees of each project with issues")
    parser.add_argument("--sets", default=",".join(SETS), help="ask only these again")
    parser.add_argument("--print", action="store_true", help="print the figures and leave the weights alone")
    given = parser.parse_args()
    asked = _gathered(given.work) if given.gathered else _gather(given.work, given.sets.split(","), given.trees)
    names = list(features(asked[0].evidence))
    values = np.array([list(features(one.evidence).values()) for one in asked])
    held_out = cross_validated(asked, names, values)
    judged = [
        Judged(one.set_name, one.put, one.is_answered, p, one.here) for one, p in zip(asked, held_out, strict=True)
    ]
    print(json.dumps(figures_of(judged), indent=1))
    if not given.print:
        WEIGHTS.write_text(json.dumps(_rounded(fit(asked, names, values)), indent=1) + "\n", encoding="utf-8")
    return 0


def _gather(work: Path, sets: list[str], trees: int) -> list[Asked]:
    kept = _gathered(work) if _file(work).exists() else []
    asked = [one for one in kept if one.set_name not in sets and one.set_name in SETS]
    for set_name in sets:
        collections = collections_of(set_name, most=trees)
        tasks = tasks_of(set_name, collections)
        asked += ask_all(collections, plan_asks(tasks, collections), work)
        _file(work).write_bytes(pickle.dumps(asked))
    return asked


def _gathered(work: Path) -> list[Asked]:
    found: list[Asked] = pickle.loads(_file(work).read_bytes())
    return found


def _file(work: Path) -> Path:
    return work / "sufficiency.pickle"


def cross_validated(asked: list[Asked], names: list[str], values: Matrix) -> list[float]:
    """The probability of each by weights that saw neither of its two projects."""
    groups = sorted({one.here for one in asked} | {one.home for one in asked})
    fold = {group: i % FOLDS for i, group in enumerate(np.random.default_rng(1).permutation(groups))}
    here, home = (np.array([fold[getattr(one, side)] for one in asked]) for side in ("here", "home"))
    found = np.zeros(len(asked))
    for i in range(FOLDS):
        unseen = np.flatnonzero((here != i) & (home != i))
        weights = fit([asked[j] for j in unseen], names, values[unseen])
        for j in np.flatnonzero(here == i):
            found[j] = probability(weights, dict(zip(names, values[j].tolist(), strict=True)))
    return found.tolist()


def probability(weights: dict[str, Any], values: dict[str, float]) -> float:
    """The probability, by the arithmetic of the package."""
    from satchel.retrieval.sufficiency import SufficiencyWeights

    return SufficiencyWeights(**weights).probability(values)


def fit(asked: list[Asked], names: list[str], values: Matrix) -> dict[str, Any]:
    """The weights for these questions, as the package reads them."""
    is_long = values[:, names.index("long")] > 0
    columns = np.hstack([values, values * is_long[:, None]])
    answers = np.array([one.is_answered for one in asked], int)
    scaler = StandardScaler()
    model = LogisticRegression(C=L2, max_iter=5000)
    model.fit(scaler.fit_transform(columns), answers, sample_weight=_sample_weights(asked, answers))
    scale = np.where(scaler.scale_ > 0, scaler.scale_, 1.0)
    raw = model.coef_[0] / scale
    typical = columns[answers > 0][:, : len(names)].mean(axis=0)
    return {
        "intercept": float(model.intercept_[0] - (raw * scaler.mean_).sum()),
        "features": dict(zip(names, raw[: len(names)].tolist(), strict=True)),
        "for_reports": dict(zip(names, raw[len(names) :].tolist(), strict=True)),
        "typical": dict(zip(names, typical.tolist(), strict=True)),
    }


def _sample_weights(asked: list[Asked], answers: Matrix) -> Matrix:
    """In each set, contexts that answer weigh as much as those that do not."""
    weights = np.array([REMOVED_WEIGHT if one.put is Put.REMOVED else 1.0 for one in asked])
    sets = np.array([one.set_name for one in asked])
    for set_name in set(sets):
        for answer in (0, 1):
            chosen = (sets == set_name) & (answers == answer)
            if total := weights[chosen].sum():
                weights[chosen] *= SET_WEIGHT[set_name] / total
    return weights * (len(asked) / weights.sum())


def _rounded(weights: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 4) if isinstance(value, float) else {key: round(one, 4) for key, one in value.items()}
        for name, value in weights.items()
    }


if __name__ == "__main__":
    sys.exit(main())
