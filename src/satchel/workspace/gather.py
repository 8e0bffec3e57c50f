"""Collect and admit blocks: the stages that read the store.

The collectors run in parallel; a collector that fails or misses the deadline is reported and left out. An item is
admitted if the user may still read its block and no more relevant block has the same text.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.pipeline import Admitted, Merged
from satchel.errors import SatchelError, StoreUnavailable
from satchel.models.block import PAGE_TYPES
from satchel.models.chunk import Candidate, CandidateKind
from satchel.models.context import Reason
from satchel.models.results import ContextItem, ItemMetadata, SectionType
from satchel.text.secrets import redact
from satchel.text.visible import make_visible_lines
from satchel.workspace.block_text import item_of
from satchel.workspace.collectors import COLLECTORS, CollectorContext, ContextCollector

if TYPE_CHECKING:
    from satchel.models.request import ContextRequest
    from satchel.ports.block_tree import Step

_log: Final = logging.getLogger(__name__)

# The highest relevance: the caller named these blocks.
_INCLUDED_RELEVANCE: Final = 1.0

# Shorter texts (`Notes`, `Done`) may be equal without being duplicates.
_MIN_DUPLICATE_CHARS: Final = 40

# Weak items need at least this relevance from the search: with less, nineteen of twenty would be wrong.
_MIN_EVIDENCE_RELEVANCE: Final = 0.05


@dataclass(slots=True)
class CollectedItems:
    """Items from all collectors, with failures and notes."""

    items: list[ContextItem] = field(default_factory=list)
    set_aside: list[tuple[ContextItem, Reason]] = field(default_factory=list)
    """Items that were found but must not be shown, with the reason."""
    used: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cached: bool = False


def gather(request: ContextRequest, view: CollectorContext, executor: Executor) -> CollectedItems:
    """Run all enabled collectors and add the blocks that the caller included by id."""
    gathered = CollectedItems()
    collectors = {name: entry.make(view) for name, entry in COLLECTORS.entries() if _is_enabled(name, request, view)}
    # The search takes longest and starts last, so that the others finish before the search slows them down.
    begun = {
        name: executor.submit(_collect, collectors[name], request, view)
        for name in sorted(collectors, key=lambda name: name == SectionType.SEMANTIC)
    }
    wait(begun.values(), timeout=view.config.deadline_ms / 1000)
    for name, collector in collectors.items():
        _add(gathered, name, collector, begun[name], view.config.deadline_ms)
    gathered.notes += [f"{problem}; its items are missing from the context" for problem in COLLECTORS.problems.values()]
    _add_included(gathered, request, view)
    return gathered


def _is_enabled(name: str, request: ContextRequest, view: CollectorContext) -> bool:
    if name == SectionType.HISTORY and not request.conversation_history:
        return False
    config = getattr(view.config, name, None)
    return name not in view.config.disabled if config is None else bool(config.enabled)


def _collect(collector: ContextCollector, request: ContextRequest, view: CollectorContext) -> list[ContextItem]:
    """Run a collector on a consistent snapshot of the store."""
    with view.store.snapshot():
        return collector.collect(request)


def _add(
    gathered: CollectedItems,
    name: str,
    collector: ContextCollector,
    future: Future[list[ContextItem]],
    deadline_ms: int,
) -> None:
    if future.done() and isinstance(future.exception(), StoreUnavailable):
        future.result()  # raise: without the store, a partial context must not look complete
    problem = _problem(name, future, deadline_ms)
    if problem:
        future.cancel()
        gathered.failed[name] = problem
        gathered.notes.append(f"the {name} collector {problem}; its items are missing from the context")
        return
    items = future.result()
    if name not in set(SectionType):
        items = [replace(item, section=name) for item in items]
    gathered.used.append(name)
    gathered.items += items
    gathered.set_aside += getattr(collector, "set_aside", ())
    gathered.notes += getattr(collector, "notes", ())
    gathered.cached = gathered.cached or getattr(collector, "cached", False)


def _problem(name: str, future: Future[list[ContextItem]], deadline_ms: int) -> str:
    if not future.done():
        return f"did not finish within {deadline_ms} ms"
    error = future.exception()
    if error is None:
        return ""
    # Messages of Satchel errors contain no text that the user may not read.
    if isinstance(error, SatchelError):
        return f"failed: {error}"
    _log.error("the %s collector failed", name, exc_info=error)
    return f"failed: {type(error).__name__}"


def _add_included(gathered: CollectedItems, request: ContextRequest, view: CollectorContext) -> None:
    """Add the blocks of the hint `include_blocks`."""
    ids = request.hints.include_blocks
    blocks = view.store.blocks(ids, view.filters) if ids else {}
    if len(blocks) < len(ids):
        gathered.notes.append(f"{len(ids) - len(blocks)} of {len(ids)} blocks in include_blocks were not found")
    for block in blocks.values():
        gathered.items.append(item_of(block, _INCLUDED_RELEVANCE, SectionType.SEMANTIC, "included by the caller"))


@dataclass(slots=True)
class _Block:
    """An item on the way into the context, and the reason for dropping or merging the item."""

    item: ContextItem
    place: int
    evidence: float
    """The relevance from the search; 0 for items of other collectors."""
    made_visible: int
    dropped: Reason | None = None
    merged_into: _Block | None = None
    merge_reason: Reason = Reason.SAME_BLOCK


class AdmittedBlocks(NamedTuple):
    """All readable candidates, the admission decision for each, and the ancestors of each block."""

    candidates: list[Candidate]
    admitted: Admitted
    trails: Mapping[str, Sequence[Step]]


def is_block(item: ContextItem) -> bool:
    """True if the item is a workspace block, with an access list and a citation number."""
    return COLLECTORS.get(item.section).cited


def candidate_of(item: ContextItem, place: int, made_visible: int = 0) -> Candidate:
    """The item as a candidate for the pipeline."""
    location = item.place
    return Candidate(
        place=place,
        id=item.block_id,
        kind=CandidateKind.BLOCK,
        path=location.path if location else item.file_path or item.source_path,
        name=item.metadata.page_title or "",
        type=str(item.block_type),
        section=item.section,
        text=item.content,
        language=item.language,
        first_line=location.line if location else None,
        last_line=location.end_line if location else None,
        page=location.page if location else None,
        relevance=item.relevance,
        modified=item.metadata.last_modified,
        made_visible=made_visible,
        origin=item,
        trail=item.metadata.path,
        collector=f"{item.section}: {', '.join(item.reasons)}",
        signals=item.signals,
        trim=item.trim,
        elided=item.elided,
    )


def admit_blocks(
    request: ContextRequest, view: CollectorContext, gathered: CollectedItems, pinned: frozenset[str]
) -> AdmittedBlocks:
    """Check access once more, read the ancestors of all blocks, and merge duplicates; the last read of the store."""
    everything = [*((item, None) for item in gathered.items), *gathered.set_aside]
    collected = [block_id for item, _ in everything if is_block(item) for block_id in (item.block_id, *item.holds)]
    trails = view.store.trails(list(dict.fromkeys((*(block.id for block in view.focused), *collected))), view.filters)
    excluded = frozenset(request.hints.exclude_blocks)
    blocks: list[_Block] = []
    for item, reason in everything:
        if not is_block(item) or trails.keys() >= {item.block_id, *item.holds}:
            block = _in_place(item, len(blocks), trails.get(item.block_id, ()))
            block.dropped = Reason.EXCLUDED if item.block_id in excluded else reason
            blocks.append(block)
    _merge(blocks, pinned)
    candidates = [candidate_of(block.item, block.place, block.made_visible) for block in blocks]
    merged = {
        block.place: Merged(candidates[block.merged_into.place], block.merge_reason)
        for block in blocks
        if block.merged_into
    }
    objections = ((block.place, _objection(block, pinned)) for block in blocks if not block.merged_into)
    dropped = {place: reason for place, reason in objections if reason}
    return AdmittedBlocks(candidates, Admitted.among(candidates, dropped, merged), trails)


def _objection(block: _Block, pinned: frozenset[str]) -> Reason | None:
    """The reason to drop a block, or None; weak blocks without evidence from the search are dropped."""
    if block.dropped:
        return block.dropped
    if not block.item.content.strip():
        return Reason.EMPTY
    is_unrelated = block.item.weak and block.evidence < _MIN_EVIDENCE_RELEVANCE and block.item.block_id not in pinned
    return Reason.UNRELATED if is_unrelated else None


def _in_place(item: ContextItem, place: int, trail: Sequence[Step]) -> _Block:
    content, changes = make_visible_lines(redact(item.content))
    visible = replace(
        item,
        content=content,
        whole=None if item.whole is None else make_visible_lines(redact(item.whole)).text,
        metadata=_metadata(item, trail),
    )
    evidence = item.relevance if item.section == SectionType.SEMANTIC else 0.0
    return _Block(visible, place, evidence, changes)


def _metadata(item: ContextItem, trail: Sequence[Step]) -> ItemMetadata:
    """The title of the page and the readable breadcrumb, outermost ancestor first."""
    if not trail:
        return item.metadata
    page = next((step for step in trail if step.type in PAGE_TYPES), None)
    path = item.metadata.path or tuple(step.title for step in reversed(trail[1:]) if step.title)
    title = page.title if page is not None and page.title else None
    return ItemMetadata(page_title=title, path=path, last_modified=item.metadata.last_modified)


def _merge(blocks: Sequence[_Block], pinned: frozenset[str]) -> None:
    """Merge items of the same block, and drop blocks whose text equals the text of a more relevant block."""
    by_block: dict[tuple[bool, str], _Block] = {}
    for block in blocks:
        key = (is_block(block.item), block.item.block_id)
        if block.dropped is Reason.EXCLUDED or (block.dropped is Reason.EMPTY and key not in by_block):
            continue
        first = by_block.setdefault(key, block)
        if first is not block:
            _join(first, block, is_pinned=block.item.block_id in pinned)
    _cover({block.item.block_id: block for block in by_block.values() if is_block(block.item)}, pinned)
    whole = [
        (" ".join(block.item.content.split()), block)
        for block in by_block.values()
        if block.item.found and block.item.holds and not (block.dropped or block.merged_into)
    ]
    by_text: dict[str, _Block] = {}
    for block in sorted(by_block.values(), key=lambda block: (-block.item.relevance, block.place)):
        if block.merged_into:
            continue
        text = " ".join(block.item.content.split())
        if len(text) < _MIN_DUPLICATE_CHARS or not is_block(block.item) or block.item.block_id in pinned:
            continue
        # Equal sections are no parts of each other: the most relevant of them stays.
        same = next((other for section, other in whole if text in section and text != section), None)
        same = same or by_text.setdefault(text, block)
        if same is not block:
            block.merged_into, block.merge_reason = same, Reason.DUPLICATE


def _cover(blocks: Mapping[str, _Block], pinned: frozenset[str]) -> None:
    """Merge blocks into the sections that contain them, so that no text is shown twice.

    What the search found in a section is evidence for the block alone, too. Focused blocks stay: a section of which
    everything is focused is left out.
    """
    sections = [block for block in blocks.values() if block.item.found]
    for section in sorted(sections, key=lambda block: (-block.item.relevance, block.place)):
        for block in [blocks[block_id] for block_id in section.item.found if block_id in blocks]:
            block.evidence = max(block.evidence, section.item.relevance)
        inside = [blocks[block_id] for block_id in section.item.holds if block_id in blocks]
        if section.dropped or section.merged_into:
            continue
        in_focus = [block for block in inside if block.item.section == SectionType.FOCUS and not block.item.weak]
        is_focus = section.item.section == SectionType.FOCUS
        if inside and len(in_focus) == len(section.item.holds) and not is_focus:
            section.dropped = Reason.COVERED
            continue
        for block in inside:
            # Of a page inside a section only the title is shown.
            is_free = block.item.block_type not in PAGE_TYPES and block.item.block_id not in pinned
            if is_free and (is_focus or block not in in_focus) and not block.dropped and not block.merged_into:
                block.merged_into, block.merge_reason = section, Reason.COVERED


def _join(first: _Block, other: _Block, *, is_pinned: bool) -> None:
    """Merge two items of the same block: the higher relevance, the longer text and all reasons."""
    mine, more = first.item, other.item
    # A search hit on a block that is already collected adds a reason, not a text. A found section adds its text, but
    # not to a focused page, whose blocks are shown one by one.
    is_section = bool(more.found) and not (other.dropped or is_pinned)
    has_text = more.section != SectionType.SEMANTIC or is_section
    is_fuller = has_text and len(more.content) > len(mine.content)
    fuller = more if is_fuller or not mine.content else mine
    dates = [item.metadata.last_modified for item in (mine, more) if item.metadata.last_modified]
    all_reasons = tuple(dict.fromkeys((*mine.reasons, *more.reasons)))
    first.item = replace(
        mine,
        content=fuller.content,
        whole=fuller.whole,
        trim=fuller.trim,
        language=fuller.language,
        holds=fuller.holds,
        found=fuller.found,
        elided=fuller.elided,
        relevance=max(mine.relevance, more.relevance),
        reasons=mine.reasons if other.dropped is Reason.BELOW_RELEVANCE else all_reasons,
        signals={**more.signals, **mine.signals},
        metadata=replace(mine.metadata, last_modified=max(dates) if dates else None),
        weak=mine.weak and (more.weak or more.section == SectionType.SEMANTIC),
    )
    if first.dropped is Reason.BELOW_RELEVANCE and other.dropped is not Reason.BELOW_RELEVANCE:
        first.dropped = other.dropped
    first.evidence = max(first.evidence, other.evidence)
    other.merged_into = first
