"""Learns the ranker's weights for passages of documents from questions with known answers, and writes them to a file.

    python scripts/ranker/fit_documents.py --eval EVAL --work FOLDER [--again] OUT.json

Run it from the root of the repository. EVAL is the folder of the evaluation data (its `data` is enough). Every corpus
is indexed as it is; a passage answers when it holds lines of the evidence, lies on the right page, or is from a
document that the judges of a test collection chose. The weights maximise the likelihood of the answers among a
question's passages; none points where common sense says that it cannot.

The curve from scores to probabilities is learned also from questions that nothing answers (those of another set), and
from workspaces of a few short documents, cut from the long ones: what is far before the rest of few is as likely right.

What is printed is held out by source: every question is ranked by weights, and its best passage given a probability by
a curve, that saw no question of its source; those on filings, of which there is one source, are ranked by weights that
saw no question on its filing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import minimize

from satchel.indexing.indexer import Indexer
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import add_relative, best_of, file_features, with_closeness
from satchel.storage.sqlite.store import EmbeddedStore

Array = np.ndarray[Any, Any]
Task = dict[str, Any]

SETS: Final = ("docs_prose", "docs_contracts", "docs_ir", "docs_finance")
NAMES: Final = (
    "best_text", "best_coverage", "best_meaning", "file_text", "title", "near", "pairs", "figures", "relative_text",
)  # fmt: skip
L2: Final = 1e-4
CANDIDATES: Final = 60
WHOLE, FEW, NONE = "whole", "few", "none"
UNANSWERED: Final = 300
WORKSPACES: Final = 80
ASKED_OF_FEW: Final = 8
FILINGS: Final = "financebench"
_PAGE: Final = re.compile(r"^--- page (\d+) ---$", re.MULTILINE)
CURVE: Final = ("intercept", "slope", "gap", "lead")
_PATIENT: Final = {"maxiter": 500}


class Asked(NamedTuple):
    """A question's passages (of whole documents, of few short ones, of those of others), and which of them answer."""

    part: str
    source: str
    group: str
    features: Array
    answers: Array


def trees(data: Path, set_name: str, work: Path) -> dict[str, Path]:
    """The documents of a set as files, by corpus; the pages of a filing under headings, its lines where they were."""
    found: dict[str, Path] = {}
    with gzip.open(data / set_name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            folder = found.setdefault(row["corpus"], work / "trees" / set_name / row["corpus"])
            file = folder / Path(row["path"]).with_suffix(".md")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_PAGE.sub(r"# page \1", row["text"].replace("\0", " ")), encoding="utf-8")
    return found


