"""What of a folder differs from what a store holds, and the content of the files that do.

Files are compared by size and time first, and only suspects are opened. Documents of one content are read once: of
several, the one with the shortest name holds the text.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.walk import (
    DocumentPolicy,
    FoundFile,
    PassedOver,
    Skip,
    opened_workspace,
    read_bytes,
    surroundings,
    text_of,
    walk,
    way_of_reading,
)
from satchel.models.access import DefaultAccess
from satchel.models.document import document_suffixes, extension_of
from satchel.models.files import SAME_AS, FileState, is_untouched

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


PASSED_OVER: Final = "passed over: "
"""How the note of a file begins that was opened and found to hold nothing for us."""


class Loaded(NamedTuple):
    """A file's text and state: no state when it could not be read, the same when nothing in it changed."""

    path: str
    state: FileState | None
    text: str = ""
    reason: str = ""
    """Why it is passed over."""
    same: bool = False
    twin_of: str = ""
    """The document of the very same content that is kept in its place."""
    data: bytes | None = None
    """What a document consists of."""

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to prepare."""
        return self.state is None or self.same or bool(self.reason or self.twin_of)

    @property
    def note(self) -> str:
        """What is kept with a file that needs no preparing."""
        if self.twin_of:
            return SAME_AS + self.twin_of
        return PASSED_OVER + self.reason if self.reason else ""


class Before(NamedTuple):
    """What was kept when the run began."""

    known: Mapping[str, FileState]
    notes: Mapping[str, str]
    untrusted: frozenset[str]
    """What may have changed since, or is gone."""

    def reason(self, path: str) -> str:
        """Why a file that is as it was was passed over then."""
        note = self.notes.get(path, "")
        return note.removeprefix(PASSED_OVER) if note.startswith(PASSED_OVER) else ""


class Loader:
    """Reads files of an open folder."""

    def __init__(
        self, folder: int, before: Before, documents: DocumentPolicy, *, max_file_bytes: int, one_user: bool
    ) -> None:
        self._folder = folder
        self._before = before
        self._documents = documents
        self._max_file_bytes = max_file_bytes
        self._one_user = one_user

    def load(self, files: Sequence[FoundFile]) -> Iterator[Loaded]:
        """The files, sources first."""
        papers: list[FoundFile] = []
        yield from self._sources(file for file in files if not self._documents.takes(file.path))
        yield from self._sources_among((file for file in files if self._documents.takes(file.path)), papers)
        yield from self._papers(papers)

    def _sources(self, files: Iterable[FoundFile]) -> Iterator[Loaded]:
        for file in files:
            begun = time.time_ns()
            data = read_bytes(self._folder, file.path, self._max_file_bytes)
            if isinstance(data, Skip):
                yield Loaded(file.path, None, reason=data.value)
                continue
            state = _state_of(file, data, begun)
            held = self._before.known.get(file.path)
            if held is not None and held.content_hash == state.content_hash:
                yield Loaded(file.path, state, reason=self._before.reason(file.path), same=True)
                continue
            read = text_of(file.path, data)
            yield Loaded(file.path, state, read.text, read.reason.value if read.reason else "")

    def _sources_among(self, files: Iterable[FoundFile], papers: list[FoundFile]) -> Iterator[Loaded]:
        """Those files that only have a document's name, as the text they are; the others are put on a pile."""
        from satchel.indexing.documents.read_document import is_document

        for file in files:
            if extension_of(file.path) in document_suffixes(often_source=True):
                data = read_bytes(self._folder, file.path, self._documents.max_bytes)
                if not isinstance(data, Skip) and not is_document(file.path, data):
                    yield from self._sources([file])
                    continue
            papers.append(file)

    def _papers(self, papers: Sequence[FoundFile]) -> Iterator[Loaded]:
        """The documents, each of those of one content once."""
        if not papers:
            return
        before = self._before
        copies = {path for path, note in before.notes.items() if note.startswith(SAME_AS)}
        holders = {
            state.content_hash: path
            for path, state in before.known.items()
            if path not in before.untrusted and path not in copies and self._documents.takes(path)
        }
        # What is a copy of another comes after it; of several, the one with the shortest name holds the text.
        for file in sorted(papers, key=lambda file: (file.path in copies, len(file.path), file.path)):
            yield self._paper(file, holders, copies)

    def _paper(self, file: FoundFile, holders: dict[bytes, str], copies: set[str]) -> Loaded:
        begun = time.time_ns()
        data = read_bytes(self._folder, file.path, self._documents.max_bytes)
        if isinstance(data, Skip):
            return Loaded(file.path, None, reason=data.value)
        state = _state_of(file, data, begun)
        holder = holders.setdefault(state.content_hash, file.path) if self._one_user else file.path
        held = self._before.known.get(file.path)
        is_copy = holder != file.path
        if held is not None and held.content_hash == state.content_hash and (file.path in copies) == is_copy:
            return Loaded(file.path, state, reason=self._before.reason(file.path), same=True)
        if is_copy:
            return Loaded(file.path, state, twin_of=holder)
        return Loaded(file.path, state, data=data)


def _state_of(file: FoundFile, data: bytes, begun: int) -> FileState:
    """What a file was when it was read: what is changed after the reading began is looked at again."""
    return FileState(blake2b(data, digest_size=16).digest(), file.size, file.modified_ns, begun)
