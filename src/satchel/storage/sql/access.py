"""Who may read what, as rows: access lists, the condition that limits a statement to them, and grants at paths.

Each distinct access list is a row, and each file and block has the number of its list. Grants at files and folders are
stored under the path, so that they outlive the file: one that comes back is as closed as it was.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import InvalidInput
from satchel.models.access import DEFAULT, ROOT, Access, DefaultAccess, Effect, Grant
from satchel.storage.sql.rows import FIRST_PATH, IN_FILES, id_bytes, id_text, known_id

if TYPE_CHECKING:
    from satchel.storage.sql.rows import Database

_ROOT_KEY: Final = "*"
_PATH_KEY: Final = b"\0/"
"""How the key of a grant at a path begins: no block goes by such an id."""


class AccessFilter(NamedTuple):
    """SQL condition on `file` and the values of its marks; it stands behind the other marks of a statement."""

    condition: str
    values: tuple[Any, ...] = ()


UNRESTRICTED: Final = AccessFilter("true")


def filter_by_lists(access: Collection[int] | None) -> AccessFilter:
    """SQL condition that limits rows to the given access lists (None: no limit)."""
    if access is None:
        return UNRESTRICTED
    return AccessFilter(f"file.access IN ({','.join(map(str, sorted(access))) or 'NULL'})")


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


def readable_lists(
    readers: frozenset[str] | None, default: DefaultAccess, lists: Mapping[int, Access]
) -> frozenset[int] | None:
    """The numbers of the access lists that allow one of these readers; None if all do."""
    if readers is None and default is DefaultAccess.OWNER:
        return None
    asking = readers or frozenset()
    if default is DefaultAccess.OWNER or (default is DefaultAccess.ALLOW and asking):
        asking |= {DEFAULT}
    return frozenset(number for number, access in lists.items() if access.lets_in(asking))


def is_file_key(key: bytes) -> bool:
    """Whether a grant is one at a path."""
    return key.startswith(_PATH_KEY)


def path_of(key: bytes) -> str:
    """The path of a file, or of a folder with `/` at its end; `/` for all files."""
    return id_text(key[len(_PATH_KEY) :]) or "/"


def path_key(path: str) -> bytes:
    """The key for what is granted at a path, whether or not anything is there: a folder's ends in `/`."""
    kept = id_bytes(path)
    if kept in (b"/", b".", b"./"):
        return _PATH_KEY
    if b"\0" in kept or any(part in (b"", b".", b"..") for part in kept.removesuffix(b"/").split(b"/")):
        raise InvalidInput("block", path, "must be a path below the folder, as docs/a.pdf, docs/ or / for all files")
    return _PATH_KEY + kept


class FileAccess:
    """The grants at paths, within one commit or one view."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def key(self, path: str) -> bytes | None:
        """The key for what is granted at a file, or at a folder in which there are files; None for neither."""
        kept = known_id(path)
        if kept is None:
            return None
        here = self._db.workspace
        a_file = f"SELECT 1 FROM file WHERE workspace = ? AND path = ? AND {IN_FILES}"
        if self._db.execute(a_file, (here, kept, FIRST_PATH)).fetchone():
            return _PATH_KEY + kept
        folder = kept.rstrip(b"/") + b"/"
        if folder in (b"/", b"./"):
            return _PATH_KEY
        below = "SELECT 1 FROM file WHERE workspace = ? AND path > ? AND path < ? LIMIT 1"
        if self._db.execute(below, (here, *_below(folder))).fetchone():
            return _PATH_KEY + folder
        # What was granted can be taken back though the files are gone.
        for one in (_PATH_KEY + kept, _PATH_KEY + folder):
            granted = "SELECT 1 FROM permit WHERE workspace = ? AND block = ? LIMIT 1"
            if self._db.execute(granted, (here, one)).fetchone():
                return one
        return None

    def files(self, key: bytes) -> list[tuple[int, bytes, int]]:
        """The files that a grant is about: their numbers, paths and access lists."""
        path = key[len(_PATH_KEY) :]
        where: str = "path = ?"
        values: tuple[bytes, ...] = (path,)
        if not path:
            where, values = "true", ()
        elif path.endswith(b"/"):
            where, values = "path > ? AND path < ?", _below(path)
        rows: list[Any] = self._db.execute(
            f"SELECT id, path, access FROM file WHERE workspace = ? AND {where} AND {IN_FILES} AND own_readers = 0",
            (self._db.workspace, *values, FIRST_PATH),
        ).fetchall()
        return [(number, kept, access) for number, kept, access in rows]

    def of(self, path: bytes) -> Access:
        """Who may read a file at a path."""
        access = ROOT
        for key in _keys_above(path):
            # Whoever was kept out of a file is kept out of a folder that has taken its place.
            instead = self._grants(key[:-1]) if key.endswith(b"/") and key != _PATH_KEY else ()
            denied = [one for one in instead if one.effect is Effect.DENY]
            access = access.changed_by(denied).changed_by(self._grants(key))
        return access

    def _grants(self, key: bytes) -> Iterable[Grant]:
        statement = "SELECT principal, effect FROM permit WHERE workspace = ? AND block = ?"
        rows: list[Any] = self._db.execute(statement, (self._db.workspace, key)).fetchall()
        return [Grant(block="", principal=who, effect=Effect(effect)) for who, effect in rows]


def _below(folder: bytes) -> tuple[bytes, ...]:
    return folder, folder[:-1] + b"0"  # the character after the slash


def _keys_above(path: bytes) -> Iterator[bytes]:
    """The keys of all files, of each folder on the way down, and of the file itself."""
    yield _PATH_KEY
    at = path.find(b"/")
    while at >= 0:
        yield _PATH_KEY + path[: at + 1]
        at = path.find(b"/", at + 1)
    yield _PATH_KEY + path
