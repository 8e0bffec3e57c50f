"""A process and its children as /proc shows them: their memory and the processor time they took."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

_EVERY: Final = 0.1
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS: Final = slice(11, 15)
"""utime, stime, and the same of children that have ended, counted behind the name."""
_PROC: Final = Path("/proc")


class ProcessTree:
    """Watches from a thread, so that children that live for a moment only are seen too."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak_memory = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch-{root}", daemon=True)
        self._thread.start()

    def cpu_seconds(self) -> float:
        """What the living and the children that they waited for have taken since they were started."""
        return sum(_cpu_ticks(one) for one in self._members()) / _TICKS

    def look(self) -> None:
        """Note how much memory they hold: the most that each of those alive has ever had."""
        self.peak_memory = max(self.peak_memory, sum(_peak_memory(one) for one in self._members()))

    def close(self) -> None:
        """Watch no longer."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self.look()

    def _members(self) -> list[int]:
        members, waiting = [], [self._root]
        while waiting:
            one = waiting.pop()
            members.append(one)
            waiting += _children(one)
        return members


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in (_PROC / str(process) / "task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        pass  # it has ended
    return found


def _cpu_ticks(process: int) -> int:
    try:
        fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[_CPU_FIELDS])


def _peak_memory(process: int) -> int:
    try:
        status = (_PROC / str(process) / "status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
