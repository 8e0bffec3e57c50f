"""Blocks that may be shown: still readable, in their place, and none that says what another says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.admit import Admitted, Merged
from satchel.models.block import PAGE_TYPES
from satchel.models.chunk import Candidate, CandidateKind
from satchel.models.context import Reason
from satchel.models.results import ContextItem, ItemMetadata, SectionType
from satchel.text.visible import make_visible_lines
from satchel.workspace.collectors import COLLECTORS

if TYPE_CHECKING:
    from satchel.models.request import ContextRequest
    from satchel.ports.block_tree import Step
    from satchel.workspace.collectors import CollectorContext
    from satchel.workspace.gather import Gathered

_SAME_TEXT_CHARS: Final = 40
"""Shorter texts (`Notes`, `Done`) repeat without being repetitions."""

_LEAST_EVIDENCE: Final = 0.05
"""What a search has to find for something whose place alone says little for it."""


@dataclass(slots=True)
class BlockCandidate:
    """An item on its way into the context, and why it steps aside."""

    item: ContextItem
    place: int
    collected: float
    """The relevance that the collectors gave it."""
    evidence: float
    """How likely the search holds it to be an answer."""
    made_visible: int
    dropped: Reason | None = None
    merged_into: BlockCandidate | None = None
    merge_reason: Reason = Reason.SAME_BLOCK


def candidate_of(item: ContextItem, place: int, relevance: float, made_visible: int = 0) -> Candidate:
    """The item as every stage of the pipeline knows it."""
    where = item.place
    return Candidate(
        place=place,
        id=item.block_id,
        kind=CandidateKind.BLOCK,
        path=where.path if where else item.file_path or item.source_path,
        name=item.metadata.page_title or "",
        type=str(item.block_type),
        section=item.section,
        text=item.content,
        language=item.language,
        first_line=where.line if where else None,
        last_line=where.end_line if where else None,
        page=where.page if where else None,
        relevance=relevance,
        modified=item.metadata.last_modified,
        made_visible=made_visible,
        origin=item,
        trail=item.metadata.path,
    )


class AdmittedBlocks(NamedTuple):
    """Everything that was gathered and is readable, what of it may be shown, and where it all stands."""

    blocks: list[BlockCandidate]
    trails: Mapping[str, Sequence[Step]]

    def admitted(self, pinned: frozenset[str]) -> tuple[list[Candidate], Admitted]:
        """All candidates, and those that may be shown; what is weak and unrelated steps aside here."""
        for block in self.blocks:
            if block.dropped or block.merged_into:
                continue
            if not block.item.content.strip():
                block.dropped = Reason.EMPTY
            elif block.item.weak and block.evidence < _LEAST_EVIDENCE and block.item.block_id not in pinned:
                block.dropped = Reason.UNRELATED
        candidates = [candidate_of(one.item, one.place, one.collected, one.made_visible) for one in self.blocks]
        merged = {
            block.place: Merged(candidates[block.merged_into.place], block.merge_reason)
            for block in self.blocks
            if block.merged_into
        }
        dropped = {block.place: block.dropped for block in self.blocks if block.dropped and not block.merged_into}
        shown = [one for one in candidates if one.place not in merged and one.place not in dropped]
        return candidates, Admitted(shown, dropped, merged)


def is_block(item: ContextItem) -> bool:
    """Whether the item is a block of the workspace, with permissions and a citation number."""
    return COLLECTORS.get(item.section).cited


def admit_blocks(
    request: ContextRequest, view: CollectorContext, gathered: Gathered, pinned: frozenset[str]
) -> AdmittedBlocks:
    """The last look at the world: what is still readable, where it stands, and what is said twice."""
    focused = [block.id for block in (view.focus, *view.pages) if block is not None]
    everything = (*gathered.items, *gathered.below_threshold, *gathered.superseded_titles)
    collected = [block_id for item in everything if is_block(item) for block_id in (item.block_id, *item.holds)]
    trails = view.store.trails(list(dict.fromkeys((*focused, *collected))), view.filters)
    excluded = frozenset(request.hints.exclude_blocks)
    below = {id(item) for item in gathered.below_threshold}
    superseded = {id(item) for item in gathered.superseded_titles}
    blocks: list[BlockCandidate] = []
    for item in everything:
        if is_block(item) and not trails.keys() >= {item.block_id, *item.holds}:
            continue
        block = _in_place(item, len(blocks), trails.get(item.block_id, ()))
        if item.block_id in excluded:
            block.dropped = Reason.EXCLUDED
        elif id(item) in below:
            block.dropped = Reason.BELOW_RELEVANCE
        elif id(item) in superseded:
            block.dropped = Reason.EMPTY
        blocks.append(block)
    _merge(blocks, pinned)
    return AdmittedBlocks(blocks, trails)


def _in_place(item: ContextItem, place: int, trail: Sequence[Step]) -> BlockCandidate:
    content, changes = make_visible_lines(item.content)
    visible = replace(
        item,
        content=content,
        whole=None if item.whole is None else make_visible_lines(item.whole).text,
        metadata=_metadata(item, trail),
    )
    evidence = item.relevance if item.section == SectionType.SEMANTIC else 0.0
    return BlockCandidate(visible, place, item.relevance, evidence, changes)


def _metadata(item: ContextItem, trail: Sequence[Step]) -> ItemMetadata:
    """The page's title and the breadcrumb, from the outside in, as far as the user may read."""
    if not trail:
        return item.metadata
    page = next((step for step in trail if step.type in PAGE_TYPES), None)
    path = item.metadata.path or tuple(step.title for step in reversed(trail[1:]) if step.title)
    title = page.title if page is not None and page.title else None
    return ItemMetadata(page_title=title, path=path, last_modified=item.metadata.last_modified)


