"""Add rows for other languages to an English model, trained to land where the English translation lands.

The English rows stay as they are, except those of words that are everyday words of another language and next to
unknown in English ("und", "les"). Targets are the English model's vectors of the translations, and, for frequent words,
a mixture of the English words that the multilingual teacher puts nearest.
"""

import argparse
import hashlib
import json
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import numpy as np
import torch
from parallel import LANGUAGES
from pieces import LONGEST_RUN_ENTRY, Pieces, Vector, read_vocabulary, runs, weight
from prepare import LENGTH, SIF
from tokenizers import Tokenizer, models, trainers
from torch.nn.functional import embedding_bag, log_softmax, normalize

from satchel.text.words import is_caseless

NEW_ROWS = {
    "de": 4_700, "fr": 3_900, "es": 3_900, "pt": 3_500, "ru": 5_300, "zh": 5_200, "ja": 5_000, "ko": 4_200, "ar": 3_800,
}  # fmt: skip
"""Together with the English rows just under 20 MB; more where words inflect or where the script has many letters."""
TEACHER_SHARE = 0.55
"""The share of a language's new rows that is for its frequent words; the others are for the pieces of the texts."""
MOST_PAIRS = {"message": 60_000, "page": 45_000, "dictionary": 40_000}
"""So many of a kind for a language: more catalogue messages say nothing new, and dictionaries say rare words."""
HELD_OUT = {"debian-handbook", "git", "spyder", "okular"}
"""Sources for validation: a handbook, and the messages of a tool, a development environment and a reader."""
VALIDATION_PAIRS = 1_000
BATCH = 1_024
TEMPERATURE = 0.05
NEIGHBOURS = 6
"""English words that stand for a word of another language; the first few are translations, later ones only related."""
TEACHER_LEAST = 0.55
"""Cosine in the teacher below which two words do not mean the same."""
FOREIGN_RATIO = 20.0
"""An English row is given to another language when its word is so much more frequent there."""
LEAST_SHARE, EVERYDAY_SHARE = 1e-4, 5e-3
"""The share of a language's texts that must use such a row; higher for a word that English prose has ("die")."""
ENGLISH_EVERY = 20
"""One English text in so many is enough to count its words."""
LATIN = ("de", "fr", "es", "pt")
ENGLISH_RATIO = 0.1
"""A new entry that English uses more than this share of its own use would cut English names anew: it is dropped."""
Job = tuple[Vector, Vector, Vector]
Counted = tuple[Counter[str], int]
"""In how many texts each word occurs, and the number of texts."""


def read_pairs(path: Path) -> tuple[dict[str, list[dict[str, str]]], dict[str, list[dict[str, str]]]]:
    """Training and validation pairs for each language; no validation text occurs in training."""
    with path.open(encoding="utf-8") as lines:
        pairs = [json.loads(line) for line in lines]
    Random(0).shuffle(pairs)
    training: dict[str, list[dict[str, str]]] = defaultdict(list)
    validation: dict[str, list[dict[str, str]]] = defaultdict(list)
    counts = Counter[tuple[str, str]]()
    for pair in pairs:
        kind = pair["language"], pair["kind"]
        if pair["source"] not in HELD_OUT and counts[kind] < MOST_PAIRS[pair["kind"]]:
            counts[kind] += 1
            training[pair["language"]].append(pair)
    for pair in pairs:
        if pair["source"] in HELD_OUT and len(pair["english"]) >= 40:
            validation[pair["language"]].append(pair)
    for language, chosen in validation.items():
        seen = {pair["english"].lower() for pair in training[language]}
        fresh = {pair["english"].lower(): pair for pair in chosen if pair["english"].lower() not in seen}
        ordered = sorted(fresh.values(), key=lambda p: hashlib.sha256(p["english"].encode()).digest())
        validation[language] = ordered[:VALIDATION_PAIRS]
    return training, validation


def word_counts(pairs: list[dict[str, str]]) -> Counter[str]:
    """In how many texts every word of the foreign side occurs."""
    counts = Counter[str]()
    for pair in pairs:
        counts.update(set(runs(pair["foreign"])))
    return counts


