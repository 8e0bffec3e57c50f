"""docs/benchmarks.md's first part, made from the results: who found what, who kept the budget, how long it took."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.scoreboard.figures import COMPARED, OURS, behind, best_peer
from benchmarks.scoreboard.timing import Ratio, Round, ratios
from benchmarks.scoreboard.words import INTRODUCTION, READING, WHY_BEHIND, WHY_SLOWER, WITHOUT_PEERS

_BUDGETS: Final = (1000, 2000, 4000, 8000)
_FEW: Final = 10
_KINDS: Final = ("Python", "English prose", "JSON", "Chinese", "emoji")
HEADING: Final = "## The scoreboard"


def section(results: Mapping[str, Any]) -> str:
    """The scoreboard as a section of the page."""
    parts = [
        HEADING,
        INTRODUCTION.format(**_run(results)),
        "### First places",
        _first_places(results),
        "### Where Satchel is not ahead",
        _behind(results),
        _slower(results),
        "### Answer coverage and ranking",
        READING,
        *(_set(name, one, results) for name, one in results["sets"].items()),
        "### Budgets, citations, counting",
        _promises(results),
        _counting(results),
        "### Time and memory",
        _times(results),
        *_growth(results),
        "### Who took part",
        _who(results),
        _left_out(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _run(results: Mapping[str, Any]) -> dict[str, Any]:
    run = results["run"]
    return {
        "date": run["date"],
        "python": run["python"],
        "cores": run["cores"],
        "load": run["load"],
        "minutes": run["minutes"],
        "questions": sum(one["questions"] for one in results["sets"].values()),
        "sets": len(results["sets"]),
        "command": "make bench" if run["mode"] == "default" else f"BENCH={run['mode']} make bench",
    }


def _first_places(results: Mapping[str, Any]) -> str:
    """Our figure beside the best peer's, for every set and figure."""
    rows = [
        "| set | questions | " + " | ".join(COMPARED) + " |",
        "|---|--:|" + "--:|" * len(COMPARED),
    ]
    for name, one in results["sets"].items():
        cells = []
        for figure in COMPARED:
            mine, best = one["outcomes"][OURS]["figures"].get(figure), best_peer(one, figure)
            if mine is None or best is None:
                cells.append("–")
                continue
            ahead = mine[0] >= best[1][0]
            cells.append(
                f"{_bold(f'{mine[0]:.3f}', ahead)} / {_bold(f'{best[1][0]:.3f}', not ahead)} {_short(results, best[0])}"
            )
        rows.append(f"| {name} | {one['questions']} | " + " | ".join(cells) + " |")
    told = (
        "Satchel / the best of the others that were asked all the questions, and who that is; the higher is bold. "
        "The next table has those that were asked some, too."
    )
    return "\n".join([f"{told}\n", *rows])


def _bold(text: str, yes: bool) -> str:
    return f"**{text}**" if yes else text


def _short(results: Mapping[str, Any], name: str) -> str:
    return str(results["contestants"][name]["short"])


def _behind(results: Mapping[str, Any]) -> str:
    found = behind(results["sets"])
    if not found:
        return "On no set and no figure of this run."
    rows = ["| set | figure | who is ahead | by | 95 % of samples |", "|---|---|---|--:|--:|"]
    rows += [
        f"| {one['set']} | {one['figure']} | {_short(results, one['peer'])} | {-one['difference']:.3f} | "
        f"{-one['high']:+.3f} to {-one['low']:+.3f} |"
        for one in found
    ]
    reasons = [f"- {WHY_BEHIND[name]}" for name in dict.fromkeys(one["set"] for one in found) if name in WHY_BEHIND]
    return "\n".join(["\n".join(rows), *(["", *reasons] if reasons else [])])


def _slower(results: Mapping[str, Any]) -> str:
    """Who is faster or smaller than we are, and why."""
    found = [Round(**row) for row in results["times"]["rounds"]]
    lines = []
    for figure, words, needs in (
        ("index_s", "Indexing", "indexes"),
        ("ask_ms", "A question", "reads_question"),
        ("peak_mb", "Memory", ""),
    ):
        less = {
            name: ratio.median
            for name, about in results["contestants"].items()
            if name != OURS and (not needs or about[needs])
            if (ratio := ratios(found, name, figure)) is not None and ratio.median < 1
        }
        if less:
            told = ", ".join(
                f"{_short(results, name)} {_digits(value)}"
                for name, value in sorted(less.items(), key=lambda one: one[1])
            )
            lines.append(f"- {words} takes others less (× Satchel's): {told}. {WHY_SLOWER[figure]}")
    return "\n".join(lines)


