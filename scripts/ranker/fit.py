"""Learns the ranker's weights from questions with known answers, and writes them to the package.

    python scripts/ranker/fit.py --eval EVAL [--work FOLDER] [--sets code_semble,code_swelite]

EVAL is the folder of the evaluation data with its trees checked out. A file is an answer or is not; the weights
maximise the likelihood of the answers among a question's candidates (a softmax over files, L2 against over-fitting).
What is printed is cross-validated: every question is ranked by weights that never saw its repository.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from satchel.indexing.indexer import Indexer
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import add_relative, feature_meanings, file_features
from satchel.storage.sqlite.store import EmbeddedStore

WEIGHTS = Path("src/satchel/retrieval/weights.json")
NAMES = [
    name
    for name in feature_meanings()
    if name not in ("recent", "prose_wanted", "example_wanted") and not name.startswith("lead_")
]
FOLDS = 10
CANDIDATES = 100
# Which way a feature may point, where common sense knows it and a few repositories cannot teach it otherwise.
NEVER_POSITIVE = {"test", "example", "vendor", "legacy", "locale"}
# What no question of these sets can teach.
BY_HAND = {
    "vendor": -1.0,
    "locale": -0.5,
    "recent": 0.1,
    "prose_wanted": 2.5,
    "example_wanted": 1.0,
    "path_named": 3.0,
    "module_named": 1.0,
}
NEVER_NEGATIVE = {"defines", "defines_symbol", "defines_long", "path_named", "module_named", "test_wanted"}


class Asked(NamedTuple):
    """A question's candidates: their features, and which of them answer."""

    set_name: str
    group: str
    paths: list[str]
    features: np.ndarray[Any, Any]
    answers: np.ndarray[Any, Any]
    gold: int
    is_long: bool


def gather(eval_folder: Path, set_name: str, work: Path) -> list[Asked]:
    """Every question of a set, with its candidates as the product finds them."""
    embedder = StaticEmbedder()
    tasks = [json.loads(line) for line in (eval_folder / "data" / set_name / "dev.jsonl").open()]
    by_corpus: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for task in tasks:
        by_corpus[task["corpus"]].append(task)
    found = []
    for corpus, some in by_corpus.items():
        # The trees of one project differ little: one index follows them from one to the next.
        store = EmbeddedStore(work / set_name / ("shared" if set_name == "code_swelite" else corpus))
        Indexer((eval_folder / "trees" / set_name / corpus).resolve(), store, embedder).run()
        for task in some:
            found.append(ask(task, store, embedder, set_name))
        store.close()
        print(f"{set_name} {corpus}", flush=True)
    return found


def ask(task: dict[str, Any], store: EmbeddedStore, embedder: StaticEmbedder, set_name: str) -> Asked:
    question = understand(task["query"])
    query = StoreQuery(terms=question.terms, names=question.names, vector=embedder.embed_query(question.text))
    by_file: dict[int, list[Any]] = defaultdict(list)
    for candidate in store.search(query, Filters(), top_k=CANDIDATES):
        by_file[candidate.file].append(candidate)
    paths = store.paths(list(by_file), Filters())
    rows = [
        file_features(question, paths[file], some[0].of_file, [one.signals for one in some])
        for file, some in by_file.items()
    ]
    add_relative(rows)
    gold = {one["path"] for one in task["gold_files"]}
    names = [paths[file] for file in by_file]
    features = np.array([[row[name] for name in NAMES] for row in rows]).reshape(len(rows), len(NAMES))
    group = task["corpus"] if set_name != "code_swelite" else "django"
    return Asked(
        set_name, group, names, features, np.array([name in gold for name in names]), len(gold), question.is_long
    )


class Learner:
    """The questions as one tensor."""

    def __init__(self, asked: list[Asked], weight_of: dict[str, float]) -> None:
        every = np.concatenate([one.features for one in asked])
        self.scale = torch.tensor(every.std(0) + 1e-6, dtype=torch.float32)
        self.scale[self.scale < 1e-3] = 1.0
        most = max(len(one.paths) for one in asked)
        self.features = torch.zeros(len(asked), most, len(NAMES))
        self.answers = torch.zeros(len(asked), most)
        self.mask = torch.full((len(asked), most), -1e9)
        self.importance = torch.tensor([weight_of[one.set_name] for one in asked])
        for i, one in enumerate(asked):
            n = len(one.paths)
            self.features[i, :n] = torch.tensor(one.features, dtype=torch.float32) / self.scale
            self.answers[i, :n] = torch.tensor(one.answers / max(one.answers.sum(), 1))
            self.mask[i, :n] = 0
        self.upper = torch.tensor([0.0 if n in NEVER_POSITIVE else math.inf for n in NAMES])
        self.lower = torch.tensor([0.0 if n in NEVER_NEGATIVE else -math.inf for n in NAMES])

    def fit(self, rows: list[int], l2: float, around: torch.Tensor | None = None) -> torch.Tensor:
        """The best weights for these questions that are not far from zero, or from those of other questions."""
        torch.manual_seed(0)
        center = torch.zeros(len(NAMES)) if around is None else around * self.scale
        weights = center.clone().requires_grad_()
        features, answers, mask = self.features[rows], self.answers[rows], self.mask[rows]
        importance = self.importance[rows] / self.importance[rows].sum()
        optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            bounded = torch.minimum(torch.maximum(weights, self.lower), self.upper)
            likely = torch.log_softmax(features @ bounded + mask, 1)
            value = -((answers * likely).sum(1) * importance).sum() + l2 * ((weights - center) ** 2).sum()
            value.backward()  # type: ignore[no-untyped-call]
            return value

        optimizer.step(loss)  # type: ignore[no-untyped-call]
        bounded = torch.minimum(torch.maximum(weights.detach(), self.lower), self.upper)
        return bounded / self.scale


