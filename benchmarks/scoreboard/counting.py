"""How far each tool's own counting of tokens is off, by kind of text."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scoreboard.contestant import ContestantFailed, Running
from benchmarks.scoreboard.contestants import Contestant
from benchmarks.scoreboard.figures import furthest
from benchmarks.texts import kinds
from satchel.tokens.registry import counter_for

_CHUNK = 2000
_MOST = 12


def count_errors(contestants: Sequence[Contestant], work: Path) -> dict[str, dict[str, Any]]:
    """For each contestant that counts, the mean and the worst error of each kind of text."""
    samples = {kind: _chunks(text) for kind, text in kinds().items()}
    true = counter_for("o200k_base")
    found: dict[str, dict[str, Any]] = {}
    for contestant in contestants:
        try:
            with Running.of(contestant, work) as running:
                told = {kind: running.count(texts) for kind, texts in samples.items()}
        except ContestantFailed as error:
            print(f"{contestant.name} could not count: {error}", file=sys.stderr)
            continue
        if any(one is None for counts in told.values() for one in counts):
            continue
        found[contestant.name] = {
            kind: _error([(said or 0) / true.count(text) - 1 for said, text in zip(told[kind], texts, strict=True)])
            for kind, texts in samples.items()
        }
    return found


def _chunks(text: str) -> list[str]:
    chunks = [text[i : i + _CHUNK] for i in range(0, max(1, len(text) - _CHUNK + 1), _CHUNK)]
    return chunks[:: max(1, len(chunks) // _MOST)][:_MOST]


def _error(errors: Sequence[float]) -> list[float]:
    return [round(statistics.mean(errors), 4), round(furthest(errors), 4)]
