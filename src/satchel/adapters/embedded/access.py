"""Who may read what, as the store keeps it: the distinct access lists, and for each file the number of its list."""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from satchel.model.access import DEFAULT, ROOT, Access, DefaultAccess

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

_ROOT_KEY: Final = "*"
_REMEMBERED: Final = 512


def access_number(db: apsw.Connection, access: Access) -> int:
    """The number of an access list, which is kept once however many files have it."""
    key = _key(access)
    row = db.execute("SELECT id FROM access WHERE readers = ?", (key,)).fetchone()
    if row is None:
        db.execute("INSERT INTO access (readers) VALUES (?)", (key,))
        return int(db.last_insert_rowid())
    return int(row[0])


def access_of(db: apsw.Connection, number: int) -> Access:
    """The access list of that number."""
    return _access(str(db.execute("SELECT readers FROM access WHERE id = ?", (number,)).get))


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


def default_access(db: apsw.Connection) -> DefaultAccess:
    """Who may read what nothing was said about."""
    found: list[Any] = db.execute(
        "SELECT name, value FROM fact WHERE name IN ('multi_user', 'default_access')"
    ).fetchall()
    rows = dict(found)
    if not rows.get("multi_user"):
        return DefaultAccess.OWNER
    return DefaultAccess(rows.get("default_access") or DefaultAccess.DENY)


class Rights:
    """Which access lists let a reader in, remembered for as long as nothing is granted or revoked."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, frozenset[str] | None], frozenset[int] | None] = OrderedDict()
        self._lists: tuple[int, DefaultAccess, dict[int, Access]] = (-1, DefaultAccess.OWNER, {})
        self._lock = Lock()
        self._granted: tuple[int, NDArray[np.int32]] | None = None

    def of(self, db: apsw.Connection, generation: int, readers: frozenset[str] | None) -> frozenset[int] | None:
        """The numbers of the lists that let one who reads under these names in; None when all do."""
        key = (generation, readers)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            if self._lists[0] != generation:
                kept: list[Any] = db.execute("SELECT id, readers FROM access").fetchall()
                self._lists = (generation, default_access(db), {number: _access(text) for number, text in kept})
                self._known.clear()
            found = self._known[key] = _allowed(readers, self._lists[1], self._lists[2])
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return found

    def visible(
        self, db: apsw.Connection, generation: int, files: NDArray[np.int64], allowed: frozenset[int]
    ) -> NDArray[np.bool_]:
        """Which of the files have one of the allowed lists."""
        import numpy as np

        with self._lock:
            numbers = self._numbers(db, generation)
        size = int(numbers.max(initial=0)) + 1
        opens = np.zeros(size, bool)
        opens[[number for number in allowed if number < size]] = True
        opens[0] = False
        inside = files < len(numbers)
        return np.asarray(opens[np.where(inside, numbers[np.where(inside, files, 0)], 0)])

    def _numbers(self, db: apsw.Connection, generation: int) -> NDArray[np.int32]:
        """Each file's list by the file's number (0: no such file), brought up to the generation."""
        import numpy as np

        since, numbers = self._granted or (-1, np.zeros(1, np.int32))
        if since >= generation:
            return numbers
        rows: list[Any] = db.execute("SELECT id, access FROM file WHERE granted > ?", (since,)).fetchall()
        if rows:
            changed = np.array(rows, np.int64)
            grown = np.zeros(max(len(numbers), int(changed[:, 0].max()) + 1), np.int32)
            grown[: len(numbers)] = numbers
            grown[changed[:, 0]] = changed[:, 1]
            numbers = grown
        self._granted = (generation, numbers)
        return numbers


def _allowed(readers: frozenset[str] | None, default: DefaultAccess, lists: dict[int, Access]) -> frozenset[int] | None:
    if readers is None and default is DefaultAccess.OWNER:
        return None
    asking = readers or frozenset()
    if default is DefaultAccess.OWNER or (default is DefaultAccess.ALLOW and asking):
        asking |= {DEFAULT}
    return frozenset(number for number, access in lists.items() if access.lets_in(asking))
