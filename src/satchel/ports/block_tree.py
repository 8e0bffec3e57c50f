"""The store as a tree of blocks: what is above, below and beside a block, and what it is linked to.

Every read that takes filters returns only what the filters' readers may read. A block whose parent they may not read is
a root to them.
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
    """A block on the way up from another: enough to name it."""

    id: str
    type: str
    title: str


def steps_from(block_id: str, trails: Mapping[str, Sequence[Step]]) -> dict[str, int]:
    """The number of steps from a block to each block with which it shares an ancestor; the others are left out."""
    up = {step.id: i for i, step in enumerate(trails.get(block_id, ()))}
    distances: dict[str, int] = {}
    for block, trail in trails.items():
        meeting = next(((i, step.id) for i, step in enumerate(trail) if step.id in up), None)
        if meeting is not None:
            distances[block] = meeting[0] + up[meeting[1]]
    return distances


class BlockTree(Protocol):
    """Reads blocks, those of files and the workspace's own, and their links."""

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""

    def children(self, block_id: str, filters: Filters, *, limit: int) -> list[Block]:
        """The first children of a block."""

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and as many after it, the nearest first."""

    def descendants(self, block_id: str, filters: Filters, *, limit: int, deepest: int) -> list[Block]:
        """The blocks below a block in reading order, down to the depth `deepest`."""

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each block that may be read the way up from itself, as far as that may be read."""

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """The number of steps through the readable tree from a block to others; unreachable ones are left out."""

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """The links that start at a block, resolved by name where the workspace defines the name."""

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """The links that lead to a block or mention its name."""

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
        """True if there are blocks that were not read from files."""

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks that came from a source."""


class BlockTreeWriter(Protocol):
    """Changes the workspace's own blocks and links; part of one commit."""

    def put(self, block: Block, outline: Outline, origin: str = "") -> None:
        """Store a block in place of what was stored under its id; its children, links and grants stay."""

    def move(self, block_id: str, parent: str | None, position: float | None = None) -> None:
        """Move a block, with everything below it, to another parent."""

    def delete(self, block_id: str) -> int:
        """Remove a block and everything below it; the number of removed blocks."""

    def remove(self, block_id: str) -> None:
        """Remove a block alone; its children become roots that are as closed as before."""

    def link(self, link: Link) -> None:
        """Link a block to another, or to a name that no block has."""

    def unlink(self, block_id: str, *, kind: LinkKind | None = None, target: str | None = None) -> int:
        """Remove links that start at a block; the number of removed links."""