def gather(data: Path, work: Path) -> Iterator[Asked]:
    """Every question with its passages as the product finds them."""
    embedder, chance = StaticEmbedder(), random.Random(5)
    tasks: dict[str, list[Task]] = {
        name: [
            task
            for task in map(json.loads, (data / name / "dev.jsonl").open(encoding="utf-8"))
            if name == "docs_ir" or task.get("gold_spans")
        ]
        for name in SETS
    }
    for set_name in SETS:
        others = [task for name in SETS if name != set_name for task in tasks[name]]
        folders = trees(data, set_name, work)
        for corpus, folder in folders.items():
            with indexed(folder, work / "index" / set_name / corpus, embedder) as store:
                for task in tasks[set_name]:
                    if task["corpus"] == corpus:
                        yield ask(task, store, embedder)
                for task in chance.sample(others, UNANSWERED // len(SETS) // len(folders)):
                    yield ask({**task, "gold_spans": [], "gold_files": []}, store, embedder)._replace(part=NONE)
        print(set_name, flush=True)
    [folder] = trees(data, "docs_prose", work).values()
    yield from gather_few(tasks["docs_prose"], folder, work / "few", chance, embedder)


def gather_few(tasks: list[Task], whole: Path, work: Path, chance: Random, embedder: StaticEmbedder) -> Iterator[Asked]:
    """Questions to workspaces of a few short documents: each the lines around an answer in a long one."""
    by_document: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_document[task["gold_spans"][0]["path"]].append(task)
    for number in range(WORKSPACES):
        folder = work / str(number) / "tree"
        folder.mkdir(parents=True, exist_ok=True)
        moved: list[Task] = []
        for path in chance.sample(sorted(by_document), chance.choice((2, 3, 4, 6))):
            lines = (whole / path).with_suffix(".md").read_text(encoding="utf-8").split("\n")
            around = chance.choice(by_document[path])["gold_spans"][0]
            first = max(0, around["start_line"] - 1 - chance.randrange(6))
            last, chars = around["end_line"], chance.choice((400, 1500, 4000))
            while last < len(lines) and sum(map(len, lines[first:last])) < chars:
                last += 1
            (folder / Path(path).name).with_suffix(".md").write_text("\n".join(lines[first:last]), encoding="utf-8")
            for task in by_document[path]:
                if all(
                    s["path"] == path and first < s["start_line"] <= s["end_line"] <= last for s in task["gold_spans"]
                ):
                    spans = [
                        {
                            "path": Path(path).name,
                            "start_line": s["start_line"] - first,
                            "end_line": s["end_line"] - first,
                        }
                        for s in task["gold_spans"]
                    ]
                    moved.append({**task, "gold_spans": spans})
        with indexed(folder, work / str(number) / "index", embedder) as store:
            for task in chance.sample(moved, min(len(moved), ASKED_OF_FEW)):
                yield ask(task, store, embedder)._replace(part=FEW)


@contextmanager
def indexed(folder: Path, index: Path, embedder: StaticEmbedder) -> Iterator[EmbeddedStore]:
    store = EmbeddedStore(index)
    Indexer(folder.resolve(), store, embedder).run()
    yield store
    store.close()


def ask(task: Task, store: EmbeddedStore, embedder: StaticEmbedder) -> Asked:
    question = understand(task["query"])
    query = StoreQuery(terms=question.terms, names=question.names, vector=embedder.embed_query(question.text))
    found = [one for one in store.search(query, Filters(), top_k=CANDIDATES) if one.is_passage]
    pieces = {one.id: one for one in store.pieces([one.piece for one in found], Filters())}
    found = with_closeness(question, found, {number: one.text for number, one in pieces.items()})
    rows = [file_features(question, pieces[one.piece].path, one.of_file, [one.signals]) for one in found]
    add_relative(rows)
    features = np.array([[row[name] for name in NAMES] for row in rows]).reshape(len(rows), len(NAMES))
    answers = np.array([_answers(task, pieces[one.piece]) for one in found], bool)
    documents = sorted(one["path"] for one in task["gold_files"])
    group = task["id"] if task["set"] == "docs_ir" else f"{task['corpus']}/{documents[:1]}"
    return Asked(WHOLE, task["source"], group, features, answers)


def _answers(task: Task, piece: Any) -> bool:
    spans = task.get("gold_spans") or [{**one, "start_line": 1, "end_line": 1 << 30} for one in task["gold_files"]]
    return any(
        Path(span["path"]).with_suffix(".md") == Path(piece.path)
        and piece.first_line <= span["end_line"]
        and piece.last_line >= span["start_line"]
        for span in spans
    )


def weights_of(asked: Sequence[Asked]) -> Array:
    """The weights, each for its feature as it is."""
    asked = [one for one in asked if one.part == WHOLE and one.answers.any()]
    counts = Counter(one.source for one in asked)
    # A source of few questions counts more than its share.
    each = np.array([counts[one.source] ** -0.5 for one in asked])
    each /= each.sum()
    lengths = np.array([len(one.answers) for one in asked])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    data = np.concatenate([one.features for one in asked])
    scale = data.std(0) + 1e-6
    data = data / scale
    target = np.concatenate([one.answers / one.answers.sum() for one in asked])

    def loss(weights: Array) -> tuple[float, Array]:
        z = data @ weights
        top = np.maximum.reduceat(z, starts)
        e = np.exp(z - np.repeat(top, lengths))
        total = np.add.reduceat(e, starts)
        value = each @ (top + np.log(total) - np.add.reduceat(target * z, starts)) + L2 * weights @ weights
        slope = data.T @ (np.repeat(each, lengths) * (e / np.repeat(total, lengths) - target)) + 2 * L2 * weights
        return float(value), slope

    bounds = [(0.0, None)] * len(NAMES)
    found = minimize(loss, np.full(len(NAMES), 0.1), jac=True, method="L-BFGS-B", bounds=bounds, options=_PATIENT)
    return np.asarray(found.x / scale)


def calibrate(asked: Sequence[Asked], scores: Sequence[Array]) -> dict[str, float]:
    """The logistic curve from (score, gap to the best, the best's lead) to the share of answers."""
    data = np.concatenate([_standing(s) for s in scores])
    target = np.concatenate([one.answers for one in asked]).astype(np.float64)
    counts = Counter((one.part, one.source) for one in asked)
    each = np.concatenate([np.full(len(one.answers), counts[one.part, one.source] ** -0.5) for one in asked])
    each /= each.sum()

    def loss(weights: Array) -> tuple[float, Array]:
        z = np.clip(data @ weights, -30, 30)
        return float(each @ (np.logaddexp(0, z) - target * z)), data.T @ (each * (1 / (1 + np.exp(-z)) - target))

    bounds = [(None, None), *[(0.0, None)] * 3]
    start = np.array([-3.0, 0.5, 0.1, 0.1])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_PATIENT).x
    return dict(zip(CURVE, (round(value, 5) for value in best.tolist()), strict=True))


