"""Learns the ranker's weights for notes (blocks of prose) from questions with known answers, and writes them to a file.

    python scripts/ranker/fit_notes.py --eval EVAL --work FOLDER [--again] OUT.json

Run it from the root of the repository. EVAL is the folder of the evaluation data (its `data` is enough). Its documents
are cut into blocks as people write them: small untitled ones, middling ones of which the first has the document's
title, and pages of which the first under a heading has that for a title. Every document is seen in all three forms, in
workspaces of several sizes. A block is an answer when it holds (half of) the evidence of a question; a document of a
test collection is an answer when its judges said so.

Two kinds of questions have no answer: those asked of a workspace that is about something else, and those whose answers
were taken out of the candidates. Without them a relevance would say how likely a block is the answer *given that there
is one*.

What is printed is held out: every question is ranked, and its relevance told, by weights and a calibration that never
saw a question on its document. The last table is sterner: they never saw a question of its source.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import random
import re
import shutil
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from fit import WEIGHTS, ndcg
from scipy.optimize import minimize

from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.files import FileState
from satchel.models.outline import WHOLE_FILE, Outline, OutlineBlock, OutlinePiece, embedded_text, text_hash
from satchel.models.search import Filters
from satchel.ports.file_index import NewFile, StoreQuery
from satchel.retrieval.query import understand
from satchel.retrieval.ranking import add_relative, feature_meanings, file_features
from satchel.storage.sqlite.store import EmbeddedStore

Array = np.ndarray[Any, Any]

NAMES: Final = [
    "best_text", "best_coverage", "best_meaning", "stem", "size",
    "relative_text", "relative_meaning", "relative_coverage", "first_text", "first_meaning",
]  # fmt: skip
"""What says something of a block: of a block of one piece, what is said of the file is said of the piece too.

Not `stem_precision`: held out, the order was no worse without it (NDCG@10 0.741 against 0.739).
"""

LEADS: Final = {"lead_text": "best_text", "lead_coverage": "best_coverage", "lead_meaning": "best_meaning"}
"""How far the first is before the second, as a share; 0 for all but the first.."""

MAY_BE_NEGATIVE: Final = {"size"}
FOLDS: Final = 10
CANDIDATES: Final = 60
THRESHOLDS: Final = (0.6, 0.4, 0.25)
"""The one of the specification, and others to compare it with."""
SETS: Final = ("docs_prose", "docs_ir", "docs_contracts", "docs_finance")
LAYOUTS: Final = 3
LONGEST: Final = (350, 800, 1900)
"""How long a block of each layout may be, in characters."""
ALL: Final = [*feature_meanings(), *(name for name in LEADS if name not in feature_meanings())]
UNANSWERED: Final = {"elsewhere": 0.1, "taken out": 0.1}
"""The share of questions that have no answer, by the reason. Nobody knows it: it is assumed."""

_HEADING: Final = re.compile(r"^(?:#+ (.+)|(?:= )+(.+?)(?: =)+)\s*$")
_NO_TITLE: Final = re.compile(r"^(?:section|page) \d+$", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_LEAST_SHARE: Final = 0.5
_TELLING_ANSWER: Final = 12
_PATIENT: Final = {"maxiter": 1000, "ftol": 1e-10, "gtol": 1e-7}


class Block(NamedTuple):
    """A note: its title, what it says, and the document that it is from."""

    title: str
    text: str
    document: str


class Task(NamedTuple):
    """A question, the document (or collection) it is on, and which blocks of a document answer it."""

    id: str
    source: str
    group: str
    query: str
    documents: frozenset[str]
    evidence: tuple[str, ...]
    """What an answering block says; nothing when the whole document is the answer."""
    answers: tuple[str, ...]


class Asked(NamedTuple):
    """A question's candidates: their features, and which of them answer."""

    id: str
    source: str
    group: str
    kind: str
    """`answered`, or why it is not: `elsewhere`, `taken out`."""
    features: Array
    answers: Array
    gold: int


# -- the data


def squeezed(text: str) -> str:
    return " ".join(text.split())


