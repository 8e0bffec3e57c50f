"""Pages read for earlier questions: the blocks of a page, its sections, and their words and vectors.

A page is read once for each combination of access lists, until a commit that the reader can see. Most questions to a
workspace come back to the same pages, and reading them again took half of the time of a question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Final

from satchel.models.block import PAGE_TYPES, Block, BlockType
from satchel.text.statements import LineRun
from satchel.text.words import IDENTIFIER, terms_of
from satchel.workspace.pages import MAX_PAGE_BLOCKS, MAX_PAGE_DEPTH, PageText, page_without

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.models.search import Filters
    from satchel.ports.store import Store

STANDING: Final = PAGE_TYPES | {
    BlockType.HEADING,
    BlockType.SECTION,
    BlockType.DB_ROW,
    BlockType.KANBAN_CARD,
    BlockType.EVENT,
    BlockType.MESSAGE,
    BlockType.DECISION,
}
"""Types of blocks that stand on their own: they have a title, or are complete without one."""

# Blocks of all pages in the cache: about 40 MB with their texts, words and vectors.
_MAX_CACHED_BLOCKS: Final = 30_000


@dataclass(eq=False)
class SectionWords:
    """The words of a section below its titles: their number, the places of each term, and the section's vector."""

    titles: str
    text: str
    vector: NDArray[np.float32] | None = None

    @property
    def whole(self) -> str:
        """The titles and the text."""
        return f"{self.titles}\n{self.text}"

    @cached_property
    def length(self) -> int:
        """The number of words."""
        return len(IDENTIFIER.findall(self.whole))

    @cached_property
    def title_terms(self) -> frozenset[str]:
        """The terms of the titles."""
        return frozenset(term for word in IDENTIFIER.findall(self.titles) for term in terms_of(word))

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """The places of each term among the words."""
        places: dict[str, list[int]] = {}
        for place, word in enumerate(IDENTIFIER.findall(self.whole)):
            for term in terms_of(word):
                places.setdefault(term, []).append(place)
        return places


@dataclass(eq=False)
class PageTree:
    """A page, or another block that stands on its own, with the blocks below, without those of pages inside."""

    page: Block
    below: Sequence[Block]
    excluded: frozenset[str] = frozenset()
    """Blocks that are left out of the texts, with what is below them."""
    _texts: dict[str, PageText] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _titles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    own_lines: dict[str, LineRun] = field(default_factory=dict)
    """The lines of each section without the larger sections inside."""
    words: dict[tuple[object, ...], SectionWords] = field(default_factory=dict)
    """The words of the sections, by root, lines and titles."""

    def without(self, excluded: frozenset[str]) -> PageTree:
        """The page without some blocks and what is below them."""
        inside = excluded.intersection(block.id for block in self.below)
        return PageTree(self.page, self.below, inside) if inside else self

    @cached_property
    def blocks(self) -> Mapping[str, Block]:
        """The blocks by id, in reading order."""
        shown = _own_blocks(self.page, [block for block in self.below if block.id not in self.excluded])
        return {block.id: block for block in (self.page, *shown)}

    def text(self, root: str) -> PageText:
        """The text of a block with all blocks below."""
        known = self._texts.get(root)
        if known is None:
            block = self.blocks[root]
            known = self._texts[root] = page_without(self.excluded, block, _own_blocks(block, self.below))
        return known

    def size(self, root: str) -> int:
        """The number of characters of a block with all blocks below."""
        if root not in self._sizes:
            source = self.text(root).source
            self._sizes[root] = source.chars(LineRun(1, len(source.lines))) if source.lines else 0
        return self._sizes[root]

    def around(self, root: str) -> str | None:
        """The nearest block around a block that stands on its own; None for the page."""
        above = self.blocks[root].parent if root != self.page.id else None
        while above is not None and above in self.blocks and self.blocks[above].type not in STANDING:
            above = self.blocks[above].parent if above != self.page.id else None
        return above if above in self.blocks else None

    def titles(self, root: str) -> tuple[str, ...]:
        """The titles from the page down to a block."""
        if root not in self._titles:
            above, title = self.around(root), self.blocks[root].title
            self._titles[root] = (*(self.titles(above) if above else ()), *([title] if title else []))
        return self._titles[root]

    @cached_property
    def roots(self) -> Sequence[str]:
        """The page and the blocks on it that stand on their own, in reading order."""
        return [block.id for block in self.blocks.values() if block.id == self.page.id or is_part(block)]


def is_part(block: Block) -> bool:
    """True if the block is a section of its page, with a title."""
    return block.type in STANDING and block.type not in PAGE_TYPES


@dataclass(eq=False)
class PageCache:
    """The pages read last, for each combination of access lists."""

    _trees: OrderedDict[tuple[object, ...], PageTree] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)
    _size: int = 0

    def trees(self, ids: Sequence[str], store: Store, filters: Filters) -> dict[str, PageTree]:
        """The readable pages among the given ids, each with its readable blocks."""
        with store.snapshot():
            version = (store.access_key(filters), replace(filters, readers=None), store.generation_for(filters))
            with self._lock:
                known = {page_id: tree for page_id in ids if (tree := self._trees.get((page_id, *version)))}
                for page_id in known:
                    self._trees.move_to_end((page_id, *version))
            missing = [page_id for page_id in ids if page_id not in known]
            read = _read(missing, store, filters) if missing else {}
        with self._lock:
            for page_id, tree in read.items():
                if (page_id, *version) not in self._trees:
                    self._trees[(page_id, *version)] = tree
                    self._size += 1 + len(tree.below)
            while self._size > _MAX_CACHED_BLOCKS and len(self._trees) > len(ids):
                self._size -= 1 + len(self._trees.popitem(last=False)[1].below)
        return {page_id: (known | read)[page_id] for page_id in ids if page_id in known or page_id in read}


def _read(ids: Sequence[str], store: Store, filters: Filters) -> dict[str, PageTree]:
    pages = store.blocks(ids, filters)
    below = store.descendants(ids, filters, limit=MAX_PAGE_BLOCKS, deepest=MAX_PAGE_DEPTH)
    return {page_id: PageTree(page, _own_blocks(page, below.get(page_id, ()))) for page_id, page in pages.items()}


def _own_blocks(page: Block, below: Sequence[Block]) -> list[Block]:
    """The blocks below a page without the blocks of the pages inside."""
    inside, own = {page.id}, []
    for block in below:
        if block.parent in inside:
            own.append(block)
            if block.type not in PAGE_TYPES:
                inside.add(block.id)
    return own
