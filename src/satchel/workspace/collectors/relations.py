"""Collector for blocks linked with the focus: related rows, links and backlinks, calls and imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.models.block import Block, BlockType, Link, LinkKind
from satchel.models.results import ContextItem, SectionType
from satchel.workspace.block_text import brief, item_of
from satchel.workspace.collectors import CollectorContext

if TYPE_CHECKING:
    from satchel.models.request import ContextRequest
    from satchel.ports.block_tree import BlockTree

_RELATED_ROW_RELEVANCE: Final = 0.75  # S4
_LINKED_RELEVANCE: Final = 0.7  # S4
_BACKLINK_RELEVANCE: Final = 0.65  # S4

# Relevance factor for each further link step: a neighbour of a neighbour matters less.
_STEP_FACTOR: Final = 0.8

# Links read per block: an index page with thousands of links must not slow down a request.
_MAX_LINKS_PER_BLOCK: Final = 50

# Blocks of a focused page whose links are followed, as many as the focus collector shows by default.
_MAX_PAGE_BLOCKS: Final = 100

# With this many links from or to a block, a single link is weak evidence.
_MANY_LINKS: Final = 4

# A line with fewer words besides its links only mentions the target.
_MIN_LINE_WORDS: Final = 8
_LINES: Final = frozenset({BlockType.TEXT, BlockType.LIST_ITEM})
_LINKED_TEXT: Final = re.compile(r"!?\[\[[^\]\n]*\]\]|\[[^\]\n]*\]\([^)\n]*\)")


class _Joined(NamedTuple):
    block_id: str
    relevance: float
    reason: str
    weak: bool = False
    is_back: bool = False


class _Links(NamedTuple):
    """The links around the blocks of a step: from them and to them, by block, and from what links to them."""

    going_out: Mapping[str, Sequence[Link]]
    coming_in: Mapping[str, Sequence[Link]]
    beside: Mapping[str, Sequence[Link]]
    below: Mapping[str, Sequence[Block]]
    """Of a focused page the blocks below, which contain its links."""


def _says_little(link: Link, beside: Sequence[Link], first: bool) -> bool:
    """True for a mention of a mention and for a mention among many: an index page links to everything."""
    return link.kind is LinkKind.MENTIONS and (not first or len(beside) >= _MANY_LINKS)


def _is_only_a_mention(block: Block) -> bool:
    """True if a line contains hardly more text than its link."""
    if block.type not in _LINES:
        return False
    return len(_LINKED_TEXT.sub(" ", block.content).split()) < _MIN_LINE_WORDS


class RelationCollector:
    """Collects blocks by following links from the focus in both directions, up to the configured depth."""

    name = "relations"

    def __init__(self, view: CollectorContext) -> None:
        self.store: BlockTree = view.store
        self._context = view
        self._config = view.config.relations

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items for the linked blocks, nearest first; empty without a focus."""
        max_depth = request.hints.max_depth
        steps = self._config.max_depth if max_depth is None else min(self._config.max_depth, max_depth)
        items: list[ContextItem] = []
        frontier = list(self._context.focused)
        seen = {block.id for block in frontier}
        backlinks = self.get_backlinks(frontier) if frontier and steps > 0 else {}
        for step in range(steps if frontier else 0):
            nearest: dict[str, _Joined] = {}
            links = self._links(frontier, backlinks, first=step == 0)
            for joined in (joined for block in frontier for joined in _joined(block, links, first=step == 0)):
                previous = nearest.get(joined.block_id)
                if joined.block_id not in seen and (previous is None or previous.relevance < joined.relevance):
                    nearest[joined.block_id] = joined._replace(relevance=joined.relevance * _STEP_FACTOR**step)
            seen |= set(nearest)
            ordered = sorted(nearest.values(), key=lambda joined: -joined.relevance)
            ordered = ordered[: self._config.max_items - len(items)]
            blocks = self.store.blocks([joined.block_id for joined in ordered], self._context.filters)
            readable = [joined for joined in ordered if joined.block_id in blocks]
            frontier = [blocks[joined.block_id] for joined in readable]
            if not frontier:
                break
            backlinks = self.get_backlinks(frontier)
            items += [self._item(joined, blocks[joined.block_id], backlinks) for joined in readable]
            if len(items) >= self._config.max_items:
                break
        return items

    def get_linked_blocks(self, blocks: Sequence[Block]) -> dict[str, list[Link]]:
        """Links from each block."""
        return self.store.links_from([b.id for b in blocks], self._context.filters, limit=_MAX_LINKS_PER_BLOCK)

    def get_backlinks(self, blocks: Sequence[Block]) -> dict[str, list[Link]]:
        """Links to each block."""
        return self.store.links_to([b.id for b in blocks], self._context.filters, limit=_MAX_LINKS_PER_BLOCK)

    def row_to_item(self, row: Block, relevance: float, reason: str) -> ContextItem:
        """An item for a related row."""
        return item_of(row, relevance, SectionType.RELATIONS, reason)

    def block_to_item(self, block: Block, relevance: float, reason: str) -> ContextItem:
        """An item for a linked block."""
        return item_of(block, relevance, SectionType.RELATIONS, reason, content=brief(block))

    def _links(self, frontier: Sequence[Block], backlinks: Mapping[str, Sequence[Link]], *, first: bool) -> _Links:
        filters = self._context.filters
        pages = [block.id for block in frontier if first and block.is_page]
        below = self.store.descendants(pages, filters, limit=_MAX_PAGE_BLOCKS, deepest=50) if pages else {}
        going_out = self.get_linked_blocks([*frontier, *(block for inside in below.values() for block in inside)])
        sources = [link.source for links in backlinks.values() for link in links]
        beside = self.store.links_from(sources, filters, limit=_MANY_LINKS) if sources else {}
        return _Links(going_out, backlinks, beside, below)

    def _item(self, joined: _Joined, block: Block, backlinks: Mapping[str, Sequence[Link]]) -> ContextItem:
        make = self.row_to_item if block.type == BlockType.DB_ROW else self.block_to_item
        # Many links point to a person or an index page: a further link means little.
        is_linked_everywhere = len(backlinks.get(block.id, ())) >= _MANY_LINKS
        weak = joined.weak or is_linked_everywhere or (joined.is_back and _is_only_a_mention(block))
        return replace(make(block, joined.relevance, joined.reason), weak=weak)


def get_related_rows(block: Block, links: _Links) -> list[Link]:
    """The relations of a database row, in either direction."""
    around = (*links.going_out.get(block.id, ()), *links.coming_in.get(block.id, ()))
    return [link for link in around if block.type == BlockType.DB_ROW and link.kind is LinkKind.RELATION]


def _joined(block: Block, links: _Links, *, first: bool) -> Iterator[_Joined]:
    for link in get_related_rows(block, links):
        related_id = link.target if link.source == block.id else link.source
        if related_id:
            yield _Joined(related_id, _RELATED_ROW_RELEVANCE, "related row")
    for source in [block, *links.below.get(block.id, ())]:
        going_out = links.going_out.get(source.id, ())
        beside = going_out if source is not block else ()
        for link in going_out:
            if link.target:
                reason = f"{link.kind.value} → {link.name}".removesuffix(" → ")
                yield _Joined(link.target, _LINKED_RELEVANCE, reason, _says_little(link, beside, first))
    for link in links.coming_in.get(block.id, ()):
        weak = _says_little(link, links.beside.get(link.source, ()), first)
        yield _Joined(link.source, _BACKLINK_RELEVANCE, f"{link.kind.value} this", weak, is_back=True)