def learned_pieces(counts: Counter[str], caseless: bool, most: int) -> list[str]:
    """Frequent pieces of the words, by byte-pair merges; continuations carry ``##`` in scripts with case."""
    model = models.BPE(unk_token="[UNK]") if caseless else models.WordPiece(unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    make = trainers.BpeTrainer if caseless else trainers.WordPieceTrainer
    trainer = make(vocab_size=most, special_tokens=["[UNK]"], show_progress=False)
    words = (word for word, count in counts.items() for _ in range(round(count**0.5)) if is_caseless(word) == caseless)
    tokenizer.train_from_iterator(words, trainer)
    ranked = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [piece for piece, _ in ranked if piece != "[UNK]"]


def vocabulary_of(language: str, counts: Counter[str], frequent: list[str], known: set[str]) -> list[str]:
    """The language's new entries: its frequent words, then the pieces that its texts are made of."""
    caseless = language in {"zh", "ja", "ko", "ar"}
    most = NEW_ROWS[language]
    added = dict[str, None]()

    def fill(candidates: list[str], limit: int) -> None:
        for piece in candidates:
            fits = not caseless or (is_caseless(piece) and len(piece) <= LONGEST_RUN_ENTRY)
            if len(added) < limit and fits and piece not in known:
                added[piece] = None

    fill(frequent, round(most * TEACHER_SHARE))
    fill(learned_pieces(counts, caseless, 2 * most), most)
    fill(frequent, most)
    return list(added)


def without_english(added: list[str], own: Counted, english: Counted, vocabulary: list[str]) -> list[str]:
    """The new entries except those that would change how the words of English texts are cut."""
    pieces = Pieces(vocabulary + added)
    shares = np.zeros((2, len(pieces.row)))
    for side, (words, texts) in enumerate((own, english)):
        for word, count in words.items():
            if word.isascii():
                shares[side, list(pieces.of_word(word))] += count / texts
    return [piece for piece in added if shares[1, pieces.row[piece]] <= ENGLISH_RATIO * shares[0, pieces.row[piece]]]


def flat(texts: list[str], pieces: Pieces) -> Job:
    """Where each text starts, its rows and their weights."""
    found = [pieces.counts(text) for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(counts) for counts in found])])
    rows = np.fromiter((row for counts in found for row in counts), np.int64)
    counts = np.fromiter((count for counts in found for count in counts.values()), np.float32)
    return starts, rows, weight(counts, "log").astype(np.float32)