def documents_of(data: Path, set_name: str) -> dict[str, str]:
    """The text of every document by corpus and path."""
    with gzip.open(data / set_name / "corpus.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {f"{row['corpus']}/{row['path']}": row["text"] for row in rows}


def tasks_of(data: Path, set_name: str) -> Iterator[Task]:
    """The questions of which we know the passage, or of which the whole document is the answer."""
    for line in (data / set_name / "dev.jsonl").open():
        row = json.loads(line)
        documents = frozenset(f"{row['corpus']}/{one['path']}" for one in row["gold_files"])
        whole = set_name == "docs_ir"
        if not whole and not row.get("evidence"):
            continue
        yield Task(
            row["id"],
            row["source"],
            row["id"] if whole else min(documents),
            row["query"],
            documents,
            () if whole else tuple(map(squeezed, row["evidence"])),
            tuple(map(squeezed, row.get("answers", ()))),
        )


def blocks_of(document: str, text: str, layout: int) -> list[Block]:
    """A document as notes. Layout 0: small, untitled; 1: middling, the first titled; 2: pages, titled by headings."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    heading = _HEADING.match(first)
    name = squeezed((heading[1] or heading[2]) if heading else first if "covidqa" in document else "")
    if re.search("/(cranfield|cisi)/", document):
        body = text.partition("\n\n")[2]
        body = body.partition("\n\n")[2] if body.startswith("Author:") else body
        title = squeezed(text.partition("\n\n")[0].lstrip("# "))
        # An abstract is a note as it is; some have no title.
        content = squeezed(body)[: LONGEST[-1]]
        return [Block(title if layout else "", content, document)] if content else []
    blocks: list[Block] = []
    for heading_text, paragraphs in _sections(text):
        own = "" if _NO_TITLE.match(heading_text) else heading_text
        for number, content in enumerate(_packed(paragraphs, LONGEST[layout])):
            title = name if not blocks else own if layout == 2 and not number else ""
            blocks.append(Block(title[:150] if layout else "", content, document))
    return blocks


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each heading and the paragraphs under it."""
    heading = ""
    lines: list[str] = []
    for line in text.splitlines():
        found = _HEADING.match(line.strip())
        if found:
            yield heading, _paragraphs(lines)
            heading, lines = squeezed(found[1] or found[2]), []
        else:
            lines.append("" if line.startswith("--- page") else line)
    yield heading, _paragraphs(lines)


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [squeezed(one) for one in re.split(r"\n\s*\n", "\n".join(lines)) if one.strip()]


def _packed(paragraphs: Iterable[str], longest: int) -> Iterator[str]:
    """Sentences put together up to a length; a paragraph's end is a border when enough has been said."""
    held = ""
    for paragraph in paragraphs:
        for sentence in _SENTENCE.split(paragraph):
            # What has no sentences (a table) is cut at words.
            for part in _wrapped(sentence, longest):
                if held and len(held) + len(part) + 1 > longest:
                    yield held
                    held = ""
                held = f"{held} {part}" if held else part
        if len(held) > longest / 3:
            yield held
            held = ""
    if held:
        yield held


def _wrapped(sentence: str, longest: int) -> Iterator[str]:
    while len(sentence) > longest:
        at = sentence.rfind(" ", 1, longest)
        at = at if at > 0 else longest
        yield sentence[:at]
        sentence = sentence[at:].strip()
    if sentence:
        yield sentence


def answering(task: Task, blocks: Sequence[Block]) -> set[int]:
    """The blocks that hold at least half of a piece of evidence, or half of which are evidence."""
    if not task.evidence:
        return {i for i, block in enumerate(blocks) if block.document in task.documents}
    found = set()
    for document in task.documents:
        own = [i for i, block in enumerate(blocks) if block.document == document]
        borders, whole = [], ""
        for i in own:
            borders.append((len(whole), len(whole) + len(blocks[i].text)))
            whole += blocks[i].text + " "
        bare, places = _bare(whole)
        for evidence in task.evidence:
            wanted = _bare(evidence)[0]
            at = bare.find(wanted) if wanted else -1
            if at < 0:
                continue
            start, end = places[at], places[at + len(wanted) - 1] + 1
            for i, (first, last) in zip(own, borders, strict=True):
                shared = min(end, last) - max(start, first)
                if shared > 0 and shared >= _LEAST_SHARE * min(end - start, last - first):
                    found.add(i)
        # The same document may say it twice.
        for answer in task.answers:
            if len(answer) >= _TELLING_ANSWER:
                found |= {i for i in own if answer.lower() in blocks[i].text.lower()}
    return found


def _bare(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text, and where each stood."""
    kept = [(c.lower(), i) for i, c in enumerate(text) if c.isalnum()]
    return "".join(c[0] for c, _ in kept), [i for _, i in kept]


# -- the workspaces


class Workspace(NamedTuple):
    """Blocks that are searched together, the questions asked of them, and those asked in vain."""

    name: str
    blocks: list[Block]
    tasks: list[Task]
    in_vain: list[Task]


def workspaces(data: Path) -> Iterator[Workspace]:
    """Every document in every layout: one large workspace, many small ones, and some in between."""
    texts = {name: documents_of(data, name) for name in SETS}
    tasks = {name: list(tasks_of(data, name)) for name in SETS}
    for layout in range(LAYOUTS):
        for name in SETS:
            chance = random.Random(f"{layout} {name}")
            for number, some in enumerate(_groups(name, sorted(texts[name]), layout, chance)):
                blocks = [
                    block
                    for document in some
                    for block in blocks_of(document, texts[name][document], (layout + _hash(document)) % LAYOUTS)
                ]
                held = set(some)
                own = [task for task in tasks[name] if task.documents & held]
                others = [
                    task for other in ("docs_prose", "docs_ir") for task in tasks[other] if not task.documents & held
                ]
                vain = chance.sample(others, min(len(others), max(len(own) // 2, 1)))
                yield Workspace(f"{layout}-{name}-{number}", blocks, own, vain)


def _groups(name: str, documents: list[str], layout: int, chance: random.Random) -> list[list[str]]:
    if name == "docs_prose":
        chance.shuffle(documents)
        size = (len(documents), 24, 8)[layout]
        return [documents[i : i + size] for i in range(0, len(documents), size)]
    if name == "docs_finance" or (name == "docs_ir" and layout == 0):
        return [documents]
    by_corpus: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        by_corpus[document.partition("/")[0]].append(document)
    return list(by_corpus.values())


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())


def put(store: EmbeddedStore, blocks: Sequence[Block], embedder: StaticEmbedder, *, title_in_text: bool) -> None:
    """Keep every block as a file of one piece, as the product does: known by its title, which its vector heeds too."""
    with store.write() as writer:
        writer.settle_embedder(embedder.name, embedder.dimensions)
        texts = [f"{one.title}\n{one.text}" if title_in_text and one.title else one.text for one in blocks]
        vectors: dict[bytes, str] = {}
        for number, (block, text) in enumerate(zip(blocks, texts, strict=True)):
            data = text.encode()
            state = FileState(blake2b(data, digest_size=16).digest(), len(data), 0, 0)
            last = text.count("\n") + 1
            piece = OutlinePiece(1, last, 0, len(text), 0, (0,))
            called = OutlineBlock("note", block.title, block.title, WHOLE_FILE, 1, last)
            outline = Outline(None, (called,), (piece,))
            embedded = embedded_text(outline, piece, text)
            vectors[text_hash(embedded)] = embedded
            writer.put(NewFile(path_of(number, block.title), state, text, outline))
        writer.put_vectors(list(vectors), embedder.embed_texts(list(vectors.values())))
    store.catch_up()


def path_of(number: int, title: str) -> str:
    """A path of which the store takes the title for the name; its folder and its ending are words of no question."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return f"zq{letters}/{title.replace('/', ' ')}.zqn"


# -- asking


def gather(data: Path, work: Path, *, title_in_text: bool) -> list[Asked]:
    """Every question with its candidates as the product finds them."""
    embedder = StaticEmbedder()
    found: list[Asked] = []
    for space in workspaces(data):
        folder = work / f"store{'-t' if title_in_text else ''}"
        shutil.rmtree(folder, ignore_errors=True)
        store = EmbeddedStore(folder)
        put(store, space.blocks, embedder, title_in_text=title_in_text)
        searcher = Searcher(space.blocks, store, embedder)
        for task in space.tasks:
            gold = answering(task, space.blocks)
            if gold:
                found += searcher.ask(task, gold)
        for task in space.in_vain:
            found += searcher.ask(task, set())
        store.close()
        print(f"{space.name}: {len(space.blocks)} blocks, {len(found)} questions so far", flush=True)
    return found


class Searcher:
    """Asks questions of one workspace."""

    def __init__(self, blocks: Sequence[Block], store: EmbeddedStore, embedder: StaticEmbedder) -> None:
        self._blocks = blocks
        self._store = store
        self._embedder = embedder
        self._places = {path_of(i, block.title): i for i, block in enumerate(blocks)}

    def ask(self, task: Task, gold: set[int]) -> Iterator[Asked]:
        """The question as it is; and, when it has answers, as if they were not there."""
        question = understand(task.query)
        vector = self._embedder.embed_query(question.text)
        query = StoreQuery(terms=question.terms, names=question.names, vector=vector)
        by_file: dict[int, list[Any]] = defaultdict(list)
        for candidate in self._store.search(query, Filters(), top_k=CANDIDATES):
            by_file[candidate.file].append(candidate)
        paths = self._store.paths(list(by_file), Filters())
        numbers = [self._places[paths[file]] for file in by_file]
        rows = [
            file_features(question, self._blocks[number].title, some[0].of_file, [one.signals for one in some])
            for number, some in zip(numbers, by_file.values(), strict=True)
        ]
        answers = np.array([number in gold for number in numbers], bool)
        for kind in ("answered", "taken out") if gold else ("elsewhere",):
            kept = ~answers if kind == "taken out" else np.ones(len(rows), bool)
            if kept.any():
                some = [dict(row) for row, is_kept in zip(rows, kept, strict=True) if is_kept]
                add_relative(some)
                features = np.array([[row.get(name, 0.0) for name in ALL] for row in some], np.float32)
                count = len(gold) if kind == "answered" else 0
                yield Asked(task.id, task.source, task.group, kind, features, answers[kept], count)


# -- learning


class Learned(NamedTuple):
    """What the ranker is given."""

    features: dict[str, float]
    calibration: dict[str, float]

    def scores(self, one: Asked) -> Array:
        return columns(one, list(self.features)) @ np.array(list(self.features.values()))

    def likely(self, one: Asked) -> Array:
        return self.relevance(self.scores(one))

    def relevance(self, scores: Array) -> Array:
        """The relevance of a question's candidates, by their scores."""
        c = self.calibration
        exponent = c["intercept"] + c["slope"] * scores + c["gap"] * (scores - scores.max())
        return np.asarray(1 / (1 + np.exp(-np.clip(exponent, -30, 30))))


def columns(one: Asked, names: Sequence[str]) -> Array:
    return one.features[:, [ALL.index(name) for name in names]].astype(np.float64)


def importance(asked: Sequence[Asked]) -> Array:
    """What each question counts: a source of few questions more than its share; without an answer, as is assumed."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for one in asked:
        counts[one.source, one.kind] += 1
    weights = []
    for one in asked:
        answered = max(counts[one.source, "answered"], 1)
        weight = answered**-0.5
        if one.kind in UNANSWERED:
            share = UNANSWERED[one.kind] / (1 - sum(UNANSWERED.values()))
            weight *= share * answered / counts[one.source, one.kind]
        weights.append(weight)
    return np.array(weights) / sum(weights)


def learn(asked: Sequence[Asked], names: Sequence[str], l2: float) -> Learned:
    """A logistic regression of "this block answers", and then the calibration in the form that the ranker uses."""
    features = weigh(asked, names, l2)
    bare = Learned(features, {})
    return Learned(features, calibrate(asked, [bare.scores(one) for one in asked]))


def weigh(asked: Sequence[Asked], names: Sequence[str], l2: float) -> dict[str, float]:
    """The weights, each for its feature as it is; none points where common sense says that it cannot."""
    data = np.concatenate([columns(one, names) for one in asked])
    scale = data.std(0) + 1e-6
    data = np.hstack([(data - data.mean(0)) / scale, np.ones((len(data), 1))])
    bounds = [(None if name in MAY_BE_NEGATIVE else 0.0, None) for name in names]
    start = np.array([0.1] * len(names) + [-3.0])
    best = logistic(data, asked, [*bounds, (None, None)], start, np.array([l2] * len(names) + [0.0]))
    return dict(zip(names, (best[:-1] / scale).tolist(), strict=True))


def calibrate(asked: Sequence[Asked], scores: Sequence[Array]) -> dict[str, float]:
    """The logistic curve from (score, gap to the best) to the share of answers."""
    data = np.concatenate([np.stack([np.ones(len(s)), s, s - s.max()], 1) for s in scores])
    best = logistic(data, asked, [(None, None), (0.0, None), (0.0, None)], np.array([-3.0, 0.5, 0.1]), np.zeros(3))
    return dict(zip(("intercept", "slope", "gap"), best.tolist(), strict=True))


def logistic(data: Array, asked: Sequence[Asked], bounds: Sequence[Any], start: Array, l2: Array) -> Array:
    """The most likely weights, of all within the bounds."""
    each = np.repeat(importance(asked), [len(one.answers) for one in asked])
    target = np.concatenate([one.answers for one in asked]).astype(np.float64)

    def loss(weights: Array) -> tuple[float, Array]:
        z = np.clip(data @ weights, -30, 30)
        value = float(each @ (np.logaddexp(0, z) - target * z)) + float(l2 @ weights**2)
        return value, data.T @ (each * (1 / (1 + np.exp(-z)) - target)) + 2 * l2 * weights

    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_PATIENT).x)


# -- figures


def folds_by_document(asked: Sequence[Asked]) -> list[list[int]]:
    folds: list[list[int]] = [[] for _ in range(FOLDS)]
    for i, one in enumerate(asked):
        folds[_hash(one.group) % FOLDS].append(i)
    return [fold for fold in folds if fold]


def folds_by_source(asked: Sequence[Asked]) -> list[list[int]]:
    folds: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(asked):
        folds[one.source].append(i)
    return list(folds.values())


def held_out(
    asked: Sequence[Asked], folds: Sequence[Sequence[int]], names: Sequence[str], l2: float
) -> list[tuple[Array, Array]]:
    """For every question its scores and relevances, by what was learned from the other folds."""
    found: list[Any] = [None] * len(asked)
    for fold in folds:
        held = set(fold)
        learned = learn([one for i, one in enumerate(asked) if i not in held], names, l2)
        for i in fold:
            found[i] = learned.scores(asked[i]), learned.likely(asked[i])
    return found


def fused(one: Asked) -> Array:
    """Reciprocal ranks of words and meaning, added."""
    ranks = [
        np.argsort(np.argsort(-columns(one, [name])[:, 0], kind="stable")) for name in ("best_text", "best_meaning")
    ]
    return np.asarray(sum(1 / (60 + 1 + rank) for rank in ranks))


def baselines() -> dict[str, Callable[[Asked], Array]]:
    code = Learned(json.loads(WEIGHTS.read_text())["short"]["features"], {})
    return {
        "words (best_text)": lambda one: columns(one, ["best_text"])[:, 0],
        "meaning (best_meaning)": lambda one: columns(one, ["best_meaning"])[:, 0],
        "RRF of the two": fused,
        "code weights (short)": code.scores,
    }


def quality(asked: Sequence[Asked], scores: Sequence[Array]) -> tuple[float, float, float]:
    """NDCG@10, recall@20 and how often an answer is first, of the questions that have one."""
    rows = []
    for one, some in zip(asked, scores, strict=True):
        if one.kind == "answered":
            ranked = one.answers[np.argsort(-some, kind="stable")]
            rows.append((ndcg(ranked, one.gold), ranked[:20].sum() / min(one.gold, 20), float(ranked[0])))
    return tuple(np.mean(rows, 0).tolist()) if rows else (0.0, 0.0, 0.0)


def print_quality(asked: Sequence[Asked], ways: dict[str, list[Array]]) -> None:
    sources = sorted({one.source for one in asked})
    print(f"{'NDCG@10 / recall@20':26}" + "".join(f"{name:>16}" for name in [*sources, "mean of sources", "all"]))
    for name, scores in ways.items():
        cells = []
        for source in sources:
            chosen = [i for i, one in enumerate(asked) if one.source == source]
            cells.append(quality([asked[i] for i in chosen], [scores[i] for i in chosen])[:2])
        cells += [tuple(np.mean(cells, 0)), quality(asked, scores)[:2]]
        print(f"{name:26}" + "".join(f"{a:>9.3f} /{b:.3f}" for a, b in cells))


def print_reliability(asked: Sequence[Asked], likely: Sequence[Array]) -> None:
    """What was said and what was so, every question counting as in learning; and the error (ECE) over what was said."""
    each = np.concatenate([np.full(len(s), w) for s, w in zip(likely, importance(asked), strict=True)])
    said = np.concatenate(likely)
    was = np.concatenate([one.answers for one in asked]).astype(np.float64)
    bins = np.minimum((said * 10).astype(int), 9)
    error = 0.0
    for number in range(10):
        inside = bins == number
        if inside.any():
            share = each[inside] / each[inside].sum()
            error += float(each[inside].sum() / each.sum()) * abs(float(share @ (said[inside] - was[inside])))
            print(
                f"  {number / 10:.1f}-{number / 10 + 0.1:.1f}: said {share @ said[inside]:.3f},"
                f" was {share @ was[inside]:.3f} (unweighted {was[inside].mean():.3f}, {inside.sum()} blocks)"
            )
    print(f"  error over all blocks {error:.4f}")


def print_threshold(asked: Sequence[Asked], likely: Sequence[Array], threshold: float) -> None:
    """What a threshold keeps: of questions with an answer among the first 20, how many keep one."""
    print(
        f"  {'at ' + str(threshold):14}{'questions':>10}{'gold in 20':>12}{'keep gold':>11}{'of those in 20':>16}"
        f"{'precision':>11}{'blocks each':>13}{'said anything':>15}"
    )
    rows: dict[str, list[tuple[bool, bool, int, int]]] = defaultdict(list)
    for one, some in zip(asked, likely, strict=True):
        order = np.argsort(-some, kind="stable")[:20]
        passed = some[order] >= threshold
        right = one.answers[order]
        row = bool(right.any()), bool((passed & right).any()), int(passed.sum()), int((passed & right).sum())
        for name in (one.source, "all") if one.kind == "answered" else (one.kind,):
            rows[name].append(row)
    for name, some in sorted(rows.items(), key=lambda entry: (entry[0] in (*UNANSWERED, "all"), entry[0])):
        n, found, kept = len(some), sum(row[0] for row in some), sum(row[1] for row in some)
        passed, right = sum(row[2] for row in some), sum(row[3] for row in some)
        print(
            f"  {name:14}{n:>10}{found / n:>12.3f}{kept / n:>11.3f}{kept / max(found, 1):>16.3f}"
            f"{right / max(passed, 1):>11.3f}{passed / n:>13.2f}{sum(row[2] > 0 for row in some) / n:>15.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/satchel-notes"))
    parser.add_argument("--l2", type=float, default=0.00001)
    parser.add_argument("--lead", action="store_true", help="use the features that `features.py` does not know, too")
    parser.add_argument("--unanswered", type=float, help="the share of questions without an answer (0.2)")
    parser.add_argument("--title-in-text", action="store_true", help="blocks begin with their titles, too")
    parser.add_argument("--again", action="store_true", help="use the features gathered before")
    arguments = parser.parse_args()
    asked = gathered(arguments)
    names = [*NAMES, *LEADS] if arguments.lead else NAMES
    if arguments.unanswered is not None:
        UNANSWERED.update(dict.fromkeys(UNANSWERED, arguments.unanswered / len(UNANSWERED)))
    kinds = sorted({one.kind for one in asked})
    print({kind: sum(one.kind == kind for one in asked) for kind in kinds})
    for title, folds in (("document", folds_by_document(asked)), ("source", folds_by_source(asked))):
        print(f"\nHeld out by {title}:")
        found = held_out(asked, folds, names, arguments.l2)
        ways = {name: [way(one) for one in asked] for name, way in baselines().items()}
        print_quality(asked, {**ways, "notes (held out)": [scores for scores, _ in found]})
        print_reliability(asked, [likely for _, likely in found])
        for threshold in THRESHOLDS:
            print_threshold(asked, [likely for _, likely in found], threshold)
    learned = learn(asked, names, arguments.l2)
    kept = {
        "features": {name: round(value, 4) for name, value in learned.features.items() if value},
        "calibration": {name: round(value, 5) for name, value in learned.calibration.items()},
    }
    arguments.out.write_text(json.dumps(kept, indent=2) + "\n")
    print(json.dumps(kept, indent=2))


def gathered(arguments: argparse.Namespace) -> list[Asked]:
    kept = arguments.work / f"asked{'-t' if arguments.title_in_text else ''}.pickle"
    if not (arguments.again and kept.exists()):
        arguments.work.mkdir(parents=True, exist_ok=True)
        found = gather(arguments.eval / "data", arguments.work, title_in_text=arguments.title_in_text)
        kept.write_bytes(pickle.dumps([tuple(one) for one in found]))
    return [Asked(*one) for one in pickle.loads(kept.read_bytes())]


if __name__ == "__main__":
    main()
