"""Which files a reader may see, remembered for as long as nothing is granted or revoked."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from satchel.models.access import Access, DefaultAccess
from satchel.storage.sql.access import UNRESTRICTED, AccessFilter, access_lists, default_access, readable_lists

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.storage.sqlite.database_file import SqliteDatabase

_REMEMBERED: Final = 512


@lru_cache(maxsize=_REMEMBERED)
def filter_by_marks(access: frozenset[int] | None) -> AccessFilter:
    """What those may see whom these access lists let in, by a byte for each list.

    So the statement is the same for every reader and is prepared once, and a row costs the same whether there are ten
    lists or ten thousand.
    """
    if access is None:
        return UNRESTRICTED
    marks = bytearray(max(access, default=0) + 1)
    for number in access:
        marks[number] = 1
    return AccessFilter("substr(?, file.access + 1, 1) = x'01'", (bytes(marks),))


class AccessCache:
    """Which access lists let a reader in, remembered for as long as nothing is granted or revoked."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, frozenset[str] | None], frozenset[int] | None] = OrderedDict()
        self._lists: tuple[int, DefaultAccess, dict[int, Access]] = (-1, DefaultAccess.OWNER, {})
        self._lock = Lock()
        self._granted: tuple[int, NDArray[np.int32]] | None = None

    def of(self, db: SqliteDatabase, generation: int, readers: frozenset[str] | None) -> frozenset[int] | None:
        """The numbers of the lists that let one who reads under these names in; None when all do."""
        key = (generation, readers)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            if self._lists[0] != generation:
                self._lists = (generation, default_access(db), access_lists(db))
                self._known.clear()
            found = self._known[key] = readable_lists(readers, self._lists[1], self._lists[2])
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return found

    def visible(
        self, db: SqliteDatabase, generation: int, files: NDArray[np.int64], allowed: frozenset[int]
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

    def _numbers(self, db: SqliteDatabase, generation: int) -> NDArray[np.int32]:
        """Each file's list by the file's number (0: no such file), brought up to the generation."""
        import numpy as np

        since, numbers = self._granted or (-1, np.zeros(1, np.int32))
        if since >= generation:
            return numbers
        statement = "SELECT id, access FROM file WHERE workspace = ? AND granted > ?"
        rows: list[Any] = db.execute(statement, (db.workspace, since)).fetchall()
        if rows:
            changed = np.array(rows, np.int64)
            grown = np.zeros(max(len(numbers), int(changed[:, 0].max()) + 1), np.int32)
            grown[: len(numbers)] = numbers
            grown[changed[:, 0]] = changed[:, 1]
            numbers = grown
        self._granted = (generation, numbers)
        return numbers
