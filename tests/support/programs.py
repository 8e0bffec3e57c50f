"""Programs that a test runs to their end, and which must succeed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.waiting import HANG_SECONDS


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    """What the program writes to stdout; fails with all it said if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
