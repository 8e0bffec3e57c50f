"""Finds the pages of filings that answer questions: BM25 over pages, and Satchel, scored the same way.

    python benchmarks/documents_bench.py EVAL [--pdf PAGES]

EVAL is the folder of the evaluation data (its `data/docs_finance` is enough). A page is right when it is one that the
question's makers marked. Page recall is the share of a question's right pages among the first five and ten pages that
are returned; coverage is how often the context within a budget of tokens shows the evidence that they marked on those
pages, at least half of each one's runs of five words, as `ctxeval.py` has it; the share shown is the mean of those
shares. The spread is that of a bootstrap over the questions: there are few.

BM25 sees every page with the words of its file's name before it, stemmed and without stop words, `FY2022` also
as `FY` and `2022`; of some usual settings the one that does best on these very questions is taken. Its context is its
pages, best first, cut at the budget.

With `--pdf` the first so many pages of every filing are drawn into a PDF, which Satchel reads as it reads any; questions
on later pages are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import bm25s
import numpy as np
import Stemmer

from satchel.models.search import SearchHit
from satchel.service.engine import ENGINE_OPTIONS
from satchel.service.factory.opening import open_engine
from satchel.tokens.registry import counter_for

BUDGETS: Final = (2000, 4000, 8000)
FIRST: Final = (5, 10)
SETTINGS: Final = tuple((k1, b) for k1 in (0.9, 1.2, 1.5, 2.0) for b in (0.4, 0.75, 0.9))
MOST_PAGES: Final = 50
MOST_HITS: Final = 120
BOOTSTRAPS: Final = 10_000
SHOWN_SHARE: Final = 0.5

_MARK: Final = re.compile(r"^--- page (\d+) ---\n?", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")
_MIXED: Final = re.compile(r"\b(?:[A-Za-z]+[0-9]+|[0-9]+[A-Za-z]+)\b")
_PART: Final = re.compile(r"[A-Za-z]+|[0-9]+")

Place = tuple[str, int]
"""A filing and the number of a page."""


class Task(NamedTuple):
    """A question, its right pages, and what of them answers it."""

    question: str
    right: frozenset[Place]
    evidence: tuple[str, ...]


class Answer(NamedTuple):
    """The pages, best first, and for each budget the text that is shown."""

    pages: list[Place]
    shown: dict[int, str]


def read_pages(data: Path) -> dict[Place, str]:
    """Every page of every filing."""
    pages = {}
    with gzip.open(data / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            parts = _MARK.split(row["text"].replace("\0", " "))
            for number, text in zip(parts[1::2], parts[2::2], strict=True):
                pages[Path(row["path"]).stem, int(number)] = text
    return pages


def read_tasks(data: Path) -> Iterator[Task]:
    """The questions."""
    for row in map(json.loads, (data / "dev.jsonl").open(encoding="utf-8")):
        right = frozenset((Path(one["path"]).stem, one["page"]) for one in row["gold_spans"])
        yield Task(row["query"], right, tuple(row["evidence"]))


# -- the contestants


class Bm25:
    """BM25 over pages."""

    def __init__(self, pages: dict[Place, str], k1: float, b: float) -> None:
        self._places = list(pages)
        self._pages = pages
        self._stemmer = Stemmer.Stemmer("english")
        self._index = bm25s.BM25(k1=k1, b=b)
        texts = [f"{filing.replace('_', ' ')}\n{text}" for (filing, _), text in pages.items()]
        self._index.index(self._terms(texts), show_progress=False)

    def _terms(self, texts: list[str]) -> Any:
        split = [_MIXED.sub(lambda found: " ".join((found[0], *_PART.findall(found[0]))), text) for text in texts]
        return bm25s.tokenize(split, stopwords="en", stemmer=self._stemmer, show_progress=False)

    def ask(self, question: str) -> Answer:
        """The pages by their scores, whole."""
        found, _ = self._index.retrieve(self._terms([question]), k=MOST_PAGES, show_progress=False)
        pages = [self._places[i] for i in found[0]]
        texts = "\n\n".join(f"### {filing} page {number}\n{self._pages[filing, number]}" for filing, number in pages)
        return Answer(pages, {budget: cut(texts, budget) for budget in BUDGETS})


class Satchel:
    """The engine over filings, each one text whose pages stand under headings."""

    def __init__(self, pages: dict[Place, str], folder: Path) -> None:
        texts: dict[str, list[str]] = {}
        self._page_at: dict[str, list[int]] = {}
        for (filing, number), text in pages.items():
            lines = [f"# page {number}", *text.rstrip("\n").split("\n"), ""]
            texts.setdefault(filing, []).extend(lines)
            self._page_at.setdefault(filing, []).extend([number] * len(lines))
        root = folder / "filings"
        root.mkdir()
        for filing, lines in texts.items():
            self._write(root / filing, lines)
        self._engine = open_engine(root, index_dir=str(folder / "index"), history_commits=0, max_file_bytes=10_000_000)
        self._engine.index()

    def _write(self, file: Path, lines: list[str]) -> None:
        file.with_name(f"{file.name}.md").write_text("\n".join(lines), encoding="utf-8")

    def _page(self, hit: SearchHit) -> Place:
        filing = Path(hit.path).stem
        return filing, self._page_at[filing][hit.start_line - 1]

    def ask(self, question: str) -> Answer:
        """The pages on which the hits begin, in their order; and the context as it is built."""
        pages = dict.fromkeys(map(self._page, self._engine.search(question, top_k=MOST_HITS).hits))
        shown = {b: self._engine.build(question, replace(ENGINE_OPTIONS, max_tokens=b)).context for b in BUDGETS}
        return Answer(list(pages), shown)

    def close(self) -> None:
        """Let go of the index."""
        self._engine.close()


class SatchelOnPdf(Satchel):
    """The engine over the same filings as PDFs."""

    def _write(self, file: Path, lines: list[str]) -> None:
        from reportlab.pdfgen.canvas import Canvas

        width, height = 612, 792
        canvas = Canvas(str(file.with_name(f"{file.name}.pdf")), pagesize=(width, height))
        for _, page in groupby(zip(self._page_at[file.name], lines, strict=True), key=itemgetter(0)):
            shown = [line for _, line in page][1:]
            size = min(9.0, (height - 72) / max(1, len(shown)) / 1.15, (width - 72) / max(1, *map(len, shown)) / 0.5)
            text = canvas.beginText(36, height - 36 - size)
            text.setFont("Helvetica", size, leading=size * 1.15)
            text.textLines(shown, trim=0)
            canvas.drawText(text)
            canvas.showPage()
        canvas.save()

    def _page(self, hit: SearchHit) -> Place:
        filing = Path(hit.path).stem
        numbers = list(dict.fromkeys(self._page_at[filing]))
        return filing, numbers[(hit.page or 1) - 1]


def cut(text: str, budget: int) -> str:
    """The longest beginning within the budget."""
    counter = counter_for("gpt-4o")
    low, high = 0, min(len(text), budget * 12)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter.count(text[:middle]) <= budget else (low, middle - 1)
    return text[:low]


# -- the scores


def runs(text: str) -> set[tuple[str, ...]]:
    """Every five words that follow each other."""
    words = _WORD.findall(text.lower())
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


def score(task: Task, answer: Answer) -> list[float]:
    """Page recall for each of FIRST, then for each budget the coverage, and the mean share of the evidence shown."""
    recalls = [len(task.right & set(answer.pages[:first])) / len(task.right) for first in FIRST]
    covered, shares = [], []
    for budget in BUDGETS:
        shown = runs(answer.shown[budget])
        parts = [len(said & shown) / len(said) for said in (runs(one) for one in task.evidence)]
        covered.append(float(min(parts) >= SHOWN_SHARE))
        shares.append(float(np.mean(parts)))
    return [*recalls, *covered, *shares]


def scores(tasks: Sequence[Task], ask: Callable[[str], Answer]) -> np.ndarray[Any, Any]:
    """A row for each question."""
    return np.array([score(task, ask(task.question)) for task in tasks])


def spread(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Between what 95 of 100 samples of as many questions lie."""
    chance = np.random.default_rng(0)
    means = values[chance.integers(len(values), size=(BOOTSTRAPS, len(values)))].mean(1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


class Measured(NamedTuple):
    """What a run gave: how much was asked of how much, and a row for each figure."""

    pages: int
    questions: int
    rows: list[tuple[str, float, float, float, float]]
    """The figure's name, BM25's value, Satchel's, and between what the difference lies in 95 of 100 samples."""


def measure(data: Path, pdf: int = 0) -> Measured:
    """Run both."""
    pages, tasks = read_pages(data), list(read_tasks(data))
    if pdf:
        pages = {place: text for place, text in pages.items() if place[1] <= pdf}
        tasks = [task for task in tasks if task.right <= pages.keys()]
    tuned = max((scores(tasks, Bm25(pages, k1, b).ask) for k1, b in SETTINGS), key=lambda rows: rows[:, :5].mean())
    with tempfile.TemporaryDirectory(prefix="satchel-documents-") as folder:
        satchel = (SatchelOnPdf if pdf else Satchel)(pages, Path(folder))
        ours = scores(tasks, satchel.ask)
        satchel.close()
    columns = [
        *(f"page recall@{first}" for first in FIRST),
        *(f"cover@{budget}" for budget in BUDGETS),
        *(f"share shown@{budget}" for budget in BUDGETS),
    ]
    return Measured(
        len(pages),
        len(tasks),
        [
            (name, float(tuned[:, i].mean()), float(ours[:, i].mean()), *spread(ours[:, i] - tuned[:, i]))
            for i, name in enumerate(columns)
        ],
    )


def measured(evaluation: Path) -> str:
    """The table for docs/benchmarks.md."""
    found = measure(evaluation / "data" / "docs_finance")
    rows = [
        "| pages of filings | BM25 over pages | Satchel | better by | 95 % of samples | target | met |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for name, theirs, mine, low, high in found.rows:
        target, met = ("0.05", "yes" if mine - theirs >= 0.05 else "NO") if "share" not in name else ("", "")
        rows.append(
            f"| {name} | {theirs:.3f} | {mine:.3f} | {mine - theirs:+.3f} | {low:+.3f} to {high:+.3f} | {target} | {met} |"
        )
    intro = (
        f"FinanceBench's development part ({found.questions} questions on {found.pages:,} pages of eight filings), by "
        "`python benchmarks/documents_bench.py EVAL`. These are among the questions that the ranker of passages was "
        "fitted on, and there are few of them: read the column with the samples. BM25 has stemming, the file's name on "
        "every page, and the best of twelve settings on these very questions."
    )
    return f"{intro}\n\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--pdf", type=int, metavar="PAGES", default=0)
    arguments = parser.parse_args()
    found = measure(arguments.eval / "data" / "docs_finance", arguments.pdf)
    print(f"{found.pages} pages, {found.questions} questions")
    print(f"{'':20}{'BM25':>8}{'Satchel':>9}{'better by':>11}   95 % of samples")
    for name, theirs, mine, low, high in found.rows:
        print(f"{name:20}{theirs:>8.3f}{mine:>9.3f}{mine - theirs:>+11.3f}   {low:+.3f} to {high:+.3f}")


if __name__ == "__main__":
    main()
