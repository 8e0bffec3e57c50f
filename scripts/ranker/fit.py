"""Learns the weights for questions about code and for long reports, and writes them to the package.

    nice python scripts/ranker/fit.py --eval EVAL [--work FOLDER] [--again] [--dry]
    nice python scripts/ranker/fit.py --eval EVAL --meaning --sets code_semble_whole

The second command learns the weights for questions in another language than the text, whose words match nothing: from
the same English questions, with their words withheld.

EVAL is the folder of the evaluation data with its trees checked out (code_semble also `--whole`; code_muloc `fast`).
Each question is put to an index of its tree, and the candidates' evidence is kept in FOLDER; `--again` uses the kept
evidence, which is enough after a change of the ranker's features or of this script. Indexes and evidence are kept for
each embedder: after a change of the embedder, run without `--again` (about ten minutes with two processes).

A file is an answer or is not; the weights maximise the likelihood of the answers among a question's candidates (a
softmax over files, L2 against over-fitting). What is printed is cross-validated: every question is ranked by weights
that never saw its project. The calibration is fitted on these held-out scores, and on the scores of questions that are
put to another project, where no file answers.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch

from satchel.indexing.indexer import Indexer
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import add_relative, best_of, feature_meanings, file_features
from satchel.storage.sqlite.store import EmbeddedStore

WEIGHTS = Path("src/satchel/retrieval/weights.json")
SETS = ("code_semble", "code_semble_whole", "code_swelite", "code_muloc")
# Issues of a project that are used: each has a tree of its own, and its index takes seconds.
ISSUES_OF_A_PROJECT = {"code_swelite": 55, "code_muloc": 4}
# What no question of these sets can teach: set by hand, and added after the fit. `how_to`: of 37 questions of our own
# ("how do I …") over seven repositories with manuals, the right page is among the first three for 31 with a weight of
# 1, for 36 with 3, for 37 with 4.
BY_HAND = {"recent": 0.1, "prose_wanted": 2.5, "how_to": 3.0, "example_wanted": 1.0}
# Features of other weight sets (notes, passages), and `stem…`: the names' families and rarity take their place.
UNUSED = {"stem", "near", "pairs", "figures", "title"}
NAMES = [
    name for name in feature_meanings() if name not in BY_HAND and name not in UNUSED and not name.startswith("lead_")
]
# What is left of a file's evidence without the words of the question; `entry` and `depth` did not carry over.
MEANING_NAMES = [
    *("best_meaning", "second_meaning", "relative_meaning", "first_meaning", "size", "central", "test", "example"),
    *("docs", "prose", "legacy", "declarations", "locale", "config", "unknown", "vendor", "defines", "path_named"),
]
# Weights that a fit finds too small, as few questions have the feature: at least, or at most, these.
AT_LEAST = {"path_named": 3.0, "module_named": 1.0}
AT_MOST = {"vendor": -1.0, "locale": -0.5}
FOLDS = 5
CANDIDATES = 100
# Which way a feature may point, where common sense knows it and a few repositories cannot teach it otherwise.
NEVER_POSITIVE = {"test", "example", "vendor", "legacy", "locale", "declarations", "config", "unknown", "docs", "prose"}
NEVER_NEGATIVE = {
    *("file_text", "file_coverage", "best_text", "best_coverage", "best_name", "best_name_precision", "best_meaning"),
    *("second_text", "folder", "folder_precision", "relative_text", "relative_file_text", "first_text"),
    *("first_meaning", "file_name", "file_name_precision", "file_name_rarity", "file_name_match", "path_words"),
    *("relative_name", "relative_file_name", "relative_path_words", "defines", "defines_symbol", "defines_long"),
    *("path_named", "module_named", "trace", "relative_trace", "test_wanted", "config_wanted"),
}
# Questions of one project and set that count in full; those of a project with more share this weight.
PROJECT_QUESTIONS = 12
# The share of questions that nothing here answers, as the calibration assumes. With 0.1 the best file for such a
# question is given 0.30 in the median and the calibration error of the others is 0.024; with 0.2 it is 0.21 and 0.043.
UNANSWERED_SHARE = 0.15


class Asked(NamedTuple):
    """A question's candidates: their features, and which of them answer."""

    set_name: str
    project: str
    paths: list[str]
    features: np.ndarray[Any, Any]
    answers: np.ndarray[Any, Any]
    gold: int
    is_long: bool
    is_elsewhere: bool
    """True if the question was put to a project that does not answer it."""

    @property
    def kind(self) -> str:
        """The weight set of the question."""
        return "long" if self.is_long else "short"


