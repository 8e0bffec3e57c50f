"""The plots of the page, as SVG files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.scoreboard.figures import OURS
from satchel.evaluation.charts import Axis, Series, line_chart

_BUDGETS = (1000, 2000, 4000, 8000)


def pictures(results: Mapping[str, Any]) -> dict[str, str]:
    """Every plot by the name of its file."""
    drawn = {f"bench-{name}.svg": _coverage(one, results["contestants"]) for name, one in results["sets"].items()}
    if results.get("growth"):
        drawn["bench-growth-index.svg"] = _growth(results, "index_s", "Time to index, by size of the corpus", "seconds")
        drawn["bench-growth-ask.svg"] = _growth(results, "ask_ms", "Time of a question, by size of the corpus", "ms")
    return drawn


def _coverage(one: Mapping[str, Any], contestants: Mapping[str, Any]) -> str:
    series = []
    for name, told in _by_rank(one):
        points = [
            (budget, told["figures"][f"cover@{budget}"]) for budget in _BUDGETS if f"cover@{budget}" in told["figures"]
        ]
        if points:
            series.append(
                Series(
                    contestants[name]["short"],
                    [(budget, figure[0]) for budget, figure in points],
                    bands=[(figure[1], figure[2]) for _, figure in points] if name == OURS else None,
                    emphasised=name == OURS,
                )
            )
    return line_chart(
        f"Answer coverage: {one['title']}",
        Axis("token budget", logarithmic=True, ticks=_BUDGETS, low=900, high=9000),
        Axis("coverage", low=0, high=1, percent=True),
        series,
    )


def _by_rank(one: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(one["outcomes"].items(), key=lambda pair: -pair[1]["figures"].get("cover@4000", [0.0])[0])


def _growth(results: Mapping[str, Any], figure: str, title: str, unit: str) -> str:
    by_name: dict[str, dict[float, list[float]]] = {}
    for row in results["growth"]["rounds"]:
        size = results["growth"]["megabytes"][row["folder"]]
        by_name.setdefault(row["contestant"], {}).setdefault(size, []).append(row[figure])
    series = [
        Series(
            results["contestants"][name]["short"],
            [(size, min(values)) for size, values in sorted(sizes.items()) if min(values) > 0],
            emphasised=name == OURS,
        )
        for name, sizes in by_name.items()
    ]
    return line_chart(title, Axis("MB of source", logarithmic=True), Axis(unit, logarithmic=True), series)
