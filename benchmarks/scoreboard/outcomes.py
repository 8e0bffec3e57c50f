"""What a contestant did on a set of questions, kept in a file so that a run that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satchel.evaluation.outcome import Evaluation, read_evaluation, to_dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The rows, and what is known besides."""

    questions: Evaluation
    version: str = ""
    stands: int = 0
    """Pieces whose text stands at the lines that the tool names."""
    cites: int = 0
    """Pieces for which it names lines."""
    claims: tuple[tuple[int, int], ...] = ()
    """What the tool says its texts cost, and what they do cost."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Corpora that it could not be asked about, and why."""

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON can hold it."""
        return {
            **to_dict(self.questions),
            "tool": {
                "version": self.version,
                "stands": self.stands,
                "cites": self.cites,
                "claims": [list(pair) for pair in self.claims],
                "failed": dict(self.failed),
            },
        }

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        half.write_text(json.dumps(self.to_dict(), ensure_ascii=False), encoding="utf-8")
        half.replace(path)


def read_outcome(path: Path) -> Outcome:
    """An outcome that was saved before."""
    tool = json.loads(path.read_text("utf-8"))["tool"]
    return Outcome(
        questions=read_evaluation(path),
        version=tool["version"],
        stands=tool["stands"],
        cites=tool["cites"],
        claims=tuple((said, real) for said, real in tool["claims"]),
        failed=tool["failed"],
    )
