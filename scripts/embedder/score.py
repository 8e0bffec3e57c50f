"""Scores of an exported model, read with the product's own loader.

English: mean reciprocal rank of each held-out query's text among the texts of its kind. Other languages: that of the
English text of each held-out translation, and beside it how often it is among the first five and the mean cosine.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
from multilingual import read_pairs
from parallel import LANGUAGES
from prepare import split

from satchel.integrations.embedders.static_embedder import StaticEmbedder

WEAK_KINDS = ("prose", "sentence", "name")


def ranks_of(queries: list[str], texts: list[str], embedder: StaticEmbedder) -> tuple[np.ndarray, np.ndarray]:
    """The place of each query's own text among all texts, and its cosine."""
    asked, found = embedder.embed_texts(queries), embedder.embed_texts(texts)
    scores = asked @ found.T
    own = scores.diagonal()
    return 1 + (scores > own[:, None]).sum(1) + (own == 0) * len(texts), own


def english_scores(path: Path, embedder: StaticEmbedder) -> dict[str, float]:
    """Mean reciprocal rank for each kind of the held-out packages' pairs, and the mean over code."""
    with path.open(encoding="utf-8") as lines:
        pairs = [json.loads(line) for line in lines]
    random.Random(0).shuffle(pairs)
    kinds = defaultdict(list)
    for pair in split(pairs)[1]:
        kinds[pair["kind"]].append(pair)
    scores = {}
    for kind, own in sorted(kinds.items()):
        ranks, _ = ranks_of([pair["query"] for pair in own], [pair["text"] for pair in own], embedder)
        scores[kind] = round(float((1 / ranks).mean()), 4)
    scores["code"] = round(float(np.mean([value for kind, value in scores.items() if kind not in WEAK_KINDS])), 4)
    return scores


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--english", type=Path, help="the pairs that harvest.py wrote")
    parser.add_argument("--parallel", type=Path, help="the pairs that parallel.py wrote")
    arguments = parser.parse_args()
    embedder = StaticEmbedder(arguments.model)
    if arguments.english:
        print(embedder.name, english_scores(arguments.english, embedder))
    if arguments.parallel:
        _, validation = read_pairs(arguments.parallel)
        for language in LANGUAGES:
            texts = [pair["english"] for pair in validation[language]]
            ranks, cosines = ranks_of([pair["foreign"] for pair in validation[language]], texts, embedder)
            reciprocal, first_five, cosine = (1 / ranks).mean(), (ranks <= 5).mean(), cosines.mean()
            print(f"{language}: {len(texts)} texts, MRR {reciprocal:.3f}, in 5 {first_five:.3f}, cosine {cosine:.2f}")


if __name__ == "__main__":
    main()
