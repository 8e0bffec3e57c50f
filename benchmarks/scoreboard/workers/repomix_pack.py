"""repomix's packed file. `repomix_pack.py PACKAGES [--compress]`, PACKAGES being the node_modules it is installed in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.scoreboard.workers.hosting import Json, Tool, packed, serve

_TOTAL = re.compile(r"Total Tokens:\s*([\d,]+)")
_COUNT = """
const { TokenCounter } = await import(process.argv[1] + '/repomix/lib/core/metrics/TokenCounter.js');
const counter = new TokenCounter('o200k_base');
await counter.init();
let told = '';
for await (const part of process.stdin) told += part;
console.log(JSON.stringify(JSON.parse(told).map((text) => counter.countTokens(text))));
"""


class Repomix(Tool):
    """Its defaults; the folder is no git repository, so files stand in the order of their names."""

    def __init__(self, packages: Path, options: Sequence[str]) -> None:
        self._packages = packages.resolve()
        self._options = options
        self.version = json.loads((packages / "repomix" / "package.json").read_text())["version"]

    def index(self, folder: Path, kind: str) -> Json:  # noqa: ARG002
        """Pack the folder."""
        with tempfile.TemporaryDirectory(prefix="repomix-") as place:
            program = ["node", str(self._packages / "repomix" / "bin" / "repomix.cjs")]
            command = [*program, str(folder), "--output", f"{place}/packed.xml", *self._options]
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"repomix: {done.stderr or done.stdout}")
            text = Path(place, "packed.xml").read_text(encoding="utf-8", errors="replace")
        total = _TOTAL.search(done.stdout)
        return packed(text, int(total[1].replace(",", "")) if total else None)

    def count(self, texts: Sequence[str]) -> list[int | None]:
        """By its own TokenCounter."""
        command = ["node", "--input-type=module", "--eval", _COUNT, str(self._packages)]
        done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
        counts: list[int | None] = json.loads(done.stdout)
        return counts


if __name__ == "__main__":
    serve(lambda: Repomix(Path(sys.argv[1]), sys.argv[2:]))
