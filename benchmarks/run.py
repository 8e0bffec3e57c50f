"""Everything on docs/benchmarks.md, measured again: `make bench`.

    python benchmarks/run.py                     bounded: meant for half an hour on two cores
    BENCH=full python benchmarks/run.py          every question of every set, PostgreSQL and Ray: some hours
    python benchmarks/run.py --parts scoreboard,index      only these
    python benchmarks/run.py --check             fail where a target is missed

Each part runs in a process of its own and puts its section into the page when it is done, so that a run that is stopped
leaves the parts that were measured. Times are told as ratios, or beside the load: this machine is shared.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.places import ROOT, is_full

PAGE = ROOT / "docs" / "benchmarks.md"
PARTS: Final = {
    "scoreboard": ("-m", "benchmarks.scoreboard"),
    "shown": ("-m", "benchmarks.shown_bench"),
    "sufficiency": ("-m", "benchmarks.sufficiency_bench"),
    "wordings": ("-m", "benchmarks.wordings_bench"),
    "assembly": ("-m", "benchmarks.assembly_bench"),
    "index": ("-m", "benchmarks.index_bench"),
    "workspace": ("-m", "benchmarks.workspace_bench"),
    "research": ("-m", "benchmarks.research_bench"),
    "surfaces": ("-m", "benchmarks.surfaces_bench", "--write"),
    "mcp": ("-m", "benchmarks.mcp_bench", "--write"),
    "live": ("-m", "benchmarks.live_bench", "--write"),
    "postgres": ("-m", "benchmarks.postgres_bench"),
    "ingest": ("-m", "benchmarks.ingest_bench"),
    "claims": ("-m", "benchmarks.claims_bench"),
    "sharing": ("-m", "benchmarks.sharing_bench"),
}
ONLY_IN_FULL: Final = ("postgres", "ingest")
"""They need a database, a cluster and a while; their sections say when they were measured last."""


def main() -> int:
    """Run the parts one after the other; one that fails does not keep the others from being measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = [name for name in PARTS if is_full() or name not in ONLY_IN_FULL]
    parser.add_argument("--parts", default=",".join(usual), help="only these, of " + ", ".join(PARTS))
    parser.add_argument("--check", action="store_true", help="fail where the page says that a target is missed")
    given = parser.parse_args()
    wanted = [name for name in given.parts.split(",") if name]
    unknown = sorted(set(wanted) - PARTS.keys())
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    failed, started = [], time.monotonic()
    for name in wanted:
        begun = time.monotonic()
        print(f"== {name}", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, *PARTS[name]], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        failed += [name] if done.returncode else []
        print(f"== {name}: {(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr, flush=True)
    print(f"== all: {(time.monotonic() - started) / 60:.1f} minutes, on {os.cpu_count()} cores", file=sys.stderr)
    if failed:
        print(f"these could not be measured, and their sections are as they were: {', '.join(failed)}", file=sys.stderr)
    missed = re.findall(r"^\|.*\| NO \|$", PAGE.read_text("utf-8"), re.MULTILINE) if given.check else []
    for row in missed:
        print(f"missed: {row}", file=sys.stderr)
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
