"""How much of a context is worth its room: every block of the example vault, rated for 24 requests.

The ratings in data/vault_ratings.json were made from the notes alone, before Satchel was run on any of the requests.
Relevant is what a careful colleague who prepares the context would want in it: it answers, is needed to understand the
answer, or is part of what is focused (of a focused page everything on it; of a focused block what is above it on its
page). A page or a heading is relevant if at least half of what stands under it is, and not for one line among others;
where that gave what nobody would look at (a lane of a board, the page of salaries) it was taken out by hand.
A section that is shown for blocks found in it counts as one hit, and is relevant if one of these blocks is. Of what is
focused every block counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from satchel import Block, ContextEngine, ContextRequest, Focus
from satchel.models.options import DEFAULT_CONTEXT_CONFIG, RequestType
from satchel.service.importing import import_source
from tests.support.places import ROOT, TESTS
from tests.support.workspaces import ANN, engine_in

VAULT = ROOT / "examples" / "vault"
RATINGS: list[dict[str, Any]] = json.loads((TESTS / "data" / "vault_ratings.json").read_text(encoding="utf-8"))
BUDGET = 2000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContextEngine]:
    with engine_in(tmp_path_factory.mktemp("vault")) as engine:
        import_source(engine.workspace, VAULT)
        yield engine


def request_of(rating: dict[str, Any]) -> ContextRequest:
    """The request that was rated, with the budget of its type, scaled."""
    kind = RequestType(rating["type"])
    return ContextRequest(
        query=rating["query"],
        type=kind,
        user=ANN,
        focus=Focus(**rating["focus"]) if rating["focus"] else None,
        token_budget=DEFAULT_CONTEXT_CONFIG.for_type(kind).token_budget.scaled(BUDGET),
    )


class Tally:
    """Hits and focused blocks, and how many of them are rated relevant, over all and by section and type."""

    def __init__(self) -> None:
        self.included: Counter[str] = Counter()
        self.relevant: Counter[str] = Counter()
        self.rated = 0
        self.found: set[tuple[str, str]] = set()

    def add(self, engine: ContextEngine, rating: dict[str, Any]) -> None:
        """Build one request and count."""
        relevant = set(rating["relevant"])
        self.rated += len(relevant)
        for item in engine.build(request_of(rating)).items:
            is_relevant = not relevant.isdisjoint({item.block_id, *item.found})
            count = 1 if item.found else 1 + len(item.holds)
            self.found |= {(rating["query"], block) for block in relevant & {item.block_id, *item.holds}}
            for name in ("overall", f"section {item.section}", f"type {rating['type']}"):
                self.included[name] += count
                self.relevant[name] += count * is_relevant

    def precision(self, name: str = "overall") -> float:
        """The share that is relevant."""
        return self.relevant[name] / self.included[name]

    @property
    def recall(self) -> float:
        """The share of the blocks rated relevant that is included."""
        return len(self.found) / self.rated

    def __str__(self) -> str:
        lines = [
            f"{name:20} {self.precision(name):.3f} ({self.relevant[name]} of {self.included[name]})"
            for name in sorted(self.included)
        ]
        return "\n".join([*lines, f"{'recall':20} {self.recall:.3f} (of {self.rated})"])


def test_the_ratings_are_of_blocks_that_are_there(engine: ContextEngine) -> None:
    blocks = {one.id for one in engine.workspace.records() if isinstance(one, Block)}
    assert Counter(rating["type"] for rating in RATINGS) == {"chat": 8, "search": 6, "assist": 6, "automate": 4}
    for rating in RATINGS:
        relevant = set(rating["relevant"])
        assert relevant
        assert len(relevant) == len(rating["relevant"])
        assert relevant <= blocks, relevant - blocks
        assert set((rating["focus"] or {}).values()) <= relevant
        assert rating["note"]


@pytest.mark.requirement("S4.performance.precision")
def test_most_of_what_is_included_is_relevant(
    engine: ContextEngine, record_property: Callable[[str, object], None]
) -> None:
    tally = Tally()
    for rating in RATINGS:
        tally.add(engine, rating)
    report = str(tally)
    record_property("precision", report)
    assert tally.precision() > 0.85, report
