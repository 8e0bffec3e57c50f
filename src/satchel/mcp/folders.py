"""The folders that a server over stdio may search: those it was started with, the client's roots, and allowed ones.

A tool's `path` names one of them or a folder inside; without it the folders of the command line are searched, else the
client's roots, else the folder in which the server was started.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from satchel.errors import InvalidOption
from satchel.service.client import OWNER, Caller

if TYPE_CHECKING:
    from satchel.service.open_roots import LocalClient

PATIENCE_S: Final = 20.0  # a tool waits this long for an index run, then answers from the index so far (docs/mcp.md)
_MAX_OPEN: Final = 8  # folders held open at once; the one that was not asked for longest is closed
_SERVER_FOLDER: Final = (".",)


class Place(NamedTuple):
    """Where a tool searches: a client, and the folder inside its root ("" for all of it)."""

    client: LocalClient
    within: str = ""


class Folders(Protocol):
    """Finds the place for a tool's `path`."""

    def at(self, path: str, roots: Sequence[Path]) -> Place:
        """The place for a path ("": what is searched without a path), with the roots that the client names."""
        ...


@dataclass(frozen=True, slots=True)
class OneFolder:
    """The one workspace of a server over HTTP; a path is a folder inside it."""

    client: LocalClient

    def at(self, path: str, roots: Sequence[Path]) -> Place:
        """The workspace; refuses a path outside it. Roots of a client are folders of another machine."""
        del roots
        within = Path(os.path.normpath(path)).as_posix()
        if os.path.isabs(within) or within.startswith(".."):
            raise InvalidOption("path", path, "must be a folder inside this workspace, relative to its root")
        return Place(self.client, "" if within == "." else within)


@dataclass(slots=True, eq=False)
class ServedFolders:
    """The folders of a server over stdio, with the caller and the settings; each is opened on first use."""

    paths: tuple[str, ...]
    """Those of the command line; the folder of the server if none was given."""
    _: KW_ONLY
    allowed: tuple[str, ...] = ()
    """Folders of which any folder inside may be searched."""
    caller: Caller = OWNER
    allow_home: bool = False
    patience: float = PATIENCE_S
    settings: Mapping[str, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, init=False)
    _opened: OrderedDict[tuple[str, ...], LocalClient] = field(default_factory=OrderedDict, init=False)

    def at(self, path: str, roots: Sequence[Path]) -> Place:
        """The place for a path, opened by the first call."""
        usual = self._usual(roots)
        if not path:
            return Place(self._open(usual))
        folder = _folder(path, usual[0])
        root = self._root_of(path, folder, usual, roots)
        within = folder.relative_to(root).as_posix()
        key = usual if len(usual) == 1 and _resolved(usual[0]) == root else (str(root),)
        return Place(self._open(key), "" if within == "." else within)

    def _usual(self, roots: Sequence[Path]) -> tuple[str, ...]:
        return tuple(map(str, roots)) if roots and self.paths == _SERVER_FOLDER else self.paths

    def _root_of(self, path: str, folder: Path, usual: Sequence[str], roots: Sequence[Path]) -> Path:
        """The folder whose index has the folder: a served folder or root, or the repository in an allowed folder."""
        from satchel.service.factory.opening import is_database

        folders: list[str | Path] = [*(each for each in usual if not is_database(each)), *roots]
        served = [*map(_resolved, folders)]
        enclosing = [root for root in served if folder.is_relative_to(root) and self._may_index(root)]
        if enclosing:
            return max(enclosing, key=lambda root: len(root.parts))
        for base in map(_resolved, self.allowed):
            if folder.is_relative_to(base):
                inside = [each for each in (folder, *folder.parents) if each.is_relative_to(base)]
                return next((each for each in inside if (each / ".git").exists()), folder)
        named = ", ".join(map(str, (*served, *map(_resolved, self.allowed))))
        problem = f"is outside the folders that this server may search ({named})"
        raise InvalidOption("path", path, f"{problem}; its user can allow more: satchel mcp --allow FOLDER")

    def _may_index(self, root: Path) -> bool:
        return self.allow_home or not _holds_home(root)

    def _open(self, paths: tuple[str, ...]) -> LocalClient:
        with self._lock:
            if paths not in self._opened:
                from satchel.service.factory.opening import is_database, workspace
                from satchel.service.open_roots import open_roots

                for path in paths:
                    if not self.allow_home and not is_database(path):
                        _refuse_home(workspace(path), path)
                client = open_roots(paths, caller=self.caller, patience=self.patience, **self.settings)
                self._opened[paths] = client
                if len(self._opened) > _MAX_OPEN:
                    _, oldest = self._opened.popitem(last=False)
                    Thread(target=oldest.close, name="satchel-closing", daemon=True).start()
            self._opened.move_to_end(paths)
            return self._opened[paths]

    def close(self, within: float) -> None:
        """Close the workspaces, but wait at most `within` seconds for each. Committed data stays."""
        for client in self._opened.values():
            closing = Thread(target=client.close, name="satchel-closing", daemon=True)
            closing.start()
            closing.join(within)


def _folder(path: str, usual: str) -> Path:
    """The folder that a path names, relative to the first folder that is searched without a path."""
    try:
        folder = (_resolved(usual) / Path(path).expanduser()).resolve()
        is_there = folder.is_dir()
    except (OSError, RuntimeError, ValueError):
        is_there, folder = False, Path(path)
    if not is_there:
        problem = "is a file: name its folder, or give the file to expand" if folder.is_file() else "is no folder"
        raise InvalidOption("path", path, problem)
    return folder


def _resolved(path: str | Path) -> Path:
    return Path(path).expanduser().resolve()


def _holds_home(root: Path) -> bool:
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):
        return root == root.parent
    return root == home or root in home.parents or root == root.parent


def _refuse_home(root: Path, path: str) -> None:
    """Refuse the home directory and its parents: an agent started there must not index everything."""
    if _holds_home(root):
        problem = f"is {root}, which is or contains the home directory, and is not indexed"
        advice = "give the folder to search as `path`, or start the server with it: satchel mcp PATH"
        raise InvalidOption("path", path, f"{problem}; {advice}")
