"""The collections and their questions: repositories, issues, documents and notes, as far as they are on this machine.

Needed are the evaluation folder with its trees checked out (`SATCHEL_EVAL`, see its README) and the notes
(`SATCHEL_NOTES`, see benchmarks/data/notes/README.md).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard.corpora.evaluation import asked_of, evaluation_folder
from benchmarks.scoreboard.evidence import Corpus as Evidence
from benchmarks.shown import notes
from satchel.models.context import Context

REPOSITORIES: Final = "code_semble_whole"
ISSUES: Final = "code_muloc"
DOCUMENTS: Final = "documents"
NOTES: Final = "notes"
IMPORTED: Final = "notes_imported"
SETS: Final = (REPOSITORIES, ISSUES, DOCUMENTS, NOTES, IMPORTED)
TITLES: Final = {
    REPOSITORIES: "questions about repositories",
    ISSUES: "GitHub issues",
    DOCUMENTS: "questions about documents",
    NOTES: "questions about notes, as files",
    IMPORTED: "questions about notes, imported",
}
_DOCUMENT_SETS: Final = ("docs_prose", "docs_contracts", "docs_finance", "docs_ir")
_MOST_OF_SET: Final = {"docs_prose": 150}
"""The 1,410 questions about prose would outweigh all others."""
_ENOUGH_SHOWN: Final = 0.5  # of an answer's files or lines: then the context answers


@dataclass(frozen=True, slots=True)
class Collection:
    """What questions are asked of: a folder, or notes imported into a workspace (`importer`)."""

    set_name: str
    name: str
    group: str
    """The project: collections of a group may answer each other's questions."""
    folder: Path
    importer: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A question with the collection that answers it, and how its answer is recognised."""

    set_name: str
    corpus: str
    group: str
    query: str
    language: str
    gold: Any
    """The task as in the evaluation data, or the question about notes."""

    @property
    def gold_paths(self) -> tuple[str, ...]:
        """The files of the answer."""
        if isinstance(self.gold, notes.Question):
            return (self.gold.path,)
        return tuple(gold["path"] for gold in self.gold["gold_files"])


def collections_of(set_name: str, *, most: int = 4, seed: int = 5) -> list[Collection]:
    """The collections of a set on this machine; of each project with many trees a sample of `most`."""
    if set_name in (NOTES, IMPORTED):
        return list(_notes(set_name))
    names = _DOCUMENT_SETS if set_name == DOCUMENTS else (set_name,)
    found: dict[str, list[Collection]] = {}
    for name in names:
        trees = evaluation_folder() / "trees" / name
        for folder in sorted(trees.iterdir()) if trees.is_dir() else ():
            group = folder.name if name == "docs_ir" else name if set_name == DOCUMENTS else _project(folder.name)
            found.setdefault(group, []).append(Collection(set_name, folder.name, group, folder))
    chooser = random.Random(seed)
    return [one for group in sorted(found) for one in _sampled(chooser, found[group], most, set_name)]


def _sampled(chooser: random.Random, of_group: list[Collection], most: int, set_name: str) -> list[Collection]:
    return of_group if set_name != ISSUES or len(of_group) <= most else chooser.sample(of_group, most)


def _project(name: str) -> str:
    """The project of an issue's tree: the name without the issue's number."""
    return re.sub(r"-\d+$", "", name)


def _notes(set_name: str) -> Iterator[Collection]:
    folder = notes.notes_folder()
    if folder is None or notes.missing_collections():
        return
    for one in notes.collections():
        importer = one.importer if set_name == IMPORTED else ""
        yield Collection(set_name, one.name, one.name, folder / one.name, importer)


def tasks_of(set_name: str, collections: Sequence[Collection]) -> list[Task]:
    """The questions that the collections of a set answer."""
    group_of = {one.name: one.group for one in collections}
    if set_name in (NOTES, IMPORTED):
        asked = [one for one in notes.questions() if one.corpus in group_of]
        return [Task(set_name, one.corpus, one.corpus, one.question, "", one) for one in asked]
    tasks = []
    for name in _DOCUMENT_SETS if set_name == DOCUMENTS else (set_name.removesuffix("_whole"),):
        path = evaluation_folder() / "data" / name / "dev.jsonl"
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        rows = [row for row in rows if row["corpus"] in group_of]
        most = _MOST_OF_SET.get(name, len(rows))
        for row in random.Random(5).sample(rows, min(most, len(rows))):
            group = group_of[row["corpus"]]
            tasks.append(Task(set_name, row["corpus"], group, row["query"], row.get("language") or "", row))
    return tasks


def is_answered(task: Task, context: Context, collection: Collection) -> bool:
    """True if the context shows at least half of the answer, or one of the files that each answer."""
    if isinstance(task.gold, notes.Question):
        wanted = notes.answer_lines(task.gold, collection.folder.parent)
        return notes.share_shown(wanted, notes.without_question(context.text)) >= _ENOUGH_SHOWN
    shown, gold = {source.path for source in context.sources}, set(task.gold_paths)
    if task.set_name == REPOSITORIES or task.gold["set"] == "docs_ir":
        return not gold.isdisjoint(shown)
    if task.set_name == ISSUES:
        return len(gold & shown) >= _ENOUGH_SHOWN * len(gold)
    shares = _evidence(collection.folder).covered(asked_of(task.gold).expected, context.text)
    return sum(shares) >= _ENOUGH_SHOWN * len(shares)


@cache
def _evidence(folder: Path) -> Evidence:
    return Evidence(folder)