# -- evidence


def project_of(corpus: str) -> str:
    """The project of a corpus: a tree for an issue is named by owner, project and number."""
    return re.sub(r"-\d+$", "", corpus).rpartition("__")[2].lower()


def gather(arguments: argparse.Namespace, set_name: str, work: Path) -> list[dict[str, Any]]:
    """Every question of a set, with the evidence for its candidates as the product finds them."""
    eval_folder = arguments.eval
    by_project: dict[str, list[str]] = defaultdict(list)
    for tree in sorted((eval_folder / "trees" / set_name).iterdir()):
        by_project[project_of(tree.name)].append(tree.name)
    some = {name: _spread(trees, ISSUES_OF_A_PROJECT.get(set_name, 1)) for name, trees in by_project.items()}
    with ProcessPoolExecutor(arguments.processes) as pool:
        jobs = [
            pool.submit(gather_project, eval_folder, set_name, trees, work, with_words=not arguments.meaning)
            for trees in some.values()
        ]
        rows = [row for job in jobs for row in job.result()]
        jobs = [
            pool.submit(gather_elsewhere, rows, project, work / "indexes" / set_name, with_words=not arguments.meaning)
            for project in some
        ]
        return rows + [row for job in jobs for row in job.result()]


def _spread(trees: list[str], most: int) -> list[str]:
    """At most so many of the trees, evenly spread."""
    return trees[:: math.ceil(len(trees) / most)]


def gather_project(
    eval_folder: Path, set_name: str, trees: Sequence[str], work: Path, *, with_words: bool
) -> list[dict[str, Any]]:
    """The questions to the trees of a project; the trees differ little, and one index follows them."""
    embedder = StaticEmbedder()
    tasks = defaultdict(list)
    for line in (eval_folder / "data" / set_name.removesuffix("_whole") / "dev.jsonl").open():
        task = json.loads(line)
        tasks[task["corpus"]].append(task)
    store = EmbeddedStore(work / "indexes" / set_name / project_of(trees[0]))
    rows = []
    for tree in trees:
        Indexer((eval_folder / "trees" / set_name / tree).resolve(), store, embedder).run()
        rows += [ask(task, store, embedder, set_name, with_words=with_words) for task in tasks[tree]]
        print(set_name, tree, flush=True)
    store.close()
    return rows


def gather_elsewhere(
    rows: Sequence[dict[str, Any]], project: str, indexes: Path, *, with_words: bool
) -> list[dict[str, Any]]:
    """The questions of other projects that this project is asked: each is put to one project that cannot answer it."""
    embedder, store = StaticEmbedder(), EmbeddedStore(indexes / project)
    projects = sorted({row["project"] for row in rows})
    found = []
    for row in rows:
        others = [name for name in projects if name != row["project"]]
        if others and others[crc32(row["query"].encode()) % len(others)] == project:
            task = {"query": row["query"], "corpus": row["project"], "gold_files": []}
            asked = ask(task, store, embedder, row["set"], with_words=with_words)
            found.append(asked | {"project": row["project"], "elsewhere": project})
    store.close()
    return found


def ask(
    task: dict[str, Any], store: EmbeddedStore, embedder: StaticEmbedder, set_name: str, *, with_words: bool
) -> dict[str, Any]:
    question = understand(task["query"])
    terms = question.terms if with_words else {}
    query = StoreQuery(terms=terms, names=question.names, vector=embedder.embed_query(question.text))
    found = store.search(query, Filters(), top_k=CANDIDATES)
    paths = store.paths([candidate.file for candidate in found], Filters())
    return {
        "set": set_name,
        "project": project_of(task["corpus"]),
        "query": task["query"],
        "gold": [file["path"] for file in task["gold_files"]],
        "cands": [
            (paths.get(one.file), one.piece, dict(one.signals), dict(one.of_file), one.is_passage) for one in found
        ],
    }


