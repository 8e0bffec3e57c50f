"""Runs the collectors side by side; one that fails or is late is reported and done without."""

from __future__ import annotations

import logging
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from satchel.errors import SatchelError, StoreUnavailable
from satchel.models.results import ContextItem, SectionType
from satchel.workspace.block_text import item_of
from satchel.workspace.collectors import COLLECTORS, CollectorContext, ContextCollector

if TYPE_CHECKING:
    from satchel.models.request import ContextRequest

_log: Final = logging.getLogger(__name__)

_INCLUDED_RELEVANCE: Final = 1.0
"""What the caller names is what the caller wants."""


@dataclass(slots=True)
class Gathered:
    """What the collectors brought."""

    items: list[ContextItem] = field(default_factory=list)
    below_threshold: list[ContextItem] = field(default_factory=list)
    superseded_titles: list[ContextItem] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cached: bool = False


def gather(request: ContextRequest, view: CollectorContext, executor: Executor) -> Gathered:
    """What all collectors find, and what the caller named."""
    gathered = Gathered()
    collectors = {name: entry.make(view) for name, entry in COLLECTORS.entries() if _is_wanted(name, request, view)}
    # The search takes longest and begins last: the others are done before it is in their way.
    begun = {
        name: executor.submit(_collect, collectors[name], request, view)
        for name in sorted(collectors, key=lambda name: name == SectionType.SEMANTIC)
    }
    wait(begun.values(), timeout=view.config.deadline_ms / 1000)
    for name, collector in collectors.items():
        _add(gathered, name, collector, begun[name], view.config.deadline_ms)
    gathered.notes += [f"{problem}; the context is without it" for problem in COLLECTORS.problems.values()]
    _add_included(gathered, request, view)
    return gathered


def _is_wanted(name: str, request: ContextRequest, view: CollectorContext) -> bool:
    if name == SectionType.HISTORY and not request.conversation_history:
        return False
    config = getattr(view.config, name, None)
    return name not in view.config.disabled if config is None else bool(config.enabled)


def _collect(collector: ContextCollector, request: ContextRequest, view: CollectorContext) -> list[ContextItem]:
    """What a collector finds, all of it at one moment."""
    with view.store.snapshot():
        return collector.collect(request)


def _add(
    gathered: Gathered, name: str, collector: ContextCollector, future: Future[list[ContextItem]], deadline_ms: int
) -> None:
    if future.done() and isinstance(future.exception(), StoreUnavailable):
        future.result()  # nothing can be said without the store, and half of it must not look like the whole
    problem = _problem(future, deadline_ms)
    if problem:
        future.cancel()
        gathered.failed[name] = problem
        gathered.notes.append(f"the {name} collector {problem}; the context is without it")
        return
    items = future.result()
    if name not in set(SectionType):
        items = [replace(item, section=name) for item in items]
    gathered.used.append(name)
    gathered.items += items
    gathered.below_threshold += getattr(collector, "below_threshold", ())
    gathered.superseded_titles += getattr(collector, "superseded_titles", ())
    gathered.notes += getattr(collector, "notes", ())
    gathered.cached = gathered.cached or getattr(collector, "cached", False)


def _problem(future: Future[list[ContextItem]], deadline_ms: int) -> str:
    if not future.done():
        return f"did not finish within {deadline_ms} ms"
    error = future.exception()
    if error is None:
        return ""
    if not isinstance(error, SatchelError):
        _log.error("a collector failed", exc_info=error)
    # Our own errors say what is wrong without saying anything about what may not be read.
    return f"failed: {error}" if isinstance(error, SatchelError) else f"failed: {type(error).__name__}"


def _add_included(gathered: Gathered, request: ContextRequest, view: CollectorContext) -> None:
    """Add the blocks that the caller named."""
    wanted = request.hints.include_blocks
    blocks = view.store.blocks(wanted, view.filters) if wanted else {}
    if len(blocks) < len(wanted):
        gathered.notes.append(f"{len(wanted) - len(blocks)} of the blocks to include were not found")
    for block in blocks.values():
        gathered.items.append(item_of(block, _INCLUDED_RELEVANCE, SectionType.SEMANTIC, "asked for by the caller"))
