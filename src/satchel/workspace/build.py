"""From a request to a payload, stage by stage: collect → gate → merge → rank → sift → budget → assemble.

Only collectors and the gate read blocks; everything after them is reckoned from what they brought.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from time import perf_counter
from typing import TYPE_CHECKING, Final

from satchel.errors import SatchelError, StoreUnavailable
from satchel.models.ledger import Fate, Ledger, LedgerEntry
from satchel.models.payload import (
    ContextItem,
    ContextMetadata,
    ContextPayload,
    SectionType,
)
from satchel.workspace.block_text import item_of
from satchel.workspace.candidates import NO_BLOCKS, Considered, Findings, gate, merge, pinned_by, rank, sift
from satchel.workspace.collectors import ContextCollector, Sight
from satchel.workspace.collectors.activity import ActivityCollector
from satchel.workspace.collectors.focus import FocusCollector
from satchel.workspace.collectors.history import HistoryCollector
from satchel.workspace.collectors.relations import RelationCollector
from satchel.workspace.collectors.semantic import Search, SemanticCollector
from satchel.workspace.section_budget import Tools, Writing

if TYPE_CHECKING:
    from satchel.models.request import ContextRequest

_log: Final = logging.getLogger(__name__)
_HINTED: Final = 1.0


def build_payload(request: ContextRequest, sight: Sight, tools: Tools) -> ContextPayload:
    """The context for a request."""
    started = perf_counter()
    generation = sight.store.generation
    found = _collect(request, sight, tools)
    pinned = pinned_by(request, sight)
    with sight.store.snapshot():
        considered, trails, made_visible = gate(request, sight, found)
        merge(considered, pinned)
        rank(request, sight, tools.config, [one for one in considered if one.fate is not Fate.MERGED], trails)
    candidates = sift(considered, pinned)
    writing = Writing(request, tools)
    sections, text = writing.write(writing.choose(candidates, pinned, found.notes))
    numbers = {item.block_id: item.number for section in sections for item in section.items if item.number}
    included = [item for section in sections for item in section.items if section.type not in NO_BLOCKS]
    metadata = ContextMetadata(
        total_tokens=tools.counter.count(text),
        timestamp=sight.now.isoformat(),
        focus_block_id=request.focus.block_id if request.focus else None,
        focus_page_id=request.focus.page_id if request.focus else None,
        collectors_used=tuple(found.used),
        collectors_failed=found.failed,
        blocks_included=len(included),
        blocks_considered=len([one for one in considered if one.item.section not in NO_BLOCKS]),
        generation=generation,
        cached=found.cached,
        build_ms=(perf_counter() - started) * 1000,
        characters_made_visible=made_visible,
        token_budget=writing.budget.total,
    )
    return ContextPayload(
        sections=tuple(sections),
        metadata=metadata,
        serialized=text,
        ledger=Ledger(tuple(_entry(one, numbers) for one in considered)),
        notes=tuple(dict.fromkeys(found.notes)),
        request=request,
        spans=writing.spans(sections, text),
    )


# -- collecting


def _collect(request: ContextRequest, sight: Sight, tools: Tools) -> Findings:
    """Run the collectors side by side; one that fails or is late is reported and done without."""
    found = Findings()
    collectors = _collectors(request, sight, tools.search)
    # The search takes longest and begins last: the others are done before it is in their way.
    begun = {
        collector: tools.executor.submit(_collected, collector, request, sight)
        for collector in sorted(collectors, key=lambda one: isinstance(one, SemanticCollector))
    }
    running = [(collector, begun[collector]) for collector in collectors]
    wait([future for _, future in running], timeout=sight.config.deadline_ms / 1000)
    for collector, future in running:
        if future.done() and isinstance(future.exception(), StoreUnavailable):
            future.result()  # nothing can be said without the store, and half of it must not look like the whole
        problem = _problem(future, sight.config.deadline_ms)
        if problem:
            future.cancel()
            found.failed[collector.name] = problem
            found.notes.append(f"the {collector.name} collector {problem}; the context is without it")
            continue
        found.used.append(collector.name)
        found.items += future.result()
        if isinstance(collector, SemanticCollector):
            found.below = collector.below
            found.stood_back = collector.stood_back
            found.cached = collector.cached
            found.notes += collector.notes
    wanted = sight.store.blocks(request.hints.include_blocks, sight.filters) if request.hints.include_blocks else {}
    if len(wanted) < len(request.hints.include_blocks):
        found.notes.append(f"{len(request.hints.include_blocks) - len(wanted)} of the blocks to include were not found")
    for block in wanted.values():
        found.items.append(item_of(block, _HINTED, SectionType.SEMANTIC, "asked for by the caller"))
    return found


def _collected(collector: ContextCollector, request: ContextRequest, sight: Sight) -> list[ContextItem]:
    """What a collector finds, all of it at one moment."""
    with sight.store.snapshot():
        return collector.collect(request)


def _collectors(request: ContextRequest, sight: Sight, search: Search) -> list[ContextCollector]:
    config = sight.config
    chosen: list[tuple[bool, Callable[[], ContextCollector]]] = [
        (config.focus.enabled, lambda: FocusCollector(sight)),
        (config.semantic.enabled, lambda: SemanticCollector(sight, search)),
        (config.relations.enabled, lambda: RelationCollector(sight)),
        (config.activity.enabled, lambda: ActivityCollector(sight)),
        (config.history.enabled and bool(request.conversation_history), lambda: HistoryCollector(sight)),
    ]
    return [make() for enabled, make in chosen if enabled]


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


def _entry(one: Considered, numbers: Mapping[str, int]) -> LedgerEntry:
    written = one.fate in (Fate.KEPT, Fate.TRIMMED)
    return LedgerEntry(
        id=one.item.block_id,
        fate=one.fate,
        reason=one.reason,
        relevance=one.collected,
        score=one.item.relevance,
        tokens=one.tokens,
        number=(numbers.get(one.item.block_id) or None) if written else None,
        into=one.into,
        collector=f"{one.item.section.value}: {', '.join(one.item.reasons)}",
        signals=one.item.signals,
    )
