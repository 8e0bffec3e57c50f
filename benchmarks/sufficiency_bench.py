"""Questions that nothing here answers: does the context's sufficiency tell them apart?

python -m benchmarks.sufficiency_bench                 a bounded run, as `make bench PARTS=sufficiency` does it
BENCH=full python -m benchmarks.sufficiency_bench      every question
python -m benchmarks.sufficiency_bench --draw          only write the section again, from docs/benchmarks.json
python -m benchmarks.sufficiency_bench --print         measure and print, and leave the page alone

Needed: the evaluation data with its trees checked out (`SATCHEL_EVAL`), and the notes (`SATCHEL_NOTES`). What is not
there is left out, and the section says so. The indexes are kept in the folder of the benchmarks.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.places import ROOT, WORK, is_full
from benchmarks.sections import put_results, put_section
from benchmarks.sufficiency.asking import Asked, Put, ask_all, plan_asks
from benchmarks.sufficiency.collections import SETS, TITLES, collections_of, tasks_of
from benchmarks.sufficiency.figures import figures_of
from benchmarks.sufficiency.fitting import cross_validated
from benchmarks.sufficiency.page import HEADING, section

DOCS: Final = ROOT / "docs"
RESULTS: Final = DOCS / "benchmarks.json"
PART: Final = "sufficiency"
SAMPLE: Final = {"every": 3, "wrong": 1, "trees": 2}
"""Of a bounded run: every third question, put to one wrong collection, and two trees of each project with issues."""
FULL: Final = {"every": 1, "wrong": 3, "trees": 8}


def main() -> int:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write the section again from the last results")
    parser.add_argument("--print", action="store_true", help="print the section and leave the page alone")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8"))[PART] if given.draw else measured()
    print(section(results))
    if not given.print:
        put_results(RESULTS, PART, results)
        put_section(DOCS / "benchmarks.md", HEADING, section(results))
    return 0


def measured() -> dict[str, Any]:
    """Everything, as the page needs it."""
    started, load = time.monotonic(), os.getloadavg()[0]
    plan = FULL if is_full() else SAMPLE
    asked, missing = [], []
    for set_name in SETS:
        found = _asked(set_name, plan)
        asked += found
        missing += [] if found else [TITLES[set_name]]
    if not asked:
        raise SystemExit("there are no collections; SATCHEL_EVAL and SATCHEL_NOTES name the folders")
    results = figures_of(cross_validated(asked), [_best_relevance(one) for one in asked])
    minutes = max(1, round((time.monotonic() - started) / 60))
    run = {"cores": os.cpu_count(), "load": round(load, 1), "minutes": minutes, "date": date.today().isoformat()}
    return results | {"missing": missing, "run": run | {"mode": "every question" if is_full() else "a sample"}}


def _asked(set_name: str, plan: dict[str, int]) -> list[Asked]:
    collections = collections_of(set_name, most=plan["trees"])
    tasks = tasks_of(set_name, collections)
    # Of the issues each tree has one: there are few enough to ask all.
    tasks = tasks if set_name == "code_muloc" else tasks[:: plan["every"]]
    asks = plan_asks(tasks, collections, wrong=3 if set_name == "code_muloc" else plan["wrong"])
    asks = {name: [(task, put) for task, put in of if put is not Put.REMOVED] for name, of in asks.items()}
    return list(ask_all(collections, asks, WORK / "sufficiency"))


def _best_relevance(asked: Asked) -> float:
    return asked.evidence.hits[0].relevance if asked.evidence.hits else 0.0


if __name__ == "__main__":
    sys.exit(main())
