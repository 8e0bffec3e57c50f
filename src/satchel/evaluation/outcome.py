"""Results of an evaluation: rows by question, figures, the comparison of two evaluations, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from satchel.errors import InvalidInput
from satchel.evaluation.dataset import EvalQuestion
from satchel.evaluation.estimates import Calibration, Difference, Interval, calibrate, difference, interval, json_fields
from satchel.evaluation.judging import (
    DEPTH,
    RECALLED_AT,
    RankedHit,
    RankScores,
    Reply,
    Texts,
    coverage,
    is_right,
    rank,
    token_share,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtBudget:
    """Result of a question at a budget."""

    budget: int
    cover: float
    precision: float | None
    tokens: int
    milliseconds: float
    missing: tuple[str, ...] = ()
    error: str = ""
    token_share: float | None = None
    """Share of the tokens in pieces of expected files; None if not known, as in reports of older versions."""

    @property
    def over(self) -> bool:
        """True if the text has more tokens than the budget."""
        return self.tokens > self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """Results of a question: coverage at each budget, and the ranking of the hits."""

    id: str
    query: str
    group: str = ""
    expected: str = ""
    """`EvalQuestion.mark`: hash of the expected items and the user."""
    at: tuple[AtBudget, ...] = ()
    ranking: RankScores | None = None
    judged: tuple[tuple[float, bool], ...] = ()
    """The first ten hits: stated relevance, and True if the hit is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Results of all questions under a configuration."""

    name: str
    rows: tuple[QuestionRow, ...]
    about: Mapping[str, object] = field(default_factory=dict)

    @property
    def budgets(self) -> tuple[int, ...]:
        """The requested token budgets."""
        return tuple(dict.fromkeys(at.budget for row in self.rows for at in row.at))

    @property
    def over(self) -> int:
        """Number of texts over budget."""
        return sum(at.over for row in self.rows for at in row.at)

    @property
    def contexts(self) -> int:
        """Number of requested contexts."""
        return sum(len(row.at) for row in self.rows)

    @property
    def refused(self) -> int:
        """Number of contexts refused with an error."""
        return sum(bool(at.error) for row in self.rows for at in row.at)

    @property
    def latencies(self) -> list[float]:
        """Milliseconds of the first build of each question: later builds find the hits in the cache."""
        return [row.at[0].milliseconds for row in self.rows if row.at and not row.at[0].error]

    def values(self) -> dict[str, list[float | None]]:
        """Values of every figure by name, in question order; None for a question without a value."""
        values: dict[str, list[float | None]] = {}
        for budget in self.budgets:
            cells = [next((at for at in row.at if at.budget == budget), None) for row in self.rows]
            values[f"cover@{budget}"] = [None if at is None else at.cover for at in cells]
            values[f"complete@{budget}"] = [None if at is None else float(at.cover >= 1) for at in cells]
            values[f"precision@{budget}"] = [None if at is None else at.precision for at in cells]
            values[f"token_share@{budget}"] = [None if at is None else at.token_share for at in cells]
        rankings = [row.ranking for row in self.rows]
        values[f"ndcg@{DEPTH}"] = [None if ranking is None else ranking.ndcg for ranking in rankings]
        for k in RECALLED_AT:
            values[f"recall@{k}"] = [None if ranking is None else ranking.recall[k] for ranking in rankings]
        values["mrr"] = [None if ranking is None else ranking.reciprocal_rank for ranking in rankings]
        return values

    def figures(self) -> dict[str, Interval]:
        """Mean of every figure with an interval."""
        known = {name: [value for value in values if value is not None] for name, values in self.values().items()}
        return {name: mean for name, values in known.items() if (mean := interval(values))}

    def mean_tokens(self) -> dict[int, float]:
        """Mean tokens of the contexts at each budget, without refused questions."""
        spent: dict[int, list[int]] = {}
        for at in (at for row in self.rows for at in row.at if not at.error):
            spent.setdefault(at.budget, []).append(at.tokens)
        return {budget: sum(tokens) / len(tokens) for budget, tokens in spent.items()}

    def calibration(self) -> Calibration | None:
        """Calibration of the relevance of the hits."""
        return calibrate([pair for row in self.rows for pair in row.judged])


def judged_row(
    question: EvalQuestion, answers: Mapping[int, Reply | str], hits: Sequence[RankedHit], texts: Texts
) -> QuestionRow:
    """Row of a question, from the answer (or error) at each budget and the hits, best first."""
    if not any(hit.path for hit in hits) and all(thing.path for thing in question.expected):
        hits = []  # hits of imported blocks have no source file, so they cannot be judged
    judged = ((hit.relevance, is_right(hit, question.expected)) for hit in hits[:DEPTH] if hit.relevance is not None)
    return QuestionRow(
        id=question.id,
        query=question.query,
        group=question.group,
        expected=question.mark,
        at=tuple(_at(question, budget, answer, texts) for budget, answer in answers.items()),
        ranking=rank(hits, question.expected) if hits else None,
        judged=tuple(judged),
    )


def _at(question: EvalQuestion, budget: int, outcome: Reply | str, texts: Texts) -> AtBudget:
    answer, error = (Reply(tokens=0, pieces=()), outcome) if isinstance(outcome, str) else (outcome, "")
    expected = question.expected
    shares, right = coverage(expected, answer.pieces, texts), [is_right(piece, expected) for piece in answer.pieces]
    return AtBudget(
        budget=budget,
        cover=sum(shares) / len(shares),
        precision=sum(right) / len(right) if right else None,
        tokens=answer.tokens,
        milliseconds=answer.milliseconds,
        missing=tuple(str(thing) for thing, share in zip(expected, shares, strict=True) if share < 1),
        error=error,
        token_share=token_share(answer, expected),
    )


KIND: Final = "satchel-evaluation"
# Version of the JSON report; `read_evaluation` refuses any other version.
VERSION: Final = 1
_NO_REPORT: Final = "is not a report of `satchel eval -o` or `--json`"


def to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation and all figures as a JSON-compatible dictionary."""
    calibration = evaluation.calibration()
    return {
        "kind": KIND,
        "version": VERSION,
        "name": evaluation.name,
        "about": dict(evaluation.about),
        "questions": len(evaluation.rows),
        "over_budget": evaluation.over,
        "mean_tokens": {str(budget): round(tokens, 1) for budget, tokens in evaluation.mean_tokens().items()},
        "figures": {name: json_fields(mean) for name, mean in evaluation.figures().items()},
        "latency_ms": latency(evaluation.latencies),
        "calibration": json_fields(calibration) if calibration else None,
        "rows": [_row(row) for row in evaluation.rows],
    }


