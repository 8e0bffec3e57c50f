"""Two evaluations of the same questions, held against each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from satchel.errors import InvalidInput
from satchel.evaluation.intervals import Difference, difference, json_fields
from satchel.evaluation.rows import Evaluation, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences by figure, on the questions that both have."""

    before: str
    after: str
    questions: int
    only_before: int
    only_after: int
    changed: int
    """Questions that both have, of which other things are expected now; they are left out."""
    differences: dict[str, Difference]

    @property
    def regressions(self) -> list[str]:
        """The figures that are worse beyond chance."""
        return [name for name, one in self.differences.items() if one.verdict == "worse"]

    @property
    def left_out(self) -> str:
        """How many questions are not compared, and why; nothing where all are."""
        told = (
            (self.only_before, "only before"),
            (self.only_after, "only now"),
            (self.changed, "of which something else is expected now"),
        )
        return ", ".join(f"{count:,} {why}" for count, why in told if count)

    def to_dict(self) -> dict[str, object]:
        """The comparison as JSON can hold it."""
        differences = {name: {**json_fields(one), "verdict": one.verdict} for name, one in self.differences.items()}
        return {**asdict(self), "differences": differences}


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """By how much the second is better than the first, for every figure that both have."""
    both, pairs = _pairs(before, after)
    if both and not pairs:
        raise InvalidInput("report", before.name, "expected something else of every question of this run")
    if not pairs:
        raise InvalidInput(
            "report", before.name, "has no question (id and words) of this run; is it of another dataset?"
        )
    first, second = before.values(), after.values()
    found: dict[str, Difference] = {}
    for name in [name for name in second if name in first]:
        values = [(first[name][i], second[name][j]) for i, j in pairs]
        known = [(a, b) for a, b in values if a is not None and b is not None]
        one = difference([a for a, _ in known], [b for _, b in known])
        if one is not None:
            found[name] = one
    return Comparison(
        before=before.name,
        after=after.name,
        questions=len(pairs),
        only_before=len(before.rows) - len(both),
        only_after=len(after.rows) - len(both),
        changed=len(both) - len(pairs),
        differences=found,
    )


def paired(before: Evaluation, after: Evaluation) -> list[tuple[Row, Row]]:
    """The questions that both have, where the same is expected of both."""
    return [(before.rows[i], after.rows[j]) for i, j in _pairs(before, after)[1]]


Places = list[tuple[int, int]]


def _pairs(before: Evaluation, after: Evaluation) -> tuple[Places, Places]:
    """Where the questions stand that both have, and those of them of which the same is expected."""
    places = {(row.id, row.query): i for i, row in enumerate(before.rows)}
    both = [(places[row.id, row.query], j) for j, row in enumerate(after.rows) if (row.id, row.query) in places]
    return both, [(i, j) for i, j in both if _wants_the_same(before.rows[i], after.rows[j])]


def _wants_the_same(before: Row, after: Row) -> bool:
    return not before.expected or not after.expected or before.expected == after.expected
