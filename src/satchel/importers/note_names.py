"""What the notes of a vault are called, and which block a link means: as Obsidian finds it."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_NOTE_SUFFIX: Final = ".md"

# What Obsidian leaves out of a heading when it compares it with a link.
_NOT_IN_HEADINGS: Final = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")


class NoteNames:
    """An index of paths, file names, aliases, headings and block ids; no text of any note is held."""

    def __init__(self) -> None:
        self._by_path: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}
        self._by_alias: dict[str, str] = {}
        self._inside: dict[tuple[str, str], str] = {}
        self._by_end: dict[str, str | None] = {}

    def add_note(self, path: str, page_id: str) -> None:
        """Remembers a file (its path with the ending) as the page of that id; all are to be added before any link."""
        key = _key(path).removesuffix(_NOTE_SUFFIX)
        if self._by_path.setdefault(key, page_id) == page_id:
            self._by_name.setdefault(posixpath.basename(key), []).append(key)

    def add_aliases(self, page_id: str, aliases: Iterable[str]) -> None:
        """Remembers the other names of a page; the page that had a name first keeps it."""
        for alias in aliases:
            self._by_alias.setdefault(_key(alias), page_id)

    def add_heading(self, page_id: str, path: str, title: str, block_id: str) -> None:
        """Remembers a heading by its title and by the path of headings that leads to it."""
        for name in (title, path):
            self._inside.setdefault((page_id, "#" + _heading_key(name)), block_id)

    def add_anchor(self, page_id: str, anchor: str, block_id: str) -> None:
        """Remembers a block by its explicit id."""
        self._inside.setdefault((page_id, "^" + anchor.lower()), block_id)

    def resolve(self, destination: str, source_path: str, source_id: str, *, relative: bool = False) -> str | None:
        """The id of the block that a link in a note means: a note, a heading in it, a block in it, or nothing."""
        name, _, inside = destination.partition("#")
        page = self._page(name.strip(), source_path, relative) if name.strip() else source_id
        if page is None or not inside.strip():
            return page
        return self._within(page, inside.strip())

    def _within(self, page: str, inside: str) -> str:
        if inside.startswith("^"):
            return self._inside.get((page, inside.lower()), page)
        whole = self._inside.get((page, "#" + _heading_key(inside)))
        # A heading that is not there leads to its page, as a click does.
        return whole or self._inside.get((page, "#" + _heading_key(inside.rpartition("#")[2])), page)

    def _page(self, name: str, source_path: str, relative: bool) -> str | None:
        folder = posixpath.dirname(source_path)
        if relative or name.startswith(("./", "../")):
            near = _key(posixpath.normpath(posixpath.join(folder, name))).removesuffix(_NOTE_SUFFIX)
            if near in self._by_path:
                return self._by_path[near]
        key = _key(posixpath.normpath(name).lstrip("/")).removesuffix(_NOTE_SUFFIX)
        return self._by_path.get(key) or self._by_ending(key) or self._by_alias.get(_key(name))

    def _by_ending(self, key: str) -> str | None:
        """Of the files whose path ends so, the one with the shortest path."""
        # Looked for once: a vault may have a thousand notes of one name, and as many links to it.
        if key not in self._by_end:
            same_name = self._by_name.get(posixpath.basename(key), ())
            found = [path for path in same_name if path.endswith("/" + key)]
            best = min(found, key=lambda path: (path.count("/"), len(path), path), default=None)
            self._by_end[key] = self._by_path[best] if best is not None else None
        return self._by_end[key]


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _heading_key(name: str) -> str:
    return _NOT_IN_HEADINGS.sub(" ", _key(name)).strip()
