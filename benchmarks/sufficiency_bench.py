"""Questions that nothing here answers: does the context's sufficiency tell them apart?

python -m benchmarks.sufficiency_bench                 a bounded run, as `make bench PARTS=sufficiency` does it
BENCH=full python -m benchmarks.sufficiency_bench      every question
python -m benchmarks.sufficiency_bench --draw          only write the section again, from docs/benchmarks.json
python -m benchmarks.sufficiency_bench --print         measure and print, and leave the page alone

Needed: the evaluation data with its trees checked out (`SATCHEL_EVAL`), and the notes (`SATCHEL_NOTES`). What is not
there is left out, and the section says so. The indexes are kept in the folder of the benchmarks.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.places import WORK, is_full
from benchmarks.sections import run_part
from benchmarks.sufficiency.asking import Asked, Put, ask_all, plan_asks
from benchmarks.sufficiency.collections import REPOSITORIES, SETS, TITLES, collections_of, tasks_of
from benchmarks.sufficiency.figures import Judged, auc, figures_of
from benchmarks.sufficiency.fitting import cross_validated
from benchmarks.sufficiency.page import HEADING, section

PART: Final = "sufficiency"
TREES: Final = {"default": 2, "full": 8}
"""Trees of each project with issues. All questions are asked in both modes: fewer would teach the weights less."""


def main() -> int:
    """Measure, and write the section."""
    return run_part(PART, HEADING, measured, section, __doc__ or "")


def measured() -> dict[str, Any]:
    """Everything, as the page needs it."""
    started, load = time.monotonic(), os.getloadavg()[0]
    trees = TREES["full" if is_full() else "default"]
    asked, missing = [], []
    for set_name in SETS:
        found = _asked(set_name, trees)
        asked += found
        missing += [] if found else [TITLES[set_name]]
    if not asked:
        raise SystemExit("there are no collections; SATCHEL_EVAL and SATCHEL_NOTES name the folders")
    judged = cross_validated(asked)
    results = figures_of(judged, [_best_relevance(one) for one in asked])
    results["by_language"] = _by_language(asked, judged)
    minutes = max(1, round((time.monotonic() - started) / 60))
    run = {"cores": os.cpu_count(), "load": round(load, 1), "minutes": minutes, "date": date.today().isoformat()}
    return results | {"missing": missing, "run": run | {"mode": "every question" if is_full() else "a sample"}}


def _asked(set_name: str, trees: int) -> list[Asked]:
    collections = collections_of(set_name, most=trees)
    asks = plan_asks(tasks_of(set_name, collections), collections)
    asks = {name: [(task, put) for task, put in of if put is not Put.REMOVED] for name, of in asks.items()}
    return list(ask_all(collections, asks, WORK / "sufficiency"))


def _by_language(asked: list[Asked], judged: list[Judged]) -> dict[str, float | None]:
    """The AUC of questions about repositories against those put to one of the same, and of another, language."""
    collections = collections_of(REPOSITORIES)
    language = {task.group: task.language for task in tasks_of(REPOSITORIES, collections)}
    pairs = [pair for pair in zip(asked, judged, strict=True) if pair[0].set_name == REPOSITORIES]
    right = [found.probability for _, found in pairs if found.put is Put.RIGHT]
    wrong: dict[bool, list[float]] = {True: [], False: []}
    for one, found in pairs:
        if found.put is Put.WRONG:
            wrong[language[one.here] == language[one.home]].append(found.probability)
    return {"same": auc(right, wrong[True]), "other": auc(right, wrong[False])}


def _best_relevance(asked: Asked) -> float:
    return asked.evidence.hits[0].relevance if asked.evidence.hits else 0.0


if __name__ == "__main__":
    sys.exit(main())