def ndcg(answers: np.ndarray[Any, Any], gold: int) -> float:
    gained = sum(1 / math.log2(i + 2) for i, is_answer in enumerate(answers[:10]) if is_answer)
    return gained / sum(1 / math.log2(i + 2) for i in range(min(10, gold)))


def calibrate(scored: list[tuple[float, float, bool]]) -> tuple[dict[str, float], float]:
    """A logistic curve from (score, gap to the best) to the share of answers, and how far off it is (ECE)."""
    data = torch.tensor([[1.0, score, score - best] for score, best, _ in scored], dtype=torch.float64)
    target = torch.tensor([float(answer) for *_, answer in scored], dtype=torch.float64)
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.binary_cross_entropy_with_logits(data @ weights, target)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    likely = torch.sigmoid(data @ weights.detach()).numpy()
    intercept, slope, gap = weights.detach().tolist()
    return {"intercept": intercept, "slope": slope, "gap": gap}, expected_calibration_error(likely, target.numpy())


def expected_calibration_error(likely: np.ndarray[Any, Any], answers: np.ndarray[Any, Any]) -> float:
    bins = np.minimum((likely * 10).astype(int), 9)
    error = 0.0
    for number in range(10):
        inside = bins == number
        if inside.any():
            error += inside.mean() * abs(likely[inside].mean() - answers[inside].mean())
            print(f"  said {likely[inside].mean():.2f}, was {answers[inside].mean():.2f} ({inside.sum()} files)")
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/satchel-ranker"))
    parser.add_argument("--sets", default="code_semble,code_swelite")
    parser.add_argument("--l2", type=float, default=0.01)
    parser.add_argument("--l2-long", type=float, default=0.01)
    parser.add_argument("--again", action="store_true", help="use the features gathered before")
    arguments = parser.parse_args()
    asked: list[Asked] = []
    for set_name in arguments.sets.split(","):
        kept = arguments.work / f"{set_name}.pickle"
        if not (arguments.again and kept.exists()):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps([tuple(one) for one in gather(arguments.eval, set_name, arguments.work)]))
        asked += [Asked(*one) for one in pickle.loads(kept.read_bytes())]
    asked = [one for one in asked if len(one.paths)]
    learner = Learner(asked, {"code_semble": 1.0, "code_swelite": 1.0})
    groups = sorted({one.group for one in asked})
    figures: dict[str, list[tuple[float, bool, bool]]] = defaultdict(list)
    scored: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    for fold in range(FOLDS):
        # Of the one project whose issues we have, the folds are its issues.
        held = {
            i for i, one in enumerate(asked)
            if (i if one.set_name == "code_swelite" else groups.index(one.group)) % FOLDS == fold
        }  # fmt: skip
        weights = fit_both(learner, asked, [i for i in range(len(asked)) if i not in held], arguments)
        for i in sorted(held):
            one = asked[i]
            scores = one.features @ weights[kind_of(one)].numpy()
            order = np.argsort(-scores, kind="stable")
            ranked = one.answers[order]
            figures[one.set_name].append((ndcg(ranked, one.gold), bool(ranked[0]), bool(ranked[:5].any())))
            answers = zip(scores.tolist(), one.answers.tolist(), strict=True)
            scored[kind_of(one)] += [(s, float(scores.max()), a) for s, a in answers]
    for set_name, rows in figures.items():
        mean = [float(np.mean([row[i] for row in rows])) for i in range(3)]
        print(
            f"{set_name}: NDCG@10 {mean[0]:.4f}, answer first {mean[1]:.3f}, in the first five {mean[2]:.3f} held out"
        )
    kept: dict[str, Any] = {}
    weights = fit_both(learner, asked, list(range(len(asked))), arguments)
    for kind in ("short", "long"):
        print(f"{kind} questions:")
        calibration, error = calibrate(scored[kind])
        print(f"  calibration error {error:.4f}")
        features = {name: round(value, 4) for name, value in zip(NAMES, weights[kind].tolist(), strict=True)}
        features |= {name: value for name, value in BY_HAND.items() if not features.get(name)}
        kept[kind] = {
            "features": features,
            "calibration": {name: round(value, 5) for name, value in calibration.items()},
        }
        spread = {
            name: value * float(learner.scale[NAMES.index(name)]) for name, value in features.items() if name in NAMES
        }
        for name, value in sorted(spread.items(), key=lambda entry: -abs(entry[1]))[:20]:
            print(f"  {name:24} {features[name]:+.3f}  (× its spread: {value:+.3f})")
    WEIGHTS.write_text(json.dumps(kept, indent=2) + "\n")


def kind_of(one: Asked) -> str:
    return "long" if one.is_long else "short"


def fit_both(
    learner: Learner, asked: list[Asked], rows: list[int], arguments: argparse.Namespace
) -> dict[str, torch.Tensor]:
    """Weights for short questions, and near them those for long ones: we have long ones about one project only."""
    short = learner.fit([i for i in rows if not asked[i].is_long], arguments.l2)
    return {"short": short, "long": learner.fit([i for i in rows if asked[i].is_long], arguments.l2_long, short)}


if __name__ == "__main__":
    main()
