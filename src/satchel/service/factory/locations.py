"""Where the index of a workspace is kept: in a folder of its own, or in a database that many share."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from satchel.errors import ExtraMissing
from satchel.service.settings import Settings, index_folder

if TYPE_CHECKING:
    from satchel.ports.store import Store
    from satchel.storage.postgres.address import Address

_DATABASES: Final = ("postgresql://", "postgres://")


def is_database(place: object) -> bool:
    """Whether a text is the URL of a database."""
    return isinstance(place, str) and place.startswith(_DATABASES)


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder with a SQLite file in it."""

    folder: Path

    @property
    def shown(self) -> str:
        """The folder."""
        return str(self.folder)

    def is_there(self) -> bool:
        """Whether there is an index in it."""
        return (self.folder / "truth.sqlite").exists()

    def open(self) -> Store:
        """The embedded store."""
        from satchel.storage.sqlite.store import EmbeddedStore

        return EmbeddedStore(self.folder)

    def check(self) -> str:
        """What is wrong with the files, or nothing."""
        from satchel.storage.sqlite.store import EmbeddedStore

        return _checked(EmbeddedStore(self.folder))

    def remove(self) -> None:
        """Remove the files that an index consists of, and the folder if nothing else is in it."""
        for path in (*self.folder.glob("truth.sqlite*"), *self.folder.glob("derived/*"), self.folder / "write.lock"):
            path.unlink(missing_ok=True)
        for place in (self.folder / "derived", self.folder):
            with suppress(OSError):
                place.rmdir()


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """A workspace in a PostgreSQL."""

    address: Address

    @property
    def shown(self) -> str:
        """The address without its password."""
        return self.address.shown

    @property
    def folder(self) -> Path | None:
        """None of this machine's."""
        return None

    def is_there(self) -> bool:
        """Whether anything is in the workspace."""
        store = self.open()
        try:
            return bool(store.files()) or store.holds_blocks()
        finally:
            store.close()

    def open(self) -> Store:
        """The store in the database."""
        return _postgres().PostgresStore(self.address)  # type: ignore[no-any-return]

    def check(self) -> str:
        """What is wrong with what is derived, or nothing."""
        return _checked(self.open())

    def remove(self) -> None:
        """Remove everything of the workspace; others are not touched."""
        store: Any = self.open()
        try:
            store.clear()
        finally:
            store.close()


Place: TypeAlias = "FolderPlace | DatabasePlace"
"""Where an index is kept, whether or not there is one yet."""


def _checked(store: Any) -> str:
    try:
        return str(store.check())
    finally:
        store.close()


def _postgres() -> Any:
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise ExtraMissing("a store in PostgreSQL", "postgres") from error
    import satchel.storage.postgres.store

    return satchel.storage.postgres.store


def database_place(url: str, workspace: str = "") -> DatabasePlace:
    """The place that a URL names; `workspace` is for one that names none."""
    from satchel.storage.postgres.address import address_of

    return DatabasePlace(address_of(url, workspace))


def administration() -> Any:
    """What an administrator does with a database."""
    _postgres()
    import satchel.storage.postgres.administration

    return satchel.storage.postgres.administration


def folder_inspection() -> Any:
    """What looks at the index in a folder and changes nothing in it."""
    import satchel.storage.sqlite.inspection

    return satchel.storage.sqlite.inspection


def place_of(root: Path, settings: Settings) -> Place:
    """Where the index of a folder is kept; in a database under the folder's name, if the URL says no other."""
    folder = index_folder(root, settings)
    if settings.store:
        return database_place(settings.store, folder.name)
    return FolderPlace(folder)
