"""The reading half of a store over tables: its files, the tree of blocks, links, activity, and rows to transfer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from satchel.models.block import Action, Activity, Block, Link, LinkKind
from satchel.models.search import Filters
from satchel.ports.block_tree import Step, steps_from
from satchel.storage.sql.code_tree import CodeTree
from satchel.storage.sql.file_reader import QUERIES, FileReader
from satchel.storage.sql.rows import ReadableRows, conditions, decoded, encoded, run
from satchel.storage.sql.tree import Tree, activity_from, micros

if TYPE_CHECKING:
    from satchel.models.block import Record
    from satchel.ports.transfer import TransferReader


class RelationalReader(FileReader):
    """Reads the tables; what a block's id names is looked for in the store's own blocks, then in files."""

    @contextmanager
    def _tree_of(self, block_id: str, filters: Filters) -> Iterator[Tree | CodeTree]:
        with self._readable(filters) as rows:
            tree = Tree(rows)
            yield tree if tree.shows(block_id) else CodeTree(rows)

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""
        return self.blocks([block_id], filters).get(block_id)

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""
        with self._readable(filters) as rows:
            blocks = Tree(rows).blocks(ids)
            return blocks | CodeTree(rows).blocks(block_id for block_id in ids if block_id not in blocks)

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        with self._readable(filters) as rows:
            return CodeTree(rows).blocks_of(path)

    def children(self, block_id: str, filters: Filters, *, limit: int) -> list[Block]:
        """The first children of a block."""
        with self._tree_of(block_id, filters) as tree:
            return tree.children(block_id, limit)

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and as many after it, the nearest first."""
        with self._tree_of(block_id, filters) as tree:
            return tree.siblings(block_id, count)

    def descendants(self, block_id: str, filters: Filters, *, limit: int, deepest: int) -> list[Block]:
        """What is below a block in reading order."""
        with self._tree_of(block_id, filters) as tree:
            return tree.descendants(block_id, limit, deepest)

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each block the way up from itself, as far as the readers may see."""
        with self._readable(filters) as rows:
            trails = Tree(rows).trails(ids)
            return trails | CodeTree(rows).trails(block_id for block_id in ids if block_id not in trails)

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """How many steps through the tree lead from a block to others; those that none lead to are left out."""
        steps = steps_from(block_id, self.trails([block_id, *ids], filters))
        return {other: steps[other] for other in ids if other in steps}

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks that came from a source."""
        with self._reading() as db:
            rows = run(db, "SELECT id FROM node WHERE workspace = ? AND origin = ?", origin)
            return [decoded(row[0]) for row in rows]

    # -- links and activity

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """What a block refers to, resolved by name where the workspace defines it."""
        with self._tree_of(block_id, filters) as tree:
            return tree.links_from(block_id, limit)

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """What refers to a block, or to its name."""
        with self._tree_of(block_id, filters) as tree:
            return tree.links_to(block_id, kind, limit)

    def tasks(
        self,
        filters: Filters,
        *,
        done: bool | None = None,
        due_before: datetime | None = None,
        due_after: datetime | None = None,
        limit: int = 50,
    ) -> list[Block]:
        """Blocks with a due date, the longest due first."""
        with self._readable(filters) as rows:
            return Tree(rows).tasks(
                done=done, due_before=due_before, due_after=due_after, types=filters.types, limit=limit
            )

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """What history says, the newest first."""
        with self._readable(filters) as rows:
            return _commits(rows, path=path, limit=limit)

    def recent(
        self,
        filters: Filters,
        *,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        actions: Sequence[str] = (),
        latest: bool = False,
        limit: int = 50,
    ) -> list[Activity]:
        """What was done to blocks and files, by one or by anybody, the newest first; with `latest` once for each."""
        with self._readable(filters) as rows:
            activity = Tree(rows).activity(
                actor=actor, since=since, until=until, actions=tuple(actions), latest=latest, limit=limit
            )
            if not actions or Action.COMMIT in actions:
                activity += _commits(rows, actor=actor, since=since, limit=limit)
        activity.sort(key=lambda entry: entry.timestamp, reverse=True)
        if latest:
            activity = list({entry.block: entry for entry in reversed(activity)}.values())[::-1]
            activity.sort(key=lambda entry: entry.timestamp, reverse=True)
        return [entry for entry in activity if until is None or entry.timestamp <= until][:limit]

    # -- everything, for its owner

    def records(self) -> Iterator[Record]:
        """Everything in the workspace that is not read from files, for whoever owns it."""
        from satchel.storage.sql.transfer import records

        with self._reading() as db:
            yield from records(db)

    @property
    def transfer(self) -> TransferReader:
        """Everything that is stored, for another store to take over."""
        from satchel.storage.sql.transfer import SqlTransferReader

        return SqlTransferReader(self._reading)


def _commits(
    rows: ReadableRows, *, actor: str | None = None, since: datetime | None = None, path: str | None = None, limit: int
) -> list[Activity]:
    """What history says of files, the newest first."""
    where, values = conditions(
        ("activity.path = ?", None if path is None else encoded(path)),
        ("activity.actor = ?", actor),
        ("activity.at >= ?", since and micros(since) // 10**6),
    )
    commits = rows.run(QUERIES["commits"], *values, where=where, limit=max(0, limit))
    return [activity_from(place, at * 10**6, *texts) for place, at, *texts in commits]
