"""Where the benchmarks keep what they download, and where the evaluation data is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import platformdirs

ROOT: Final = Path(__file__).parent.parent
# Not below the checkout: most tools heed its .gitignore, and would find nothing there.
WORK: Final = Path(os.environ.get("SATCHEL_BENCH_DIR") or platformdirs.user_cache_dir("satchel-bench", appauthor=False))


def is_full() -> bool:
    """Whether everything is wanted: `BENCH=full`."""
    return os.environ.get("BENCH") == "full"
