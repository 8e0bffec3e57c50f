"""A user's own questions: `SATCHEL_BENCH_DATASET=questions.jsonl:folder`, in the form of `satchel eval`."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.corpora.model import Asked, Kind, Planned, QuestionSet
from satchel.errors import InvalidInput
from satchel.evaluation.dataset import EvalQuestion, read_dataset

VARIABLE: Final = "SATCHEL_BENCH_DATASET"
_PROSE: Final = set(".adoc .docx .epub .htm .html .md .odt .pdf .pptx .rst .rtf .tex .txt .xlsx".split())


def question_sets() -> list[QuestionSet]:
    """The user's set, if one is named; what is wrong with it is told at once."""
    told = os.environ.get(VARIABLE)
    if not told:
        return []
    dataset, _, below = told.rpartition(":")
    path, folder = Path(dataset).expanduser(), Path(below).expanduser().resolve()
    if not dataset or not path.is_file() or not folder.is_dir():
        raise InvalidInput(VARIABLE, told, "must be questions.jsonl:folder, and both must be there")
    questions = tuple(_asked(question) for question in read_dataset(path))
    plan = Planned(name=folder.name, questions=partial(tuple[Asked, ...], questions), folder=lambda: folder)
    return [
        QuestionSet(
            name="own",
            title=f"Your own questions ({path.name})",
            kind=_kind(folder),
            source=f"{path.name}, asked of {folder.name}",
            fitted=False,
            planned=(plan,),
        )
    ]


def _asked(question: EvalQuestion) -> Asked:
    if question.user is not None:
        raise InvalidInput("user", question.user, f"of question {question.id}: the other tools know no users")
    paths = dict.fromkeys(one.path for one in question.expected if one.path)
    return Asked(
        id=question.id, query=question.query, expected=question.expected, files=tuple(paths), group=question.group
    )


def _kind(folder: Path) -> Kind:
    """What there is more of: documents or other files."""
    kinds = Counter(
        path.suffix.lower() in _PROSE
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return "prose" if kinds[True] > kinds[False] else "code"
