"""A progress bar for work that takes a while, where somebody is watching."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


def progress(things: Iterable[T], label: str, *, quiet: bool) -> Iterator[T]:
    """The same things, counted on stderr as they go by when that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield from things
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(f"{label} {{task.completed:.0f}} files"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        for thing in things:
            yield thing
            bar.advance(task)