def evidence(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The evidence of all sets, gathered now or kept from before."""
    rows = []
    work = arguments.work / re.sub(r"[^\w.-]", "-", StaticEmbedder().name)
    for set_name in arguments.sets.split(","):
        kept = work / f"{set_name}{'-meaning' if arguments.meaning else ''}.pickle"
        if not (arguments.again and kept.exists()):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps(gather(arguments, set_name, work)))
        rows += pickle.loads(kept.read_bytes())
    return rows


def asked_of(row: dict[str, Any]) -> Asked:
    """The features of a question's candidate files."""
    question = understand(row["query"])
    pieces: dict[str, list[Any]] = defaultdict(list)
    for path, _, signals, of_file, is_passage in row["cands"]:
        if path is not None and not is_passage:
            pieces[path].append((signals, of_file))
    rows = [file_features(question, path, some[0][1], [one[0] for one in some]) for path, some in pieces.items()]
    add_relative(rows)
    features = np.array([[values[name] for name in NAMES] for values in rows]).reshape(len(rows), len(NAMES))
    gold = set(row["gold"])
    answers = np.array([path in gold for path in pieces], bool)
    return Asked(
        set_name=row["set"],
        project=project_of(row["project"]),
        paths=[*pieces],
        features=features,
        answers=answers,
        gold=len(gold),
        is_long=question.is_long,
        is_elsewhere="elsewhere" in row,
    )


# -- weights


class Learner:
    """The questions as one tensor."""

    def __init__(self, asked: list[Asked]) -> None:
        every = np.concatenate([one.features for one in asked])
        self.scale = torch.tensor(every.std(0) + 1e-6, dtype=torch.float32)
        self.scale[self.scale < 1e-3] = 1.0
        most = max(len(one.paths) for one in asked)
        self.features = torch.zeros(len(asked), most, len(NAMES))
        self.answers = torch.zeros(len(asked), most)
        self.mask = torch.full((len(asked), most), -1e9)
        self.importance = torch.tensor(importance_of(asked))
        for i, one in enumerate(asked):
            n = len(one.paths)
            self.features[i, :n] = torch.tensor(one.features, dtype=torch.float32) / self.scale
            self.answers[i, :n] = torch.tensor(one.answers / max(one.answers.sum(), 1))
            self.mask[i, :n] = 0
        self.upper = torch.tensor([0.0 if n in NEVER_POSITIVE else math.inf for n in NAMES])
        self.lower = torch.tensor([0.0 if n in NEVER_NEGATIVE else -math.inf for n in NAMES])

    def fit(self, rows: list[int], l2: float, around: torch.Tensor | None = None) -> torch.Tensor:
        """The best weights for these questions that are not far from zero, or from those of other questions."""
        center = torch.zeros(len(NAMES)) if around is None else around * self.scale
        weights = center.clone().requires_grad_()
        features, answers, mask = self.features[rows], self.answers[rows], self.mask[rows]
        importance = self.importance[rows] / self.importance[rows].sum()
        optimizer = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

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


def importance_of(asked: list[Asked]) -> list[float]:
    """The weight of each question: no project with many questions dominates."""
    counts = Counter((one.set_name, one.project, one.is_elsewhere) for one in asked)
    return [min(1.0, PROJECT_QUESTIONS / counts[one.set_name, one.project, one.is_elsewhere]) for one in asked]


def fit_both(learner: Learner, asked: list[Asked], rows: list[int], l2: float, l2_long: float) -> dict[str, Any]:
    """Weights for short questions, and near them those for long ones, of which there are fewer."""
    rows = [i for i in rows if asked[i].answers.any()]
    short, long = ([i for i in rows if asked[i].is_long is is_long] for is_long in (False, True))
    weights = {"short": learner.fit(short, l2)}
    return weights | {"long": learner.fit(long, l2_long, weights["short"])} if long else weights


def held_out_scores(learner: Learner, asked: list[Asked], l2: float, l2_long: float) -> list[np.ndarray[Any, Any]]:
    """The scores of every question's files by weights that never saw the question's project."""
    projects = sorted({one.project for one in asked})
    fold_of = [projects.index(one.project) % FOLDS for one in asked]
    scores: list[Any] = [None] * len(asked)
    for fold in range(FOLDS):
        weights = fit_both(learner, asked, [i for i in range(len(asked)) if fold_of[i] != fold], l2, l2_long)
        for i in range(len(asked)):
            if fold_of[i] == fold:
                scores[i] = asked[i].features @ weights[asked[i].kind].numpy()
    return scores


def print_figures(asked: list[Asked], scores: list[np.ndarray[Any, Any]]) -> None:
    """Print how well the scores rank, by set and kind of question."""
    figures = defaultdict(list)
    for one, values in zip(asked, scores, strict=True):
        if one.is_elsewhere:
            continue
        ranked = one.answers[np.argsort(-values, kind="stable")]
        row = (ndcg(ranked, one.gold), float(ranked[0]), ranked[:5].sum() / one.gold, ranked[:10].sum() / one.gold)
        figures[f"{one.set_name}, {one.kind}"].append(row)
        if one.gold > 1:
            figures[f"{one.set_name}, {one.kind}, several files"].append(row)
    for name, rows in sorted(figures.items()):
        mean = np.array(rows).mean(0)
        recall = f"r@5 {mean[2]:.4f}, r@10 {mean[3]:.4f}"
        print(f"{name:40} {len(rows):4}: NDCG@10 {mean[0]:.4f}, first {mean[1]:.3f}, {recall}")


def ndcg(answers: np.ndarray[Any, Any], gold: int) -> float:
    gained = sum(1 / math.log2(i + 2) for i, is_answer in enumerate(answers[:10]) if is_answer)
    return gained / sum(1 / math.log2(i + 2) for i in range(min(10, gold)))


# -- calibration


CURVE = ("intercept", "slope", "gap", "lead", "meaning")


def calibrate(asked: list[Asked], scores: list[np.ndarray[Any, Any]]) -> dict[str, float]:
    """A logistic curve from a file's score and the best score to the share of answers.

    The questions that are put elsewhere teach that a lead alone says little, and that the question must resemble
    something here.
    """
    share = np.array(importance_of(asked))
    elsewhere = np.array([one.is_elsewhere for one in asked])
    total = share[~elsewhere].sum() / (1 - UNANSWERED_SHARE)
    share[elsewhere] *= UNANSWERED_SHARE * total / max(share[elsewhere].sum(), 1e-9)
    data = torch.tensor(np.concatenate([_standing(*one) for one in zip(asked, scores, strict=True)]))
    answers = torch.tensor(np.concatenate([one.answers for one in asked]), dtype=torch.float64)
    importance = torch.tensor(np.repeat(share, [len(one.paths) for one in asked]))
    # None but the intercept is negative: relevance must fall with rank.
    lower = torch.tensor([-math.inf, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    weights = torch.tensor([-2.0, 0.1, 0.5, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = data @ torch.maximum(weights, lower)
        value = torch.nn.functional.binary_cross_entropy_with_logits(logits, answers, importance)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    bounded = torch.maximum(weights.detach(), lower)
    print_calibration(asked, torch.sigmoid(data @ bounded).numpy(), answers.numpy())
    return dict(zip(CURVE, bounded.tolist(), strict=True))


def _standing(one: Asked, scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the curve is told of each file of a question."""
    best = best_of(scores.tolist(), one.features[:, NAMES.index("best_meaning")])
    same = np.ones(len(scores))
    lead = best.lead * (scores == best.score)
    return np.stack([same, scores, scores - best.score, lead, best.meaning * same], 1)


def print_calibration(asked: list[Asked], likely: np.ndarray[Any, Any], answers: np.ndarray[Any, Any]) -> None:
    """Print the expected calibration error above a relevance of 0.1, for all questions and for each set."""
    sizes = [len(one.paths) for one in asked]
    tops = [part.max() for part in np.split(likely, np.cumsum(sizes)[:-1])]
    nowhere = [top for one, top in zip(asked, tops, strict=True) if one.is_elsewhere]
    medians = np.median(nowhere), np.quantile(nowhere, 0.9)
    print("  best file for a question put elsewhere: median {:.2f}, one in ten above {:.2f}".format(*medians))
    here = np.repeat([not one.is_elsewhere for one in asked], sizes)
    likely, answers = likely[here], answers[here]
    of_set = np.repeat([one.set_name for one in asked], sizes)[here]
    for name in ("all", *sorted(set(of_set))):
        inside = (likely > 0.1) & ((of_set == name) | (name == "all"))
        error = calibration_error(likely[inside], answers[inside], verbose=name == "all")
        print(f"  {name}: expected calibration error {error:.4f}")


def calibration_error(likely: np.ndarray[Any, Any], answers: np.ndarray[Any, Any], verbose: bool) -> float:
    bins = np.minimum((likely * 10).astype(int), 9)
    error = 0.0
    for number in range(10):
        inside = bins == number
        if inside.any():
            error += inside.mean() * abs(likely[inside].mean() - answers[inside].mean())
            if verbose:
                print(f"  said {likely[inside].mean():.2f}, was {answers[inside].mean():.2f} ({inside.sum()} files)")
    return error


# -- the command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/satchel-ranker"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--l2", type=float, default=0.03)
    parser.add_argument("--l2-long", type=float, default=0.03)
    parser.add_argument("--again", action="store_true", help="use the evidence gathered before")
    parser.add_argument("--dry", action="store_true", help="print the figures, and write nothing")
    parser.add_argument("--meaning", action="store_true", help="the weights for questions in another language")
    parser.add_argument("--without", default="", help="features left out, to see what they are worth")
    arguments = parser.parse_args()
    names = MEANING_NAMES if arguments.meaning else NAMES
    NAMES[:] = [name for name in names if name not in arguments.without.split(",")]
    asked = [one for one in map(asked_of, evidence(arguments)) if len(one.paths)]
    if arguments.meaning:
        asked = [one for one in asked if not one.is_long]
    learner = Learner(asked)
    scores = held_out_scores(learner, asked, arguments.l2, arguments.l2_long)
    print_figures(asked, scores)
    if arguments.dry:
        return
    weights = fit_both(learner, asked, list(range(len(asked))), arguments.l2, arguments.l2_long)
    learned = json.loads(WEIGHTS.read_text())
    for kind in sorted({one.kind for one in asked}):
        print(f"{kind} questions:")
        mine = [i for i, one in enumerate(asked) if one.kind == kind]
        calibration = calibrate([asked[i] for i in mine], [scores[i] for i in mine])
        learned["meaning" if arguments.meaning else kind] = {
            "features": rounded(weights[kind]),
            "calibration": {name: round(value, 5) for name, value in calibration.items()},
        }
        print_strongest(learned[kind]["features"], learner)
    WEIGHTS.write_text(json.dumps(learned, indent=2) + "\n")


def rounded(weights: torch.Tensor) -> dict[str, float]:
    """The weights by name, within the bounds set by hand."""
    features = {name: round(value, 4) for name, value in zip(NAMES, weights.tolist(), strict=True)}
    features |= {name: max(value, features[name]) for name, value in AT_LEAST.items() if name in features}
    features |= {name: min(value, features[name]) for name, value in AT_MOST.items() if name in features}
    return {name: value for name, value in features.items() if value} | BY_HAND


def print_strongest(features: dict[str, float], learner: Learner) -> None:
    """Print the weights that move the scores most."""
    spread = {name: features[name] * float(learner.scale[NAMES.index(name)]) for name in NAMES if name in features}
    for name, value in sorted(spread.items(), key=lambda entry: -abs(entry[1]))[:25]:
        print(f"  {name:24} {features[name]:+.3f}  (times its spread: {value:+.3f})")


if __name__ == "__main__":
    main()