def _standing(scores: Array) -> Array:
    best = best_of(scores.tolist())
    return np.stack([np.ones(len(scores)), scores, scores - best.score, best.lead * (scores == best.score)], 1)


def print_curve(asked: Sequence[Asked], scores: Sequence[Array]) -> None:
    """What the best passages' probabilities say and how often they are right, by curves that never saw the source."""
    said: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for source in sorted({one.source for one in asked}):
        other = [i for i, one in enumerate(asked) if one.source != source]
        curve = np.array(list(calibrate([asked[i] for i in other], [scores[i] for i in other]).values()))
        for one, score in zip(asked, scores, strict=True):
            if one.source == source:
                best = int(score.argmax())
                likely = 1 / (1 + np.exp(-(_standing(score)[best] @ curve)))
                said[one.part, "all" if one.part == NONE else source].append((float(likely), bool(one.answers[best])))
    for (part, source), pairs in said.items():
        likely, right = np.mean(pairs, axis=0)
        print(f"{part:6}{source:14}{len(pairs):6} questions: said {likely:.2f}, right {right:.2f}")
    for low in np.arange(0, 1, 0.2):
        some = [pair for pairs in said.values() for pair in pairs if low <= pair[0] < low + 0.2]
        if some:
            print(f"said {low:.1f} to {low + 0.2:.1f}: right {np.mean(some, axis=0)[1]:.2f} of {len(some)}")


def held_out(asked: Sequence[Asked]) -> list[Array]:
    """For every question its scores by weights that never saw its source; of filings, its filing."""
    by_fold: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(asked):
        by_fold[one.group if one.source == FILINGS and one.part == WHOLE else one.source].append(i)
    found: list[Any] = [None] * len(asked)
    for fold in by_fold.values():
        held = set(fold)
        weights = weights_of([one for i, one in enumerate(asked) if i not in held])
        for i in fold:
            found[i] = asked[i].features @ weights
    return found


def print_figures(asked: Sequence[Asked], ways: dict[str, Sequence[Array]]) -> None:
    """How often an answer is among the first 1, 3 and 6 passages: about what 350, 1,000 and 2,000 tokens hold."""
    sources = sorted({one.source for one in asked})
    print(f"{'answer in first 1/3/6':24}" + "".join(f"{name:>20}" for name in sources))
    for name, scores in ways.items():
        cells = []
        for source in sources:
            some = [
                one.answers[np.argsort(-score, kind="stable")]
                for one, score in zip(asked, scores, strict=True)
                if one.source == source and one.part == WHOLE
            ]
            cells.append("/".join(f"{np.mean([ranked[:k].any() for ranked in some]):.3f}" for k in (1, 3, 6)))
        print(f"{name:24}" + "".join(f"{cell:>20}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/satchel-documents"))
    parser.add_argument("--again", action="store_true", help="use the features gathered before")
    arguments = parser.parse_args()
    kept = arguments.work / "asked.pickle"
    if not (arguments.again and kept.exists()):
        arguments.work.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps([tuple(one) for one in gather(arguments.eval / "data", arguments.work)]))
    asked = [Asked(*one) for one in pickle.loads(kept.read_bytes())]
    asked = [one for one in asked if len(one.answers)]
    scores = held_out(asked)
    words = [one.features[:, NAMES.index("best_text")] for one in asked]
    print_figures(asked, {"words (best_text)": words, "documents (held out)": scores})
    print_curve(asked, scores)
    weights = weights_of(asked)
    learned = {
        "features": {name: round(value, 4) for name, value in zip(NAMES, weights.tolist(), strict=True) if value},
        "calibration": calibrate(asked, scores),
    }
    arguments.out.write_text(json.dumps(learned, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(learned, indent=2))


if __name__ == "__main__":
    main()
