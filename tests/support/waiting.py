"""Waiting for an event: no test sleeps, and none asks how long something took."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

HANG_SECONDS = 120.0
"""The one deadline of the tests. It only catches hangs: nothing that works comes near it, however busy the machine."""

POLL_SECONDS = 0.01

_Found = TypeVar("_Found")


def wait_for(condition: Callable[[], _Found | None], what: str) -> _Found:
    """Return the first true value of the condition; fail, naming what was waited for, if there is none."""
    pause, deadline = threading.Event(), time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        pause.wait(POLL_SECONDS)
    return found


async def wait_for_async(condition: Callable[[], _Found | None], what: str) -> _Found:
    """The same in a coroutine: the loop's other tasks go on."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + HANG_SECONDS
    while not (found := condition()):
        if loop.time() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        await asyncio.wait([loop.create_future()], timeout=POLL_SECONDS)
    return found


@contextmanager
def killed_at_the_end(command: list[str], **settings: Any) -> Iterator[subprocess.Popen[Any]]:
    """Run a command that is killed where the block ends: a failed test must not wait for a process that goes on."""
    with subprocess.Popen(command, **settings) as process:
        try:
            yield process
        finally:
            process.kill()
