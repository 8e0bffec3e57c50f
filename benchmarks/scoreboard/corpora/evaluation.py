"""The sets of an evaluation folder: questions of others on code and documents, with their answers.

The folder is `SATCHEL_EVAL`, or `shared/eval` beside the checkout: `data/<set>/dev.jsonl` holds the questions,
`repos.jsonl` or `corpus.jsonl.gz` what they are asked of.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.scoreboard.corpora.making import made, write_below
from benchmarks.scoreboard.corpora.model import Asked, Kind, Planned, QuestionSet, asked_from
from benchmarks.scoreboard.corpora.repositories import Repositories, Tree, nearest_mirror

CHECKOUT: Final = Path(__file__).resolve().parents[3]


class About(NamedTuple):
    """What the page says about a set."""

    name: str
    title: str
    kind: Kind
    source: str
    folder: str = ""
    """The folder of the questions, if it has another name: the same questions are asked of whole repositories."""

    @property
    def is_whole(self) -> bool:
        """True if the whole repository is asked, not only the folder with its source."""
        return bool(self.folder)


SETS: Final = (
    About(
        "code_semble",
        "Questions about real repositories in 19 languages",
        "code",
        "semble's benchmark annotations (MIT); the repositories under their own licences",
    ),
    About(
        "code_semble_whole",
        "The same questions of whole repositories, with documentation, tests and configuration",
        "code",
        "semble's benchmark annotations (MIT); the repositories under their own licences",
        folder="code_semble",
    ),
    About(
        "code_muloc",
        "GitHub issues of 23 projects: the lines that the fix changed, documentation and configuration too",
        "code",
        "MULocBench; the repositories under their own licences",
    ),
    About(
        "code_swelite",
        "GitHub issues of Django: the lines that the fix changed (ranking: their file)",
        "code",
        "SWE-bench Lite (MIT); Django (BSD-3-Clause)",
    ),
    About(
        "docs_prose",
        "Questions about articles, papers, speeches and chat logs",
        "prose",
        "XQuAD (CC BY-SA 4.0), COVID-QA, Chroma's chunking evaluation (MIT), L-Eval; not redistributed",
    ),
    About("docs_contracts", "Questions about long contracts", "prose", "CUAD (CC BY 4.0), as in L-Eval"),
    About(
        "docs_finance",
        "Questions about annual reports",
        "prose",
        "FinanceBench's open questions (CC BY-NC 4.0); filings of the SEC",
    ),
    About(
        "docs_ir",
        "Test collections with judged documents",
        "prose",
        "Cranfield and CISI (no licence is stated)",
    ),
)
"""Satchel's weights were learned from these very questions (scripts/ranker), so all of them are fitted."""


_ISSUES: Final = frozenset({"code_swelite", "code_muloc"})


def question_sets(work: Path) -> list[QuestionSet]:
    """The sets; without an evaluation folder, or without its part of it, a set has no corpora and says why."""
    data = evaluation_folder() / "data"
    mirror = nearest_mirror(data, CHECKOUT / "benchmarks")
    repositories = Repositories(mirror=mirror, clones=work / "repositories")
    return [
        _question_set(about, data / (about.folder or about.name), work / "trees" / about.name, repositories)
        for about in SETS
    ]


def whole_repositories(work: Path) -> QuestionSet:
    """The questions about repositories, asked of all their files: documentation, tests and configuration too."""
    return next(questions for questions in question_sets(work) if questions.name == "code_semble_whole")


def evaluation_folder() -> Path:
    """Where the evaluation data should be."""
    told = os.environ.get("SATCHEL_EVAL")
    return Path(told).expanduser().resolve() if told else CHECKOUT.parent / "shared" / "eval"


def _question_set(about: About, data: Path, trees: Path, repositories: Repositories) -> QuestionSet:
    planned: tuple[Planned, ...] = ()
    missing = {}
    if (data / "dev.jsonl").is_file():
        planned = tuple(_planned(data, trees, repositories, whole=about.is_whole))
    else:
        missing[about.name] = f"{data / 'dev.jsonl'} is not there; SATCHEL_EVAL names the evaluation folder"
    return QuestionSet(
        name=about.name,
        title=about.title,
        kind=about.kind,
        source=about.source,
        fitted=True,
        planned=planned,
        missing=missing,
    )


def _planned(data: Path, trees: Path, repositories: Repositories, *, whole: bool) -> Iterator[Planned]:
    asked: dict[str, list[Asked]] = defaultdict(list)
    for told in _json_lines((data / "dev.jsonl").read_bytes()):
        # Each issue has a tree of its own; `fast` marks at most eight of a project. Some fixes only add files.
        if told.get("fast", True) and told["gold_files"]:
            asked[told["corpus"]].append(asked_of(told))
    in_git = (data / "repos.jsonl").is_file()
    fill = _from_git(data, repositories, whole=whole) if in_git else _from_texts(data)
    for corpus, questions in asked.items():
        recipe, write = fill(corpus)
        yield Planned(
            name=corpus,
            questions=partial(tuple[Asked, ...], questions),
            folder=partial(made, trees / corpus, recipe, write),
        )


Filling = Callable[[str], tuple[str, Callable[[Path], None]]]
"""By the name of a corpus: what it is made from, and what writes it into a folder."""


def _from_git(data: Path, repositories: Repositories, *, whole: bool) -> Filling:
    told = {one["name"]: one for one in _json_lines((data / "repos.jsonl").read_bytes())}

    def fill(corpus: str) -> tuple[str, Callable[[Path], None]]:
        one = told[corpus]
        tree = Tree(slug=one["slug"], commit=one["commit"])
        if not whole:
            tree = replace(tree, root=one.get("root", ""), endings=tuple(one.get("ext") or ()))
        return repr(tree), partial(repositories.export, tree)

    return fill


def _from_texts(data: Path) -> Filling:
    packed = (data / "corpus.jsonl.gz").read_bytes()
    recipe = hashlib.sha256(packed).hexdigest()

    def write(corpus: str, folder: Path) -> None:
        for one in _json_lines(gzip.decompress(packed)):
            if one["corpus"] == corpus:
                write_below(folder, one["path"], one["text"].encode())

    return lambda corpus: (f"{recipe} {corpus}", partial(write, corpus))


def asked_of(told: Mapping[str, Any]) -> Asked:
    """A question of an evaluation folder: evidence is wanted, else an answer, else the files.

    Of a fix, the lines that it changes (with those around them) are wanted, and its file is to be ranked.
    """
    files = tuple(gold["path"] for gold in told["gold_files"])
    given: dict[str, Any] = {"id": told["id"], "query": told["query"]}
    given["group"] = told.get("source") or told.get("category") or ""
    if told["set"] in _ISSUES and told["gold_spans"]:
        given["lines"] = [f"{one['path']}:{one['start_line']}-{one['end_line']}" for one in told["gold_spans"]]
    elif told.get("evidence"):
        given["phrases"] = told["evidence"]
        given["enough"] = told.get("evidence_threshold", 0.9)
    elif told.get("answers"):
        given["phrases"] = [told["answers"]]
    else:
        given["files"] = files
    return asked_from(given, files)


def _json_lines(raw: bytes) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in raw.split(b"\n") if line.strip())
