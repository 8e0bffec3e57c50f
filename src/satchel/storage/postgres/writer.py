"""One commit in the making, with what searches read laid out in it: whoever sees the one sees the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.storage.postgres.derived import lay_out_fresh, piece_count
from satchel.storage.postgres.schema import TABLES
from satchel.storage.sql.block_writer import RelationalWriter
from satchel.storage.sql.file_writer import FILE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from satchel.storage.postgres.database import PostgresDatabase

_MOST_TAKEN: Final = 512
_MANY: Final = 2_000
CHANNEL: Final = "satchel"
"""Where commits are told of."""


class PostgresWriter(RelationalWriter):
    """One commit in the making."""

    def __init__(self, database: PostgresDatabase, generation: int) -> None:
        super().__init__(database, generation)
        self._database = database
        self._new_vectors = False
        self._stock: list[int] = []
        self._taken = 1
        self._put = 0

    def _insert_file(self, values: tuple[Any, ...]) -> int:
        """With a number from a stock, so that nothing is waited for."""
        if not self._stock:
            rows = self._database.connection.execute(
                "SELECT nextval('satchel.file_id_seq') FROM generate_series(1, %s)", (self._taken,)
            ).fetchall()
            self._stock = [int(row[0]) for row in reversed(rows)]
            self._taken = min(2 * self._taken, _MOST_TAKEN)
        self._put += 1
        number = self._stock.pop()
        self._db.insert("file", f"id, {FILE_COLUMNS}", [(number, *values)])
        return number

    def _dropping(self, file: int) -> None:
        self._bury([file])
        self._db.execute("DELETE FROM dense WHERE workspace = ? AND file = ?", (self._db.workspace, file))

    def regrant(self, changed: Sequence[tuple[int, int]]) -> None:
        """Other access lists: what was laid out under the old ones is dead from this commit on."""
        self._bury([file for file, _ in changed])
        super().regrant(changed)
        self._db.executemany(
            "UPDATE file SET segment = 0 WHERE workspace = ? AND id = ? AND segment > 0",
            ((self._db.workspace, file) for file, _ in changed),
        )

    def _bury(self, files: Sequence[int]) -> None:
        self._database.flush()
        self._database.connection.execute(
            "INSERT INTO dead (workspace, segment, access, file) SELECT workspace, segment, access, id FROM file"
            " WHERE workspace = %s AND id = ANY(%s) AND segment > 0",
            (self._database.workspace, list(files)),
        )

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of texts, eight bits for each number."""
        super().put_vectors(text_hashes, vectors)
        self._new_vectors = True

    def clear(self) -> None:
        """Remove everything that is in the workspace."""
        for table in TABLES:
            self._db.execute(f"DELETE FROM {table} WHERE workspace = ?", (self._db.workspace,))
        self.changed = True

    def seal(self) -> None:
        """End the commit: lay out what is new, raise the generation, and tell everybody."""
        if self._put >= _MANY:
            # What a large commit has put is in no statistics yet, and would be looked for as if there was little of it.
            self._database.flush()
            self._database.connection.execute("SELECT satchel.look_again()")
        self.settle()
        lay_out_fresh(self._database, int(self._db.fact("dimensions") or 1), self._new_vectors)
        pieces = piece_count(self._database)
        # Readers may know it, and are told no more than the next power of two.
        self.set_fact("pieces", 1 << max(pieces - 1, 0).bit_length())
        self.set_fact("generation", self._generation)
        self._database.connection.execute(
            "SELECT pg_notify(%s, %s)", (CHANNEL, f"{self._database.workspace} {self._generation}")
        )
