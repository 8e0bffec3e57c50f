"""Questions made on the spot: what a function's docstring said, asked of the code without its docstrings.

Needs nothing but a package index. The answers are the functions' own lines. Which functions are asked about is decided
by a hash, so it is the same everywhere.
"""

from __future__ import annotations

import hashlib
import io
import json
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard.corpora.making import made, write_below
from benchmarks.scoreboard.corpora.model import Asked, Planned, QuestionSet, Unavailable, asked_from
from benchmarks.scoreboard.corpora.packages import Package, modules, wheel
from benchmarks.scoreboard.corpora.pinned import PACKAGES
from benchmarks.scoreboard.corpora.sentences import alike, can_be_asked, first_sentence, squeezed, word_set
from benchmarks.scoreboard.corpora.stripping import Described, Stripped, strip

NAME: Final = "docstrings"
PER_PACKAGE: Final = 20
PER_FILE: Final = 3
FEWEST_LINES: Final = 5
_RULES: Final = 1
"""Counted up when questions are chosen in another way: what was made before is made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A function and the sentence that described it."""

    path: str
    function: Described
    sentence: str


def question_set(work: Path, packages: tuple[Package, ...] = PACKAGES) -> QuestionSet:
    """The set; a package is fetched when its questions or its folder are asked for."""
    return QuestionSet(
        name=NAME,
        title=f"First sentences of docstrings, asked of {len(packages)} Python packages without their docstrings",
        kind="code",
        source="pinned wheels from PyPI, each under its own licence (BSD, MIT, ISC, Apache-2.0; docutils mixed, paramiko LGPL-2.1)",
        fitted=False,
        planned=tuple(
            Planned(
                name=package.name,
                questions=partial(_questions, package, work),
                folder=partial(_sources, package, work),
            )
            for package in packages
        ),
    )


def _sources(package: Package, work: Path) -> Path:
    return _prepared(package, work) / "source"


def _questions(package: Package, work: Path) -> tuple[Asked, ...]:
    kept = _prepared(package, work) / "questions.json"
    return tuple(_asked(told) for told in json.loads(kept.read_text(encoding="utf-8")))


def _asked(told: dict[str, Any]) -> Asked:
    files = tuple(dict.fromkeys(place.rpartition(":")[0] for place in told["lines"]))
    return asked_from(told, files)


def _prepared(package: Package, work: Path) -> Path:
    recipe = f"{package} {_RULES} {PER_PACKAGE} {PER_FILE} {FEWEST_LINES}"
    return made(work / "trees" / NAME / package.name, recipe, partial(_prepare, package, work / "downloads"))


def _prepare(package: Package, downloads: Path, folder: Path) -> None:
    stripped = dict(_stripped(wheel(package, downloads)))
    for path, source in stripped.items():
        write_below(folder / "source", path, source.text.encode())
    questions = [_question(package, one) for one in choose(stripped, package.copied)]
    if not questions:
        raise Unavailable(f"{package.name} {package.version} has no docstring that can be asked")
    (folder / "questions.json").write_text(json.dumps(questions, indent=1), encoding="utf-8")


def _stripped(archive: Path) -> Iterator[tuple[str, Stripped]]:
    """The modules that can be read; one that cannot may hold docstrings, and is left out."""
    for path, content in modules(archive):
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            source = strip(content.decode(encoding))
        except (SyntaxError, UnicodeDecodeError, LookupError):
            continue
        if source is not None:
            yield path, source


def choose(stripped: dict[str, Stripped], copied: Collection[str] = ()) -> list[Candidate]:
    """The functions that are asked about: clear, unlike all others, and nowhere else in what is searched."""
    everything = [
        Candidate(path=path, function=function, sentence=first_sentence(function.docstring))
        for path, source in stripped.items()
        for function in source.described
    ]
    words = [word_set(one.sentence) for one in everything]
    remaining = "\n".join(squeezed(source.text) for source in stripped.values())
    chosen: list[Candidate] = []
    of_file: Counter[str] = Counter()
    for one in sorted(filter(_suits, everything), key=_order):
        if len(chosen) == PER_PACKAGE:
            break
        mine = word_set(one.sentence)
        said_before = sum(alike(mine, other) for other in words) > 1
        allowed = one.path not in copied and of_file[one.path] < PER_FILE
        if allowed and not said_before and squeezed(one.sentence) not in remaining:
            chosen.append(one)
            of_file[one.path] += 1
    return chosen


def _suits(one: Candidate) -> bool:
    function = one.function
    special = function.name.startswith("__") or function.inner
    return not special and function.body_lines >= FEWEST_LINES and can_be_asked(one.sentence, function.name)


def _order(one: Candidate) -> tuple[str, int]:
    key = f"{one.path}\0{one.function.qualified}"
    return hashlib.sha256(key.encode()).hexdigest(), one.function.first


def _question(package: Package, one: Candidate) -> dict[str, Any]:
    function = one.function
    return {
        "id": f"{NAME}/{package.name}/{one.path}:{function.first}",
        "query": one.sentence,
        "lines": [f"{one.path}:{function.first}-{function.last}"],
    }
