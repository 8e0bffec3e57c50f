"""Who may read what, as it is kept: the distinct access lists, and for each file the number of its list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from satchel.models.access import DEFAULT, ROOT, Access, DefaultAccess

if TYPE_CHECKING:
    from satchel.storage.sql.database import Database

_ROOT_KEY: Final = "*"


def access_number(db: Database, access: Access) -> int:
    """The number of an access list, which is kept once however many files have it."""
    key = _key(access)
    row = db.execute("SELECT id FROM access WHERE workspace = ? AND readers = ?", (db.workspace, key)).fetchone()
    if row is None:
        added = "INSERT INTO access (workspace, readers) VALUES (?,?) RETURNING id"
        return int(db.execute(added, (db.workspace, key)).get)
    return int(row[0])


def access_of(db: Database, number: int) -> Access:
    """The access list of that number."""
    found = db.execute("SELECT readers FROM access WHERE workspace = ? AND id = ?", (db.workspace, number))
    return _access(str(found.get))


def _key(access: Access) -> str:
    if access == ROOT:
        return _ROOT_KEY
    if not access.deny:
        return json.dumps(sorted(access.allow))
    return json.dumps({"allow": sorted(access.allow), "deny": sorted(access.deny)})


def _access(key: str) -> Access:
    if key == _ROOT_KEY:
        return ROOT
    kept = json.loads(key)
    if isinstance(kept, list):
        return Access(frozenset(kept))
    return Access(frozenset(kept["allow"]), frozenset(kept["deny"]))


def access_lists(db: Database) -> dict[int, Access]:
    """All access lists by their numbers."""
    rows: list[Any] = db.execute("SELECT id, readers FROM access WHERE workspace = ?", (db.workspace,)).fetchall()
    return {number: _access(text) for number, text in rows}


def default_access(db: Database) -> DefaultAccess:
    """Who may read what nothing was said about."""
    found: list[Any] = db.execute(
        "SELECT name, value FROM fact WHERE workspace = ? AND name IN ('multi_user', 'default_access')",
        (db.workspace,),
    ).fetchall()
    rows = dict(found)
    if not int(rows.get("multi_user") or 0):
        return DefaultAccess.OWNER
    return DefaultAccess(rows.get("default_access") or DefaultAccess.DENY)


def letting_in(
    readers: frozenset[str] | None, default: DefaultAccess, lists: Mapping[int, Access]
) -> frozenset[int] | None:
    """The numbers of the lists that let one who reads under these names in; None when all do."""
    if readers is None and default is DefaultAccess.OWNER:
        return None
    asking = readers or frozenset()
    if default is DefaultAccess.OWNER or (default is DefaultAccess.ALLOW and asking):
        asking |= {DEFAULT}
    return frozenset(number for number, access in lists.items() if access.lets_in(asking))
