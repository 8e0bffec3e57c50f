"""An event loop whose clock is set by what it waits for: time-outs are reached at once, and in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Sets its clock to the next timer when nothing else is left to do. Only for work without sockets or threads."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]
            self._now = max(self._now, min(timers))
        super()._run_once()  # type: ignore[misc]


def run_in_virtual_time(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run it on a loop with a clock of its own."""
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(work)


async def pass_time(seconds: float) -> None:
    """Let so many seconds of the loop's own clock pass."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_later(seconds, passed.set_result, None)
    await passed
