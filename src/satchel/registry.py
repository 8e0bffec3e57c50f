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
    """Entries by name: our own, then those that installed packages declare in an entry-point group.

    The packages are looked up once, when a name is not one of ours or all names are asked for, and each plug-in is
    imported when its entry is first needed. A plug-in that cannot be used is in `problems`; it raises for nobody but
    the caller who asks for it by name.
    """

    def __init__(self, option: str, group: str, entries: Mapping[str, Entry], entry_type: type = object) -> None:
        self.problems: dict[str, str] = {}
        """Why a plug-in cannot be used, by its name."""
        self._option = option
        self._group = group
        self._entry_type = entry_type
        self._entries = dict(entries)

    def register(self, name: str, entry: Entry) -> None:
        """Add an entry in this process; raises InvalidOption for a name that is taken."""
        if name in self._entries:
            raise InvalidOption(self._option, name, "this name is taken")
        self._entries[name] = entry

    def names(self) -> tuple[str, ...]:
        """Every name, ours first; no plug-in is imported."""
        return (*self._entries, *(name for name in self._plugins if name not in self._entries))

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Every name with its entry, except plug-ins that cannot be used (see `problems`)."""
        for name in self.names():
            if self._is_usable(name):
                yield name, self._entries[name]

    def is_plugin(self, name: str) -> bool:
        """True if an installed package brought the entry."""
        return name in self._plugins

    def get(self, name: str) -> Entry:
        """The entry; raises InvalidOption for an unknown name (with similar ones) and for a broken plug-in."""
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
        except Exception as error:  # a stranger's module may raise anything when it is imported
            self.problems[plugin.name] = f"{_plugin_label(plugin)} cannot be loaded ({type(error).__name__}: {error})"
        else:
            self._entries[plugin.name] = entry

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        """The entry points of the group; what carries a name that is taken is a problem, not a replacement."""
        if not _has_plugins():
            return {}
        from importlib.metadata import entry_points

        plugins: dict[str, EntryPoint] = {}
        for plugin in entry_points(group=self._group):
            if plugin.name in self._entries or plugin.name in plugins:
                self.problems[plugin.name] = f"{_plugin_label(plugin)} is not used: another {self._option} has its name"
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
    """True if an installed package declares an entry point for us.

    Reading the small files ourselves takes 3 ms where importlib.metadata takes 50 to 100, on every command.
    """
    return any(_declares_plugins(entry) for folder in sys.path for entry in _metadata_folders(folder))


def _metadata_folders(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder or ".") if name.endswith(_METADATA_FOLDERS)]
    except OSError:  # a ZIP, or a folder that is not there
        return []


def _declares_plugins(metadata_folder: str) -> bool:
    try:
        with open(os.path.join(metadata_folder, "entry_points.txt"), "rb") as file:
            return _GROUP_PREFIX in file.read()
    except OSError:
        return False
