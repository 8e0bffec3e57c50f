"""Run the scoreboard: prepare, ask, time, write.

python -m benchmarks.scoreboard                  a bounded run, as `make bench` does it
BENCH=full python -m benchmarks.scoreboard       every question of every set
python -m benchmarks.scoreboard --draw           only write the page again, from docs/benchmarks.json
python -m benchmarks.scoreboard --only satchel,semble --sets code_semble    a part, printed and not written
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.places import ROOT, WORK
from benchmarks.scoreboard import counting, figures, timing
from benchmarks.scoreboard.asking import every, outcome_of
from benchmarks.scoreboard.contestants import CONTESTANTS, Contestant
from benchmarks.scoreboard.corpora import QuestionSet, question_sets, sample
from benchmarks.scoreboard.environments import PeerMissing, ready
from benchmarks.scoreboard.fingerprints import fingerprint
from benchmarks.scoreboard.outcomes import Outcome, read_outcome
from benchmarks.scoreboard.page import HEADING, section
from benchmarks.scoreboard.pictures import pictures
from benchmarks.scoreboard.readme import put_table
from benchmarks.sections import put_section, write_results

DOCS: Final = ROOT / "docs"
RESULTS: Final = DOCS / "benchmarks.json"
OTHER_PARTS: Final = ("shown",)
"""Names in docs/benchmarks.json that are not the scoreboard's."""
KEPT: Final = WORK / "outcomes"


class Plan(NamedTuple):
    """How much is done."""

    name: str
    most: dict[str, int]
    """The most questions of each set; a set that isn't named is left out."""
    variants: bool
    times: int
    timed: tuple[str, ...]
    grown: tuple[int, ...]
    growing: tuple[str, ...]


_SETS: Final = (
    "code_semble", "code_semble_whole", "code_muloc", "code_swelite", "docstrings", "docs_prose", "docs_contracts", "docs_finance", "docs_ir", "own",
)  # fmt: skip
PLANS: Final = {
    "default": Plan(
        name="default",
        most=dict.fromkeys(_SETS, 489)
        | {"code_semble_whole": 250, "code_muloc": 23, "code_swelite": 12, "docs_prose": 400},
        variants=False,
        times=2,
        timed=("requests", "jackson-databind"),
        grown=(2, 6, 12),
        growing=("satchel", "bm25-50", "ripgrep", "semble", "langchain"),
    ),
    "full": Plan(
        name="full",
        most=dict.fromkeys(_SETS, 1_000_000),
        variants=True,
        times=5,
        timed=("requests", "fastapi", "jackson-databind"),
        grown=(2, 6, 12, 25),
        growing=("satchel", "bm25-50", "ripgrep", "semble", "langchain", "llamaindex"),
    ),
}


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write the page again from the last results")
    parser.add_argument("--only", default="", help="only these contestants; prints, and leaves the page alone")
    parser.add_argument("--sets", default="", help="only these sets; prints, and leaves the page alone")
    parser.add_argument("--again", action="store_true", help="forget the outcomes of a run that was stopped")
    given = parser.parse_args()
    if given.draw:
        write(json.loads(RESULTS.read_text("utf-8")))
        return 0
    plan = PLANS[os.environ.get("BENCH") or "default"]
    only = [name for name in given.only.split(",") if name]
    chosen = [one for one in CONTESTANTS if (one.name in only if only else plan.variants or not one.variant)]
    names = [name for name in given.sets.split(",") if name]
    wanted = [one for one in question_sets(WORK) if one.name in plan.most and (not names or one.name in names)]
    results = run(plan, chosen, wanted, again=given.again, timed=not (only or names))
    if only or names:
        print(
            section({**results, "times": {"rounds": [], "megabytes": {}}})
            if "satchel" in only
            else json.dumps(results, indent=1)
        )
        return 0
    before = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    write({name: before[name] for name in OTHER_PARTS if name in before} | results)
    shutil.rmtree(KEPT / plan.name, ignore_errors=True)  # it was finished: the next run measures anew
    for line in figures.moved(before, results):
        print(f"outside the interval that stood there: {line}", file=sys.stderr)
    return 0


def run(
    plan: Plan, contestants: Sequence[Contestant], sets: Sequence[QuestionSet], *, again: bool, timed: bool
) -> dict[str, Any]:
    """Everything, as the page needs it."""
    started, load = time.monotonic(), os.getloadavg()[0]
    there, absent = _environments(contestants)
    sampled = [sample(one, plan.most[one.name]) for one in sets]
    counts = {one.name: _prepared(one) for one in sampled}
    outcomes = _outcomes(plan, there, [one for one in sampled if counts[one.name][0]], again=again)
    results: dict[str, Any] = {
        "contestants": {one.name: _about(one) for one in there},
        "absent": absent,
        "sets": {
            one.name: {
                "title": one.title,
                "kind": one.kind,
                "source": one.source,
                "fitted": one.fitted,
                "corpora": counts[one.name][0],
                "questions": counts[one.name][1],
                "missing": dict(one.missing),
                "outcomes": {
                    name: figures.of_outcome(outcome, outcomes.get((one.name, figures.OURS)))
                    for (which, name), outcome in outcomes.items()
                    if which == one.name and outcome.questions.rows
                },
            }
            for one in sampled
            if counts[one.name][0]
        },
    }
    if timed:
        results["counts"] = counting.count_errors(there, WORK)
        results |= _timed(plan, there, sampled)
    results["run"] = {
        "mode": plan.name,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(load, 2),
        "minutes": round((time.monotonic() - started) / 60),
    }
    return results


