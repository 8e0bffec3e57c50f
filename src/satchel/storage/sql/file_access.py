"""Who may read files: what was granted at a file, and at the folders that it lies in.

Grants are kept under the path, so that they outlive the file: one that comes back is as closed as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidInput
from satchel.models.access import ROOT, Access, Effect, Grant
from satchel.storage.sql.node import FIRST_PATH, IN_FILES, id_bytes, id_text, known_id

if TYPE_CHECKING:
    from satchel.storage.sql.database import Database

_KEY: Final = b"\0/"
"""How the key of a grant at a path begins: no block goes by such an id."""


def is_file_key(key: bytes) -> bool:
    """Whether a grant is one at a path."""
    return key.startswith(_KEY)


def path_of(key: bytes) -> str:
    """The path of a file, or of a folder with `/` at its end; `/` for all files."""
    return id_text(key[len(_KEY) :]) or "/"


def path_key(path: str) -> bytes:
    """The key for what is granted at a path, whether or not anything is there: a folder's ends in `/`."""
    kept = id_bytes(path)
    if kept in (b"/", b".", b"./"):
        return _KEY
    if b"\0" in kept or any(part in (b"", b".", b"..") for part in kept.removesuffix(b"/").split(b"/")):
        raise InvalidInput("block", path, "must be a path below the folder, as docs/a.pdf, docs/ or / for all files")
    return _KEY + kept


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
            return _KEY + kept
        folder = kept.rstrip(b"/") + b"/"
        if folder in (b"/", b"./"):
            return _KEY
        below = "SELECT 1 FROM file WHERE workspace = ? AND path > ? AND path < ? LIMIT 1"
        if self._db.execute(below, (here, *_below(folder))).fetchone():
            return _KEY + folder
        # What was granted can be taken back though the files are gone.
        for one in (_KEY + kept, _KEY + folder):
            granted = "SELECT 1 FROM permit WHERE workspace = ? AND block = ? LIMIT 1"
            if self._db.execute(granted, (here, one)).fetchone():
                return one
        return None

    def files(self, key: bytes) -> list[tuple[int, bytes, int]]:
        """The files that a grant is about: their numbers, paths and access lists."""
        path = key[len(_KEY) :]
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
            instead = self._grants(key[:-1]) if key.endswith(b"/") and key != _KEY else ()
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
    yield _KEY
    at = path.find(b"/")
    while at >= 0:
        yield _KEY + path[: at + 1]
        at = path.find(b"/", at + 1)
    yield _KEY + path
