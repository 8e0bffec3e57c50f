"""Trying things in a child process: what crashes there does not crash here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_EACH: Final = """
import sys
for name in sys.argv[2:]:
    print(f"? {name}", flush=True)
    try:
        exec(sys.argv[1], {"name": name})
    except BaseException as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"! {said[:300]}", flush=True)
"""


def what_fails(code: str, names: Sequence[str], *, seconds: float = 25.0) -> dict[str, str]:
    """The names for which `code` fails in a child (it finds each as `name`), with the reason; a crash is one."""
    failed: dict[str, str] = {}
    left = list(names)
    while left:
        begun, reasons, end = _run(code, left, seconds)
        failed |= reasons
        if not end:
            return failed
        if not begun:
            return failed | {left[0]: end}
        failed[begun[-1]] = end
        left = left[len(begun) :]
    return failed


def _run(code: str, names: Sequence[str], seconds: float) -> tuple[list[str], dict[str, str], str]:
    """Which names were begun, which failed and why, and how the child ended if it did not end well."""
    try:
        done = subprocess.run(  # noqa: S603 - our own Python and our own code
            # Not from the current folder (-P): what lies there is the user's, and none of ours.
            [sys.executable, "-P", "-c", _EACH, code, *names],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        told = (late.stdout or b"").decode("utf-8", "replace")
        return *_read(told), f"took longer than {seconds:.0f} seconds"
    if done.returncode < 0:
        return *_read(done.stdout), f"crashes (signal {-done.returncode})"
    return *_read(done.stdout), "" if done.returncode == 0 else f"ends Python (exit code {done.returncode})"


def _read(told: str) -> tuple[list[str], dict[str, str]]:
    begun: list[str] = []
    reasons: dict[str, str] = {}
    for line in told.splitlines():
        if line.startswith("? "):
            begun.append(line[2:])
        elif line.startswith("! ") and begun:
            reasons[begun[-1]] = line[2:]
    return begun, reasons
