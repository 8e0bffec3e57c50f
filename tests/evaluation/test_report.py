"""The pictures and the page of an evaluation: what they say, and that nothing on them acts."""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from satchel.evaluation.charts import Axis, Mark, Series, Size, histogram, line_chart, reliability_chart
from satchel.evaluation.charts.drawing import placed
from satchel.evaluation.charts.lines import LABEL_GAP, looks, spread
from satchel.evaluation.estimates import Bin, calibrate
from satchel.evaluation.judging import RankScores
from satchel.evaluation.outcome import AtBudget, Evaluation, QuestionRow, compare
from satchel.evaluation.page import report_page
from satchel.evaluation.page.report_tables import bounds_of, value_of
from tests.support import browser as browsing
from tests.support.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BUDGETS = (1000, 2000, 4000, 8000)
SVG = "{http://www.w3.org/2000/svg}"
TOKENS = Axis("tokens", logarithmic=True, ticks=BUDGETS)
SHARE = Axis("cover", percent=True, low=0, high=1)
HOSTILE = (
    "<script>window.__hacked=1</script>",
    '"><img src="http://127.0.0.1:1/leak" onerror="window.__hacked=2">',
    "</title></style></svg></bdi><svg onload=window.__hacked=3><style>*{background:url(http://127.0.0.1:1/css)}</style>",
    "]]><!-- <a href='javascript:window.__hacked=4'>press</a> &lt;b&gt; &amp;",
    "gnp\u202e.exe\u202c \u200b\x1b[31m\x00\ud800 \u2066end",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:1/away'><base href=http://127.0.0.1:1/>",
)


def cell(budget: int, cover: float, **more: Any) -> AtBudget:
    told = {"precision": 0.5, "tokens": budget - 10, "milliseconds": 12.5, "missing": () if cover == 1 else ("a.py",)}
    return AtBudget(budget=budget, cover=cover, **(told | more))


def row(number: int, covers: Sequence[float], **more: Any) -> QuestionRow:
    told: dict[str, Any] = {
        "query": f"question {number}",
        "ranking": RankScores(ndcg=0.5 + number % 5 / 10, recall={1: 0.0, 5: 0.5, 10: 1.0}, reciprocal_rank=0.5),
        "judged": ((0.9, True), (0.35, number % 3 == 0)),
        "at": tuple(
            cell(budget, cover, milliseconds=10.0 + number) for budget, cover in zip(BUDGETS, covers, strict=False)
        ),
    }
    return QuestionRow(id=str(number), **(told | more))


def evaluation(count: int = 24, *, name: str = "satchel", better: float = 0.0, **more: Any) -> Evaluation:
    rows = [row(i, [min(1.0, (i % 4) / 4 + k / 8 + better) for k in range(4)], **more) for i in range(1, count + 1)]
    about = {"dataset": "mine.jsonl", "sha256": "ab" * 32, "version": "0.1.0", "at": "2026-11-16T16:00:00+00:00"}
    return Evaluation(name=name, rows=tuple(rows), about=about | {"load": 1.25, "settings": {"top_k": 20}})


def parsed(page: str) -> Any:
    """The page, read as strictly as XML is."""
    return etree.fromstring(page.removeprefix("<!DOCTYPE html>\n").encode())


