"""Blocks as rows, and the tree of the readable blocks.

To a reader without access to the parent, a block is a root: nothing above the block shows, not even the depth.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice, zip_longest
from typing import Any, Final

from satchel.errors import InvalidInput
from satchel.models.block import PAGE_TYPES, Activity, Block, BlockType, Link, LinkKind, block_type, is_done
from satchel.ports.block_tree import Step
from satchel.storage.sql.file_reader import QUERIES
from satchel.storage.sql.rows import ReadableRows, decoded, id_bytes, known_id, plain

_MAX_DEPTH: Final = 100_000  # far deeper than any real tree; stops the climb through a cycle in damaged data
_MAX_ROWS: Final = 10**9  # keeps LIMIT within the integers of both databases
_ACTIVITY_PER_BLOCK: Final = 20
"""Rows per wanted block in the first query for the latest activity; a query without limit follows if needed."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TYPES: Final = {kind.value: kind for kind in BlockType}

FROM_NODES: Final = " FROM node JOIN file ON file.workspace = node.workspace AND file.id = node.file"

NODE_COLUMNS: Final = (
    "type, title, parent, position, summary, source_path, first_line, last_line, modified, metadata, due, done,"
    " inherits, origin"
)
"""The columns of a block's row, except the number and the id."""

COLUMNS: Final = (
    "node.id, node.type, node.title, node.parent, node.position, node.summary, node.source_path, node.first_line,"
    " node.last_line, node.modified, node.metadata, node.inherits, file.language, file.access"
)
"""The columns for `block_from`; the last is the access list."""

SELECT_BLOCKS: Final = (
    f"SELECT content.text, {COLUMNS}, around.access{FROM_NODES}"
    " JOIN content ON content.workspace = node.workspace AND content.file = node.file"
    " LEFT JOIN node AS above ON above.workspace = node.workspace AND above.id = node.parent"
    " LEFT JOIN file AS around ON around.workspace = node.workspace AND around.id = above.file WHERE node.workspace = ?"
)
"""Selects blocks with their texts, and the access list of the parent, if any; `block_with_text` reads a row."""


