"""What is kept beside files and blocks, as rows: members of groups, grants, links, deeds and commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from satchel.models.access import Effect, Grant
from satchel.models.block import Activity, Link, LinkKind
from satchel.ports.transfer import Member, RowKind, TransferRow
from satchel.storage.sql.column_codecs import path_bytes
from satchel.storage.sql.file_access import is_file_key, path_key, path_of
from satchel.storage.sql.node import id_bytes, id_text, micros, moment_of

_MICROS: Final = 10**6


class Table(NamedTuple):
    """A table whose rows are things of one kind: its columns, what orders it and where that begins."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    start: tuple[Any, ...]
    read: Callable[..., TransferRow]
    written: Callable[[Any], tuple[Any, ...]]


def _grant(block: bytes, who: str, effect: str) -> Grant:
    is_path = is_file_key(block)
    named = path_of(block) if is_path else id_text(block)
    return Grant(block=named, principal=who, effect=Effect(effect), is_path=is_path)


def _grant_row(grant: Grant) -> tuple[Any, ...]:
    return path_key(grant.block) if grant.is_path else id_bytes(grant.block), grant.principal, grant.effect.value


def _link(source: bytes, kind: str, target: bytes | None, name: str) -> Link:
    return Link(
        source=id_text(source), kind=LinkKind(kind), target=None if target is None else id_text(target), name=name
    )


def _link_row(link: Link) -> tuple[Any, ...]:
    return id_bytes(link.source), link.kind.value, None if link.target is None else id_bytes(link.target), link.name


def _activity(block: bytes, at: int, *more: str) -> Activity:
    actor, action, detail, reference = more
    return Activity(
        block=id_text(block), actor=actor, action=action, timestamp=moment_of(at), detail=detail, reference=reference
    )


def _deed_row(one: Activity) -> tuple[Any, ...]:
    return path_bytes(one.block), micros(one.timestamp), one.actor, one.action, one.detail, one.reference


def _commit(path: bytes, at: int, *more: str) -> Activity:
    return _activity(path, at * _MICROS, *more)


def _commit_row(one: Activity) -> tuple[Any, ...]:
    block, at, *more = _deed_row(one)
    return block, at // _MICROS, *more


_WHAT_WAS_DONE: Final = ("at", "actor", "action", "detail", "reference")
TABLES: Final = {
    RowKind.MEMBERS: Table("member", ("team", "person"), ("team", "person"), ("", ""), Member, tuple),
    RowKind.GRANTS: Table(
        "permit", ("block", "principal", "effect"), ("block", "principal"), (b"", ""), _grant, _grant_row
    ),
    RowKind.LINKS: Table("bond", ("source", "kind", "target", "name"), ("rowid",), (0,), _link, _link_row),
    RowKind.ACTIVITY: Table("deed", ("block", *_WHAT_WAS_DONE), ("rowid",), (0,), _activity, _deed_row),
    RowKind.COMMITS: Table("activity", ("path", *_WHAT_WAS_DONE), ("rowid",), (0,), _commit, _commit_row),
}
