"""The command line as a user runs it: a process in a folder, with its index beside the folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import HANG_SECONDS


def satchel(
    *arguments: str | Path, folder: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "satchel", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        cwd=folder,
        env={**os.environ, "SATCHEL_INDEX_DIR": str(folder.parent / "index"), **(env or {})},
    )
