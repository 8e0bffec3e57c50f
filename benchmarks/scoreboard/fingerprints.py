"""What an outcome depends on, so that one that was kept is not taken for another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from benchmarks.places import ROOT
from benchmarks.scoreboard.contestants import REQUIREMENTS, WORKERS, Contestant

_SCORING = ("benchmarks/scoreboard/*.py", "benchmarks/scoreboard/corpora/*.py", "src/satchel/evaluation/*.py")
_OURS = ("src/satchel/**/*.py", "src/satchel/**/*.json", "src/satchel/**/*.i8", "src/satchel/**/*.f32")


@cache
def fingerprint(contestant: Contestant) -> str:
    """A name for the tool as it is set up, and for how it is judged."""
    digest = blake2b(repr(contestant).encode(), digest_size=8)
    for path in _files(contestant):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _files(contestant: Contestant) -> Iterator[Path]:
    yield WORKERS / contestant.worker
    if contestant.requirements:
        yield REQUIREMENTS / contestant.requirements
    for pattern in (*_SCORING, *(_OURS if contestant.name == "satchel" else ())):
        yield from sorted(ROOT.glob(pattern))