def _merge(blocks: Sequence[BlockCandidate], pinned: frozenset[str]) -> None:
    """One candidate for each block, with everything that speaks for it, and none for a text that is there already."""
    by_block: dict[tuple[bool, str], BlockCandidate] = {}
    for block in blocks:
        key = (is_block(block.item), block.item.block_id)
        if block.dropped is Reason.EXCLUDED or (block.dropped is Reason.EMPTY and key not in by_block):
            continue
        first = by_block.setdefault(key, block)
        if first is not block:
            _join(first, block)
    by_text: dict[str, BlockCandidate] = {}
    for block in sorted(by_block.values(), key=lambda one: (-one.collected, one.place)):
        text = " ".join(block.item.content.split())
        if len(text) < _SAME_TEXT_CHARS or not is_block(block.item) or block.item.block_id in pinned:
            continue
        same = by_text.setdefault(text, block)
        if same is not block:
            block.merged_into, block.merge_reason = same, Reason.DUPLICATE


def _join(first: BlockCandidate, other: BlockCandidate) -> None:
    """Put what speaks for the same block together: the higher relevance, the fuller text, all the reasons."""
    mine, theirs = first.item, other.item
    # What a search found of a block that is here anyhow adds a reason, not a text.
    is_fuller = theirs.section != SectionType.SEMANTIC and len(theirs.content) > len(mine.content)
    fuller = theirs if is_fuller or not mine.content else mine
    dates = [item.metadata.last_modified for item in (mine, theirs) if item.metadata.last_modified]
    all_reasons = tuple(dict.fromkeys((*mine.reasons, *theirs.reasons)))
    first.item = replace(
        mine,
        content=fuller.content,
        whole=fuller.whole,
        trim=fuller.trim,
        language=fuller.language,
        holds=fuller.holds,
        relevance=max(mine.relevance, theirs.relevance),
        reasons=mine.reasons if other.dropped is Reason.BELOW_RELEVANCE else all_reasons,
        signals={**theirs.signals, **mine.signals},
        metadata=replace(mine.metadata, last_modified=max(dates) if dates else None),
        weak=mine.weak and (theirs.weak or theirs.section == SectionType.SEMANTIC),
    )
    if first.dropped is Reason.BELOW_RELEVANCE and other.dropped is not Reason.BELOW_RELEVANCE:
        first.dropped = other.dropped
    first.collected = max(first.collected, other.collected)
    first.evidence = max(first.evidence, other.evidence)
    other.merged_into, other.merge_reason = first, Reason.SAME_BLOCK
