"""Questions about one repository, put to it alone and to it with another one: how well the right files are ranked.

python -m benchmarks.roots_bench                 prints the tables of docs/decisions/0062-several-roots.md

The questions and the repositories are those of the evaluation data (`SATCHEL_EVAL`; set code_semble, development part).
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from satchel.models.search import Filters, SearchHit
from satchel.retrieval.search import Searcher
from satchel.service.engine import ENGINE_OPTIONS, ContextEngine
from satchel.service.factory.opening import open_engine
from satchel.service.joint_store import JointFilters, JointFolder, JointStore, Labels
from satchel.service.piece_contexts import PieceContextBuilder

PAIRS: Final = (
    ("requests", "click"),
    ("fastapi", "requests"),
    ("axios", "guzzle"),
    ("chi", "redis"),
    ("model2vec", "rails"),
    ("phoenix", "rails"),
    ("circe", "http4s"),
    ("axum", "click"),
    ("bats-core", "pandoc"),
    ("zls", "vitest"),
    ("dapper", "messagepack-csharp"),
    ("snapkit", "ktor"),
    ("telescope.nvim", "redis"),
)
"""Of like and of unlike languages and sizes."""
ALONE: Final = "the right repository alone"
HITS: Final = 50
RANKS: Final = 10  # NDCG@10, as for the ranker itself
BUDGET: Final = 2000
ALL: Final = Filters()


class EachStoresWords(JointStore):
    """The stores as one, but with the rarity of words in each."""

    __slots__ = ()

    def search(self, query: Any, filters: Filters, *, top_k: int) -> list[Any]:
        """The best candidates of each store, as it ranks them alone."""
        return [
            found._replace(piece=self._number(root, found.piece), file=self._number(root, found.file))
            for root, store, own in self._members(filters)
            for found in store.search(query, own, top_k=top_k)
        ]


class Pair:
    """Two repositories that are asked together."""

    def __init__(self, engines: Mapping[str, ContextEngine]) -> None:
        self.engines = engines
        labels, stores = Labels(list(engines)), tuple(engine.store for engine in engines.values())
        folder = JointFolder(tuple(engine.folder for engine in engines.values()), labels)
        embedder = next(iter(engines.values())).embedder
        self.filters = JointFilters(of_roots=(ALL,) * len(stores))
        self.joint = Searcher(folder, JointStore(stores, labels), embedder)
        self.each = Searcher(folder, EachStoresWords(stores, labels), embedder)

    def ways(self, name: str) -> dict[str, Callable[[str], list[SearchHit]]]:
        """The ways to search for an answer in one of the repositories; all paths begin with a repository's name."""
        return {
            ALONE: lambda question: self._hits_in(name, question),
            "both: hits merged by relevance": self._hits_merged,
            "both: ranked together, words as rare as in each": partial(self._hits_of, self.each),
            "both: ranked together, words as rare as in all": partial(self._hits_of, self.joint),
        }

    def _hits_in(self, name: str, question: str) -> list[SearchHit]:
        found = self.engines[name].search(question, top_k=HITS)
        return [replace(hit, path=f"{name}/{hit.path}") for hit in found.hits]

    def _hits_merged(self, question: str) -> list[SearchHit]:
        hits = [hit for name in self.engines for hit in self._hits_in(name, question)]
        return sorted(hits, key=lambda hit: -hit.relevance)

    def _hits_of(self, searcher: Searcher, question: str) -> list[SearchHit]:
        return list(searcher.search(question, top_k=HITS, filters=self.filters).hits)

    def sufficiency(self, question: str) -> float:
        """How likely the joint context answers."""
        options = replace(ENGINE_OPTIONS, max_tokens=BUDGET)
        judged = PieceContextBuilder(self.joint).build(question, options, filters=self.filters).sufficiency
        return judged.probability if judged else 0.0


def main() -> None:
    """Print how well right files are ranked, and how well the sufficiency tells right from wrong repositories."""
    data = Path(os.environ["SATCHEL_EVAL"])
    questions = defaultdict(list)
    for line in (data / "data" / "code_semble" / "dev.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        questions[row["corpus"]].append(row)
    with tempfile.TemporaryDirectory() as index, ExitStack() as opened:
        engines = {}
        for name in sorted({name for pair in PAIRS for name in pair}):
            folder = data / "trees" / "code_semble" / name
            engines[name] = opened.enter_context(open_engine(folder, index_dir=index))
            engines[name].index()
        pairs = [Pair({name: engines[name] for name in names}) for names in PAIRS]
        _print_ranking(pairs, questions)
        _print_sufficiency(pairs, questions)


def _print_ranking(pairs: Sequence[Pair], questions: Mapping[str, list[Any]]) -> None:
    scores: dict[str, list[float]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    for pair in pairs:
        for name, row in _asked(pair, questions):
            gold = {f"{name}/{file['path']}" for file in row["gold_files"]}
            for way, search in pair.ways(name).items():
                began = perf_counter()
                paths = list(dict.fromkeys(hit.path for hit in search(row["query"])))
                seconds[way] += perf_counter() - began
                scores[way].append(_ndcg(paths, gold))
    print(f"{len(scores[ALONE])} questions, {len(pairs)} pairs: NDCG@{RANKS} of files, time relative to one")
    for way, values in scores.items():
        print(f"  {way}: {mean(values):.3f}  {seconds[way] / seconds[ALONE]:.1f}")


def _print_sufficiency(pairs: Sequence[Pair], questions: Mapping[str, list[Any]]) -> None:
    right, wrong = [], []
    for place, pair in enumerate(pairs):
        for number, (name, row) in enumerate(_asked(pair, questions)):
            other = next(p for p in (*pairs[place + 1 :], *pairs) if name not in p.engines)
            if number % 2:  # half of them: two contexts for each
                right.append(pair.sufficiency(row["query"]))
                wrong.append(other.sufficiency(row["query"]))
    above = mean((a > b) + (a == b) / 2 for a in right for b in wrong)
    print(f"sufficiency of a pair with the right repository {mean(right):.2f}, of two wrong ones {mean(wrong):.2f}")
    print(f"  told apart (AUC): {above:.2f}")


def _asked(pair: Pair, questions: Mapping[str, list[Any]]) -> Iterator[tuple[str, Any]]:
    yield from ((name, row) for name in pair.engines for row in questions[name])


def _ndcg(paths: Sequence[str], right: set[str]) -> float:
    gained = sum(1 / math.log2(rank + 2) for rank, path in enumerate(paths[:RANKS]) if path in right)
    return gained / sum(1 / math.log2(rank + 2) for rank in range(min(RANKS, len(right))))


if __name__ == "__main__":
    main()