def _set(name: str, one: Mapping[str, Any], results: Mapping[str, Any]) -> str:
    fitted = (
        "Satchel's ranker was fitted on these questions." if one["fitted"] else "Nothing of Satchel's was fitted on it."
    )
    head = f"**{name}**: {one['title']}. {one['questions']} questions on {_counted(one['corpora'], 'corpus', 'corpora')}. {one['source'].rstrip('.')}. {fitted}"
    rows = [
        "| | questions | " + " | ".join(f"cover@{budget}" for budget in _BUDGETS) + " | NDCG@10 | recall@5 |",
        "|---|--:|" + "--:|" * (len(_BUDGETS) + 2),
    ]
    ordered = sorted(one["outcomes"].items(), key=lambda pair: -pair[1]["figures"].get("cover@4000", [0])[0])
    for contestant, told in ordered:
        sure = told["questions"] >= _FEW
        cells = [_cell(told["figures"].get(f"cover@{budget}"), margin=sure) for budget in _BUDGETS]
        cells += [
            _cell(told["figures"].get("ndcg@10"), margin=sure),
            _cell(told["figures"].get("recall@5"), margin=False),
        ]
        title = _bold(_short(results, contestant), contestant == OURS)
        rows.append(f"| {title} | {told['questions']} | " + " | ".join(cells) + " |")
    missing = "" if not one["missing"] else f"\n\nNot there in this run: {', '.join(sorted(one['missing']))}."
    failed = [
        f"{_short(results, contestant)} failed on {', '.join(sorted(told['failed']))} ({_reason(told['failed'])})"
        for contestant, told in one["outcomes"].items()
        if told["failed"]
    ]
    failures = f"\n\n{'; '.join(failed)}." if failed else ""
    return f"{head}\n\n![coverage](pictures/bench-{name}.svg)\n\n" + "\n".join(rows) + missing + failures


def _reason(failed: Mapping[str, str]) -> str:
    """What the tool said the first time, on one line."""
    return " ".join(next(iter(failed.values())).split())[:160]


