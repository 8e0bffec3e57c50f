"""Learns the weights of sections of notes from questions with known answers, and writes them to a file.

    SATCHEL_NOTES=FOLDER python scripts/ranker/fit_sections.py --work FOLDER [--again] OUT.json

Run it from the root of the repository; benchmarks/data/notes/README.md says how to get the notes. Every collection is
imported, and each of its questions gives the sections that the product would rank. A section answers if it has at
least half of the answer's lines. A third of the questions is also put to the other collections, where nothing answers:
without them a relevance would say how likely a section is the answer *given that there is one*.

The weights are those of a logistic regression over single sections, so that the score is a log-odds and needs no
calibration of its own. What is printed is held out: every question is ranked by weights that saw no question on its
collection.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import satchel
from benchmarks.shown.notes import (
    Collection,
    Question,
    answer_lines,
    collections,
    import_collection,
    missing_collections,
    notes_folder,
    questions,
    share_shown,
)
from satchel.models.search import Filters
from satchel.retrieval.query import understand
from satchel.service.engine import ContextEngine
from satchel.workspace.sections import features_of, sections_of

Array = np.ndarray[Any, Any]

NAMES: Final = (
    "found_all", "length", "meaning", "relative_coverage", "relative_found", "relative_meaning", "relative_near",
    "relative_text", "relative_title", "text",
)  # fmt: skip
"""Not `found`, `near`, `coverage` and `title`, of which the share of the best section says more, nor `pairs`."""

L2: Final = 0.5
L2_COMPARED: Final = (0.1, 0.5, 2.0)
HITS: Final = 120
"""Blocks found for a question: as many as the product looks at."""
ANSWERING_SHARE: Final = 0.5
ELSEWHERE: Final = 3
"""One of so many questions is also put to the other collections."""


class Asked(NamedTuple):
    """The sections for a question: their features, and the share of the answer in each."""

    corpus: str
    is_elsewhere: bool
    """Whether nothing in the collection answers the question."""
    features: Array
    shares: Array


# -- the data


def gather(notes: Path) -> Iterator[Asked]:
    """Every question with the sections that the product ranks for it."""
    for collection in collections():
        with tempfile.TemporaryDirectory(prefix="satchel-fit-") as place:
            home = import_collection(collection, notes / collection.name, Path(place))
            engine = satchel.open_engine(home, index_dir=str(Path(place) / "imported"))
            try:
                yield from _asked_of(collection, engine, notes)
            finally:
                engine.close()
        print(f"{collection.name} has been asked", flush=True)


def _asked_of(collection: Collection, engine: ContextEngine, notes: Path) -> Iterator[Asked]:
    for question in questions():
        is_elsewhere = question.corpus != collection.name
        if is_elsewhere and not _is_put_elsewhere(question):
            continue
        hits = engine.search(question.question, top_k=HITS).hits
        sections = sections_of(hits, engine.store, Filters())
        features = features_of(understand(question.question), sections, engine.embedder)
        wanted = answer_lines(question, notes)
        shares = [
            0.0 if is_elsewhere else share_shown(wanted, section.text.source.text(section.lines))
            for section in sections
        ]
        rows = np.array([[row[name] for name in NAMES] for row in features]).reshape(-1, len(NAMES))
        yield Asked(collection.name, is_elsewhere, rows, np.array(shares))


def _is_put_elsewhere(question: Question) -> bool:
    digest = hashlib.md5(question.question.encode(), usedforsecurity=False).hexdigest()
    return int(digest, 16) % ELSEWHERE == 0


# -- learning


def weights_of(asked: Sequence[Asked], l2: float) -> Array:
    """The weights of the features, and the intercept at the end, which is not held small."""
    rows = np.concatenate([_with_one(one.features) for one in asked])
    answers = np.concatenate([one.shares >= ANSWERING_SHARE for one in asked]).astype(float)

    def loss(weights: Array) -> tuple[float, Array]:
        scores = rows @ weights
        held = np.append(weights[:-1], 0.0)
        value = np.sum(np.logaddexp(0, scores) - answers * scores) + l2 * (held @ held) / 2
        return float(value), rows.T @ (_probabilities(scores) - answers) + l2 * held

    return minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x


def _with_one(features: Array) -> Array:
    return np.hstack([features, np.ones((len(features), 1))])


def _probabilities(scores: Array) -> Array:
    return 1 / (1 + np.exp(-scores))


# -- what it is worth


class Judged(NamedTuple):
    """The order of a question's sections, and the probability of the best one."""

    is_elsewhere: bool
    reciprocal_rank: float
    stated: float
    answers: bool


def judged(one: Asked, weights: Array) -> Judged:
    """What the weights make of a question."""
    if not len(one.shares):
        return Judged(one.is_elsewhere, 0.0, 0.0, answers=False)
    stated = _probabilities(_with_one(one.features) @ weights)
    shares = one.shares[np.argsort(-stated, kind="stable")]
    places = np.flatnonzero(shares > 0)
    rank = 1 / (1 + int(places[0])) if len(places) else 0.0
    return Judged(one.is_elsewhere, rank, float(stated.max()), answers=bool(shares[0] >= ANSWERING_SHARE))


def held_out(asked: Sequence[Asked], l2: float) -> list[Judged]:
    """Every question by weights that saw no question on its collection."""
    found = []
    for corpus in sorted({one.corpus for one in asked}):
        weights = weights_of([one for one in asked if one.corpus != corpus], l2)
        found += [judged(one, weights) for one in asked if one.corpus == corpus]
    return found


def print_figures(found: Sequence[Judged], name: str) -> None:
    """The order of the sections, how far the best is from its probability, and how answered questions stand out."""
    answered = [one for one in found if not one.is_elsewhere]
    elsewhere = [one.stated for one in found if one.is_elsewhere]
    rank = np.mean([one.reciprocal_rank for one in answered])
    brier = np.mean([(one.stated - one.answers) ** 2 for one in answered])
    stated, right = (np.mean([getattr(one, field) for one in answered]) for field in ("stated", "answers"))
    apart = np.mean([(one.stated > other) + (one.stated == other) / 2 for one in answered for other in elsewhere])
    print(
        f"{name}: mean reciprocal rank {rank:.3f}, Brier {brier:.3f} (stated {stated:.2f}, right {right:.2f}),"
        f" put elsewhere {np.mean(elsewhere):.2f}, told apart (AUC) {apart:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/satchel-sections"))
    parser.add_argument("--again", action="store_true", help="use the features gathered before")
    arguments = parser.parse_args()
    notes = notes_folder()
    if notes is None or (reason := missing_collections()):
        parser.error(reason if notes else missing_collections())
    kept = arguments.work / "asked.pickle"
    if not (arguments.again and kept.exists()):
        arguments.work.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps([tuple(one) for one in gather(notes)]))
    asked = [Asked(*one) for one in pickle.loads(kept.read_bytes())]
    for l2 in L2_COMPARED:
        print_figures(held_out(asked, l2), f"held out, L2 {l2}")
    *weights, intercept = weights_of(asked, L2).tolist()
    learned = {
        "features": {name: round(value, 4) for name, value in zip(NAMES, weights, strict=True)},
        "calibration": {"intercept": round(intercept, 4), "slope": 1.0, "gap": 0.0},
    }
    arguments.out.write_text(json.dumps(learned, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(learned, indent=2))


if __name__ == "__main__":
    main()
