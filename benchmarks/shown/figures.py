"""From measures to figures: means and ratios with 95 % intervals, small enough to be committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.shown.contexts import BUDGETS, ContextMeasures, CorpusMeasures
from benchmarks.shown.notes import BUDGETS as NOTES_BUDGETS
from benchmarks.shown.notes import WAYS, Answered
from benchmarks.shown.symbols import LINE_BUDGETS, WHOLE_BUDGET, SymbolShown
from satchel.evaluation.estimates import difference, interval, resampled_means
from satchel.evaluation.outcome import Evaluation, compare

Figure = list[float]
"""A mean, and the ends of its 95 % interval."""

PER_BUDGET: Final[dict[str, Callable[[ContextMeasures], float]]] = {
    "cover": lambda measures: measures.cover,
    "tokens": lambda measures: measures.tokens,
    "expected": lambda measures: measures.expected_tokens / max(1, measures.tokens),
}


def mean(values: Iterable[float]) -> Figure:
    """The mean of the values, one for each question, with its interval."""
    found = interval([*values])
    return [] if found is None else _rounded(found.mean, found.low, found.high)


def ratio(parts: Sequence[float], wholes: Sequence[float]) -> Figure:
    """The ratio of two sums over the questions; the interval draws questions, with all of their parts."""
    if not sum(wholes):
        return []
    # Both draw the same questions: the seed and the number of values are the same.
    drawn_parts, drawn_wholes = (resampled_means(np.asarray(some, dtype=np.float64)) for some in (parts, wholes))
    low, high = np.percentile(drawn_parts / np.maximum(drawn_wholes, 1e-9), (2.5, 97.5))
    return _rounded(sum(parts) / sum(wholes), float(low), float(high))


def of_contexts(corpora: Sequence[CorpusMeasures]) -> dict[str, Any]:
    """The figures of the contexts of a set: by budget, and of all pieces."""
    questions = [question for corpus in corpora for question in corpus.questions]
    at: dict[str, dict[str, Figure]] = {}
    for budget in BUDGETS:
        contexts = [question[budget] for question in questions]
        at[str(budget)] = {name: mean(map(measure, contexts)) for name, measure in PER_BUDGET.items()} | {
            "frame": mean(context.frame_tokens / budget for context in contexts),
            "elisions": mean(context.elision_tokens / budget for context in contexts),
        }
    all_of = [[*question.values()] for question in questions]
    pieces = [sum(context.pieces for context in contexts) for contexts in all_of]
    inside_body = [sum(context.inside_body for context in contexts) for contexts in all_of]
    with_fragments = [sum(context.fragments > 0 for context in contexts) for contexts in all_of]
    return {
        "questions": len(questions),
        "at": at,
        "contexts": len(questions) * len(BUDGETS),
        "pieces": sum(pieces),
        "inside_body": ratio(inside_body, pieces),
        "unmarked": sum(context.unmarked for contexts in all_of for context in contexts),
        "with_fragments": sum(with_fragments),
    }


def of_symbols(symbols: Sequence[SymbolShown]) -> dict[str, Any]:
    """The share of symbols whose line, and whose whole definition, is shown."""
    small = [symbol for symbol in symbols if symbol.should_be_whole]
    lines = {f"line@{budget}": mean(symbol.line_at[budget] for symbol in symbols) for budget in LINE_BUDGETS}
    return {
        "symbols": len(symbols),
        "small": len(small),
        **lines,
        f"whole@{WHOLE_BUDGET}": mean(symbol.whole for symbol in small),
    }


def of_notes(answered: Sequence[Answered]) -> dict[str, Any]:
    """The share of questions over notes with the whole answer, in each way, and how far imported notes are ahead."""
    whole: dict[tuple[str, int], dict[tuple[str, str], float]] = {}
    for answer in answered:
        whole.setdefault((answer.way, answer.budget), {})[answer.corpus, answer.question] = float(answer.whole)
    figures: dict[str, Any] = {"questions": len(whole[WAYS[0], NOTES_BUDGETS[0]])}
    figures["errors"] = sum(bool(answer.error) for answer in answered)
    figures["late"] = sum(answer.is_late for answer in answered)
    for budget in NOTES_BUDGETS:
        figures |= {f"{way}@{budget}": mean(whole[way, budget].values()) for way in WAYS}
        imported, files = whole["imported", budget], whole["files", budget]
        apart = difference([files[key] for key in imported], [*imported.values()])
        assert apart is not None
        figures[f"imported-files@{budget}"] = _rounded(apart.difference, apart.low, apart.high)
    return figures


def of_peers(ours: Evaluation, peer: Evaluation, figure: str) -> dict[str, Any]:
    """A figure of two contestants, and how far ours is ahead on the same questions."""
    apart = compare(peer, ours).differences[figure]
    return {
        "figure": figure,
        "questions": apart.questions,
        "peer": peer.name,
        "ours": round(apart.after, 4),
        "theirs": round(apart.before, 4),
        "ahead": _rounded(apart.difference, apart.low, apart.high),
    }


def _rounded(*values: float) -> Figure:
    return [round(value, 4) for value in values]
