"""Reading the tree of blocks, as somebody may see it.

A block whose parent may not be read is a root to whoever may not: nothing of what is above it shows, not even how much
there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.models.block import Activity, Block, Link, LinkKind
from satchel.ports.block_tree import Step
from satchel.storage.sql.access import AccessFilter
from satchel.storage.sql.database import batches, marks
from satchel.storage.sql.node import COLUMNS, FROM_NODES, activity_from, block_from, id_text, known_id, micros

if TYPE_CHECKING:
    from satchel.storage.sql.database import Database

_FROM_TEXTS: Final = f"{FROM_NODES} JOIN content ON content.workspace = node.workspace AND content.file = node.file"
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
                f"SELECT content.text, {COLUMNS}{_FROM_TEXTS} WHERE node.workspace = ? AND node.id IN ({marks(some)})",
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
        both = [before[i : i + 1] + after[i : i + 1] for i in range(max(len(before), len(after)))]
        return [block for pair in both for block in pair]

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
            rows = self._db.execute(
                "WITH RECURSIVE above (id, parent, type, title, access) AS ("
                f"SELECT node.id, node.parent, node.type, node.title, file.access{FROM_NODES}"
                f" WHERE node.workspace = ? AND node.id IN ({marks(some)})"
                " UNION SELECT node.id, node.parent, node.type, node.title, file.access FROM above"
                " JOIN node ON node.workspace = ? AND node.id = above.parent"
                " JOIN file ON file.workspace = node.workspace AND file.id = node.file"
                ") SELECT id, parent, type, title, access FROM above",
                (self._db.workspace, *some, self._db.workspace),
            )
            for key, parent, kind, title, access in rows:
                if self._allowed is None or access in self._allowed:
                    known[key] = (parent, Step(id_text(key), kind, title))
        return {text: tuple(_upwards(key, known)) for key, text in wanted.items() if key in known}

    def links_from(self, ids: Sequence[str], limit: int) -> list[Link]:
        """What blocks are joined to; a link that leads nowhere, or where the reader may not go, does not show."""
        return self._links("bond.source IN ({})", "bond.target", ids, limit)

    def links_to(self, block_id: str, limit: int) -> list[Link]:
        """What is joined to a block."""
        return self._links("bond.target IN ({})", "bond.source", [block_id], limit)

    def _links(self, where: str, other: str, ids: Sequence[str], limit: int) -> list[Link]:
        keys = [key for key in map(known_id, ids) if key is not None and self._readable(key)]
        found: list[Link] = []
        for some in batches(keys):
            rows = self._db.execute(
                f"SELECT bond.source, bond.kind, bond.target, bond.name FROM bond"
                f" JOIN node ON node.workspace = bond.workspace AND node.id = {other}"
                " JOIN file ON file.workspace = node.workspace AND file.id = node.file"
                f" WHERE bond.workspace = ? AND {where.format(marks(some))}"
                f" AND {self._filter.condition}"
                " ORDER BY bond.kind != 'relation', bond.kind, bond.source, bond.target"
                f" LIMIT {max(0, limit - len(found))}",
                (self._db.workspace, *some, *self._filter.values),
            )
            for source, kind, target, name in rows:
                found.append(Link(source=id_text(source), kind=LinkKind(kind), target=id_text(target), name=name))
            if len(found) >= limit:
                return found
        return found

    def tasks(
        self, *, done: bool | None, due_before: int | None, due_after: int | None, types: Sequence[str], limit: int
    ) -> list[Block]:
        """Blocks with a due date: those that are due before or after a moment, done or not, the longest due first."""
        where: list[str] = ["node.due IS NOT NULL"]
        values: list[int] = []
        for condition, value in (
            ("node.done = ?", None if done is None else int(done)),
            ("node.due <= ?", due_before),
            ("node.due > ?", due_after),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        if types:
            where.append(f"node.type IN ({marks(types)})")
        return self._listed(" AND ".join(where), (*values, *types), "node.due, node.id", limit)

    def activity(self, query: ActivityQuery, limit: int) -> list[Activity]:
        """What somebody did, the newest first."""
        where: list[str] = ["deed.workspace = ?"]
        values: list[str | int] = [self._db.workspace]
        for condition, value in (
            ("deed.actor = ?", query.actor),
            ("deed.at >= ?", None if query.since is None else micros(query.since)),
            ("deed.at <= ?", None if query.until is None else micros(query.until)),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        if query.actions:
            where.append(f"deed.action IN ({marks(query.actions)})")
        where.append(self._filter.condition)
        told = (*values, *query.actions, *self._filter.values)
        most = limit * _FOR_EACH if query.latest else limit
        found = self._newest_activity(where, told, query.latest, limit, most)
        return found if found is not None else self._newest_activity(where, told, True, limit, None) or []

    def _newest_activity(
        self, where: Sequence[str], values: Sequence[Any], latest: bool, limit: int, most: int | None
    ) -> list[Activity] | None:
        """The deeds among the `most` newest; None when there may be more that count."""
        rows = self._db.execute(
            "SELECT deed.block, deed.at, deed.actor, deed.action, deed.detail, deed.reference FROM deed"
            " JOIN node ON node.workspace = deed.workspace AND node.id = deed.block"
            f" JOIN file ON file.workspace = node.workspace AND file.id = node.file WHERE {' AND '.join(where)}"
            f" ORDER BY deed.at DESC, deed.rowid DESC{'' if most is None else f' LIMIT {max(0, most)}'}",
            values,
        ).fetchall()
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
            f"SELECT content.text, {COLUMNS}{_FROM_TEXTS} WHERE node.workspace = ? AND {where}"
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
