"""The same in many threads at once, and what another thread holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
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


@contextmanager
def entered_elsewhere(entered: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
    """A context that another thread has entered, and leaves at the end."""
    is_entered, may_leave = threading.Event(), threading.Event()

    def hold() -> None:
        with entered():
            is_entered.set()
            may_leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert is_entered.wait(60)
        yield
    finally:
        may_leave.set()
        thread.join()
