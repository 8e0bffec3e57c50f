"""Everything that a workspace holds beside its files, one record after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from satchel.models.access import DefaultAccess, Effect, Grant, Group
from satchel.models.block import Activity, Link, LinkKind
from satchel.models.records import Policy, Record
from satchel.storage.sql.access import default_access
from satchel.storage.sql.file_access import is_file_key, path_of
from satchel.storage.sql.node import COLUMNS, FROM_NODES, block_from, id_text, moment_of

if TYPE_CHECKING:
    from satchel.storage.sql.database import Database


def records(db: Database) -> Iterator[Record]:
    """Blocks before what refers to them, in an order that is the same each time."""
    default = default_access(db)
    if default is not DefaultAccess.OWNER:
        yield Policy(default=default)
    yield from _groups(db)
    here = (db.workspace,)
    rows: Any = db.execute(
        f"SELECT content.text, {COLUMNS}{FROM_NODES}"
        " JOIN content ON content.workspace = node.workspace AND content.file = node.file"
        " WHERE node.workspace = ? ORDER BY node.file",
        here,
    )
    for text, *row in rows:
        yield block_from(row, text.decode("utf-8", "surrogateescape"))
    rows = db.execute(
        "SELECT source, kind, target, name FROM bond WHERE workspace = ? ORDER BY source, kind, target, name", here
    )
    for source, kind, target, name in rows:
        leads = None if target is None else id_text(target)
        yield Link(source=id_text(source), kind=LinkKind(kind), target=leads, name=name)
    rows = db.execute("SELECT block, principal, effect FROM permit WHERE workspace = ? ORDER BY block, principal", here)
    for block, who, effect in rows:
        is_path = is_file_key(block)
        named = path_of(block) if is_path else id_text(block)
        yield Grant(block=named, principal=who, effect=Effect(effect), is_path=is_path)
    rows = db.execute(
        "SELECT block, at, actor, action, detail, reference FROM deed WHERE workspace = ? ORDER BY at, rowid", here
    )
    for block, at, actor, action, detail, reference in rows:
        yield Activity(
            block=id_text(block), actor=actor, action=action, timestamp=moment_of(at), detail=detail,
            reference=reference,
        )  # fmt: skip


def _groups(db: Database) -> Iterator[Group]:
    members: dict[str, list[str]] = {}
    rows = db.execute("SELECT team, person FROM member WHERE workspace = ? ORDER BY team, person", (db.workspace,))
    for team, person in rows:
        members.setdefault(team, []).append(person)
    for team, people in members.items():
        yield Group(name=team, members=tuple(people))
