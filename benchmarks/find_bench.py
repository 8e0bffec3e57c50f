"""Symbols: definitions beside Universal Ctags, references beside a search for the word, and how long they take.

python -m benchmarks.find_bench REPOSITORY...            measure, and write the section of docs/benchmarks.md
python -m benchmarks.find_bench REPOSITORY... --print    measure and print

The names are up to 300 of the functions, methods, classes, structs, enums and interfaces that `ctags` lists, in an
order that does not depend on the run. What it lists for them is the truth for definitions. For references the truth is
every line with the name as a word in the files that the index has, as `grep -w` would print them.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import satchel
from benchmarks.sections import measure

_NAMES: Final = 300
_KINDS: Final = frozenset({"function", "method", "class", "struct", "enum", "interface", "member"})
_LIMIT: Final = 1_000


class Measured(NamedTuple):
    """The figures of a repository."""

    name: str
    files: int
    names: int
    found: float
    """The share of ctags' definitions that are found."""
    references: float
    """The share of the lines with the word that are found."""
    certain: float
    """The share of the references that are certain."""
    milliseconds: float
    scan_milliseconds: float
    """What reading the files and matching the word takes."""


def definitions(folder: Path) -> dict[str, set[tuple[str, int]]]:
    """The places of each name that ctags lists."""
    command = ["ctags", "-R", "--fields=+nK", "--kinds-all=*", "-f", "-", "."]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    places: dict[str, set[tuple[str, int]]] = {}
    for row in listed.splitlines():
        name, path, _, *fields = row.split("\t")
        line = next((int(field[5:]) for field in fields if field.startswith("line:")), 0)
        if _KINDS & set(fields) and name.isidentifier():
            places.setdefault(name, set()).add((path.removeprefix("./"), line))
    return places


def of(folder: Path) -> Measured:
    """Measure a repository."""
    truth = definitions(folder)
    with tempfile.TemporaryDirectory() as index, satchel.open(folder, index_dir=index) as client:
        client.index()
        known = set(client.engine.store.files())  # type: ignore[attr-defined]
        truth = {name: {place for place in places if place[0] in known} for name, places in truth.items()}
        names = sorted(name for name, places in truth.items() if places)
        random.Random(7).shuffle(names)
        names = names[:_NAMES]
        hits = wanted = lines = lines_wanted = certain = total = 0
        times, scans = [], []
        for name in names:
            begun = time.perf_counter()
            found = client.find(name, "definition", limit=_LIMIT).matches
            times.append(time.perf_counter() - begun)
            # A block begins with its decorators or attributes, a line or more before the name.
            hits += sum(
                any(match.path == path and match.line <= line <= match.end_line for match in found)
                for path, line in truth[name]
            )
            wanted += len(truth[name])
            begun = time.perf_counter()
            with_word = set(_lines_with(folder, known, name))
            scans.append(time.perf_counter() - begun)
            references = client.find(name, "references", limit=_LIMIT).matches
            if len(with_word) < _LIMIT // 2:
                named = {(match.path, match.line) for match in (*references, *found)}
                lines += len(with_word & named)
                lines_wanted += len(with_word)
            certain += sum(match.is_certain for match in references)
            total += len(references)
    return Measured(
        folder.name,
        len(known),
        len(names),
        hits / wanted,
        lines / lines_wanted,
        certain / max(1, total),
        1000 * median(times),
        1000 * median(scans),
    )


def _lines_with(folder: Path, paths: set[str], name: str) -> list[tuple[str, int]]:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    found = []
    for path in paths:
        try:
            text = (folder / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if name in text:
            found += [(path, number) for number, line in enumerate(text.split("\n"), 1) if word.search(line)]
    return found


def page() -> str:
    """The section of the page."""
    rows = [of(Path(folder).resolve()) for folder in sys.argv[1:] if not folder.startswith("--")]
    lines = [
        "## Symbols",
        "",
        "Definitions beside Universal Ctags, references beside every line with the word (`grep -w`), by "
        "`python -m benchmarks.find_bench REPOSITORY…`; times are medians in one run on this machine.",
        "",
        "| repository | files | names | ctags' definitions found | lines with the word found | certain references "
        "| a definition | reading the files and matching |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row.name} | {row.files:,} | {row.names} | {row.found:.1%} | {row.references:.1%} "
        f"| {row.certain:.0%} | {row.milliseconds:.1f} ms | {row.scan_milliseconds:.1f} ms |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(page())
    else:
        measure("## Symbols", page)
