"""Choosing the set of most value."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from satchel.assembly.knapsack import Coverage, Offer, pack_by_value
from tests.support.effort import steps

LINES = [f"this is line number {i} of the text" for i in range(14)]


def a_case(chooser: random.Random) -> tuple[list[Offer], int, int]:
    """A small case: some candidates repeat each other's lines, some do not."""
    candidates = []
    for i in range(chooser.randint(2, 10)):
        own = [f"candidate {i} has this line {j} to itself" for j in range(chooser.randint(1, 4))]
        shared = chooser.sample(LINES, chooser.choice([0, 0, 1, 3]))
        candidates.append(Offer(chooser.random(), chooser.randint(20, 500), "\n".join(own + shared)))
    return candidates, chooser.randint(100, 1500), chooser.randint(1, 10)


def feasible(candidates: list[Offer], chosen: list[int], capacity: int, limit: int) -> bool:
    return len(chosen) <= limit and sum(candidates[i].cost for i in chosen) <= capacity


def worth(candidates: list[Offer], chosen: list[int]) -> float:
    return Coverage([c.score for c in candidates], [c.text for c in candidates]).value(chosen)


def anchor(candidates: list[Offer], capacity: int) -> int | None:
    affordable = [i for i, c in enumerate(candidates) if c.cost <= capacity]
    return max(affordable, key=lambda i: (candidates[i].score, -i), default=None)


def optimum(candidates: list[Offer], capacity: int, limit: int) -> float:
    """The best of all sets that hold the best hit that fits."""
    must = anchor(candidates, capacity)
    if must is None:
        return 0.0
    others = [i for i in range(len(candidates)) if i != must]
    return max(
        worth(candidates, [must, *rest])
        for size in range(len(others) + 1)
        for rest in combinations(others, size)
        if feasible(candidates, [must, *rest], capacity, limit)
    )


def greedy(candidates: list[Offer], capacity: int, limit: int) -> list[int]:
    order = sorted(range(len(candidates)), key=lambda i: (-candidates[i].score, i))
    taken: list[int] = []
    for i in order:
        if len(taken) < limit and candidates[i].cost <= capacity:
            taken.append(i)
            capacity -= candidates[i].cost
    return taken


def test_within_one_percent_of_the_optimum_on_average_and_never_below_greedy() -> None:
    chooser = random.Random(20261115)
    ratios = []
    for _ in range(400):
        candidates, capacity, limit = a_case(chooser)
        chosen = pack_by_value(candidates, capacity, limit)
        assert feasible(candidates, chosen, capacity, limit)
        best = optimum(candidates, capacity, limit)
        value = worth(candidates, chosen)
        assert value <= best + 1e-9
        assert value >= worth(candidates, greedy(candidates, capacity, limit)) - 1e-9
        if best:
            ratios.append(value / best)
    assert sum(ratios) / len(ratios) >= 0.99
    assert min(ratios) >= 0.85


@given(st.integers(0, 10**9))
def test_law_packing_is_feasible_never_below_greedy_and_keeps_the_best(seed: int) -> None:
    candidates, capacity, limit = a_case(random.Random(seed))
    chosen = pack_by_value(candidates, capacity, limit)
    assert feasible(candidates, chosen, capacity, limit)
    assert chosen == sorted(set(chosen))
    assert worth(candidates, chosen) >= worth(candidates, greedy(candidates, capacity, limit)) - 1e-9
    must = anchor(candidates, capacity)
    assert must is None or must in chosen
    assert chosen == pack_by_value(candidates, capacity, limit)


def test_several_cheap_hits_beat_one_dear_one_of_little_more_worth() -> None:
    candidates = [
        Offer(0.9, 100, "the best one is always in, whatever it costs"),
        Offer(0.8, 900, "a very long text that nearly fills the budget"),
        *(Offer(0.7, 100, f"short text number {i}, different from the others") for i in range(9)),
    ]
    assert pack_by_value(candidates, 1000, 20) == [0, *range(2, 11)]
    assert greedy(candidates, 1000, 20) == [0, 1]


def test_a_repetition_gives_way_to_something_new() -> None:
    same = "\n".join(LINES)
    candidates = [
        Offer(0.9, 400, same),
        Offer(0.85, 400, same + "\nand one more line at the end of it"),
        Offer(0.6, 400, "something that nobody else has said so far"),
    ]
    assert pack_by_value(candidates, 800, 10) == [0, 2]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.lists(st.sampled_from(LINES), min_size=1)), min_size=2, max_size=6),
    st.data(),
)
def test_law_value_is_monotone_and_submodular(given: list[tuple[float, list[str]]], data: st.DataObject) -> None:
    coverage = Coverage([score for score, _ in given], ["\n".join(lines) for _, lines in given])
    everyone = list(range(len(given)))
    large = data.draw(st.lists(st.sampled_from(everyone), unique=True))
    small = [i for i in large if data.draw(st.booleans())]
    extra = data.draw(st.sampled_from(everyone))
    assert coverage.value([extra]) <= given[extra][0] + 1e-9
    if extra in large:
        return
    gain_small = coverage.value([*small, extra]) - coverage.value(small)
    gain_large = coverage.value([*large, extra]) - coverage.value(large)
    assert gain_small >= gain_large - 1e-9
    assert gain_large >= -1e-9


def test_many_candidates_are_packed_in_few_steps() -> None:
    chooser = random.Random(7)

    def packing(size: int) -> int:
        candidates = [
            Offer(chooser.random(), chooser.randint(50, 400), f"candidate number {i} of many\n{LINES[i % 14]}")
            for i in range(size)
        ]
        return steps(lambda: pack_by_value(candidates, 8000, 1000))

    # Ten times as many steps at most for ten times as many candidates, and a hundred times if it were quadratic.
    assert packing(4000) < 10 * packing(400)