def _cell(figure: Sequence[float] | None, *, margin: bool = True) -> str:
    if figure is None:
        return "–"
    mean, low, high = figure
    return f"{mean:.3f} ± {(high - low) / 2:.2f}" if margin else f"{mean:.3f}"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _promises(results: Mapping[str, Any]) -> str:
    rows = [
        "| | keeps a budget | texts over it | longest | names lines | they are right | says what it costs: off by | worst |",
        "|---|---|--:|--:|---|--:|--:|--:|",
    ]
    for name, about in results["contestants"].items():
        told = [one["outcomes"][name] for one in results["sets"].values() if name in one["outcomes"]]
        if not told:
            continue
        texts, over = sum(one["texts"] for one in told), sum(one["over"] for one in told)
        cites, stands = sum(one["cites"] for one in told), sum(one["stands"] for one in told)
        said = [one["claims"] for one in told if one.get("claims")]
        takes = about["takes_budget"]
        cells = [
            "yes" if takes else "no",
            f"{over:,} of {texts:,}" if takes else "–",
            f"{max(one['worst_over'] for one in told):.2f} × the budget" if takes and over else "–",
            "yes" if cites else "no",
            f"{stands / cites:.1%} of {cites:,}" if cites else "–",
            f"{statistics.mean(one['mean'] for one in said):+.1%}" if said else "–",
            f"{max((one['worst'] for one in said), key=abs):+.1%}" if said else "–",
        ]
        rows.append(f"| {_bold(about['short'], name == OURS)} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n\n" + WITHOUT_PEERS


def _counting(results: Mapping[str, Any]) -> str:
    counts = results.get("counts") or {}
    if not counts:
        return ""
    rows = [
        "| own counter, against o200k | " + " | ".join(_KINDS) + " |",
        "|---|" + "--:|" * len(_KINDS),
    ]
    for name, kinds in counts.items():
        cells = [_off(kinds[kind]) if kind in kinds else "–" for kind in _KINDS]
        rows.append(f"| {_bold(_short(results, name), name == OURS)} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _off(error: Sequence[float]) -> str:
    mean, worst = error
    return "0" if mean == worst == 0 else f"{mean:+.0%} (worst {worst:+.0%})"


def _times(results: Mapping[str, Any]) -> str:
    found = [Round(**row) for row in results["times"]["rounds"]]
    if not found:
        return "Not measured in this run."
    where = ", ".join(f"{name} ({size:.1f} MB)" for name, size in results["times"]["megabytes"].items())
    rows = [
        "| | index: × Satchel's time | question: × Satchel's time | peak memory: × Satchel's | MB at most |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, about in results["contestants"].items():
        mine = [one for one in found if one.contestant == name]
        if not mine:
            continue
        cells = [_ratio(ratios(found, name, figure), name) for figure in ("index_s", "ask_ms", "peak_mb")]
        if not about["reads_question"]:
            cells[1] = "–"
        if not about["indexes"]:
            cells[0] = "–"
        cells.append(f"{max(one.peak_mb for one in mine):.0f}")
        rows.append(f"| {_bold(about['short'], name == OURS)} | " + " | ".join(cells) + " |")
    rounds = 1 + max(one.round for one in found)
    return (
        f"On {where}; {rounds} rounds, in each of which everybody took a turn: the median of the ratios, and their range. "
        "A question is answered by a warm tool: Satchel, aider with a finished context of 4,000 tokens, the others with ranked passages, which we fill up and count off the clock.\n\n"
        + "\n".join(rows)
    )


def _ratio(ratio: Ratio | None, name: str) -> str:
    if ratio is None:
        return "–"
    return "1" if name == OURS else f"{_digits(ratio.median)} ({_digits(ratio.low)}–{_digits(ratio.high)})"


def _digits(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _growth(results: Mapping[str, Any]) -> Iterator[str]:
    growth = results.get("growth")
    if not growth:
        return
    sizes = sorted(growth["megabytes"].values())
    yield (
        f"Growth: the same on corpora from {sizes[0]:.1f} to {sizes[-1]:.1f} MB (both axes logarithmic; "
        f"the smaller of {growth['times']} measurements each)."
    )
    yield "![time to index](pictures/bench-growth-index.svg)\n\n![time of a question](pictures/bench-growth-ask.svg)"
    rows = [
        f"| time at {sizes[-1]:.1f} MB ÷ at {sizes[0]:.1f} MB (size: {sizes[-1] / sizes[0]:.0f} ×) | index | question |",
        "|---|--:|--:|",
    ]
    names = dict.fromkeys(row["contestant"] for row in growth["rounds"])
    for name in names:
        cells = [_grown(growth, name, figure, sizes) for figure in ("index_s", "ask_ms")]
        rows.append(f"| {_bold(_short(results, name), name == OURS)} | " + " | ".join(cells) + " |")
    yield "\n".join(rows)


def _grown(growth: Mapping[str, Any], name: str, figure: str, sizes: Sequence[float]) -> str:
    def least(size: float) -> float | None:
        values = [
            row[figure]
            for row in growth["rounds"]
            if row["contestant"] == name and growth["megabytes"][row["folder"]] == size
        ]
        return min(values) if values else None

    first, last = least(sizes[0]), least(sizes[-1])
    return "–" if not first or not last else f"{last / first:.1f}"


def _who(results: Mapping[str, Any]) -> str:
    rows = ["| | version | how it was set up |", "|---|---|---|"]
    for name, about in results["contestants"].items():
        version = next(
            (one["outcomes"][name]["version"] for one in results["sets"].values() if name in one["outcomes"]), ""
        )
        rows.append(f"| {_bold(about['short'], name == OURS)} | {version} | {about['what']} |")
    return "\n".join(rows)


def _left_out(results: Mapping[str, Any]) -> str:
    absent = results.get("absent") or {}
    return "" if not absent else "Not run: " + "; ".join(f"{name} ({why})" for name, why in absent.items()) + "."
