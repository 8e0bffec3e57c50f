"""Ask a workspace every question of a dataset through the public client."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel.errors import NotAllowed, SatchelError, ServerUnavailable, StoreUnavailable
from satchel.evaluation.judging import RankedHit, Reply, Shown, Texts
from satchel.evaluation.outcome import Evaluation, QuestionRow, judged_row
from satchel.tokens.registry import DEFAULT_TOKENIZER, counter_for

if TYPE_CHECKING:
    from satchel.evaluation.dataset import EvalQuestion, Expected
    from satchel.models.context import Context
    from satchel.service.client import Satchel

# Tokens: doubling steps show where more budget stops helping.
BUDGETS: Final = (1000, 2000, 4000, 8000)
# More than the ten places that are judged: hits in the same file and page count as one place.
HITS: Final = 50
_FOR_BUILDS_ONLY: Final = ("token_budget", "format", "model", "expand", "include_sources", "include_scores", "compact")
# Files whose text stays in memory: questions often expect the same files; more would take more memory.
_MAX_CACHED_TEXTS: Final = 1000

_T = TypeVar("_T")


def evaluate(
    client: Satchel,
    questions: Sequence[EvalQuestion],
    *,
    budgets: Sequence[int] = BUDGETS,
    name: str = "satchel",
    options: Mapping[str, Any] | None = None,
    watch: Callable[[int, int], None] = lambda _done, _of: None,
    about: Mapping[str, object] | None = None,
) -> Evaluation:
    """The evaluation of a workspace; `options` apply to every question, `watch` receives progress (done, total)."""
    options, texts, rows = options or {}, _texts_of(client), []
    # Load what is loaded once; whatever is wrong appears with the question itself.
    first = questions[0]
    first_options = _options_for(first, options)
    _answer_or_refusal(partial(client.build, f"{first.query} ", token_budget=budgets[0], **first_options))
    for done, question in enumerate(questions):
        watch(done, len(questions))
        rows.append(_row(client, question, budgets, options, texts))
    watch(len(questions), len(questions))
    return Evaluation(name=name, rows=tuple(rows), about=dict(about or {}))


def unknown_paths(client: Satchel, questions: Sequence[EvalQuestion]) -> list[str]:
    """Expected paths missing from the workspace, and expected lines beyond the end of a file."""
    texts = _texts_of(client)
    things = dict.fromkeys(thing for question in questions for thing in question.expected if thing.path)
    return list(dict.fromkeys(name for thing in things if (name := _unknown(thing, texts(thing.path)))))


def _unknown(thing: Expected, text: str | None) -> str:
    if text is None:
        return thing.path
    lines = text.count("\n") + 1
    return f"{thing} (it has {lines:,} lines)" if thing.last is not None and thing.last > lines else ""


def about(client: Satchel, dataset: Path, unknown: Sequence[str]) -> dict[str, object]:
    """Dataset, workspace, versions and time of an evaluation."""
    from hashlib import sha256

    status = client.status()
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


def _answer_or_refusal(ask: Callable[[], _T]) -> _T | SatchelError:
    """The answer, or the error of a refused question; raises if the server or store is unavailable."""
    try:
        return ask()
    except (ServerUnavailable, StoreUnavailable):
        raise
    except SatchelError as error:
        return error


def _row(
    client: Satchel, question: EvalQuestion, budgets: Sequence[int], options: Mapping[str, Any], texts: Texts
) -> QuestionRow:
    answers: dict[int, Reply | str] = {}
    for budget in budgets:
        started = time.perf_counter()
        build = partial(client.build, question.query, token_budget=budget, **_options_for(question, options))
        built = _answer_or_refusal(build)
        took = (time.perf_counter() - started) * 1000
        if isinstance(built, SatchelError):
            answers[budget] = f"{built} [{built.code}]"
        else:
            pieces = _pieces(built)
            shares = _token_shares(built.text, pieces)
            answers[budget] = Reply(tokens=built.tokens, pieces=pieces, milliseconds=took, piece_shares=shares)
    return judged_row(question, answers, _hits(client, question, options), texts)


def _hits(client: Satchel, question: EvalQuestion, options: Mapping[str, Any]) -> list[RankedHit]:
    """Search hits, best first; none for a refused question (the builds report the error)."""
    for_search = {name: value for name, value in options.items() if name not in _FOR_BUILDS_ONLY} | {"top_k": HITS}
    results = _answer_or_refusal(partial(client.search, question.query, **_options_for(question, for_search)))
    if isinstance(results, SatchelError):
        return []
    return [
        RankedHit(
            text=hit.content,
            path=hit.path,
            first=hit.start_line,
            last=hit.end_line,
            page=hit.page,
            relevance=hit.relevance,
        )
        for hit in results.hits
    ]


def _options_for(question: EvalQuestion, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, plus the user of the question if set."""
    return {**options, "user": question.user} if question.user else dict(options)


def _pieces(built: Context) -> tuple[Shown, ...]:
    """The numbered pieces in the text of a context."""
    return tuple(
        Shown(text=source.text, path=source.path or "", first=source.line, last=source.end_line, page=source.page)
        for source in built.sources
    )


def _token_shares(text: str, pieces: Sequence[Shown]) -> tuple[float, ...]:
    """Share of the text's tokens in each piece, by the default tokenizer: the client may count by another."""
    counter = counter_for(DEFAULT_TOKENIZER)
    tokens = max(1, counter.count(text))
    return tuple(counter.count(piece.text) / tokens for piece in pieces)


def _texts_of(client: Satchel) -> Texts:
    @lru_cache(_MAX_CACHED_TEXTS)
    def text_of(path: str) -> str | None:
        try:
            expanded = client.expand(path)
        except (ServerUnavailable, StoreUnavailable, NotAllowed):
            raise
        except SatchelError:
            return None
        return expanded.text if expanded.path == path else None  # not what an id with lines or a name stands for

    return text_of