def words(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def headings(page: str) -> list[str]:
    return [words(one) for one in parsed(page).iter("h2")]


def picture(svg: str) -> Any:
    return etree.fromstring(svg.encode())


def twelve(*, emphasised: bool, apart: float = 0.001) -> list[Series]:
    return [
        Series(
            f"tool {i}",
            [(budget, 0.5 + apart * i) for budget in BUDGETS],
            emphasised=emphasised and i == 3,
        )
        for i in range(12)
    ]


def names_on(svg: str, wanted: str) -> dict[str, tuple[float, float]]:
    texts = picture(svg).iter(f"{SVG}text")
    return {one.text: (float(one.get("x")), float(one.get("y"))) for one in texts if re.match(wanted, one.text or "")}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing.chromium() as found:
        yield found


# Charts


def test_an_axis_has_round_ticks_around_its_values() -> None:
    assert placed(Axis("x"), [3, 97], 0, 100).ticks == (0, 20, 40, 60, 80, 100)
    assert placed(Axis("x"), [-1.5, 9], 0, 100).ticks == (-5, 0, 5, 10)
    assert placed(Axis("x", logarithmic=True), [3, 40_000], 0, 100).ticks == (1, 10, 100, 1e3, 1e4, 1e5)
    assert placed(Axis("x", logarithmic=True), [30, 180], 0, 100).ticks == (20, 50, 100, 200)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("values", [(), (5.0,), (5.0, 5.0), (0.0,), (float("nan"), float("inf"), 3.0), (1e-9, 1e12)])
def test_every_value_has_a_place_inside(logarithmic: bool, values: tuple[float, ...]) -> None:
    axis = Axis("x", logarithmic=logarithmic)
    scale = placed(axis, values, 100, 20)
    assert scale.low < scale.high
    assert all(20 <= scale.at(value) <= 100 for value in values if axis.holds(value))


def test_equal_steps_of_a_logarithmic_axis_are_equal_ratios() -> None:
    scale = placed(TOKENS, (), 0, 700)
    places = [scale.at(budget) for budget in BUDGETS]
    assert {round(b - a) for a, b in itertools.pairwise(places)} == {round(places[1] - places[0])}


@pytest.mark.parametrize("wanted", [[50.0] * 12, [0.0] * 12, [300.0] * 12, [10.0, 12.0, 200.0], [290.0, 300.0, 10.0]])
def test_names_keep_their_distance_order_and_bounds(wanted: list[float]) -> None:
    found = spread(wanted, 0, 300)
    ordered = [at for _, at in sorted(zip(wanted, found, strict=True))]
    assert ordered == sorted(found)
    assert min(b - a for a, b in itertools.pairwise(ordered)) >= LABEL_GAP - 0.11
    assert min(found) >= 0
    assert max(found) <= 300


def test_names_that_have_room_stay_where_their_lines_end() -> None:
    assert spread([200.0, 10.0, 100.0], 0, 300) == [200.0, 10.0, 100.0]


@pytest.mark.parametrize("emphasised", [False, True])
@pytest.mark.parametrize("apart", [0.0, 0.001, 0.04])
def test_twelve_names_do_not_overlap(emphasised: bool, apart: float) -> None:
    found = names_on(line_chart("t", TOKENS, SHARE, twelve(emphasised=emphasised, apart=apart)), "tool ")
    assert len(found) == 12
    places = sorted(y for _, y in found.values())
    assert min(b - a for a, b in itertools.pairwise(places)) >= LABEL_GAP - 0.11


def test_many_names_make_the_picture_taller() -> None:
    series = [Series(f"tool {i}", [(1000, 0.5)]) for i in range(40)]
    svg = line_chart("t", TOKENS, SHARE, series)
    assert max(y for _, y in names_on(svg, "tool ").values()) < float(picture(svg).get("height"))


def test_no_two_of_twelve_look_the_same() -> None:
    for strong in ([False] * 12, [True] + [False] * 11):
        found = looks(strong, [False] * 12)
        assert len({(one.colour, one.shape, one.dash) for one in found}) == 12
    assert [one.colour for one in found].count(0) == 1  # the emphasised one has its colour alone


def test_texts_stay_inside_and_apart_in_a_real_browser(browser: Browser) -> None:
    series = [
        Series(
            f"{'a tool with a very long name indeed 長い名前 ' if i == 5 else 'tool'} {i}", [(1000, 0.5), (8000, 0.6)]
        )
        for i in range(12)
    ]
    pictures = [
        line_chart("Cover", TOKENS, SHARE, series),
        line_chart("Cover", TOKENS, SHARE, series[4:7], size=Size(width=460, height=350)),
        histogram("Time " * 30, "ms", [1.0, 2, 3, 900], marks=[Mark("p50", 2), Mark("p95", 900)]),
        reliability_chart(calibrate([(i / 100, i % 3 == 0) for i in range(100)] * 9).bins),  # type: ignore[union-attr]
    ]
    page = browser.new_page()
    page.set_content("".join(pictures))
    for number in range(len(pictures)):
        boxes = page.evaluate(
            """number => { const svg = document.querySelectorAll("svg")[number], all = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text")].map(one => one.getBoundingClientRect())
            .map(one => [one.left - all.left, one.top - all.top, one.right - all.left, one.bottom - all.top])
            .concat([[0, 0, all.width, all.height]]) }""",
            number,
        )
        *texts, whole = boxes
        assert len(texts) > 5
        assert all(left >= 0 and top >= 0 and right <= whole[2] and low <= whole[3] for left, top, right, low in texts)
        for a, b in itertools.combinations(texts, 2):
            across, up = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across <= 0 or up <= 3, (number, a, b)  # the boxes of lines of text are taller than their letters
    page.close()


def test_a_chart_tells_its_numbers_in_words_and_on_its_points() -> None:
    series = [
        Series("one <b>", [(1000, 0.5), (2000, 0.625)], bands=[(0.4, 0.6), (0.5, 0.75)]),
        Series("two", [(1000, 1)]),
    ]
    svg = picture(line_chart("Cover & more", TOKENS, SHARE, series))
    assert svg.get("role") == "img"
    assert svg.findtext(f"{SVG}title") == "Cover & more"
    told = svg.findtext(f"{SVG}desc")
    assert told == "one <b>: 1 k → 50 % (40 % to 60 %), 2 k → 62.5 % (50 % to 75 %); two: 1 k → 100 %"
    hovers = [one.findtext(f"{SVG}title") for one in svg.iter(f"{SVG}path") if one.find(f"{SVG}title") is not None]
    assert hovers == [
        "one <b>: 1 k → 50 % (40 % to 60 %)",
        "one <b>: 2 k → 62.5 % (50 % to 75 %)",
        "two: 1 k → 100 %",
    ]
    assert len(list(svg.iter(f"{SVG}polygon"))) == 1


def test_the_bounds_of_a_single_point_are_a_whisker() -> None:
    svg = picture(line_chart("t", Axis("x"), Axis("y"), [Series("a", [(0.0, 0.2)], bands=[(0.1, 0.3)])]))
    assert not list(svg.iter(f"{SVG}polygon"))
    assert any("stroke-width" in one.attrib for one in svg.iter(f"{SVG}path"))


def test_a_fitted_line_is_dashed_beyond_its_points() -> None:
    series = [Series("a", [(10, 10), (100, 100)], line=lambda x: x), Series("b", [(10, 5), (1000, 500)])]
    logarithmic = Axis("x", logarithmic=True)
    lines = list(picture(line_chart("t", logarithmic, logarithmic, series)).iter(f"{SVG}polyline"))
    assert [one.get("stroke-dasharray") for one in lines] == [None, "5 5", None]
    assert len(lines[0].get("points").split()) == 41


@pytest.mark.parametrize(
    "values",
    [[], [12.0], [12.0] * 5, [0.0, 0.0], [1.0, 2, 3, 4, 1000], [5.0, 6, 7.5, 9], [float(i) for i in range(500)]],
    ids=["none", "one", "same", "zeros", "tail", "few", "many"],
)
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    svg = picture(histogram("Time", "ms", values, marks=[Mark("p50", values[0])] if values else []))
    counts = [int(one.findtext(f"{SVG}title").rpartition(": ")[2]) for one in svg.iter(f"{SVG}rect") if len(one)]
    assert sum(counts) == len(values)
    assert ("nothing was measured" in words(svg)) is (not values)


def test_bars_stand_on_zero() -> None:
    svg = picture(histogram("t", "x", [0.0] * 4 + [1.0] * 8))
    heights = [float(one.get("height")) for one in svg.iter(f"{SVG}rect") if len(one)]
    small, large = [height for height in heights if height]
    assert large == pytest.approx(2 * small, abs=0.2)


def test_reliability_shows_each_bin_with_its_hits() -> None:
    bins = [
        Bin(low=0.1, high=0.2, hits=7, stated=0.15, right=0.3),
        Bin(low=0.9, high=1.0, hits=1234, stated=0.95, right=1.0),
    ]
    svg = picture(reliability_chart(bins))
    assert (
        svg.findtext(f"{SVG}desc") == "stated 15 %, relevant 30 % of 7 hits; stated 95 %, relevant 100 % of 1,234 hits"
    )
    first, second = list(svg.iter(f"{SVG}circle"))
    assert float(first.get("r")) < float(second.get("r"))
    assert float(first.get("cy")) > float(second.get("cy"))
    assert {"7", "1.23 k"} <= {one.text for one in svg.iter(f"{SVG}text")}


# The page


def test_the_page_says_the_figures_with_their_intervals() -> None:
    run = evaluation()
    told = words(parsed(report_page(run)))
    for name, one in run.figures().items():
        assert value_of(name, one.mean) in told, name
        assert bounds_of(name, one) in told, name
    calibration = run.calibration()
    assert calibration is not None
    assert f"Brier score {calibration.brier:.3f}" in told
    assert f"ECE {calibration.error:.3f}" in told
    for about in ("mine.jsonl", "ab" * 32, "0.1.0", "2026-11-16T16:00:00+00:00", "top_k = 20", "1.25"):
        assert about in told


def test_the_numbers_of_the_pictures_are_in_the_page() -> None:
    run = evaluation()
    coverage, times, reliability = [one.findtext(f"{SVG}desc") for one in parsed(report_page(run)).iter(f"{SVG}svg")]
    for budget in BUDGETS:
        assert f"{budget // 1000} k → {run.figures()[f'cover@{budget}'].mean * 100:.3g} % (" in coverage
    assert "p50: 22" in times
    assert "p95: 33" in times
    assert "stated 90 %, relevant 100 % of 24 hits" in reliability
    assert "stated 35 %, relevant 33.3 % of 24 hits" in reliability


def test_the_same_run_gives_the_same_bytes() -> None:
    before, after = evaluation(name="a"), evaluation(name="b", better=0.1)
    assert report_page(after, compare(before, after), before) == report_page(after, compare(before, after), before)


def test_a_comparison_shows_differences_verdicts_and_what_changed() -> None:
    before, after = evaluation(name="old"), evaluation(name="new", better=0.125)
    page = report_page(after, compare(before, after), before)
    told = words(parsed(page))
    assert "Compared" in headings(page)
    assert "▲ better" in told
    assert "· no clear difference" in told
    assert "▼ worse" not in told
    assert "Worse: 0 questions" in told
    assert re.search(r"Better: 2\d questions", told)
    coverage = next(parsed(page).iter(f"{SVG}svg")).findtext(f"{SVG}desc")
    assert "after: 1 k" in coverage
    assert "before: 1 k" in coverage


def test_which_run_is_the_earlier_one_is_told_by_the_comparison() -> None:
    first, second = evaluation(name="old"), evaluation(name="new", better=0.125)
    assert report_page(first, compare(first, second), second) == report_page(second, compare(first, second), first)
    assert "▼ worse" in words(parsed(report_page(first, compare(second, first), second)))


def test_runs_of_the_same_name_can_be_told_apart() -> None:
    before, after = evaluation(), evaluation(better=0.125)
    page = report_page(after, None, before)
    assert "Evaluation: after against before" in words(parsed(page))
    assert "▲ better" in page


def test_a_comparison_without_the_other_run_has_its_table_only() -> None:
    before, after = evaluation(name="old"), evaluation(name="new", better=0.125)
    page = report_page(after, compare(before, after))
    assert "Compared" in headings(page)
    assert "Questions that changed most" not in page


def test_groups_are_shown_where_there_are_some() -> None:
    rows = [row(i, [i % 2, 1, 1, 1], group="" if i == 1 else "code" if i < 8 else "docs") for i in range(1, 11)]
    page = parsed(report_page(Evaluation(name="x", rows=tuple(rows))))
    table = next(one for one in page.iter("table") if "Group" in words(one))
    assert [words(one[0]) for one in table.iter("tr")] == ["Group", "code", "docs", "(no group)"]
    assert [words(one[1]) for one in table.iter("tr")] == ["Questions", "6", "3", "1"]
    assert "By group" not in headings(report_page(evaluation()))


def test_the_worst_question_comes_first_with_what_is_missing_and_errors() -> None:
    bad = row(1, (), at=(cell(1000, 0, missing=("a.py", "b.py")), cell(2000, 0.5, missing=("b.py",))))
    refused = row(2, (), at=(cell(1000, 0, error="no <room>", missing=("c.py",)), cell(2000, 1)))
    good = row(3, (), at=(cell(1000, 1), cell(2000, 1, tokens=2345)))
    page = parsed(report_page(Evaluation(name="x", rows=(good, refused, bad))))
    cases = [words(one) for one in page.iter("li") if one.get("class") == "case"]
    assert [one[:10] for one in cases] == ["question 1", "question 2"]
    assert "missing or cut at 1,000: a.py" in cases[0]
    assert "missing or cut at every budget: b.py" in cases[0]
    assert "error at 1,000: no <room>" in cases[1]
    assert "c.py" not in cases[1]
    told = words(page)
    assert "Errors1of 6" in told
    assert "Over budget1of 6 contexts" in told


def test_every_question_that_lacks_something_is_there_without_scripts() -> None:
    run = Evaluation(name="x", rows=tuple(row(i, [0.25, 0.5, 0.5, 0.75]) for i in range(1, 101)))
    page = parsed(report_page(run))
    assert sum(one.get("class") == "case" for one in page.iter("li")) == 100
    assert not list(page.iter("script"))


@pytest.mark.parametrize(
    "run",
    [
        evaluation(1),
        evaluation(5),
        evaluation(ranking=None, judged=()),
        evaluation(judged=()),
        Evaluation(name="zero", rows=tuple(row(i, [0, 0, 0, 0], judged=((0.5, False),)) for i in range(9))),
        Evaluation(name="same", rows=tuple(row(1, [1, 1, 1, 1]) for _ in range(9))),
        Evaluation(name="one budget", rows=(row(1, [0.5]), row(2, [1]))),
        Evaluation(name="errors", rows=(row(1, (), at=(cell(1000, 0, error="x", precision=None),)),)),
        Evaluation(name="nothing", rows=()),
        Evaluation(name="no budgets", rows=(row(1, ()),)),
        evaluation(query="how " * 5000, group="g" * 3000),
    ],
    ids="one five no-ranking no-calibration zero same one-budget errors nothing no-budgets long".split(),
)
def test_odd_runs_have_a_page(run: Evaluation) -> None:
    page = report_page(run)
    told = words(parsed(page))
    assert "What was measured" in headings(page)
    assert "nan" not in told.split()
    assert ("Stated relevance" in told) is any(one.judged for one in run.rows)
    assert len(page) < 200_000
    report_page(run, None, run) if run.rows else None


def test_nothing_on_the_page_acts_and_nothing_leaves_it(browser: Browser, tmp_path: Path) -> None:
    text = " ".join(HOSTILE)
    run = Evaluation(
        name=text,
        rows=tuple(
            row(i, (), query=one, group=one, at=(cell(1000, 0.25, missing=(one,)), cell(2000, 0, error=one)))
            for i, one in enumerate(HOSTILE)
        ),
        about={one: one for one in HOSTILE} | {"dataset": text, "settings": {text: [text]}},
    )
    page = report_page(run, None, Evaluation(name=f"{text}2", rows=run.rows, about=run.about))
    parsed(page)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00\x1b\ud800]", page)
    assert "⟦U+202E⟧" in page
    place = tmp_path / "report.html"
    place.write_text(page, encoding="utf-8")
    context = browser.new_context()
    tab = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(place.as_uri())
    assert tab.locator(".case").count() == len(HOSTILE)
    assert tab.evaluate("window.__hacked") is None
    assert tab.locator("script, img, a, iframe, link, base, [onload], [onerror]").count() == 0
    assert asked == [place.as_uri()]
    assert complaints == []
    context.close()


