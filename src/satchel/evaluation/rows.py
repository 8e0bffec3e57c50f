"""What was measured, question by question, and the figures that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from satchel.evaluation.answers import Answer, Ranked, Shown
from satchel.evaluation.calibration import Calibration, calibrate
from satchel.evaluation.dataset import EvalQuestion
from satchel.evaluation.intervals import Interval, interval
from satchel.evaluation.judging import Texts, coverage, is_right
from satchel.evaluation.ranking import DEPTH, RECALLED_AT, Ranking, rank


@dataclass(frozen=True, slots=True, kw_only=True)
class AtBudget:
    """One question within one budget."""

    budget: int
    cover: float
    precision: float | None
    tokens: int
    milliseconds: float
    missing: tuple[str, ...] = ()
    error: str = ""

    @property
    def over(self) -> bool:
        """Whether the text has more tokens than were allowed."""
        return self.tokens > self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question: what was in its context at each budget, and how its hits were ranked."""

    id: str
    query: str
    group: str = ""
    expected: str = ""
    """What was expected, as a mark that changes with it."""
    at: tuple[AtBudget, ...] = ()
    ranking: Ranking | None = None
    judged: tuple[tuple[float, bool], ...] = ()
    """The first ten hits, each as its relevance and whether it is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All questions under one configuration."""

    name: str
    rows: tuple[Row, ...]
    about: Mapping[str, object] = field(default_factory=dict)

    @property
    def budgets(self) -> tuple[int, ...]:
        """The budgets that were asked for."""
        return tuple(dict.fromkeys(at.budget for row in self.rows for at in row.at))

    @property
    def over(self) -> int:
        """How many texts were longer than their budget."""
        return sum(at.over for row in self.rows for at in row.at)

    @property
    def latencies(self) -> list[float]:
        """The milliseconds of each question's first build: the later ones find its hits in the cache."""
        return [row.at[0].milliseconds for row in self.rows if row.at and not row.at[0].error]

    def values(self) -> dict[str, list[float | None]]:
        """Every figure by its name, with its value for each question; None where the question has none."""
        found: dict[str, list[float | None]] = {}
        for budget in self.budgets:
            cells = [next((at for at in row.at if at.budget == budget), None) for row in self.rows]
            found[f"cover@{budget}"] = [None if at is None else at.cover for at in cells]
            found[f"complete@{budget}"] = [None if at is None else float(at.cover >= 1) for at in cells]
            found[f"precision@{budget}"] = [None if at is None else at.precision for at in cells]
        rankings = [row.ranking for row in self.rows]
        found[f"ndcg@{DEPTH}"] = [None if one is None else one.ndcg for one in rankings]
        for k in RECALLED_AT:
            found[f"recall@{k}"] = [None if one is None else one.recall[k] for one in rankings]
        found["mrr"] = [None if one is None else one.reciprocal_rank for one in rankings]
        return found

    def figures(self) -> dict[str, Interval]:
        """The mean of every figure with its interval."""
        means = {
            name: interval([value for value in values if value is not None]) for name, values in self.values().items()
        }
        return {name: one for name, one in means.items() if one is not None}

    def calibration(self) -> Calibration | None:
        """Whether the relevance of the hits can be believed."""
        return calibrate([pair for row in self.rows for pair in row.judged])


def judged_row(
    question: EvalQuestion,
    answers: Mapping[int, Answer | str],
    hits: Sequence[Ranked],
    texts: Texts,
) -> Row:
    """A question's row from its answer at each budget (or the error in its place) and its hits, best first."""
    if not any(hit.path for hit in hits) and all(one.path for one in question.expected):
        hits = []  # blocks of a workspace's own are found by what they say; where they were imported from is not told
    return Row(
        id=question.id,
        query=question.query,
        group=question.group,
        expected=question.mark,
        at=tuple(_at(question, budget, answer, texts) for budget, answer in answers.items()),
        ranking=rank(hits, question.expected) if hits else None,
        judged=tuple(
            (hit.relevance, is_right(hit, question.expected)) for hit in hits[:DEPTH] if hit.relevance is not None
        ),
    )


def _at(question: EvalQuestion, budget: int, answer: Answer | str, texts: Texts) -> AtBudget:
    wanted = question.expected
    if isinstance(answer, str):
        missing = tuple(map(str, wanted))
        return AtBudget(
            budget=budget, cover=0.0, precision=None, tokens=0, milliseconds=0.0, missing=missing, error=answer
        )
    shares = coverage(wanted, answer, texts)
    return AtBudget(
        budget=budget,
        cover=sum(shares) / len(shares),
        precision=_precision(question, answer.shown),
        tokens=answer.tokens,
        milliseconds=answer.milliseconds,
        missing=tuple(str(one) for one, share in zip(wanted, shares, strict=True) if share < 1),
    )


def _precision(question: EvalQuestion, shown: Sequence[Shown]) -> float | None:
    return sum(is_right(piece, question.expected) for piece in shown) / len(shown) if shown else None
