"""How long and how much: every contestant on the same folders, in turns, as ratios to Satchel in the same round.

Quality does not depend on the clock and is measured apart (`asking.py`), two contestants at a time. Here one runs at a
time. The ratio of a round is taken within the round, so that a slow minute of the machine is in both.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard.asking import BUDGETS
from benchmarks.scoreboard.contestant import ContestantFailed, Running
from benchmarks.scoreboard.contestants import Contestant

QUESTIONS: Final = (
    "how are errors reported to the caller", "where is the configuration read", "parse a header", "open a connection",
    "how is a value validated", "retry after a failure", "convert to text", "where are defaults defined",
    "how is a request sent", "close and clean up", "register a handler", "compare two values",
)  # fmt: skip
BUDGET: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One contestant on one folder, once."""

    contestant: str
    folder: str
    round: int
    index_s: float
    index_cpu_s: float
    ask_ms: float
    """The median over the questions, each asked once."""
    peak_mb: float


def rounds(
    contestants: Sequence[Contestant], folders: dict[str, Path], work: Path, *, times: int, kind: str = "code"
) -> Iterator[Round]:
    """Every contestant on every folder, so many times, in turns."""
    for name, folder in folders.items():
        for number in range(times):
            for contestant in contestants:
                print(f"timing {contestant.name} on {name}, round {number + 1} …", file=sys.stderr)
                try:
                    yield _once(contestant, folder, number, name=name, work=work, kind=kind)
                except ContestantFailed as error:
                    print(f"{contestant.name} on {name}: {error}", file=sys.stderr)


def _once(contestant: Contestant, folder: Path, number: int, *, name: str, work: Path, kind: str) -> Round:
    with Running.of(contestant, work) as running:
        index = running.index(folder, kind=kind).spent
        # A contestant that needs seconds for an answer is asked fewer questions.
        took = [running.answer(one, BUDGET).spent.wall * 1000 for one in QUESTIONS[:: contestant.every]]
        return Round(
            contestant=contestant.name,
            folder=name,
            round=number,
            index_s=round(index.wall, 4),
            index_cpu_s=round(index.cpu, 4),
            ask_ms=round(statistics.median(took), 4),
            peak_mb=round(running.peak_memory / 1e6, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A figure of a contestant over ours: the median over rounds and folders, and the range."""

    median: float
    low: float
    high: float


def ratios(found: Sequence[Round], contestant: str, figure: str, ours: str = "satchel") -> Ratio | None:
    """How many times our figure a contestant's is."""
    mine = {(one.folder, one.round): getattr(one, figure) for one in found if one.contestant == ours}
    values = [
        getattr(one, figure) / mine[one.folder, one.round]
        for one in found
        if one.contestant == contestant and mine.get((one.folder, one.round))
    ]
    return Ratio(median=statistics.median(values), low=min(values), high=max(values)) if values else None


def to_dicts(found: Sequence[Round]) -> list[dict[str, Any]]:
    """The rounds as JSON can hold them."""
    return [asdict(one) for one in found]


def grown(sources: Sequence[Path], place: Path, parts: Sequence[int]) -> dict[str, Path]:
    """Folders of growing size: the first so many of the sources, as links that tools follow as folders of their own."""
    import shutil

    made = {}
    for count in parts:
        folder = place / f"first-{count}"
        if not folder.exists():
            half = place / f"first-{count}.half"
            shutil.rmtree(half, ignore_errors=True)
            for source in sources[:count]:
                shutil.copytree(source, half / source.name, symlinks=True)
            half.rename(folder)
        made[folder.name] = folder
    return made


def megabytes(folder: Path) -> float:
    """The size of a folder's files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


assert BUDGET in BUDGETS
