"""The store as a tree of blocks: parents, children, siblings and links of a block.

Every read with filters returns only blocks with access for the filters' readers. A block whose parent is hidden from
the readers is a root to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from satchel.models.block import Block, Link, LinkKind
    from satchel.models.outline import Outline
    from satchel.models.search import Filters


class Step(NamedTuple):
    """A block on the path from another block to the root: id, type and title."""

    id: str
    type: str
    title: str


def steps_from(block_id: str, trails: Mapping[str, Sequence[Step]]) -> dict[str, int]:
    """The number of steps from a block to each block with a common ancestor; all remaining blocks are left out."""
    up = {step.id: i for i, step in enumerate(trails.get(block_id, ()))}
    distances: dict[str, int] = {}
    for block, trail in trails.items():
        meeting = next(((i, step.id) for i, step in enumerate(trail) if step.id in up), None)
        if meeting is not None:
            distances[block] = meeting[0] + up[meeting[1]]
    return distances


class BlockTree(Protocol):
    """Reads blocks of files, blocks of the workspace, and their links."""

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block with the given id, including content."""

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """The readable blocks among the given ids, with their content."""

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""

    def children(self, ids: Sequence[str], filters: Filters, *, limit: int) -> dict[str, list[Block]]:
        """For each readable block with children the first of them."""

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and `count` after the block, nearest first."""

    def descendants(self, ids: Sequence[str], filters: Filters, *, limit: int, deepest: int) -> dict[str, list[Block]]:
        """For each readable block the blocks below in reading order, at most `limit`, down to the depth `deepest`."""

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each readable block the path from the block itself up to the highest readable ancestor."""

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """The number of steps through the readable tree from a block to each id; unreachable blocks are left out."""

    def links_from(self, ids: Sequence[str], filters: Filters, *, limit: int = 50) -> dict[str, list[Link]]:
        """For each block with links the first of them, resolved by name where the workspace defines the name."""

    def links_to(self, ids: Sequence[str], filters: Filters, *, limit: int = 50) -> dict[str, list[Link]]:
        """For each block the first links to the block or to the block's name."""

    def named(self, name: str, filters: Filters, *, limit: int = 20) -> list[Block]:
        """The blocks that people call so: by title, alias or path, or by the beginning of their id."""

    def pages(self, filters: Filters, *, limit: int = 50) -> list[Block]:
        """The pages, databases, boards and sessions, by title."""

    def tasks(
        self,
        filters: Filters,
        *,
        done: bool | None = None,
        due_before: datetime | None = None,
        due_after: datetime | None = None,
        limit: int = 50,
    ) -> list[Block]:
        """The blocks with a due date, the longest due first."""

    def holds_blocks(self) -> bool:
        """True if the store has blocks beside the blocks of indexed files."""

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks from a source."""


class BlockTreeWriter(Protocol):
    """Changes the workspace's own blocks and links within a commit."""

    def put(self, block: Block, outline: Outline, origin: str = "") -> None:
        """Store a block and replace any stored block with the same id; children, links and grants stay."""

    def move(self, block_id: str, parent: str | None, position: float | None = None) -> None:
        """Move a block, with everything below the block, to another parent."""

    def delete(self, block_id: str) -> int:
        """Remove a block and everything below the block; return the number of removed blocks."""

    def remove(self, block_id: str) -> None:
        """Remove a block alone; the children become roots with the same access restrictions as before."""

    def link(self, link: Link) -> None:
        """Link a block to another block, or to a name without a block."""

    def unlink(self, block_id: str, *, kind: LinkKind | None = None, target: str | None = None) -> int:
        """Remove links from a block; return the number of removed links."""
