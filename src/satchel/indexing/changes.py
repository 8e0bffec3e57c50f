"""What of a folder is different from what a store holds, judged by size and time alone: nothing is opened."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.documents.policy import DocumentPolicy, way_of_reading
from satchel.indexing.safe_open import opened_workspace
from satchel.indexing.walk import FoundFile, PassedOver, Skip, surroundings, walk
from satchel.models.access import DefaultAccess
from satchel.models.files import SAME_AS, FileState, document_suffixes, extension_of, is_untouched

if TYPE_CHECKING:
    from satchel.ports.store import Store

WAY: Final = "documents"
"""The fact that says how documents were read."""


class Changes(NamedTuple):
    """What is different from what the store holds, judged by size and time alone."""

    found: int
    suspect: tuple[FoundFile, ...]
    missing: tuple[str, ...]
    passed: tuple[PassedOver, ...]

    @property
    def to_look_at(self) -> int:
        """How many files have to be looked at."""
        return len(self.suspect) + len(self.missing)


class Lookout:
    """Compares a folder with a store."""

    def __init__(
        self, root: Path, store: Store, *, max_file_bytes: int, without: str, documents: DocumentPolicy
    ) -> None:
        self._root = root
        self._store = store
        self._max_file_bytes = max_file_bytes
        self._without = without
        self._documents = documents
        self._replaced: list[tuple[str, tuple[str, ...]]] | None = None

    def changes(self) -> Changes:
        """What has to be looked at; nothing is opened."""
        known = self._store.files()
        suspect: list[FoundFile] = []
        passed: list[PassedOver] = []
        present: dict[str, FoundFile] = {}
        with self.opened() as folder:
            for entry in walk(
                folder,
                max_file_bytes=self._max_file_bytes,
                within=surroundings(os.fspath(self._root)),
                documents=self._documents.extensions,
                max_document_bytes=self._documents.max_bytes,
            ):
                if isinstance(entry, PassedOver):
                    passed.append(entry)
                    continue
                if (self._without and entry.path.startswith(self._without)) or self._kept_otherwise(entry.path):
                    continue  # the index itself, or notes that are in it as blocks
                state = known.get(entry.path)
                if state is None or not is_untouched(state, entry.size, entry.modified_ns, entry.changed_ns):
                    if not _may_be_read(entry.path, folder):
                        passed.append(PassedOver(entry.path, Skip.UNREADABLE))
                        continue
                    suspect.append(entry)
                present[entry.path] = entry
        missing = tuple(path for path in known if path not in present)
        suspect += self._read_otherwise(present, {file.path for file in suspect}, known)
        suspect += self._twins_alone(present, {file.path for file in suspect}, known)
        return Changes(len(present), tuple(suspect), missing, tuple(passed))

    def _twins_alone(
        self, present: dict[str, FoundFile], suspect: set[str], known: dict[str, FileState]
    ) -> list[FoundFile]:
        """Documents that are kept as copies of others which are gone, or may say something else or be closed now."""
        alone = []
        one_user = self.has_one_user()
        for path, note in self._store.notes().items():
            if not note.startswith(SAME_AS) or path not in present or path in suspect:
                continue
            first = note.removeprefix(SAME_AS)
            if (
                not one_user
                or first not in present
                or first in suspect
                or known[first].content_hash != known[path].content_hash
            ):
                alone.append(present[path])
        return alone

    def _read_otherwise(
        self, present: dict[str, FoundFile], suspect: set[str], known: dict[str, FileState]
    ) -> list[FoundFile]:
        """Documents that were read in another way than they would be now, or not at all."""
        if not self.is_read_otherwise():
            return []
        return [
            file
            for path, file in present.items()
            if path in known and path not in suspect and extension_of(path) in document_suffixes()
        ]

    def is_read_otherwise(self) -> bool:
        """Whether the store's documents were read in another way than they would be now."""
        return self._store.generation > 0 and self._store.fact(WAY) != way_of_reading(self._documents)

    def has_one_user(self) -> bool:
        """Whether whoever may read one file may read all: then one copy of a document will do."""
        return self._store.default_access() is DefaultAccess.OWNER

    def _kept_otherwise(self, path: str) -> bool:
        """True if the file belongs to an imported source and is blocks there, with readers of their own."""
        if self._replaced is None:
            sources = json.loads(self._store.fact("sources") or "{}").values()
            self._replaced = [
                (os.path.join(source["path"], ""), tuple(source["replaces"]))
                for source in sources
                if source["replaces"]
            ]
        return any(
            path.endswith(suffixes) and os.path.join(self._root, path, "").startswith(place)
            for place, suffixes in self._replaced
        )

    def opened(self) -> AbstractContextManager[int]:
        """The folder, open."""
        return opened_workspace(self._root)


def _may_be_read(path: str, folder: int) -> bool:
    """Whether its rights let us open it: what they do not is not looked at again and again."""
    return os.access(path, os.R_OK, dir_fd=folder, effective_ids=os.access in os.supports_effective_ids)