def micros(moment: datetime) -> int:
    """A time in stored form: microseconds since 1970."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def _moment(stored: int) -> datetime:
    return _EPOCH + stored * _MICROSECOND


def _due(metadata: Mapping[str, Any]) -> int | None:
    """The due time from the metadata, or None; a due date means the end of the day."""
    due = metadata.get("due")
    if not isinstance(due, str):
        return None
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(due)
        return micros(datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1))
    with suppress(ValueError, OverflowError):
        return micros(datetime.fromisoformat(due))
    return None


def block_with_text(row: Sequence[Any]) -> Block:
    """The block in a row of `SELECT_BLOCKS`."""
    return block_from(row[1:-1], decoded(row[0]))


def block_from(row: Sequence[Any], content: str = "") -> Block:
    """The block in a row of `COLUMNS`."""
    key, kind, title, parent, position, summary, source, first, last, *rest = row
    modified, metadata, inherits, language, _ = rest
    return Block(
        id=decoded(key),
        type=_TYPES.get(kind, kind),
        title=title,
        parent=None if parent is None else decoded(parent),
        position=position,
        summary=summary,
        source_path=decoded(source),
        start_line=first,
        end_line=last,
        last_modified=None if modified is None else _moment(modified),
        metadata=json.loads(metadata),
        inherits=bool(inherits),
        language=language,
        content=content,
    )


def node_row(block: Block, *, inherits: bool, origin: str) -> tuple[Any, ...]:
    """The values of `NODE_COLUMNS` for a block."""
    return (
        str(block_type(block.type)),
        plain(block.title),
        None if block.parent is None else id_bytes(block.parent),
        float(block.position),
        plain(block.summary),
        block.source_path.encode("utf-8", "replace"),
        block.start_line,
        block.end_line,
        None if block.last_modified is None else micros(block.last_modified),
        _metadata_text(block.metadata),
        _due(block.metadata),
        int(is_done(block.metadata)),
        int(inherits),
        origin,
    )


def _metadata_text(metadata: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("metadata", metadata, f"must be a JSON value ({error})") from None


def activity_from(block: bytes, at: int, *texts: str) -> Activity:
    """The activity in a row: block or path, time, and four texts."""
    actor, action, detail, reference = texts
    return Activity(
        block=decoded(block), actor=actor, action=action, timestamp=_moment(at), detail=detail, reference=reference
    )


def link_from(source: bytes, kind: str, target: bytes | None, name: str) -> Link:
    """The link in a row."""
    other = None if target is None else decoded(target)
    return Link(source=decoded(source), kind=LinkKind(kind), target=other, name=name)


class Tree:
    """The readable blocks of the workspace."""

    def __init__(self, rows: ReadableRows) -> None:
        self._rows = rows

    def readable(self, ids: Iterable[str]) -> list[str]:
        """The existing, readable blocks among the given ids."""
        keys = {block_id: known_id(block_id) for block_id in ids}
        self._load_access(filter(None, keys.values()))
        return [block_id for block_id, key in keys.items() if key is not None and self._rows.known[key]]

    def blocks(self, ids: Iterable[str]) -> dict[str, Block]:
        """The readable blocks among the given ids, with their content."""
        keys = _known_ids(ids)
        blocks = self._readable_blocks(self._rows.db.run_in(f"{SELECT_BLOCKS} AND node.id IN ({{keys}})", keys))
        self._rows.known.update((key, decoded(key) in blocks) for key in keys)
        return blocks

    def children(self, ids: Iterable[str], limit: int) -> dict[str, list[Block]]:
        """For each readable block with children the first of them, with their content."""
        if limit <= 0:
            return {}
        statement = (
            f"{SELECT_BLOCKS} AND node.parent = {{key}} AND {self._rows.filter.condition}"
            f" ORDER BY node.position, node.id LIMIT {min(limit, _MAX_ROWS)}"
        )
        return self._by_parent(self._rows.db.run_each(statement, _known_ids(ids), *self._rows.filter.values))

    def siblings(self, block_id: str, count: int) -> list[Block]:
        """The nearest siblings, equally many before and after, nearest first; a root has none."""
        own = self._rows.run(QUERIES["place"], known_id(block_id)).fetchone()
        if own is None or not self._shows_parent(own[-1]):
            return []
        beside = "node.parent = ? AND (node.position, node.id) {} (?, ?)"
        before = self.listed(beside.format("<"), own[:-1], "node.position DESC, node.id DESC", count)
        after = self.listed(beside.format(">"), own[:-1], "node.position, node.id", count)
        return alternating(before, after)

    def descendants(self, ids: Sequence[str], limit: int, deepest: int) -> dict[str, list[Block]]:
        """For each readable block the blocks below in reading order, at most `limit`, down to the depth `deepest`."""
        roots = self.readable(ids)
        below = self.children(roots, limit) if deepest else {}
        level = [child for children in below.values() for child in children]
        for _ in range(1, deepest):
            # Few rows of a database are wanted of many, so that its children are read with a limit. The rest of a
            # level is read by one statement: notes have many blocks with few children each.
            large = [block.id for block in level if block.type in PAGE_TYPES]
            below |= self.children(large, limit)
            below |= self._all_children([block.id for block in level if block.type not in PAGE_TYPES])
            level = [child for block in level for child in below.get(block.id, ())]
            if not level:
                break
        return {root: list(islice(_in_reading_order(root, below), limit)) for root in roots}

    def _all_children(self, ids: Sequence[str]) -> dict[str, list[Block]]:
        statement = f"{SELECT_BLOCKS} AND node.parent IN ({{keys}}) ORDER BY node.position, node.id"
        return self._by_parent(self._rows.db.run_in(statement, _known_ids(ids)))

    def _by_parent(self, rows: Iterable[Sequence[Any]]) -> dict[str, list[Block]]:
        """The readable blocks in rows of `SELECT_BLOCKS` by their readable parents."""
        children: dict[str, list[Block]] = {}
        for row in rows:
            if self._rows.shows(row[-2]) and self._shows_parent(row[-1]):
                block = block_with_text(row)
                children.setdefault(block.parent or "", []).append(block)
        return children

    def trails(self, ids: Iterable[str]) -> dict[str, tuple[Step, ...]]:
        """For each readable block the path from the block itself up to the highest readable ancestor."""
        keys = sorted(set(_known_ids(ids)))
        known: dict[bytes | None, tuple[bytes | None, Step]] = {}
        rows = self._rows.db.run_in(QUERIES["trails"], keys, self._rows.db.workspace)
        for key, parent, kind, title, access in rows:
            if self._rows.shows(access):
                known[key] = (parent, Step(decoded(key), kind, title))
        self._rows.known.update((key, key in known) for key in keys)
        return {decoded(key): tuple(_upwards(key, known)) for key in keys if key in known}

    def links_from(self, ids: Iterable[str], limit: int) -> dict[str, list[Link]]:
        """For each readable block with links the first of them, except links without a readable target."""
        return self._links("source", "target", ids, limit)

    def links_to(self, ids: Iterable[str], limit: int) -> dict[str, list[Link]]:
        """For each readable block the first links to the block."""
        return self._links("target", "source", ids, limit)

    def _links(self, end: str, other_end: str, ids: Iterable[str], limit: int) -> dict[str, list[Link]]:
        statement = QUERIES["links"].format(
            key="{key}", end=end, other_end=other_end, limit=max(0, limit), readable=self._rows.filter.condition
        )
        links: dict[str, list[Link]] = {}
        for own, access, *row in self._rows.db.run_each(statement, _known_ids(ids), *self._rows.filter.values):
            if self._rows.shows(access):
                links.setdefault(decoded(own), []).append(link_from(*row))
        return links

    def activity(self, where: str, values: Sequence[Any], *, latest: bool, limit: int) -> list[Activity]:
        """The activity under SQL conditions, newest first; with `latest` only the newest on each block."""
        newest: dict[object, Any] = {}
        for most in (limit * _ACTIVITY_PER_BLOCK, None) if latest else (limit,):
            up_to = "" if most is None else f" LIMIT {max(0, most)}"
            rows = self._rows.run(QUERIES["activity"], *values, where=where, limit=up_to).fetchall()
            for i, row in enumerate(rows):
                newest.setdefault(row[0] if latest else i, row)
            if most is None or len(rows) < most or len(newest) >= limit:
                break
        return [activity_from(*row) for row in islice(newest.values(), max(0, limit))]

    def listed(self, where: str, values: Sequence[Any], order: str, limit: int) -> list[Block]:
        """The first blocks under an SQL condition, with their content."""
        if limit <= 0:
            return []
        statement = f"{SELECT_BLOCKS} AND {where} AND {{readable}} ORDER BY {order} LIMIT {min(limit, _MAX_ROWS)}"
        return list(self._readable_blocks(self._rows.run(statement, *values)).values())

    def _readable_blocks(self, rows: Iterable[Sequence[Any]]) -> dict[str, Block]:
        """The readable blocks in rows of `SELECT_BLOCKS` by id; the id of an unreadable parent is removed."""
        blocks: dict[str, Block] = {}
        for row in rows:
            if self._rows.shows(row[-2]):
                block = block_with_text(row)
                stays = block.parent is None or self._rows.allowed is None or self._shows_parent(row[-1])
                blocks[block.id] = block if stays else replace(block, parent=None)
        return blocks

    def _shows_parent(self, access: int | None) -> bool:
        """True if a block's parent exists and is readable, by the access list of the parent."""
        return access is not None and self._rows.shows(access)

    def _load_access(self, keys: Iterable[bytes]) -> None:
        """Determine the readable blocks among the keys."""
        new = sorted(set(keys) - self._rows.known.keys())
        self._rows.known.update(dict.fromkeys(new, False))
        statement = f"SELECT node.id, file.access{FROM_NODES} WHERE node.workspace = ? AND node.id IN ({{keys}})"
        for key, access in self._rows.db.run_in(statement, new):
            self._rows.known[key] = self._rows.shows(access)


def _known_ids(ids: Iterable[str]) -> list[bytes]:
    return [key for key in map(known_id, ids) if key is not None]


def alternating(before: Iterable[Block], after: Iterable[Block]) -> list[Block]:
    """The blocks of both sequences in turn, until both are exhausted."""
    return [block for pair in zip_longest(before, after) for block in pair if block is not None]


def _upwards(key: bytes, known: Mapping[bytes | None, tuple[bytes | None, Step]]) -> Iterator[Step]:
    above: bytes | None = key
    for _ in range(_MAX_DEPTH):
        if above not in known:
            return
        above, step = known[above]
        yield step


def _in_reading_order(block_id: str, children: Mapping[str, Sequence[Block]]) -> Iterator[Block]:
    """The blocks below a block, each before its children."""
    waiting = list(reversed(children.get(block_id, ())))
    while waiting:
        block = waiting.pop()
        yield block
        waiting += reversed(children.get(block.id, ()))
