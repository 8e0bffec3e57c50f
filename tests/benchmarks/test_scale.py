"""The page about scale says what its points say."""

from __future__ import annotations

import math

import pytest

from benchmarks.scale import model, page, plan, plot
from tests.support.places import ROOT

POINTS = model.read(ROOT / "benchmarks" / "scale" / "points.json")
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
PARTS, PICTURES = page.parts(POINTS), plot.pictures(POINTS)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_the_page_has_the_tables_that_follow_from_the_points(name: str) -> None:
    assert page.with_part(PAGE, name, PARTS[name]) == PAGE


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_the_pictures_are_those_of_the_points_and_are_shown(name: str) -> None:
    assert (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8") == PICTURES[name]
    assert f"](pictures/{name})" in PAGE


@pytest.mark.parametrize("form", ["a + b·n", "a + b·ln n", "n·(a + b·ln n)"])
def test_a_fit_finds_the_line_that_points_lie_on(form: str) -> None:
    told = model.Fit(form, 3.0, 0.25, 0.0, None)
    found = model.fit([(n, told(n)) for n in (10, 30, 100, 300, 1000)], form)
    assert (found.a, found.b) == pytest.approx((3.0, 0.25))
    assert found.worst == pytest.approx(0, abs=1e-9)
    assert found.unseen == pytest.approx(0, abs=1e-9)


def test_a_fit_tells_by_how_much_it_misses_what_it_has_not_seen() -> None:
    found = model.fit([(10, 10), (100, 100), (1000, 1000), (10_000, 20_000)], "a + b·n")
    assert found.unseen == pytest.approx(-0.5)
    assert found.worst > 0.1


def test_n_log_n_goes_through_nothing() -> None:
    found = model.fit([(n, 2e-5 * n * math.log(n)) for n in (1e4, 1e5, 1e6)], "b·n·ln n")
    assert found.a == pytest.approx(0)
    assert found.b == pytest.approx(2e-5)
    assert found.unseen is None


def test_the_largest_workspace_is_answered_just_in_time() -> None:
    found = model.Model(POINTS)
    for by_index in (False, True):
        most = found.most_pieces(plan.TARGET_MS, by_index=by_index)
        assert found.search_ms(most, by_index=by_index) == pytest.approx(plan.TARGET_MS, rel=1e-3)


def test_more_blocks_need_more_of_everything() -> None:
    found = model.Model(POINTS)
    small, large = plan.deployment(found, 1e8), plan.deployment(found, 1e9)
    assert large.disk == pytest.approx(10 * small.disk)
    assert large.shards > 5 * small.shards
    assert small.ram <= small.shards * plan.USED_RAM * plan.RAM
    assert small.disk <= small.shards * plan.USED_DISK * plan.DISK


def test_what_is_merged_is_counted_by_the_stores_own_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan.relaid(10_000) >= 1
    monkeypatch.setattr("satchel.storage.sql.scoring_layout.segments_to_merge", lambda *_, **__: [])
    assert plan.relaid(10_000) == 0


def test_marks_that_are_missing_are_told() -> None:
    with pytest.raises(ValueError, match="no marks for 'x'"):
        page.with_part("nothing", "x", "y")