def latency(values: list[float]) -> dict[str, float] | None:
    """Median (p50), p95 and maximum of times; None without times."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 3)

    return {"p50": at(0.5), "p95": at(0.95), "worst": round(ordered[-1], 3), "n": len(ordered)}


def _row(row: QuestionRow) -> dict[str, Any]:
    ranking = row.ranking
    return {
        "id": row.id,
        "query": row.query,
        "group": row.group,
        "expected": row.expected,
        # Not rounded: what is the same must compare as the same.
        "ndcg": ranking and ranking.ndcg,
        "recall": ranking and {str(k): share for k, share in ranking.recall.items()},
        "rr": ranking and ranking.reciprocal_rank,
        "judged": [[round(relevance, 6), right] for relevance, right in row.judged],
        "at": [
            {
                "budget": at.budget,
                "cover": at.cover,
                "precision": at.precision,
                "token_share": at.token_share,
                "tokens": at.tokens,
                "ms": round(at.milliseconds, 3),
                "missing": list(at.missing),
                **({"error": at.error} if at.error else {}),
            }
            for at in row.at
        ],
    }


def read_evaluation(path: Path) -> Evaluation:
    """Read an evaluation saved by `satchel eval --json`."""
    try:
        report = json.loads(path.read_text("utf-8"), parse_constant=_no_number)
        if not isinstance(report, Mapping) or report.get("kind") != KIND:
            raise InvalidInput("report", str(path), _NO_REPORT)
        if report["version"] != VERSION:
            raise InvalidInput("report", str(path), f"has version {report['version']}; this Satchel reads {VERSION}")
        return Evaluation(name=report["name"], rows=tuple(map(_row_from, report["rows"])), about=dict(report["about"]))
    except InvalidInput:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError) as error:
        raise InvalidInput("report", str(path), f"{_NO_REPORT} ({type(error).__name__}: {error})") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _row_from(saved: Mapping[str, Any]) -> QuestionRow:
    recall = saved["recall"] and {k: saved["recall"][str(k)] for k in RECALLED_AT}
    ranking = recall and {"ndcg": saved["ndcg"], "recall": recall, "reciprocal_rank": saved["rr"]}
    cells = [{**at, "milliseconds": at["ms"]} for at in saved["at"]]
    return msgspec.convert({**saved, "ranking": ranking, "at": cells}, QuestionRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Differences by figure, on the questions in both evaluations."""

    before: str
    after: str
    questions: int
    only_before: int
    only_after: int
    changed: int
    """Number of questions in both evaluations with different expected items; these are not compared."""
    differences: dict[str, Difference]

    @property
    def regressions(self) -> list[str]:
        """Figures with a significant decline."""
        return [name for name, change in self.differences.items() if change.verdict == "worse"]

    @property
    def left_out(self) -> str:
        """Number of questions without a comparison, and the reason; empty if all are compared."""
        counts = {
            "only before": self.only_before,
            "only now": self.only_after,
            "with other expected results now": self.changed,
        }
        return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)

    def to_dict(self) -> dict[str, object]:
        """The comparison as a JSON-compatible dictionary."""
        changes = self.differences.items()
        verdicts = {name: {**json_fields(change), "verdict": change.verdict} for name, change in changes}
        return {**asdict(self), "differences": verdicts}


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """Improvement of the second evaluation over the first, for every figure in both."""
    both, pairs = _pairs(before, after)
    if both and not pairs:
        raise InvalidInput("report", before.name, "has other expected results for every question of this run")
    if not pairs:
        problem = "has no question (same id and text) of this run; was it made from another dataset?"
        raise InvalidInput("report", before.name, problem)
    first, second = before.values(), after.values()
    differences: dict[str, Difference] = {}
    for name in (name for name in second if name in first):
        values = [(first[name][i], second[name][j]) for i, j in pairs]
        known = [(a, b) for a, b in values if a is not None and b is not None]
        if change := difference([a for a, _ in known], [b for _, b in known]):
            differences[name] = change
    return Comparison(
        before=before.name,
        after=after.name,
        questions=len(pairs),
        only_before=len(before.rows) - len(both),
        only_after=len(after.rows) - len(both),
        changed=len(both) - len(pairs),
        differences=differences,
    )


def paired(before: Evaluation, after: Evaluation) -> list[tuple[QuestionRow, QuestionRow]]:
    """Row pairs of the questions in both evaluations with the same expected items."""
    return [(before.rows[i], after.rows[j]) for i, j in _pairs(before, after)[1]]


def _pairs(before: Evaluation, after: Evaluation) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Index pairs of the questions in both evaluations, and the subset with the same expected items."""
    places = {(row.id, row.query): i for i, row in enumerate(before.rows)}
    both = [(places[row.id, row.query], j) for j, row in enumerate(after.rows) if (row.id, row.query) in places]
    marks = {(i, j): {before.rows[i].expected, after.rows[j].expected} - {""} for i, j in both}
    return both, [pair for pair, expected in marks.items() if len(expected) < 2]
