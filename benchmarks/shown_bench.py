"""What contexts show: symbols, marks, fragments, the share of expected files, notes, contracts.

python -m benchmarks.shown_bench                 a bounded run, as `make bench PARTS=shown` does it
BENCH=full python -m benchmarks.shown_bench      every question, and more symbols
python -m benchmarks.shown_bench --draw          only write the section again, from docs/benchmarks.json
python -m benchmarks.shown_bench --print         measure and print, and leave the page alone

Needed: the evaluation data (`SATCHEL_EVAL`, as for the scoreboard), and the notes (`SATCHEL_NOTES`, see
benchmarks/data/notes/README.md). What is not there is left out, and the section says so. The pieces that are cut
without a mark, begin inside a body or are fragments are listed in `shown-faults.txt` in the folder of the benchmarks.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.places import WORK, is_full
from benchmarks.scoreboard.asking import outcome_of
from benchmarks.scoreboard.contestants import CONTESTANTS
from benchmarks.scoreboard.corpora import Corpus, QuestionSet, sample
from benchmarks.scoreboard.corpora.evaluation import question_sets
from benchmarks.scoreboard.corpora.model import Unavailable
from benchmarks.scoreboard.environments import PeerMissing
from benchmarks.sections import run_part
from benchmarks.shown import figures
from benchmarks.shown.contexts import CorpusMeasures, measure_corpus
from benchmarks.shown.notes import ask_collection, collections, missing_collections
from benchmarks.shown.page import HEADING, section
from satchel.evaluation.outcome import Evaluation

PART: Final = "shown"
CONTRACTS: Final = "docs_contracts"
PEER: Final = "bm25-12"
FAULTS: Final = WORK / "shown-faults.txt"
WORKERS: Final = 2


class Plan(NamedTuple):
    """How much is measured."""

    name: str
    most: dict[str, int]
    """The most questions of each set."""
    symbols: int
    """Symbols of each repository."""


PLANS: Final = {
    "default": Plan("a sample", {"code_semble_whole": 250, "docs_prose": 150, CONTRACTS: 71}, 16),
    "full": Plan("every question", {"code_semble_whole": 1_000_000, "docs_prose": 1_000_000, CONTRACTS: 1_000_000}, 40),
}


def plan() -> Plan:
    """The plan that BENCH names."""
    return PLANS["full" if is_full() else "default"]


def main() -> int:
    """Measure, and write the section."""
    return run_part(PART, HEADING, measured, section, __doc__ or "")


def measured() -> dict[str, Any]:
    """Everything, as the page needs it."""
    started, load = time.monotonic(), os.getloadavg()[0]
    missing: dict[str, str] = {}
    sets = [_prepared(one, missing) for one in _question_sets()]
    with ProcessPoolExecutor(max_workers=WORKERS) as pool:
        peers = [pool.submit(_on_contracts, name) for name in ("satchel", PEER)] if _has(sets, CONTRACTS) else []
        corpora = {
            pool.submit(_measured_corpus, one.name, planned.name): f"{one.name} {planned.name}"
            for one in sets
            for planned in one.planned
        }
        if reason := missing_collections():
            missing["notes"] = reason
        notes = [] if reason else [pool.submit(ask_collection, one.name) for one in collections()]
        found = _collected(corpora)
        _write_faults(found)
        results: dict[str, Any] = {"sets": {}, "missing": missing}
        for one in sets:
            of_set = [measures for name, measures in found.items() if name.startswith(f"{one.name} ")]
            if of_set:
                about = {"title": one.title, "kind": one.kind, "corpora": len(of_set)}
                results["sets"][one.name] = about | figures.of_contexts(of_set)
        if symbols := [symbol for measures in found.values() for symbol in measures.symbols]:
            results["symbols"] = figures.of_symbols(symbols)
        if notes:
            results["notes"] = figures.of_notes([answer for future in notes for answer in future.result()])
        results |= _compared(peers, missing)
    results["run"] = {
        "mode": plan().name,
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "minutes": max(1, round((time.monotonic() - started) / 60)),
    }
    return results


def _question_sets() -> list[QuestionSet]:
    """The sets of the plan, each with as many questions as the plan says."""
    every = question_sets(WORK)
    return [sample(one, plan().most[one.name]) for one in every if one.name in plan().most]


def _prepared(one: QuestionSet, missing: dict[str, str]) -> QuestionSet:
    """The set with its folders made, before several processes want them at once, and without those not to be had."""
    there = {corpus.name for corpus in one.corpora}
    missing |= {f"{one.name} {name}": reason for name, reason in one.missing.items()}
    return replace(one, planned=tuple(planned for planned in one.planned if planned.name in there))


def _has(sets: list[QuestionSet], name: str) -> bool:
    return any(one.name == name and one.planned for one in sets)


def _measured_corpus(set_name: str, corpus: str) -> CorpusMeasures:
    """A corpus in a process of its own, where it is found by its name."""
    questions = next(one for one in _question_sets() if one.name == set_name)
    planned = next(one for one in questions.planned if one.name == corpus)
    made = Corpus(name=corpus, folder=planned.folder(), questions=planned.questions())
    return measure_corpus(made, symbols=plan().symbols if set_name.endswith("_whole") else 0)


def _collected(waiting: dict[Future[CorpusMeasures], str]) -> dict[str, CorpusMeasures]:
    found = {}
    for done, future in enumerate(as_completed(waiting), 1):
        found[waiting[future]] = future.result()
        print(f"{done}/{len(waiting)} {waiting[future]}", file=sys.stderr, flush=True)
    return {name: found[name] for name in waiting.values()}


def _write_faults(found: dict[str, CorpusMeasures]) -> None:
    """Write what is wrong with which piece to a file, for whoever changes what is shown."""
    lines = [
        f"{name}: {fault}"
        for name, measures in found.items()
        for question in measures.questions
        for context in question.values()
        for fault in context.faults
    ]
    FAULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(f"{len(lines)} faults of pieces are in {FAULTS}", file=sys.stderr)


def _on_contracts(name: str) -> Evaluation:
    """A contestant of the scoreboard on the contracts."""
    contestant = next(one for one in CONTESTANTS if one.name == name)
    contracts = next(one for one in _question_sets() if one.name == CONTRACTS)
    return outcome_of(contestant, contracts, WORK).questions


def _compared(peers: list[Future[Evaluation]], missing: dict[str, str]) -> dict[str, Any]:
    if not peers:
        return {}
    try:
        ours, peer = (future.result() for future in peers)
    except (PeerMissing, Unavailable) as error:
        missing["contracts"] = str(error)
        return {}
    return {"contracts": figures.of_peers(ours, peer, "cover@2000")}


if __name__ == "__main__":
    sys.exit(main())
