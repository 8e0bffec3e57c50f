"""The README's table: rows of the page, never typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

BEGIN: Final = "<!-- made by benchmarks/scoreboard/readme.py -->"
END: Final = "<!-- end -->"
_SETS: Final = {
    "docstrings": "functions by what they do",
    "code_semble": "code by question",
    "docs_prose": "articles, papers, chats",
    "docs_contracts": "contracts",
    "docs_ir": "abstracts",
}
_PEERS: Final = ("semble", "llamaindex", "bm25-12")
"""The two strongest tools, and the strongest simple method; docs/benchmarks.md has all nine."""
_WITH_OUR_MODEL: Final = ("semble", "llamaindex")
_FIGURES: Final = ("cover@1000", "cover@4000")


def table(results: Mapping[str, Any]) -> str:
    """Who holds how much of what was asked for, in 1,000 and in 4,000 tokens."""
    known = [name for name in ("satchel", *_PEERS) if name in results["contestants"]]
    rows = [
        "| in 1,000 / 4,000 tokens | " + " | ".join(_shown(name) for name in known) + " |",
        "|---|" + "--:|" * len(known),
    ]
    for name, words in _SETS.items():
        one = results["sets"].get(name)
        if one is not None:
            cells = [_cell(one["outcomes"].get(contestant)) for contestant in known]
            mark = "" if one["fitted"] else " ²"
            rows.append(f"| {words} ({one['questions']}){mark} | " + " | ".join(cells) + " |")
    some = [_asked(name, results) for name in known if _asked(name, results)]
    notes = [
        "Share of the expected results that is really in the text (number of questions). ¹ with Satchel's static model;"
        " ² nothing of Satchel's was fitted on it, on the others its ranker was."
    ]
    notes += [f"Asked only some of the questions: {', '.join(some)}."] if some else []
    return "\n".join([*rows, "", " ".join(notes)])


def _asked(name: str, results: Mapping[str, Any]) -> str:
    """The contestant's name, if it was asked fewer questions than there are."""
    fewer = any(
        name in one["outcomes"] and one["outcomes"][name]["questions"] < one["questions"]
        for one in results["sets"].values()
    )
    return name if fewer else ""


def _shown(name: str) -> str:
    return "**Satchel**" if name == "satchel" else f"{name} ¹" if name in _WITH_OUR_MODEL else name


def _cell(told: Mapping[str, Any] | None) -> str:
    if told is None or any(figure not in told["figures"] for figure in _FIGURES):
        return "–"
    return " / ".join(f"{told['figures'][figure][0]:.3f}".removeprefix("0") for figure in _FIGURES)


def put_table(readme: Path, results: Mapping[str, Any]) -> None:
    """Put the table in its place."""
    before, begin, rest = readme.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        readme.write_text(f"{before}{begin}\n{table(results)}\n{end}{after}", encoding="utf-8")
