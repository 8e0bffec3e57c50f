"""Train the row vectors so that a query lies nearer to its own text than to the other texts of its batch.

Every batch holds one kind of pair; blocks of it come from one package, because the product looks for one piece of a
repository among the others of the same repository. Rows are kept near where they start when an anchor is asked for.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from pieces import Vector, weight
from torch.nn.functional import cross_entropy, embedding_bag, normalize

BATCH = 1_024
TEMPERATURE = 0.05
ANCHOR_EVERY = 10
"""Steps between two pulls towards the start; a pull at every step would cost a quarter of the time."""
WEAK_KINDS = ("prose", "sentence", "name")
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Side:
    """All queries, or all texts, as flat arrays of rows and weights."""

    def __init__(self, arrays: dict[str, Vector], side: str, how: str) -> None:
        self.starts = arrays[f"{side}_starts"]
        self.rows = arrays[f"{side}_rows"]
        self.weights = weight(arrays[f"{side}_counts"], how).astype(np.float32)

    def batch(self, chosen: Vector) -> Batch:
        """Rows, weights and offsets as embedding_bag takes them."""
        lengths = self.starts[chosen + 1] - self.starts[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        at = np.repeat(self.starts[chosen] - offsets, lengths) + np.arange(lengths.sum())
        return (
            torch.from_numpy(self.rows[at].astype(np.int64)),
            torch.from_numpy(self.weights[at]),
            torch.from_numpy(offsets),
        )


class Pairs:
    """The prepared pairs of one file."""

    def __init__(self, path: Path, how: str) -> None:
        with np.load(path) as file:
            arrays = dict(file)
        self.kinds = [str(kind) for kind in arrays["kinds"]]
        self.kind, self.package = arrays["kind"], arrays["package"]
        self.query, self.text = Side(arrays, "query", how), Side(arrays, "text", how)
        filled = (np.diff(self.query.starts) > 0) & (np.diff(self.text.starts) > 0)
        self.usable = np.flatnonzero(filled)

    def batches(self, random: np.random.Generator, block: int, most: dict[str, int]) -> list[Vector]:
        """One epoch: every batch of one kind, made of blocks that come from one package each."""
        found = []
        for kind, name in enumerate(self.kinds):
            chosen = random.permutation(self.usable[self.kind[self.usable] == kind])[: most.get(name)]
            chosen = chosen[np.argsort(self.package[chosen], kind="stable")]
            edges = np.flatnonzero(np.diff(self.package[chosen])) + 1
            blocks = [part[i : i + block] for part in np.split(chosen, edges) for i in range(0, len(part), block)]
            random.shuffle(blocks)
            ordered = np.concatenate(blocks)
            found += [ordered[i : i + BATCH] for i in range(0, len(ordered) - BATCH // 2, BATCH)]
        random.shuffle(found)
        return found


def joined(first: Batch, second: Batch) -> Batch:
    """Two batches as one, because one backward pass over all rows is cheaper than two."""
    rows, weights, offsets = zip(first, second, strict=True)
    return torch.cat(rows), torch.cat(weights), torch.cat([offsets[0], offsets[1] + len(first[0])])


def embed(rows: torch.Tensor, batch: Batch, keep: float = 1.0) -> torch.Tensor:
    numbers, weights, offsets = batch
    if keep < 1:
        weights = weights * (torch.rand(len(weights)) < keep)
    return normalize(embedding_bag(numbers, rows, offsets, per_sample_weights=weights, mode="sum"), eps=1e-6)


def reciprocal_ranks(rows: torch.Tensor, pairs: Pairs, chosen: Vector) -> Vector:
    """One over the place of each query's own text among the texts of all the chosen pairs."""
    with torch.no_grad():
        scores = embed(rows, pairs.query.batch(chosen)) @ embed(rows, pairs.text.batch(chosen)).T
        own = scores.diagonal()[:, None]
        return (1 / (1 + (scores > own).sum(1))).numpy()


def validate(rows: torch.Tensor, pairs: Pairs) -> dict[str, float]:
    """Mean reciprocal rank for every kind, and for code within its own package."""
    scores = {}
    inside: list[Vector] = []
    for kind, name in enumerate(pairs.kinds):
        chosen = pairs.usable[pairs.kind[pairs.usable] == kind]
        scores[name] = float(reciprocal_ranks(rows, pairs, chosen).mean())
        if name not in WEAK_KINDS:
            by_package = (chosen[pairs.package[chosen] == p] for p in np.unique(pairs.package[chosen]))
            inside += [reciprocal_ranks(rows, pairs, own) for own in by_package if len(own) >= 50]
    scores["code"] = float(np.mean([value for name, value in scores.items() if name not in WEAK_KINDS]))
    scores["inside"] = float(np.mean([ranks.mean() for ranks in inside]))
    return {name: round(value, 4) for name, value in scores.items()}


def train(start: torch.Tensor, training: Pairs, options: argparse.Namespace) -> torch.Tensor:
    torch.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    rows = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([rows], lr=options.rate, betas=(0.9, 0.99), fused=True)
    most = dict(pair.split("=") for pair in options.most)
    epochs = [
        training.batches(random, options.block, {k: int(v) for k, v in most.items()}) for _ in range(options.epochs)
    ]
    steps = [batch for epoch in epochs for batch in epoch]
    for step, chosen in enumerate(steps):
        optimizer.param_groups[0]["lr"] = options.rate * (1 - step / len(steps))
        both = joined(training.query.batch(chosen), training.text.batch(chosen))
        query, text = embed(rows, both, options.keep).split(len(chosen))
        scores = query @ text.T / TEMPERATURE
        same = torch.arange(len(chosen))
        loss = (cross_entropy(scores, same) + cross_entropy(scores.T, same)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if options.anchor and step % ANCHOR_EVERY == 0:
            with torch.no_grad():
                rows.lerp_(start, options.anchor * ANCHOR_EVERY * optimizer.param_groups[0]["lr"])
        if step % 200 == 0:
            print(f"step {step}/{len(steps)} loss {loss.item():.3f}", flush=True)
    return rows.detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path, help="where the trained float rows go (.npy)")
    parser.add_argument("--count-weight", choices=("log", "raw"), default="log")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--keep", type=float, default=1.0, help="share of the pieces that a step sees")
    parser.add_argument("--anchor", type=float, default=0.0)
    parser.add_argument("--most", nargs="*", default=[], help="kind=number: pairs of the kind in an epoch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    start = torch.from_numpy(np.load(options.prepared / "start.npy"))
    validation = Pairs(options.prepared / "validation.npz", options.count_weight)
    distilled = validate(torch.from_numpy(np.load(options.prepared / "distilled.npy")), validation)
    print("distilled", json.dumps(distilled), flush=True)
    before = validate(start, validation)
    print("weighted ", json.dumps(before), flush=True)
    rows = train(start, Pairs(options.prepared / "training.npz", options.count_weight), options)
    after = validate(rows, validation)
    print("trained  ", json.dumps(after), flush=True)
    np.save(options.out, rows.numpy())
    scores = {"distilled": distilled, "weighted": before, "trained": after}
    about = {"options": {k: str(v) for k, v in vars(options).items()}, **scores}
    options.out.with_suffix(".json").write_text(json.dumps(about, indent=1))


if __name__ == "__main__":
    main()
