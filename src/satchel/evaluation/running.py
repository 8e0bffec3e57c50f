"""Ask a workspace every question of a dataset, through the front door like anybody else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel.errors import NotAllowed, SatchelError, ServerUnavailable, StoreUnavailable
from satchel.evaluation.judging import Answer, Ranked, Shown, Texts
from satchel.evaluation.outcome import Evaluation, Row, judged_row

if TYPE_CHECKING:
    from satchel.evaluation.dataset import EvalQuestion, Expected
    from satchel.models.context import Context
    from satchel.service.client import Satchel

BUDGETS: Final = (1000, 2000, 4000, 8000)
HITS: Final = 50
_FOR_BUILDS_ONLY: Final = ("token_budget", "format", "model", "expand", "include_sources", "include_scores", "compact")
_KEPT_TEXTS: Final = 1000

_T = TypeVar("_T")


def evaluate(
    bag: Satchel,
    questions: Sequence[EvalQuestion],
    *,
    budgets: Sequence[int] = BUDGETS,
    name: str = "satchel",
    told: Mapping[str, Any] | None = None,
    watch: Callable[[int, int], None] = lambda _done, _of: None,
    about: Mapping[str, object] | None = None,
) -> Evaluation:
    """The evaluation of a workspace; `told` is said with every question, and `watch` hears how far it is."""
    told = told or {}
    texts = _texts_of(bag)
    rows = []
    _warm(bag, questions[0], budgets[0], told)
    for done, question in enumerate(questions):
        watch(done, len(questions))
        rows.append(_asked(bag, question, budgets, told, texts))
    watch(len(questions), len(questions))
    return Evaluation(name=name, rows=tuple(rows), about=dict(about or {}))


def unknown_paths(bag: Satchel, questions: Sequence[EvalQuestion]) -> list[str]:
    """What can only be missed: paths that the workspace does not have, and lines beyond a file's end."""
    texts = _texts_of(bag)
    places = dict.fromkeys(one for question in questions for one in question.expected if one.path)
    return list(dict.fromkeys(told for one in places if (told := _unknown(one, texts(one.path)))))


def _unknown(one: Expected, text: str | None) -> str:
    if text is None:
        return one.path
    lines = text.count("\n") + 1
    return f"{one} (it has {lines:,} lines)" if one.last is not None and one.last > lines else ""


def about(bag: Satchel, dataset: Path, unknown: Sequence[str] = ()) -> dict[str, object]:
    """What was measured, with what, and when."""
    from hashlib import sha256

    status = bag.status()
    return {
        "dataset": dataset.name,
        "sha256": sha256(dataset.read_bytes()).hexdigest(),
        "workspace": status.workspace,
        "files": status.files,
        "pieces": status.pieces,
        "embedder": status.embedder,
        "version": status.version,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "unknown_paths": list(unknown),
    }


def _warm(bag: Satchel, question: EvalQuestion, budget: int, told: Mapping[str, Any]) -> None:
    """Load what is loaded once; whatever is wrong will be told with the question itself."""
    _answer_or_refusal(lambda: bag.build(f"{question.query} ", token_budget=budget, **_said(question, told)))


def _answer_or_refusal(ask: Callable[[], _T]) -> _T | SatchelError:
    """What was answered, or why it was refused; an evaluation ends with the server or store that it asks."""
    try:
        return ask()
    except (ServerUnavailable, StoreUnavailable):
        raise
    except SatchelError as error:
        return error


def _asked(bag: Satchel, question: EvalQuestion, budgets: Sequence[int], told: Mapping[str, Any], texts: Texts) -> Row:
    answers: dict[int, Answer | str] = {}
    for budget in budgets:
        started = time.perf_counter()
        built = _answer_or_refusal(partial(bag.build, question.query, token_budget=budget, **_said(question, told)))
        took = (time.perf_counter() - started) * 1000
        if isinstance(built, SatchelError):
            answers[budget] = f"{built} [{built.code}]"
        else:
            answers[budget] = Answer(text=built.text, tokens=built.tokens, shown=_shown(built), milliseconds=took)
    return judged_row(question, answers, _found(bag, question, told), texts)


def _found(bag: Satchel, question: EvalQuestion, told: Mapping[str, Any]) -> list[Ranked]:
    """The hits, best first; none where the question was refused, which its builds tell."""
    for_search = {name: value for name, value in told.items() if name not in _FOR_BUILDS_ONLY} | {"top_k": HITS}
    found = _answer_or_refusal(lambda: bag.search(question.query, **_said(question, for_search)))
    if isinstance(found, SatchelError):
        return []
    return [
        Ranked(
            text=hit.content,
            path=hit.path,
            first=hit.start_line,
            last=hit.end_line,
            page=hit.page,
            relevance=hit.relevance,
        )
        for hit in found.hits
    ]


def _said(question: EvalQuestion, told: Mapping[str, Any]) -> dict[str, Any]:
    """What is said with a question; it knows best who asks it."""
    return {**told, "user": question.user} if question.user else dict(told)


def _shown(built: Context) -> tuple[Shown, ...]:
    """The numbered pieces, as they stand in the text."""
    return tuple(
        Shown(text=source.text, path=source.path or "", first=source.line, last=source.end_line, page=source.page)
        for source in built.sources
    )


def _texts_of(bag: Satchel) -> Texts:
    @lru_cache(_KEPT_TEXTS)
    def text_of(path: str) -> str | None:
        try:
            found = bag.expand(path)
        except (ServerUnavailable, StoreUnavailable, NotAllowed):
            raise
        except SatchelError:
            return None
        return found.text if found.path == path else None  # not what an id with lines or a name stands for

    return text_of
