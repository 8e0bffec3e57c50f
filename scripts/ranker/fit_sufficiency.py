"""Learns how likely a context answers its question, and writes the weights to the package.

    SATCHEL_EVAL=EVAL SATCHEL_NOTES=NOTES python scripts/ranker/fit_sufficiency.py --work FOLDER [--gathered]

Run it from the root of the repository after every change of the ranking or the packing. EVAL is the evaluation folder
with its trees checked out, NOTES the folder of notes (benchmarks/data/notes/README.md); FOLDER keeps the indexes for
the next time. `--gathered` fits again without asking again.

Questions are put to the collection that answers them and to wrong ones (benchmarks/sufficiency/asking.py). A context
answers if it shows the answer. The weights are those of a logistic regression with L2 (half of the weight of each set
on contexts that answer), so that their sum is a log-odds. What is printed is cross-validated: every question is judged
by weights that saw neither its own project nor the one that it was put to.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.sufficiency.asking import Asked, ask_all, plan_asks
from benchmarks.sufficiency.collections import SETS, collections_of, tasks_of
from benchmarks.sufficiency.figures import figures_of
from benchmarks.sufficiency.fitting import cross_validated, fit, table_of

WEIGHTS: Final = Path("src/satchel/retrieval/sufficiency.json")


def main() -> int:
    """Gather, cross-validate, fit on everything, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for indexes and gathered evidence")
    parser.add_argument("--gathered", action="store_true", help="use the evidence gathered before")
    parser.add_argument("--trees", type=int, default=8, help="trees of each project with issues")
    parser.add_argument("--sets", default=",".join(SETS), help="ask only these again")
    parser.add_argument("--print", action="store_true", help="print the figures and leave the weights alone")
    given = parser.parse_args()
    asked = _gathered(given.work) if given.gathered else _gather(given.work, given.sets.split(","), given.trees)
    print(json.dumps(figures_of(cross_validated(asked)), indent=1))
    if not given.print:
        WEIGHTS.write_text(json.dumps(_rounded(fit(asked, *table_of(asked))), indent=1) + "\n", encoding="utf-8")
    return 0


def _gather(work: Path, sets: list[str], trees: int) -> list[Asked]:
    kept = _gathered(work) if _file(work).exists() else []
    asked = [one for one in kept if one.set_name not in sets and one.set_name in SETS]
    for set_name in sets:
        collections = collections_of(set_name, most=trees)
        tasks = tasks_of(set_name, collections)
        asked += ask_all(collections, plan_asks(tasks, collections), work)
        _file(work).write_bytes(pickle.dumps(asked))
    return asked


def _gathered(work: Path) -> list[Asked]:
    found: list[Asked] = pickle.loads(_file(work).read_bytes())
    return found


def _file(work: Path) -> Path:
    return work / "sufficiency.pickle"


def _rounded(weights: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 4) if isinstance(value, float) else {key: round(one, 4) for key, one in value.items()}
        for name, value in weights.items()
    }


if __name__ == "__main__":
    sys.exit(main())
