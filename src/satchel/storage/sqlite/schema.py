"""The tables, and how an older file becomes a newer one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.errors import IndexTooNew

if TYPE_CHECKING:
    import apsw

_FOLDER: Final = Path(__file__).with_name("migrations")
_MIGRATIONS: Final = ("1_files.sql", "2_blocks.sql", "3_documents.sql", "4_workspace_column.sql")
"""Each takes the file to the version of its number."""

VERSION: Final = len(_MIGRATIONS)


def migration(version: int) -> str:
    """The statements that take a file of the version before to this version."""
    return (_FOLDER / _MIGRATIONS[version - 1]).read_text()


def migrate(connection: apsw.Connection, where: str) -> None:
    """Bring the file to our version, each step whole or not at all."""
    version = connection.pragma("user_version")
    if version > VERSION:
        raise IndexTooNew(where, version, VERSION)
    while version < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster.
            version = connection.pragma("user_version")
            if version < VERSION:
                version += 1
                connection.execute(migration(version))
                connection.pragma("user_version", version)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has ended it already
                connection.execute("ROLLBACK")
            raise
