"""Transfer of an index to another place, and comparison of two indexes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.errors import WorkspaceMissing
from satchel.service.factory.opening import FolderPlace, Place, database_place, is_database, workspace
from satchel.service.settings import configure, index_folder

if TYPE_CHECKING:
    from satchel.storage.move import MoveReport

__all__ = ["MoveReport", "migrate"]

_EMBEDDED: Final = "embedded:"
"""Prefix for the folder of an index itself; a folder without the prefix is a workspace."""


def migrate(
    source: str, target: str, *, index_dir: str | None, verify_only: bool, watch: Callable[[str, int, int], None]
) -> MoveReport:
    """Copy the contents of the index `source` to `target` and compare both, or with `verify_only` just compare them."""
    from satchel.storage.move import Side, move, verify

    from_place, to_place = _place(source, index_dir, target), _place(target, index_dir, source)
    _require("source", source, from_place)
    if verify_only:
        _require("target", target, to_place)
    with closing(from_place.open()) as from_store:
        if not from_store.generation and not from_store.transfer.facts():
            raise WorkspaceMissing("source", from_place.shown, "the workspace is empty")
        with closing(to_place.open()) as to_store:
            sides = Side(from_store, _name(from_place)), Side(to_store, _name(to_place))
            return (verify if verify_only else move)(*sides, watch)


def _require(option: str, name: str, place: Place) -> None:
    """Raise WorkspaceMissing for a folder without an index."""
    if place.folder is not None and not place.is_there():
        raise WorkspaceMissing(option, name, f"no index at {place.shown}")


def _name(place: Place) -> str:
    return place.shown if place.folder is None else f"{_EMBEDDED}{place.shown}"


def _place(name: str, index_dir: str | None, other: str) -> Place:
    """Parse the name of a place; a database URL without a workspace gets the name of the index folder of `other`."""
    if not is_database(name):
        return FolderPlace(_index_folder(name, index_dir).resolve())
    return database_place(name, "" if is_database(other) else _index_folder(other, index_dir).name)


def _index_folder(name: str, index_dir: str | None) -> Path:
    if name.startswith(_EMBEDDED):
        return Path(name.removeprefix(_EMBEDDED)).expanduser()
    root = workspace(name)
    return index_folder(root, configure(root, {"index_dir": index_dir}, heed_project=False).settings)
