"""How much work something is, without a clock: a count of steps, and the one deadline for what must not blow up."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.support.waiting import HANG_SECONDS


def steps(action: Callable[[], object]) -> int:
    """Count the lines of Python that an action runs in this thread; the same number each time, on any machine."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@contextmanager
def no_blow_up(what: str) -> Iterator[None]:
    """Fail if the block is not done by the deadline of the tests.

    For work inside a regular expression or a C library, which has no steps to count: the input is so large that a
    quadratic form would be at it for much longer than the deadline. A regular expression is interrupted, as is Python.
    """

    def stop(*_: object) -> None:
        raise AssertionError(f"{what} is not done after {HANG_SECONDS:.0f} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