@pytest.mark.parametrize("guarded", [True, False])
def test_the_policy_of_the_page_stops_what_would_slip_through(browser: Browser, tmp_path: Path, guarded: bool) -> None:
    """Were something not escaped, the page would still not run or fetch it; without its policy it would."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        slip = f'<script>window.__hacked=1; fetch("{url}")</script>'
        page = report_page(evaluation(3)).replace("<main>", f"<main>{slip}")
        place = tmp_path / "report.html"
        place.write_text(page if guarded else page.replace("Content-Security-Policy", "x"), encoding="utf-8")
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(place.as_uri())
        assert (tab.evaluate("window.__hacked") is None) is guarded
        if guarded:
            with pytest.raises(BlockingIOError):
                server.accept()
        else:
            server.settimeout(HANG_SECONDS)
            server.accept()[0].close()
        context.close()


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_follows_its_scheme(
    browser: Browser, tmp_path: Path, width: int, scheme: Any
) -> None:
    before = evaluation(60, name="old", query="x" * 3000)
    after = evaluation(60, name="a" * 300, better=0.1, query="x" * 3000)
    place = tmp_path / "report.html"
    place.write_text(report_page(after, compare(before, after), before), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(place.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    dark = tab.evaluate("getComputedStyle(document.querySelector('.chart .ground')).fill") == "rgb(13, 17, 23)"
    assert dark is (scheme == "dark")
    context.close()
