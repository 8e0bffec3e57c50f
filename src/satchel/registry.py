"""A table of named entries that installed packages can add to (collectors, formats, document kinds, …)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from satchel.errors import InvalidOption

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")

_GROUP_PREFIX: Final = b"[satchel."
_METADATA_FOLDERS: Final = (".dist-info", ".egg-info")


class Registry(Generic[Entry]):
    """Entries by name: built-in entries, then plug-ins from an entry-point group of installed packages.

    Packages are looked up once, for the first unknown name or the first listing of all names, and each plug-in is
    imported on first use. A broken plug-in is listed in `problems` and raises only for a caller who requests the
    plug-in by name.
    """

    def __init__(self, option: str, group: str, entries: Mapping[str, Entry], entry_type: type = object) -> None:
        self.problems: dict[str, str] = {}
        """The problem of each unusable plug-in, by name."""
        self._option = option
        self._group = group
        self._entry_type = entry_type
        self._entries = dict(entries)

    def register(self, name: str, entry: Entry) -> None:
        """Add an entry in this process; raises InvalidOption for a duplicate name."""
        if name in self._entries:
            raise InvalidOption(self._option, name, f"another {self._option} already has this name")
        self._entries[name] = entry

    def names(self) -> tuple[str, ...]:
        """All names, built-in entries first; imports no plug-in."""
        return (*self._entries, *(name for name in self._plugins if name not in self._entries))

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """All usable entries with their names; for unusable plug-ins see `problems`."""
        for name in self.names():
            if self._is_usable(name):
                yield name, self._entries[name]

    def is_plugin(self, name: str) -> bool:
        """True if the entry comes from an installed package."""
        return name in self._plugins

    def get(self, name: str) -> Entry:
        """The entry with the name; raises InvalidOption for an unknown name (with suggestions) or a broken plug-in."""
        if self._is_usable(name):
            return self._entries[name]
        raise InvalidOption(self._option, name, self.problems.get(name) or self._unknown(name))

    def _is_usable(self, name: str) -> bool:
        if name not in self._entries and name in self._plugins and name not in self.problems:
            self._load(self._plugins[name])
        return name in self._entries

    def _load(self, plugin: EntryPoint) -> None:
        try:
            entry: Entry = plugin.load()
            if not isinstance(entry, self._entry_type):
                raise TypeError(f"{plugin.value} is not a {self._entry_type.__name__}")
        except Exception as error:  # importing a third-party module may raise any exception
            self.problems[plugin.name] = f"{_plugin_label(plugin)} cannot be loaded ({type(error).__name__}: {error})"
        else:
            self._entries[plugin.name] = entry

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        """Entry points of the group; a plug-in with a duplicate name is recorded as a problem, not used."""
        if not _has_plugins():
            return {}
        from importlib.metadata import entry_points

        plugins: dict[str, EntryPoint] = {}
        for plugin in entry_points(group=self._group):
            if plugin.name in self._entries or plugin.name in plugins:
                self.problems[plugin.name] = (
                    f"{_plugin_label(plugin)} is not used: another {self._option} has the same name"
                )
            else:
                plugins[plugin.name] = plugin
        return plugins

    def _unknown(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, self.names(), n=2)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        return f"no {self._option} has this name; {guess}known: {', '.join(sorted(self.names()))}"


def _plugin_label(plugin: EntryPoint) -> str:
    return f"the plug-in {plugin.name!r} of {plugin.dist.name if plugin.dist else 'an unknown package'}"


@cache
def _has_plugins() -> bool:
    """True if an installed package declares an entry point for Satchel.

    Reading the small metadata files directly takes 3 ms on every command; importlib.metadata takes 50 to 100 ms.
    """
    return any(_declares_plugins(entry) for folder in sys.path for entry in _metadata_folders(folder))


def _metadata_folders(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder or ".") if name.endswith(_METADATA_FOLDERS)]
    except OSError:  # a ZIP file, or a missing folder
        return []


def _declares_plugins(metadata_folder: str) -> bool:
    try:
        with open(os.path.join(metadata_folder, "entry_points.txt"), "rb") as file:
            return _GROUP_PREFIX in file.read()
    except OSError:
        return False
