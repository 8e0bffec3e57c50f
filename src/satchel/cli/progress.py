"""Progress of work that takes a while, on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


class ProgressBar:
    """A bar on stderr, drawn from the first `show` until `stop`; nothing where stderr is no terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._is_off = quiet or not sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def show(self, doing: str, done: int, of: int = 0) -> None:
        """Show how much is done of how much (0: unknown)."""
        if self._is_off:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
            )  # fmt: skip

            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(doing, total=None)
        self._bar.update(self._task, description=doing, completed=done, total=of or None)

    def stop(self) -> None:
        """Remove the bar; the next `show` draws a new one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
