"""The same in many threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(threads: int, action: Callable[[int], Any]) -> list[Any]:
    """What each of so many threads gave, or the error that it met; they begin at the same time."""
    barrier = threading.Barrier(threads)

    def run(number: int) -> Any:
        barrier.wait()
        try:
            return action(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(run, range(threads)))
