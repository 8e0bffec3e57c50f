"""Random damages to the files of an index: no answer differs in silence, and every error is one of ours.

    python scripts/soak_damage.py --damages 1000 --seed 1

Bytes are flipped or zeroed, files are cut, emptied, removed or replaced by an older version: all files of an index at
rest, of one whose writer was killed, and of one that a process has open. After each damage the index is asked as it is,
and again after an index run. Search arrays have to heal; a damaged database may be refused.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.damage import DamagedIndex


def run(damages: int, seed: int, folder: Path) -> int:
    started = time.monotonic()
    index = DamagedIndex(folder)
    outcomes: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for number in range(seed, seed + damages):
        outcome = index.trial(random.Random(number))
        outcomes[outcome.quick, outcome.refreshed] += 1
        if outcome.is_wrong:
            wrong += 1
            print(f"FAILED: --seed {number} --damages 1: {outcome}", flush=True)
    for (quick, refreshed), times in outcomes.most_common():
        print(f"{times:>5} × {quick} as it is, {refreshed} after an index run")
    print(f"{damages} damages, {wrong} wrong in {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="satchel-soak-") as folder:
        return run(arguments.damages, arguments.seed, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
