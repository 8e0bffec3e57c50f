"""Choose the vocabulary, start every row from the distilled model, and turn the pairs into numbers for ``train.py``.

Whole packages are held out for validation; the vocabulary and the training see none of them.
"""

import argparse
import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from pieces import Pieces, Vector

from satchel.text.words import words

ROWS = 34_800
"""256 bytes, a scale and about eight letters each: just under 9.5 MB."""
HELD_OUT = 12
"""One package in so many is for validation."""
MOST_OF_A_KIND = 90_000
VALIDATION_PAIRS = 2_000
SIF = 1e-3
LENGTH = 9.0
"""How long a rare piece's row is before training: about what model2vec gives, so that rates mean the same."""
_PIECE = re.compile(r"(##)?([a-z]+|[0-9]+)")
"""What the word splitter can ever ask for in ASCII: letters or digits, never both."""


def held_out(package: str) -> bool:
    """Whether the package is for validation; the same answer on every machine."""
    family = package.split("/", 1)[1].split("/", maxsplit=1)[0]  # @scope/a and @scope/b are one family
    return hashlib.sha256(family.encode()).digest()[0] % HELD_OUT == 0


def distilled(folder: Path) -> tuple[list[str], Vector]:
    """The teacher's pieces that code or English text can use, and their vectors."""
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder)
    row = model.tokenizer.get_vocab()
    pieces = sorted((p for p in row if _PIECE.fullmatch(p)), key=lambda piece: row[piece])
    return pieces, model.embedding[[row[p] for p in pieces]].astype(np.float32)


def weighted(rows: Vector, seen: Vector) -> Vector:
    """Rows of a length that falls with how many texts use them.

    model2vec guesses a piece's frequency from its place in the vocabulary; here it is known.
    """
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(unit * (LENGTH * SIF / (SIF + seen / seen.sum()))[:, None], dtype=np.float32)


def count_words(texts: list[str]) -> Counter[str]:
    found = Counter[str]()
    for text in texts:
        found.update(set(words(text)))
    return found


def whole_words(pairs: list[dict[str, str]], pieces: Pieces, most: int) -> list[str]:
    """The most frequent words that the vocabulary breaks, if at least four packages use them."""
    per_package: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        per_package[pair["package"]].append(pair["query"] + "\n" + pair["text"])
    total, packages = Counter[str](), Counter[str]()
    with ProcessPoolExecutor(2) as pool:
        for counts in pool.map(count_words, per_package.values(), chunksize=16):
            packages.update(counts.keys())
            for word, count in counts.items():
                total[word] += min(count, 50)  # a package's own name is not everybody's word
    broken = [w for w, _ in total.most_common() if _PIECE.fullmatch(w) and w.isalpha() and 2 <= len(w) <= 20]
    return [w for w in broken if packages[w] >= 4 and len(pieces.of_word(w)) > 1][:most]


def _encode(job: tuple[list[str], list[str]]) -> tuple[Vector, Vector, Vector]:
    texts, vocabulary = job
    pieces = Pieces(vocabulary)
    lengths, rows, counts = [], [], []
    for text in texts:
        found = pieces.counts(text)
        lengths.append(len(found))
        rows.extend(found.keys())
        counts.extend(found.values())
    return np.array(lengths, np.int64), np.array(rows, np.int32), np.array(counts, np.float32)


def encode(texts: list[str], vocabulary: list[str]) -> dict[str, Vector]:
    """Row numbers and counts of all texts in one flat array each, with where every text starts."""
    parts = [(texts[i : i + 20_000], vocabulary) for i in range(0, len(texts), 20_000)]
    with ProcessPoolExecutor(2) as pool:
        lengths, rows, counts = zip(*pool.map(_encode, parts), strict=True)
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return {"starts": starts, "rows": np.concatenate(rows), "counts": np.concatenate(counts)}


def split(pairs: list[dict[str, str]]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Training and validation pairs; nothing in validation repeats a training query or text."""
    training = [p for p in pairs if not held_out(p["package"])]
    seen = {p["query"].lower() for p in training} | {p["text"][:200] for p in training}
    chosen: dict[str, list[dict[str, str]]] = defaultdict(list)
    for pair in pairs:
        if held_out(pair["package"]) and pair["query"].lower() not in seen and pair["text"][:200] not in seen:
            seen |= {pair["query"].lower(), pair["text"][:200]}  # nor may validation have two right answers
            chosen[pair["kind"]].append(pair)
    return training, [p for kind in chosen.values() for p in kind[:VALIDATION_PAIRS]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("distilled", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    with arguments.pairs.open() as lines:
        pairs = [json.loads(line) for line in lines]
    random.Random(0).shuffle(pairs)
    training, validation = split(pairs)
    taken = Counter[str]()
    kept = []
    for pair in training:
        taken[pair["kind"]] += 1
        if taken[pair["kind"]] <= MOST_OF_A_KIND:
            kept.append(pair)

    pieces, vectors = distilled(arguments.distilled)
    basis = Pieces(pieces)
    added = whole_words(kept, basis, ROWS - len(pieces))
    vocabulary = pieces + added
    rows = np.concatenate([vectors, [vectors[list(basis.of_word(word))].sum(0) for word in added]]).astype(np.float32)
    (arguments.out / "vocabulary.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    np.save(arguments.out / "distilled.npy", rows)
    print(f"{len(pieces)} pieces of the teacher and {len(added)} whole words: {' '.join(added[:60])} ... {added[-1]}")

    for name, chosen in (("training", kept), ("validation", validation)):
        kinds = sorted({p["kind"] for p in chosen})
        packages = {package: i for i, package in enumerate(sorted({p["package"] for p in chosen}))}
        arrays = {
            "kind": np.array([kinds.index(p["kind"]) for p in chosen], np.int16),
            "package": np.array([packages[p["package"]] for p in chosen], np.int32),
            "kinds": np.array(kinds),
        }
        for side in ("query", "text"):
            encoded = encode([p[side] for p in chosen], vocabulary)
            arrays |= {f"{side}_{key}": value for key, value in encoded.items()}
        np.savez(arguments.out / f"{name}.npz", **arrays)
        if name == "training":
            seen = np.concatenate([arrays["query_rows"], arrays["text_rows"]])
            np.save(arguments.out / "start.npy", weighted(rows, np.bincount(seen, minlength=len(rows))))
        print(f"{name}: {len(packages)} packages, {dict(Counter(p['kind'] for p in chosen))}")


if __name__ == "__main__":
    main()