def _environments(contestants: Sequence[Contestant]) -> tuple[list[Contestant], dict[str, str]]:
    there, absent = [], {}
    for one in contestants:
        print(f"setting up {one.name} …", file=sys.stderr)
        try:
            ready(one, WORK)
            there.append(one)
        except PeerMissing as error:
            absent[one.name] = str(error)
            print(f"{one.name} is left out: {error}", file=sys.stderr)
    return there, absent


def _prepared(one: QuestionSet) -> tuple[int, int]:
    """How many corpora and questions the set has; they are checked out before two processes want them at once."""
    corpora = list(one.corpora)
    return len(corpora), sum(len(corpus.questions) for corpus in corpora)


def _about(one: Contestant) -> dict[str, Any]:
    return {
        "short": one.name,
        "what": one.what,
        "takes_budget": one.takes_budget,
        "reads_question": one.reads_question,
        "indexes": one.name != "ripgrep",
    }


def _outcomes(
    plan: Plan, contestants: Sequence[Contestant], sets: Sequence[QuestionSet], *, again: bool
) -> dict[tuple[str, str], Outcome]:
    """Every contestant on every set, two at a time; what a run that was stopped has done is taken from there."""
    found: dict[tuple[str, str], Outcome] = {}
    with ProcessPoolExecutor(max_workers=2) as pool:
        waiting: dict[Future[Outcome], tuple[tuple[str, str], Path]] = {}
        for questions in sets:
            for contestant in [one for one in contestants if questions.kind in one.kinds]:
                names = (questions.name, contestant.name)
                path = KEPT / plan.name / questions.name / f"{contestant.name}-{fingerprint(contestant)}.json"
                if path.exists() and not again:
                    found[names] = read_outcome(path)
                else:
                    waiting[pool.submit(_one, contestant.name, questions.name, plan.most[questions.name])] = names, path
        for done, future in enumerate(as_completed(waiting), 1):
            names, path = waiting[future]
            found[names] = future.result()
            found[names].save(path)
            told = found[names].questions.figures().get("cover@4000")
            shown = f"cover@4000 {told.mean:.3f}" if told else "nothing was answered"
            print(f"{done}/{len(waiting)} {' '.join(names)}: {shown}", file=sys.stderr, flush=True)
    return found


def _one(contestant: str, questions: str, most: int) -> Outcome:
    """One contestant on one set, in a process of its own, where both are found by their names."""
    tool = next(one for one in CONTESTANTS if one.name == contestant)
    asked = next(one for one in question_sets(WORK) if one.name == questions)
    return outcome_of(tool, every(sample(asked, most), tool.every), WORK)


def _timed(plan: Plan, contestants: Sequence[Contestant], sets: Sequence[QuestionSet]) -> dict[str, Any]:
    code = next((one for one in sets if one.name == "code_semble"), None) or next(
        one for one in sets if one.kind == "code"
    )
    folders = {corpus.name: corpus.folder for corpus in code.corpora}
    timed = {name: folders[name] for name in plan.timed if name in folders} or dict(list(folders.items())[:2])
    found = list(timing.rounds(contestants, timed, WORK, times=plan.times))
    smallest_first = sorted(folders.values(), key=timing.megabytes)
    parts = [count for count in plan.grown if count <= len(folders)]
    growing = timing.grown(smallest_first, WORK / "grown", parts)
    searching = [one for one in contestants if one.name in plan.growing]
    grown = list(timing.rounds(searching, growing, WORK, times=plan.times))
    return {
        "times": {
            "rounds": timing.to_dicts(found),
            "megabytes": {name: round(timing.megabytes(path), 2) for name, path in timed.items()},
        },
        "growth": {
            "rounds": timing.to_dicts(grown),
            "megabytes": {name: round(timing.megabytes(path), 2) for name, path in growing.items()},
            "times": plan.times,
        },
    }


def write(results: dict[str, Any]) -> None:
    """The results, the plots and the section of the page."""
    write_results(RESULTS, results)
    for name, drawn in pictures(results).items():
        (DOCS / "pictures" / name).write_text(drawn, encoding="utf-8")
    put_section(DOCS / "benchmarks.md", HEADING, section(results))
    put_table(ROOT / "README.md", results)


if __name__ == "__main__":
    sys.exit(main())
