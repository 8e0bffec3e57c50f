"""gitingest's digest of a folder: the tree, then every file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.scoreboard.workers.hosting import Json, Tool, packed, serve

_ESTIMATE = re.compile(r"Estimated tokens: ([\d.]+)([kM]?)")
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


class Gitingest(Tool):
    """What it returns is put together as its own command writes it to a file."""

    version = version("gitingest")

    def __init__(self) -> None:
        self._ingest = import_module("gitingest").ingest
        self._estimate = import_module("gitingest.output_formatter")._format_token_count

    def index(self, folder: Path, kind: str) -> Json:  # noqa: ARG002
        """Digest the folder."""
        summary, tree, content = self._ingest(str(folder))
        return packed(f"{tree}\n{content}", _number(summary))

    def count(self, texts: Sequence[str]) -> list[int | None]:
        """As its summary would say it, which rounds from 1,000 on."""
        return [_number(f"Estimated tokens: {self._estimate(text)}") for text in texts]


def _number(summary: str) -> int | None:
    told = _ESTIMATE.search(summary)
    return round(float(told[1]) * _TIMES[told[2]]) if told else None


if __name__ == "__main__":
    serve(Gitingest)
