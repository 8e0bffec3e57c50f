"""Reading the tree of blocks, as somebody may see it.

A block whose parent may not be read is a root to whoever may not: nothing of what is above it shows, not even how much
there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.models.block import Activity, Block, Link
from satchel.ports.block_tree import Step
from satchel.storage.sql.access import AccessFilter
from satchel.storage.sql.rows import (
    COLUMNS,
    FROM_NODES,
    FROM_TEXTS,
    activity_from,
    batches,
    block_from,
    conditions,
    id_text,
    known_id,
    link_from,
    marks,
    micros,
)
from satchel.storage.sql.statements import QUERIES

if TYPE_CHECKING:
    from satchel.storage.sql.rows import Database

_DEEPEST: Final = 100_000
_MOST_ROWS: Final = 10**9
_FOR_EACH: Final = 20
"""So many deeds to a block are looked at, in the mean, to find the latest of each."""


class ActivityQuery(NamedTuple):
    """Whose deeds, of when and of which kind; with `latest` only the last to each block."""

    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    actions: tuple[str, ...] = ()
    latest: bool = False


class Tree:
    """The blocks that are kept in the store itself; `allowed` are the access lists that let the reader in."""

    def __init__(self, db: Database, allowed: frozenset[int] | None, access_filter: AccessFilter) -> None:
        self._db = db
        self._allowed = allowed
        self._filter = access_filter
        self._looked_at: dict[bytes, bool] = {}

    def shows(self, block_id: str) -> bool:
        """Whether there is such a block that may be read."""
        key = known_id(block_id)
        return key is not None and self._readable(key)

    def blocks(self, ids: Sequence[str]) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""
        found: dict[str, Block] = {}
        for some in batches([key for key in map(known_id, ids) if key is not None]):
            rows = self._db.execute(
                f"SELECT content.text, {COLUMNS}{FROM_TEXTS} WHERE node.workspace = ? AND node.id IN ({marks(some)})",
                (self._db.workspace, *some),
            )
            for text, *row in rows:
                if self._sees(row):
                    block = block_from(row, text.decode("utf-8", "surrogateescape"))
                    found[block.id] = block
        return {block.id: block for block in self._without_hidden_parents(list(found.values()))}

    def children(self, block_id: str, limit: int) -> list[Block]:
        """The first children, with their content; what may not be read has none."""
        key = known_id(block_id)
        if key is None or not self._readable(key):
            return []
        return self._listed("node.parent = ?", (key,), "node.position, node.id", limit)

    def siblings(self, block_id: str, count: int) -> list[Block]:
        """The nearest siblings, as many before as after, the nearest first; a root has none."""
        place = "SELECT parent, position, id FROM node WHERE workspace = ? AND id = ?"
        own = self._db.execute(place, (self._db.workspace, known_id(block_id))).fetchone()
        if own is None or own[0] is None or not self._readable(own[0]) or not self._readable(own[2]):
            return []
        beside = "node.parent = ? AND (node.position, node.id) {} (?, ?)"
        before = self._listed(beside.format("<"), own, "node.position DESC, node.id DESC", count)
        after = self._listed(beside.format(">"), own, "node.position, node.id", count)
        return [block for pair in zip_longest(before, after) for block in pair if block is not None]

    def descendants(self, block_id: str, limit: int, deepest: int) -> list[Block]:
        """What is below a block in reading order, as deep and as much as asked for."""
        found: list[Block] = []
        waiting = [(child, 1) for child in reversed(self.children(block_id, limit))] if deepest > 0 else []
        while waiting and len(found) < limit:
            block, depth = waiting.pop()
            found.append(block)
            if depth < deepest:
                below = self.children(block.id, limit - len(found))
                waiting += [(child, depth + 1) for child in reversed(below)]
        return found

    def trails(self, ids: Iterable[str]) -> dict[str, tuple[Step, ...]]:
        """For each block the way up from itself, as far as it may be read."""
        wanted = {key: id_text(key) for key in map(known_id, ids) if key is not None}
        known: dict[bytes, tuple[bytes | None, Step] | None] = {}
        for some in batches(sorted(wanted)):
            statement = QUERIES["trails"].format(ids=marks(some))
            rows = self._db.execute(statement, (self._db.workspace, *some, self._db.workspace))
            for key, parent, kind, title, access in rows:
                if self._allowed is None or access in self._allowed:
                    known[key] = (parent, Step(id_text(key), kind, title))
        return {text: tuple(_upwards(key, known)) for key, text in wanted.items() if key in known}

    def links_from(self, ids: Sequence[str], limit: int) -> list[Link]:
        """What blocks are joined to; a link that leads nowhere, or where the reader may not go, does not show."""
        return self._links("source", "target", ids, limit)

    def links_to(self, block_id: str, limit: int) -> list[Link]:
        """What is joined to a block."""
        return self._links("target", "source", [block_id], limit)

    def _links(self, end: str, other_end: str, ids: Sequence[str], limit: int) -> list[Link]:
        keys = [key for key in map(known_id, ids) if key is not None and self._readable(key)]
        found: list[Link] = []
        for some in batches(keys):
            left = max(0, limit - len(found))
            statement = QUERIES["links"].format(
                end=end, other_end=other_end, ids=marks(some), readable=self._filter.condition, limit=left
            )
            rows = self._db.execute(statement, (self._db.workspace, *some, *self._filter.values))
            found += [link_from(*row) for row in rows]
            if len(found) >= limit:
                return found
        return found

    def tasks(
        self, *, done: bool | None, due_before: int | None, due_after: int | None, types: Sequence[str], limit: int
    ) -> list[Block]:
        """Blocks with a due date: those that are due before or after a moment, done or not, the longest due first."""
        where, values = conditions(
            ("node.done = ?", None if done is None else int(done)),
            ("node.due <= ?", due_before),
            ("node.due > ?", due_after),
        )
        if types:
            where.append(f"node.type IN ({marks(types)})")
        which = " AND ".join(["node.due IS NOT NULL", *where])
        return self._listed(which, (*values, *types), "node.due, node.id", limit)

    def activity(self, query: ActivityQuery, limit: int) -> list[Activity]:
        """What somebody did, the newest first."""
        where, values = conditions(
            ("deed.workspace = ?", self._db.workspace),
            ("deed.actor = ?", query.actor),
            ("deed.at >= ?", None if query.since is None else micros(query.since)),
            ("deed.at <= ?", None if query.until is None else micros(query.until)),
        )
        if query.actions:
            where.append(f"deed.action IN ({marks(query.actions)})")
        which = " AND ".join([*where, self._filter.condition])
        bound = (*values, *query.actions, *self._filter.values)
        most = limit * _FOR_EACH if query.latest else limit
        found = self._newest_activity(which, bound, query.latest, limit, most)
        return found if found is not None else self._newest_activity(which, bound, True, limit, None) or []

    def _newest_activity(
        self, which: str, values: Sequence[Any], latest: bool, limit: int, most: int | None
    ) -> list[Activity] | None:
        """The deeds among the `most` newest; None when there may be more that count."""
        up_to = "" if most is None else f" LIMIT {max(0, most)}"
        rows = self._db.execute(QUERIES["activity"].format(which=which, limit=up_to), values).fetchall()
        found: list[Activity] = []
        seen: set[bytes] = set()
        for row in rows:
            if len(found) >= limit:
                return found
            if latest and row[0] in seen:
                continue
            seen.add(row[0])
            found.append(activity_from(*row))
        is_all = most is None or len(rows) < most
        return found if is_all or len(found) >= limit else None

    def _listed(self, where: str, values: Sequence[Any], order: str, limit: int) -> list[Block]:
        if limit <= 0:
            return []
        rows = self._db.execute(
            f"SELECT content.text, {COLUMNS}{FROM_TEXTS} WHERE node.workspace = ? AND {where}"
            f" AND {self._filter.condition} ORDER BY {order} LIMIT {min(limit, _MOST_ROWS)}",
            (self._db.workspace, *values, *self._filter.values),
        )
        return self._without_hidden_parents(
            [block_from(row, text.decode("utf-8", "surrogateescape")) for text, *row in rows]
        )

    def _without_hidden_parents(self, blocks: list[Block]) -> list[Block]:
        """The blocks as the reader may know them: one whose parent may not be read has none."""
        parents = {key for block in blocks if block.parent is not None and (key := known_id(block.parent)) is not None}
        if self._allowed is None or not parents:
            return blocks
        self._look_at(parents - self._looked_at.keys())
        return [
            block
            if block.parent is None or self._looked_at.get(known_id(block.parent) or b"", False)
            else replace(block, parent=None)
            for block in blocks
        ]

    def _look_at(self, keys: Iterable[bytes]) -> None:
        """Find out which of the blocks may be read."""
        for some in batches(sorted(keys)):
            self._looked_at |= dict.fromkeys(some, False)
            statement = (
                f"SELECT node.id, file.access{FROM_NODES} WHERE node.workspace = ? AND node.id IN ({marks(some)})"
            )
            for key, access in self._db.execute(statement, (self._db.workspace, *some)):
                self._looked_at[key] = self._sees((access,))

    def _sees(self, row: Sequence[Any]) -> bool:
        return self._allowed is None or row[-1] in self._allowed

    def _readable(self, key: bytes) -> bool:
        if key not in self._looked_at:
            self._look_at([key])
        return self._looked_at[key]


def _upwards(key: bytes, known: Mapping[bytes, tuple[bytes | None, Step] | None]) -> Iterator[Step]:
    above: bytes | None = key
    for _ in range(_DEEPEST):
        entry = known.get(above) if above is not None else None
        if entry is None:
            return
        above, step = entry
        yield step
