"""Watches a folder through the operating system, so that an unchanged folder is not walked for each question.

There is no thread of ours: the system collects the changes. A question asks for them by making a file in a folder that
is watched, too: changes are reported in order, so all earlier ones are known once that file is reported.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from satchel.ports.store import Store

_MAX_FOLDERS: Final = 16_384  # the system's limit is for all programs of a user, editors included
_MARKER_WAIT_S: Final = 2.0  # usually 2 ms, on a busy machine 100; a system that needs longer is not asked again
_POLL_MS: Final = 1  # the least that watchfiles takes: a question waits for one or two of them
_WAIT_MS: Final = 50
_REMOTE: Final = ("nfs", "cifs", "smb", "9p", "fuse", "ceph", "afs", "lustre", "gluster", "virtiofs", "vboxsf")
"""Beginnings of the names of file systems whose changes by other machines are not reported."""
_MOUNTS: Final = Path("/proc/self/mountinfo")


_MAX_QUIET_S: Final = 600.0
"""A watched folder is walked again after this time: what the system does not report (writes through a memory map,
ignore files above the folder) is found then."""


class _Look(NamedTuple):
    """A completed comparison of the folder with the index."""

    began: float
    generation: int
    folders: frozenset[str]
    has_sources: bool
    """True if files outside the folder belong to the workspace, too."""


class FolderLooks:
    """The last comparison of a folder with its index, and the watch over the folder since then."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._look: _Look | None = None
        self._watch: FolderWatch | None = None
        self._problem: str | None = None
        """Why the folder cannot be watched; empty once that was said."""

    def is_quiet(self, store: Store) -> bool:
        """True if the folder was compared with the index, and nothing has changed since."""
        look, watch = self._look, self._watch
        if look is None or watch is None or look.has_sources or monotonic() - look.began > _MAX_QUIET_S:
            return False
        if watch.folders is not look.folders or look.generation != store.generation:
            return False
        try:
            return watch.is_quiet_since(look.began)
        except CannotWatch as error:
            self._give_up(error)
            return False

    def begin(self) -> float:
        """The time when a new comparison begins; the folder is watched from the second one on.

        A program with a single question needs no watch.
        """
        if self._look is not None:
            self._watch_folders(self._look.folders)
        return monotonic()

    def end(self, began: float, folders: frozenset[str], store: Store) -> None:
        """Record a comparison that found these folders; the store is now up to date."""
        before = self._look.folders if self._look is not None else frozenset()
        # The same set while the folders are the same: a watch over them stays.
        folders = before if before == folders else folders
        has_sources = bool(json.loads(store.fact("sources") or "{}"))
        self._look = _Look(began, store.generation, folders, has_sources)

    def take_notes(self) -> list[str]:
        """Why the folder cannot be watched, said once."""
        notes = [self._problem] if self._problem else []
        self._problem = self._problem and ""
        return notes

    def close(self) -> None:
        """Stop watching."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _watch_folders(self, folders: frozenset[str]) -> None:
        watch = self._watch
        is_watched = watch is not None and watch.folders is folders and not watch.is_over
        if self._problem is not None or is_watched:
            return
        self.close()
        try:
            self._watch = FolderWatch(self._root, folders)
        except FileNotFoundError:
            pass  # the next look finds out, and the next watch is over what is there
        except CannotWatch as error:
            self._give_up(error)

    def _give_up(self, error: CannotWatch) -> None:
        self.close()
        self._problem = f"the folder cannot be watched for changes ({error}) and is compared at each question"


class CannotWatch(Exception):
    """The system cannot report changes of the folder; the message says why."""


class FolderWatch:
    """A watch over a folder and those of its subfolders that are indexed, given by paths relative to the folder.

    Raises FileNotFoundError if one of them is gone.
    """

    def __init__(self, root: Path, folders: Collection[str]) -> None:
        from watchfiles._rust_notify import RustNotify  # loaded by resident processes only

        if len(folders) > _MAX_FOLDERS:
            raise CannotWatch(f"it has {len(folders):,} folders, more than {_MAX_FOLDERS:,}")
        if _is_remote(os.path.realpath(root)):
            raise CannotWatch("it is on a network file system")
        self.folders = folders
        self._root = root
        self._identity = _identity(root)
        try:
            self._marker_folder = tempfile.mkdtemp(prefix="satchel-watch-")
        except OSError as error:
            raise CannotWatch(str(error)) from error
        self._clean_up = weakref.finalize(self, shutil.rmtree, self._marker_folder, ignore_errors=True)
        self._lock = Lock()
        self._markers = 0
        self._places = {os.path.join(root, folder) if folder else str(root) for folder in folders}
        places = [*sorted(self._places), self._marker_folder]
        try:
            # Not recursive: watchfiles would enter ignored folders and follow links.
            self._system = RustNotify(places, False, False, 0, False, False)
        except (OSError, RuntimeError, ValueError) as error:
            self._clean_up()
            if isinstance(error, FileNotFoundError):
                raise
            raise CannotWatch(str(error)) from error
        self._changed = monotonic()
        self.is_over = False
        """True after a watched folder was removed or replaced: a folder made again is not watched."""

    def is_quiet_since(self, time: float) -> bool:
        """True if nothing in the folder has changed since `time` (monotonic), up to this moment.

        Raises CannotWatch if the system no longer reports changes.
        """
        with self._lock:
            self.is_over = self.is_over or _identity(self._root) != self._identity
            if self._reports_change() or self.is_over:
                self._changed = monotonic()
            return time > self._changed

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            self._system.close()
            self._clean_up()

    def _reports_change(self) -> bool:
        """True if the system reports a change."""
        self._markers += 1
        marker = Path(self._marker_folder, f"marker-{self._markers}")
        until = monotonic() + _MARKER_WAIT_S
        is_changed = False
        try:
            marker.touch()
            while monotonic() < until:
                paths = [Path(path) for path in self._reported()]
                is_changed = is_changed or any(path.parent.name != marker.parent.name for path in paths)
                self.is_over = self.is_over or not self._places.isdisjoint(map(str, paths))
                if any(path.name == marker.name for path in paths):
                    marker.unlink(missing_ok=True)
                    return is_changed
        except (OSError, RuntimeError) as error:
            raise CannotWatch(str(error)) from error
        raise CannotWatch("the system does not report changes in time")

    def _reported(self) -> Iterator[str]:
        events = self._system.watch(_POLL_MS, _POLL_MS, _WAIT_MS, None)
        if events == "signal":
            raise KeyboardInterrupt
        return (path for _, path in events) if isinstance(events, set) else iter(())


def _identity(folder: Path) -> tuple[int, int] | None:
    """What tells the folder from another one made at the same path; None if there is none."""
    with suppress(OSError):
        info = os.stat(folder)
        return info.st_dev, info.st_ino
    return None


def _is_remote(folder: str) -> bool:
    """True if the folder, given by the real path, or a folder mounted below it is on a network file system."""
    mounts: dict[str, str] = {}
    with suppress(OSError):
        for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines():
            before, _, after = line.partition(" - ")
            place = before.split(" ")[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
            mounts[place] = after.split(" ")[0]
    within = max((place for place in mounts if f"{folder}/".startswith(f"{place.rstrip('/')}/")), key=len, default="")
    kinds = {mounts.get(within, ""), *(kind for place, kind in mounts.items() if place.startswith(f"{folder}/"))}
    return any(kind.startswith(_REMOTE) for kind in kinds)
