"""Overview of an existing index, and removal of indexes; no index is created."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from satchel.errors import IndexDamaged, IndexTooNew, InvalidOption
from satchel.models.files import PASSED_OVER, SAME_AS
from satchel.service.factory.opening import FolderPlace, Place, open_engine, root_and_place, settings_at
from satchel.service.factory.sharing import prepared_cache

if TYPE_CHECKING:
    from satchel.ports.store import StoreFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOverview:
    """Contents and location of an index, and changes since the last index run; without an index only the location.

    `unread` and `partly_read` give the reason for each file not read, or read in part.
    """

    root: Path
    place: str
    facts: StoreFacts | None = None
    changed: int = 0
    missing: int = 0
    to_look_at: int = 0
    skipped: int = 0
    shared_bytes: int = 0
    """Size of the cache of prepared files, which all indexes in the same parent folder share."""
    unread: Mapping[str, str]
    partly_read: Mapping[str, str]
    origins: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Convert the overview to JSON values."""
        where = {"workspace": str(self.root), "index": self.place, "indexed": self.facts is not None}
        if self.facts is None:
            return where
        counts = {"changed": self.changed, "deleted": self.missing, "skipped": self.skipped}
        counts["shared_bytes"] = self.shared_bytes
        files = {"unread": dict(self.unread), "partly_read": dict(self.partly_read)}
        return where | self.facts._asdict() | counts | files | {"settings": dict(self.origins)}


def index_overview(path: str, changed_settings: Mapping[str, Any]) -> IndexOverview:
    """Overview of the index of a workspace; no index is created, and the project's own settings are ignored."""
    from satchel.service.settings import configure

    settings = settings_at(path, changed_settings, heed_project=False)
    root, place = root_and_place(path, settings)
    if not place.is_there():
        return IndexOverview(root=root, place=place.shown, unread={}, partly_read={}, origins={})
    with open_engine(path, settings=settings) as engine:
        facts, notes = engine.status(), engine.store.notes()
        changes = engine.changes() if engine.is_here else None
    unread, partly_read = split_notes(notes)
    cache = prepared_cache(place.folder, settings)
    return IndexOverview(
        root=root,
        place=place.shown,
        facts=facts,
        changed=len(changes.suspect) if changes else 0,
        missing=len(changes.missing) if changes else 0,
        to_look_at=changes.to_look_at if changes else 0,
        skipped=len(unread) + (len(changes.passed) if changes else 0),
        shared_bytes=cache.size() if cache else 0,
        unread=unread,
        partly_read=partly_read,
        origins=configure(root, heed_project=False).origins,
    )


def split_notes(notes: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split the notes of a store into reasons for unread files and reasons for partly read files."""
    unread = {path: note.removeprefix(PASSED_OVER) for path, note in notes.items() if note.startswith(PASSED_OVER)}
    partly_read = {path: note for path, note in notes.items() if not note.startswith((PASSED_OVER, SAME_AS))}
    return unread, partly_read


def remove_index(
    path: str, changed_settings: Mapping[str, Any], *, every: bool = False, force: bool = False
) -> tuple[list[str], str]:
    """Remove the index of a workspace, or with `every` all in the same parent folder, with all that they share.

    Returns the removed places, and the place of the workspace's own index. Without `force`, an index with blocks beside
    the files raises an error: indexing would not bring these blocks back.
    """
    _, place = root_and_place(path, settings_at(path, changed_settings, heed_project=False))
    places = [place]
    if every and place.folder is not None:
        places = [folder for folder in map(FolderPlace, sorted(place.folder.parent.iterdir())) if folder.is_there()]
    if not force:
        for doomed in places:
            _refuse_to_lose_blocks(doomed)
    removed = [doomed for doomed in places if (doomed.folder.is_dir() if doomed.folder else doomed.is_there())]
    for doomed in removed:
        doomed.remove()
    if every:
        remove_prepared_files(path, changed_settings)
        if place.folder is not None:
            from satchel.service.packages import COPIES

            rmtree(place.folder.parent / COPIES, ignore_errors=True)
    return [doomed.shown for doomed in removed], place.shown


def remove_prepared_files(path: str, changed_settings: Mapping[str, Any]) -> str:
    """Remove the cache of prepared files; returns its place, or "" if there is none. Indexes are not touched."""
    settings = settings_at(path, changed_settings, heed_project=False)
    cache = prepared_cache(root_and_place(path, settings)[1].folder, settings)
    return str(cache.folder) if cache and cache.clear() else ""


def _refuse_to_lose_blocks(place: Place) -> None:
    """Raise InvalidOption if an index holds blocks added by import or put: indexing cannot recreate these blocks."""
    block = None
    with suppress(IndexDamaged, IndexTooNew):
        if not place.is_there():
            return
        store = place.open()
        block = next(iter(store.records()), None)
        store.close()
    if block is not None:
        problem = "contains blocks that are not in files and would be lost; save them with"
        raise InvalidOption("path", place.shown, f"{problem} `satchel workspace export -o FILE`, then use --force")
