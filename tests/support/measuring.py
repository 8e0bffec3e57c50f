"""Coverage in the processes of the tests: `make test` measures each process that inherits the environment."""

from __future__ import annotations

import os
import sys
from typing import Final

VARIABLE: Final = "COVERAGE_PROCESS_CONFIG"
"""The environment variable with which coverage starts itself in a new Python."""


def unmeasured() -> dict[str, str]:
    """Environment for a process that is not measured.

    For one that cannot write files: at its end coverage would print a traceback about that. And for one that is
    interrupted while it computes: coverage keeps its lock if KeyboardInterrupt comes while it notes a new file, and the
    process hangs.
    """
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


def save_measured() -> None:
    """Write what this process ran so far, if it is measured."""
    if "coverage" in sys.modules:
        from coverage import Coverage

        if (coverage := Coverage.current()) is not None:
            coverage.save()
