"""Questions in other languages than the text, and how-to questions that a manual answers.

python -m benchmarks.wordings_bench              as `make bench PARTS=wordings` does it
python -m benchmarks.wordings_bench --print      measure and print, and leave the page alone

The questions are our own: scripts/embedder/questions.tsv (over Python's standard library) and benchmarks/data/how_to.tsv
(over whole repositories of the evaluation data, `SATCHEL_EVAL`; without them this half is left out).
"""

from __future__ import annotations

import csv
import shutil
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.places import ROOT, WORK
from benchmarks.scoreboard.corpora.evaluation import whole_repositories
from benchmarks.sections import put_section
from benchmarks.shown.contexts import indexed
from satchel.service.engine import ENGINE_OPTIONS, ContextEngine

HEADING: Final = "## Other wordings"
LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "ru", "zh", "ja", "ko", "ar")
BUDGET: Final = 1000
NO_MODULES: Final = frozenset({"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "ensurepip"})
"""Folders of Python's library that hold no module of it, or tests."""
PROSE: Final = (".md", ".rst", ".txt")


def main() -> int:
    """Measure, and write the section."""
    section = "\n\n".join([HEADING, *_in_languages(), *_how_to()])
    print(section)
    if "--print" not in sys.argv:
        put_section(ROOT / "docs" / "benchmarks.md", HEADING, section)
    return 0


def _in_languages() -> Iterator[str]:
    """The table of questions in ten languages over Python's standard library."""
    rows = _table(ROOT / "scripts" / "embedder" / "questions.tsv")
    with tempfile.TemporaryDirectory(prefix="satchel-bench-") as place:
        _copy_library(Path(place) / "library")
        with indexed(Path(place) / "library") as engine:
            counts = {language: _count(engine, rows, language) for language in LANGUAGES}
    yield (
        f"{len(rows)} questions of programmers over Python's standard library, which is in English, translated by us; how often the right module is"
        f" first, among the first five, and in a context of {BUDGET:,} tokens. Measured by `make bench PARTS=wordings` on {date.today()}."
    )
    yield "\n".join(
        [
            f"| | {' | '.join(LANGUAGES)} |",
            f"|---|{'--:|' * len(LANGUAGES)}",
            *(
                f"| {name} | {' | '.join(str(counts[language][i]) for language in LANGUAGES)} |"
                for i, name in enumerate(("first", "in the first five", f"in {BUDGET:,} tokens"))
            ),
        ]
    )


def _count(engine: ContextEngine, rows: Sequence[dict[str, str]], language: str) -> tuple[int, int, int]:
    first = five = shown = 0
    for row in rows:
        paths = _found(engine, row[language])
        right = [f"/{path}".endswith(f"/{row['gold']}") for path in paths]
        first, five = first + any(right[:1]), five + any(right[:5])
        context = engine.build(row[language], replace(ENGINE_OPTIONS, max_tokens=BUDGET))
        shown += any(f"/{source.path}".endswith(f"/{row['gold']}") for source in context.sources)
    return first, five, shown


def _how_to() -> Iterator[str]:
    """The paragraph on how-to questions over repositories with manuals."""
    by_repository = defaultdict(list)
    for row in _table(ROOT / "benchmarks" / "data" / "how_to.tsv"):
        by_repository[row["repository"]].append(row)
    planned = {one.name: one for one in whole_repositories(WORK).planned}
    if missing := sorted(by_repository.keys() - planned.keys()):
        yield f"How-to questions are left out: there is no {', '.join(missing)} (SATCHEL_EVAL)."
        return
    first = three = total = 0
    for name, rows in by_repository.items():
        with indexed(planned[name].folder()) as engine:
            for row in rows:
                right = [row["page"] in path and path.endswith(PROSE) for path in _found(engine, row["question"])]
                first, three, total = first + any(right[:1]), three + any(right[:3]), total + 1
    yield (
        f"{total} how-to questions of our own over {len(by_repository)} whole repositories with manuals: the right page is first for {first} and among the"
        f" first three for {three}. The weight of documentation for how-to questions was chosen on these."
    )


def _found(engine: ContextEngine, question: str) -> list[str]:
    """The distinct files of the best hits, best first."""
    return list(dict.fromkeys(hit.path for hit in engine.search(question, top_k=20).hits))


def _table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def _copy_library(folder: Path) -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.rglob("*.py")):
        place = path.relative_to(library)
        if NO_MODULES.isdisjoint(place.parts):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / place)


if __name__ == "__main__":
    sys.exit(main())
