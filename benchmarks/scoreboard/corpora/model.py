"""A set of questions, the corpora it is asked of, and how a corpus comes to be when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from satchel.evaluation.dataset import Expected, question_from

Kind = Literal["code", "prose"]


class Unavailable(Exception):
    """A corpus cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and what its context should hold."""

    id: str
    query: str
    expected: tuple[Expected, ...]
    files: tuple[str, ...] = ()
    """The files that hold the answer, where they are known: for an order of files."""
    group: str = ""

    def by_file(self) -> Asked:
        """The same question when the right files are enough, in place of lines or phrases of them."""
        if not self.files:
            return self
        return replace(self, expected=tuple(Expected(path=path) for path in self.files))


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A folder, ready to be indexed, and what is asked of it."""

    name: str
    folder: Path
    questions: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A corpus that is not there yet. Both functions may raise `Unavailable`, and cost nothing when called again."""

    name: str
    questions: Callable[[], tuple[Asked, ...]]
    folder: Callable[[], Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """Questions of one kind and origin."""

    name: str
    title: str
    kind: Kind
    source: str
    """Where it is from, and its licence."""
    fitted: bool
    """Whether Satchel's ranker was tuned on it."""
    planned: tuple[Planned, ...]
    missing: dict[str, str] = field(default_factory=dict)
    """The corpora that could not be had, and why; filled while `corpora` is iterated."""

    @property
    def corpora(self) -> Iterator[Corpus]:
        """The corpora one after another; each is made when it is its turn."""
        for plan in self.planned:
            try:
                corpus = Corpus(name=plan.name, folder=plan.folder(), questions=plan.questions())
            except Unavailable as reason:
                self.missing[plan.name] = str(reason)
                continue
            yield corpus


def asked_from(told: Mapping[str, Any], files: tuple[str, ...] = ()) -> Asked:
    """The question that a JSON object stands for, in the form of `satchel eval`."""
    question = question_from(told)
    return Asked(id=question.id, query=question.query, expected=question.expected, files=files, group=question.group)
