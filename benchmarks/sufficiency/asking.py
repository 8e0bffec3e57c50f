"""Ask questions of the collection that answers them, of wrong ones, and of their own without the answer's files."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.shown import notes
from benchmarks.sufficiency.collections import ISSUES, NOTES, REPOSITORIES, Collection, Task, is_answered
from satchel.errors import EmbedderMismatch, IndexProblem
from satchel.models.context import Context
from satchel.models.options import RequestType
from satchel.models.request import ContextRequest, User
from satchel.models.search import Filters
from satchel.retrieval.question_evidence import Evidence, gather_evidence
from satchel.service.engine import ENGINE_OPTIONS, ContextEngine
from satchel.service.factory.opening import open_engine

WRONG_EACH: Final = 3
"""Wrong collections asked for each question: one of the same language where there is one."""
_COMPARED_HITS: Final = 10
_REMOVABLE: Final = (REPOSITORIES, ISSUES, NOTES)
"""The sets with an answer in few of many files; without these the rest of the collection is left."""
_GLOB: Final = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})


class Put(StrEnum):
    """Where a question is put."""

    RIGHT = "right"
    WRONG = "wrong"
    REMOVED = "removed"
    """To its own collection, without the files of its answer."""


class Asked(NamedTuple):
    """A question put to a collection, and what came of it."""

    set_name: str
    here: str
    """The project that was asked."""
    home: str
    """The project that the question is about."""
    put: Put
    is_answered: bool
    query: str
    evidence: Evidence
    seconds: float = 0.0


def plan_asks(
    tasks: Sequence[Task], collections: Sequence[Collection], *, wrong: int = WRONG_EACH, seed: int = 5
) -> dict[str, list[tuple[Task, Put]]]:
    """The questions for each collection, by its name."""
    chooser = random.Random(seed)
    language = {task.corpus: task.language for task in tasks}
    plan: dict[str, list[tuple[Task, Put]]] = defaultdict(list)
    for task in tasks:
        plan[task.corpus].append((task, Put.RIGHT))
        others = [one.name for one in collections if one.group != task.group]
        chooser.shuffle(others)
        # A stable sort: at most one of the same language first, then whatever comes.
        alike = [name for name in others if task.language and language.get(name) == task.language][:1]
        for name in [*alike, *(name for name in others if name not in alike)][:wrong]:
            plan[name].append((task, Put.WRONG))
        if task.set_name in _REMOVABLE:
            plan[task.corpus].append((task, Put.REMOVED))
    return plan


def ask_all(collections: Sequence[Collection], plan: dict[str, list[tuple[Task, Put]]], index: Path) -> Iterator[Asked]:
    """Every planned question, asked; the indexes are kept below `index` for the next time."""
    for collection in collections:
        started = time.monotonic()
        with opened(collection, index) as engine:
            for task, put in plan.get(collection.name, ()):
                yield ask(engine, task, put, collection)
        print(
            f"{collection.set_name} {collection.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True
        )


@contextmanager
def opened(collection: Collection, index: Path) -> Iterator[ContextEngine]:
    """The engine of a collection with an index that is up to date; trees of a project follow each other in one."""
    place = index / collection.set_name / (collection.group if collection.set_name == ISSUES else collection.name)
    try:
        engine = _open(collection, place)
    except (EmbedderMismatch, IndexProblem):
        shutil.rmtree(place)
        engine = _open(collection, place)
    try:
        yield engine
    finally:
        engine.close()


def _open(collection: Collection, place: Path) -> ContextEngine:
    if collection.importer:
        home = place / "workspace"
        if not home.exists():
            about = next(one for one in notes.collections() if one.name == collection.name)
            notes.import_collection(about, collection.folder, place)
        return open_engine(home, index_dir=str(place / "imported"), history_commits=0)
    place.parent.mkdir(parents=True, exist_ok=True)
    engine = open_engine(collection.folder, index_dir=str(place), history_commits=0)
    try:
        engine.index()
        engine.search("a question", top_k=1)  # raises if the index is of another embedder
    except BaseException:
        engine.close()
        raise
    return engine


def _build(engine: ContextEngine, query: str, filters: Filters, *, is_workspace: bool) -> Context:
    if is_workspace:
        return engine.build(ContextRequest(query=query, user=User(id="owner"), type=RequestType.SEARCH))
    return engine.build(query, ENGINE_OPTIONS, filters=filters)


def ask(engine: ContextEngine, task: Task, put: Put, collection: Collection) -> Asked:
    """A question asked as `satchel build` does with its default budget, with the evidence for its sufficiency."""
    filters = Filters()
    if put is Put.REMOVED and not collection.importer:
        filters = Filters(patterns=tuple(f"!{path.translate(_GLOB)}" for path in task.gold_paths))
    started = time.perf_counter()
    context = _build(engine, task.query, filters, is_workspace=bool(collection.importer))
    seconds = time.perf_counter() - started
    hits = engine.search(task.query, top_k=_COMPARED_HITS, filters=filters).hits
    shown = [f"{source.name}\n{source.path or ''}\n{source.text}" for source in context.sources]
    return Asked(
        set_name=task.set_name,
        here=collection.group,
        home=task.group,
        put=put,
        is_answered=put is Put.RIGHT and is_answered(task, context, collection),
        query=task.query,
        evidence=gather_evidence(task.query, hits, shown, engine.store, filters),
        seconds=seconds,
    )
