"""Collector for the focused block or page and the blocks around the focus."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from satchel.models.block import TASK_TYPES, Block, BlockType
from satchel.models.results import ContextItem, SectionType
from satchel.workspace.block_text import MAX_OUTLINE_BLOCKS, brief, in_short, is_code, item_of, own_text
from satchel.workspace.collectors import CollectorContext
from satchel.workspace.pages import page_sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.request import ContextRequest
    from satchel.ports.block_tree import BlockTree

_FOCUS_RELEVANCE: Final = 1.0  # S4: the maximum

# S4: relevance of the nearest ancestor, first child and nearest sibling, and the step down to each further block.
_ANCESTOR_RELEVANCE, _ANCESTOR_STEP = 0.9, 0.1
_CHILD_RELEVANCE, _CHILD_STEP = 0.85, 0.05
_SIBLING_RELEVANCE, _SIBLING_STEP = 0.8, 0.05

# Below a focused block (1.0), above its ancestors (0.9); S4 names no number.
_PAGE_SUMMARY_RELEVANCE: Final = 0.95

# The last blocks of a long page are still in focus: not less relevant than a viewed page (0.5).
_MIN_PAGE_BLOCK_RELEVANCE: Final = 0.5

# Levels read below a focused page: bounds the recursive query; nobody nests notes deeper by hand.
_MAX_PAGE_LEVELS: Final = 50


def _page_relevance(place: int) -> float:
    """The relevance of the content of a focused page, by its place on the page."""
    return max(_MIN_PAGE_BLOCK_RELEVANCE, _CHILD_RELEVANCE - _CHILD_STEP * place / 10)


class FocusCollector:
    """Collects the focused block with ancestors, siblings and children, and focused pages with their blocks."""

    name = "focus"

    def __init__(self, view: CollectorContext) -> None:
        self.store: BlockTree = view.store
        self._context = view
        self._config = view.config.focus

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items around the focus; empty without a focus."""
        items: list[ContextItem] = []
        focus, config = self._context.focus, self._config
        if focus is not None:
            items.append(self.block_to_item(focus, _FOCUS_RELEVANCE, "focused"))
            ancestors = self.get_ancestors(focus, self._depth(request, config.ancestor_depth))
            items += self._fading(ancestors, _ANCESTOR_RELEVANCE, _ANCESTOR_STEP, "ancestor")
            if self._depth(request, 1):
                siblings = self.get_siblings(focus, config.sibling_count)
                for item in self._fading(siblings, _SIBLING_RELEVANCE, _SIBLING_STEP, "sibling"):
                    # Neighbouring paragraphs belong together; neighbouring tasks must match the question.
                    items.append(replace(item, weak=item.block_type in TASK_TYPES))
                items += self._fading(
                    self.get_children(focus, config.children_limit), _CHILD_RELEVANCE, _CHILD_STEP, "child"
                )
        for page in self._context.pages:
            if is_code(page):
                items.append(self.block_to_item(page, _FOCUS_RELEVANCE, "focused file"))
                continue  # the text of the file contains all its blocks
            items.append(self.create_page_summary(page))
            items += self._page_items(page, self._blocks_of(page, request))
        return items

    def _page_items(self, page: Block, blocks: Sequence[Block]) -> list[ContextItem]:
        """The content of a focused page: its sections, or the rows, cards and messages one by one."""
        if page.type != BlockType.PAGE or any(map(is_code, blocks)):
            return [
                self.block_to_item(block, _page_relevance(i), "on the focused page", short=is_code(block))
                for i, block in enumerate(blocks)
            ]
        by_id = {block.id: block for block in blocks}
        items: list[ContextItem] = []
        for held, text in page_sections(page, blocks):
            first, *rest = held
            relevance = _page_relevance(len(items))
            item = item_of(by_id[first], relevance, SectionType.FOCUS, "on the focused page", content=text)
            items.append(replace(item, holds=tuple(rest)))
        return items

    def get_ancestors(self, block: Block, depth: int) -> list[Block]:
        """Up to `depth` readable ancestors, nearest first."""
        trail = self.store.trails([block.id], self._context.filters).get(block.id, ())
        ids = [step.id for step in trail[1 : depth + 1]]
        blocks = self.store.blocks(ids, self._context.filters)
        return [blocks[block_id] for block_id in ids if block_id in blocks]

    def get_siblings(self, block: Block, count: int) -> list[Block]:
        """Up to `count` siblings before and after the block, nearest first."""
        return self.store.siblings(block.id, self._context.filters, count=count)

    def get_children(self, block: Block, limit: int) -> list[Block]:
        """The first `limit` children of the block."""
        return self.store.children([block.id], self._context.filters, limit=limit).get(block.id, [])

    def block_to_item(self, block: Block, relevance: float, reason: str, *, short: bool = False) -> ContextItem:
        """An item of the focus section; `short` gives code as signature and summary."""
        content = brief(block) if short else own_text(block)
        return item_of(block, relevance, SectionType.FOCUS, reason, content=content)

    def create_page_summary(self, page: Block) -> ContextItem:
        """An item with a summary of a focused page."""
        item = item_of(page, _PAGE_SUMMARY_RELEVANCE, SectionType.FOCUS, "focused page")
        return in_short(item, page, self.get_children(page, MAX_OUTLINE_BLOCKS))

    def _fading(self, blocks: Sequence[Block], first: float, step: float, reason: str) -> list[ContextItem]:
        """Short items for the blocks, with relevance falling by `step` from `first`."""
        return [self.block_to_item(block, first - step * i, reason, short=True) for i, block in enumerate(blocks)]

    def _blocks_of(self, page: Block, request: ContextRequest) -> list[Block]:
        deepest = self._depth(request, 1 if page.type == BlockType.DATABASE else _MAX_PAGE_LEVELS)
        limit = self._config.page_blocks_limit
        return self.store.descendants([page.id], self._context.filters, limit=limit, deepest=deepest).get(page.id, [])

    def _depth(self, request: ContextRequest, default: int) -> int:
        max_depth = request.hints.max_depth
        return default if max_depth is None else min(default, max_depth)