def chosen_part(job: Job, chosen: Vector) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows, weights and offsets of the chosen texts as embedding_bag takes them."""
    starts, rows, weights = job
    lengths = starts[chosen + 1] - starts[chosen]
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    at = np.repeat(starts[chosen] - offsets, lengths) + np.arange(lengths.sum())
    return torch.from_numpy(rows[at]), torch.from_numpy(weights[at]), torch.from_numpy(offsets)


def embed(table: torch.Tensor, job: Job, chosen: Vector) -> torch.Tensor:
    """The unit vectors of the chosen texts."""
    rows, weights, offsets = chosen_part(job, chosen)
    return normalize(embedding_bag(rows, table, offsets, per_sample_weights=weights, mode="sum"), eps=1e-6)


def embed_all(table: torch.Tensor, job: Job) -> Vector:
    """The unit vectors of all texts."""
    count = len(job[0]) - 1
    with torch.no_grad():
        parts = [embed(table, job, np.arange(i, min(i + 8_192, count))) for i in range(0, count, 8_192)]
    return torch.cat(parts).half().numpy()


def teacher_targets(folder: Path, language: str, english: Vector) -> tuple[list[str], Vector]:
    """Frequent words of the language and, for each, a mixture of the nearest English words' vectors."""
    words = (folder / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    own = np.load(folder / f"{language}.npy").astype(np.float32)
    theirs = np.load(folder / "en.npy").astype(np.float32)
    usable = np.linalg.norm(english, axis=1) > 0
    kept, targets = [], []
    for first in range(0, len(words), 2_000):
        scores = np.where(usable, own[first : first + 2_000] @ theirs.T, -1.0)
        nearest = np.argpartition(-scores, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        cosines = np.take_along_axis(scores, nearest, axis=1)
        shares = np.exp((cosines - cosines.max(1, keepdims=True)) / TEMPERATURE)
        mixed = (shares[:, :, None] * english[nearest]).sum(1)
        for i in np.flatnonzero(cosines.max(1) >= TEACHER_LEAST):
            kept.append(words[first + i])
            targets.append(mixed[i] / np.linalg.norm(mixed[i]))
    return kept, np.array(targets, np.float16)


def started(job: Job, targets: Vector, count: int, first: int) -> Vector:
    """New rows from the mean target of the texts that have them, shorter for pieces that stand in many texts."""
    starts, rows, _ = job
    lengths = np.diff(starts)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.zeros((count, targets.shape[1]), np.float32)
    mean = targets.astype(np.float32).mean(0)
    order = np.argsort(rows, kind="stable")
    edges = np.searchsorted(rows[order], np.arange(first, first + count + 1))
    for i in range(count):
        texts = owners[order[edges[i] : edges[i + 1]]][:500]
        sums[i] = ((targets[texts] - mean) / lengths[texts, None]).sum(0) if len(texts) else 0
    seen = np.diff(edges)
    unit = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    return np.asarray(unit * (LENGTH * SIF / (SIF + seen / max(len(rows), 1)))[:, None] * 1.5, np.float32)


def train(
    table: Vector, free: Vector, jobs: dict[str, Job], targets: dict[str, Vector], options: argparse.Namespace
) -> Vector:
    """The table with its free rows trained."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    rows = torch.from_numpy(table).requires_grad_()
    mask = torch.from_numpy(free[:, None].astype(np.float32))
    optimizer = torch.optim.Adam([rows], lr=options.rate, betas=(0.9, 0.99), fused=True)
    batches = []
    for _ in range(options.epochs):
        for language, job in jobs.items():
            usable = random.permutation(np.flatnonzero(np.diff(job[0]) > 0))
            batches += [(language, usable[i : i + BATCH]) for i in range(0, len(usable) - BATCH, BATCH)]
    random.shuffle(batches)
    for step, (language, chosen) in enumerate(batches):
        optimizer.param_groups[0]["lr"] = options.rate * (1 - step / len(batches))
        english = torch.from_numpy(targets[language][chosen].astype(np.float32))
        foreign = embed(rows, jobs[language], chosen)
        with torch.no_grad():
            wanted = torch.softmax(english @ english.T / TEMPERATURE, dim=1)
        scores = foreign @ english.T / TEMPERATURE
        losses = [-(wanted * log_softmax(part, dim=1)).sum(1).mean() for part in (scores, scores.T)]
        apart = 1 - (foreign * english).sum(1).mean()
        loss = (losses[0] + losses[1]) / 2 + options.near * apart
        optimizer.zero_grad()
        loss.backward()
        assert rows.grad is not None
        rows.grad.mul_(mask)
        optimizer.step()
        if step % 200 == 0:
            print(
                f"step {step}/{len(batches)} {language} loss {loss.item():.3f} distance {apart.item():.3f}", flush=True
            )
    return rows.detach().numpy()


def validate(
    table: Vector, pieces: Pieces, validation: dict[str, list[dict[str, str]]]
) -> dict[str, tuple[float, ...]]:
    """Per language: mean reciprocal rank of the English text, share in the first five, cosine of the right text."""
    rows = torch.from_numpy(table)
    scores = {}
    for language in LANGUAGES:
        pairs = validation[language]
        english = embed_all(rows, flat([pair["english"] for pair in pairs], pieces)).astype(np.float32)
        foreign = embed_all(rows, flat([pair["foreign"] for pair in pairs], pieces)).astype(np.float32)
        found = foreign @ english.T
        own = found.diagonal()[:, None]
        ranks = 1 + (found > own).sum(1) + (np.abs(foreign).sum(1) == 0) * len(pairs)
        scores[language] = (
            len(pairs),
            *(round(float(x), 3) for x in ((1 / ranks).mean(), (ranks <= 5).mean(), own.mean())),
        )
    return scores


def foreign_rows(jobs: dict[str, Job], english: list[str], common: set[str], old: Pieces) -> Vector:
    """The English rows that some other language uses far more often than English code and prose do."""
    count = len(old.row)
    own_job = flat(english, old)
    own = np.bincount(own_job[1], minlength=count)[:count] / len(english)
    most = np.zeros(count)
    for starts, rows, _ in jobs.values():
        most = np.maximum(most, np.bincount(rows, minlength=count)[:count] / (len(starts) - 1))
    needed = np.array([EVERYDAY_SHARE if piece in common else LEAST_SHARE for piece in old.row])
    return np.flatnonzero((most > needed) & (most > FOREIGN_RATIO * (own + 1e-5)))


def english_sample(path: Path) -> list[str]:
    """Some texts of the English training pairs."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for i, line in enumerate(lines) if i % ENGLISH_EVERY == 0]


class Data:
    """The vocabulary with the new entries, and for each language its texts and their targets."""

    def __init__(self, options: argparse.Namespace, training: dict[str, list[dict[str, str]]], base: Vector) -> None:
        self.english_texts = english_sample(options.english_pairs)
        english = Counter(word for text in self.english_texts for word in set(runs(text)))
        self.vocabulary = read_vocabulary(options.english)
        self.old = Pieces(list(self.vocabulary))
        known = set(self.vocabulary)
        for language in LANGUAGES:
            lines = (options.words / f"{language}.txt").read_text(encoding="utf-8").splitlines()
            frequent = [found[0] for found in map(runs, lines) if len(found) == 1]
            counts = word_counts(training[language])
            added = vocabulary_of(language, counts, frequent, known)
            if language in LATIN:
                own = counts, len(training[language])
                added = without_english(added, own, (english, len(self.english_texts)), self.vocabulary)
            known |= set(added)
            self.vocabulary += added
        self.pieces = Pieces(self.vocabulary)
        self.jobs: dict[str, Job] = {}
        self.targets: dict[str, Vector] = {}
        self.english_words = (options.words / "en.txt").read_text(encoding="utf-8").splitlines()
        table = torch.from_numpy(base)
        english_vectors = embed_all(table, flat(self.english_words, self.old)).astype(np.float32)
        for language in LANGUAGES:
            words, mixed = teacher_targets(options.words, language, english_vectors)
            self.jobs[language] = flat([pair["foreign"] for pair in training[language]] + words, self.pieces)
            original = embed_all(table, flat([pair["english"] for pair in training[language]], self.old))
            self.targets[language] = np.concatenate([original, mixed])
            kinds = dict(Counter(pair["kind"] for pair in training[language]))
            print(f"{language}: {kinds}, {len(words)} words", flush=True)

    def new_rows(self, first: int) -> Vector:
        """The rows of the new entries before training."""
        lengths = np.concatenate([np.diff(job[0]) for job in self.jobs.values()])
        rows, weights = (np.concatenate([job[i] for job in self.jobs.values()]) for i in (1, 2))
        everything = np.concatenate([[0], np.cumsum(lengths)]), rows, weights
        targets = np.concatenate(list(self.targets.values()))
        return started(everything, targets, len(self.vocabulary) - first, first)


def main() -> None:
    """Write the vocabulary and the float rows of the extended model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("words", type=Path, help="the folder that teach_words.py wrote")
    parser.add_argument("english", type=Path, help="vocabulary.txt of the English model")
    parser.add_argument("english_rows", type=Path, help="its rows as .npy")
    parser.add_argument("english_pairs", type=Path, help="the pairs that harvest.py wrote")
    parser.add_argument("out", type=Path)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--near", type=float, default=1.0, help="weight of the plain distance to the target")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)

    training, validation = read_pairs(options.pairs)
    base = np.load(options.english_rows).astype(np.float32)
    data = Data(options, training, base)
    table = np.concatenate([base, data.new_rows(len(base))])
    free = np.arange(len(data.vocabulary)) >= len(base)
    given = foreign_rows(data.jobs, data.english_texts, set(data.english_words), data.old)
    free[given] = True
    print(f"{len(table)} rows; English rows for other languages: {len(given)}")
    print("before", validate(table, data.pieces, validation), flush=True)
    trained = train(table.copy(), free, data.jobs, data.targets, options)
    print("after", validate(trained, data.pieces, validation))
    (options.out / "vocabulary.txt").write_text("\n".join(data.vocabulary) + "\n", encoding="utf-8")
    np.save(options.out / "rows.npy", trained)


if __name__ == "__main__":
    main()
