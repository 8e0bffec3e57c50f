"""Waiting for an event: no test sleeps, and none asks how long something took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

HANG_SECONDS = 120.0
"""The one deadline of the tests. It only catches hangs: nothing that works comes near it, however busy the machine."""

POLL_SECONDS = 0.01

_Found = TypeVar("_Found")


def wait_for(condition: Callable[[], _Found], what: str) -> _Found:
    """Return the first true value of the condition; fail, naming what was waited for, if there is none."""
    pause, deadline = threading.Event(), time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        pause.wait(POLL_SECONDS)
    return found
