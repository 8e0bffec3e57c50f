"""Moves everything that one index holds to another place, and compares two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.errors import WorkspaceMissing
from satchel.service.factory.opening import FolderPlace, Place, database_place, is_database, workspace
from satchel.service.settings import configure, index_folder

if TYPE_CHECKING:
    from satchel.storage.migration.transfer import MoveReport, Side

__all__ = ["MoveReport", "migrate"]

_EMBEDDED: Final = "embedded:"
"""What stands before the folder of an index itself, where a folder would be one that is indexed."""


def migrate(
    source: str,
    target: str,
    *,
    index_dir: str | None = None,
    verify_only: bool = False,
    watch: Callable[[str, int, int], None] | None = None,
) -> MoveReport:
    """Move what the index `source` holds to `target` and compare both, or with `verify_only` just compare them."""
    from satchel.storage.migration.transfer import move, verify

    with _opened(source, target, index_dir, verify_only=verify_only) as (from_side, to_side):
        return (verify if verify_only else move)(from_side, to_side, watch)


@contextmanager
def _opened(source: str, target: str, index_dir: str | None, *, verify_only: bool) -> Iterator[tuple[Side, Side]]:
    from satchel.storage.migration.transfer import Side

    places = [_place(name, index_dir, other) for name, other in ((source, target), (target, source))]
    for name, place in zip((source, target), places if verify_only else places[:1], strict=False):
        if place.folder is not None and not place.is_there():
            raise WorkspaceMissing("source" if place is places[0] else "target", name, f"no index at {place.shown}")
    stores = [places[0].open()]
    try:
        if not stores[0].generation and not stores[0].transfer.facts():
            raise WorkspaceMissing("source", places[0].shown, "nothing was ever kept there")
        stores.append(places[1].open())
        names = [place.shown if place.folder is None else f"{_EMBEDDED}{place.shown}" for place in places]
        yield Side(stores[0], names[0]), Side(stores[1], names[1])
    finally:
        for store in stores:
            store.close()


def _place(name: str, index_dir: str | None, other: str) -> Place:
    """The place of that name; a database URL without a workspace means the one named after the other's folder."""
    if not is_database(name):
        return FolderPlace(_index_folder(name, index_dir).resolve())
    return database_place(name, "" if is_database(other) else _index_folder(other, index_dir).name)


def _index_folder(name: str, index_dir: str | None) -> Path:
    if name.startswith(_EMBEDDED):
        return Path(name.removeprefix(_EMBEDDED)).expanduser()
    root = workspace(name)
    return index_folder(root, configure(root, {"index_dir": index_dir}, heed_project=False).settings)
