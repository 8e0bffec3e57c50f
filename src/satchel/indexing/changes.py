"""Compare a folder with the store, and load the files to refresh.

Files are compared by size and time first; only files with a difference are opened. Documents of equal content are read
once: the document with the shortest path holds the text.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.walk import (
    LARGE_FILE_BYTES,
    MAX_LARGE_FILES_BYTES,
    DocumentPolicy,
    FoundFile,
    PassedOver,
    Skip,
    opened_folder,
    read_bytes,
    surroundings,
    text_of,
    walk,
    way_of_reading,
)
from satchel.models.access import DefaultAccess
from satchel.models.files import (
    PASSED_OVER,
    SAME_AS,
    SKIPPED,
    FileState,
    SkippedFile,
    document_suffixes,
    extension_of,
    is_untouched,
)

if TYPE_CHECKING:
    from satchel.ports.store import Store


WAY: Final = "documents"
"""Key of the fact in the store: the settings by which documents were read."""


class Changes(NamedTuple):
    """Differences between the folder and the store, judged by size and time alone."""

    found: int
    suspect: tuple[FoundFile, ...]
    missing: tuple[str, ...]
    passed: tuple[PassedOver, ...]
    are_skips_stored: bool = True
    """True if the store knows the skipped files that a question may ask for."""
    folders: frozenset[str] = frozenset()
    """The folders with the found files, those without any included; the root is the empty path."""

    @property
    def to_look_at(self) -> int:
        """Number of files to inspect."""
        return len(self.suspect) + len(self.missing)

    @property
    def paths(self) -> frozenset[str]:
        """Paths of the files to inspect."""
        return frozenset(file.path for file in self.suspect).union(self.missing)


@dataclass(slots=True)
class IndexReport:
    """Counts, notes and skipped files of an index run."""

    found: int = 0
    read: int = 0
    touched: int = 0
    dropped: int = 0
    embedded: int = 0
    seconds: float = 0.0
    generation: int = 0
    duplicates: int = 0
    """Number of documents with the content of another document; the content is stored once."""
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_paths: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """True if the run changed any searchable content."""
        return bool(self.read or self.dropped)

    def pass_over(self, path: str, reason: str) -> None:
        """Record a skipped file and the reason."""
        self.skipped[reason] += 1
        self.skipped_paths.append((path, reason))


@dataclass(frozen=True)
class Lookout:
    """Compares a folder with a store; paths below `without` belong to the index and are left out."""

    root: Path
    store: Store
    max_file_bytes: int
    without: str
    documents: DocumentPolicy

    def changes(self) -> Changes:
        """Files to inspect, judged by size and time; opens no file."""
        known = self.store.files()
        suspects: dict[str, FoundFile] = {}
        present: dict[str, FoundFile] = {}
        passed: list[PassedOver] = []
        folders: list[str] = []
        with opened_folder(self.root) as folder:
            within = surroundings(os.fspath(self.root))
            for entry in walk(
                folder,
                max_file_bytes=self.max_file_bytes,
                within=within,
                documents=self.documents,
                entered=folders,
            ):
                path = entry.path
                if isinstance(entry, PassedOver):
                    passed.append(entry)
                    continue
                if (self.without and path.startswith(self.without)) or self._is_imported(path):
                    continue
                state = known.get(path)
                if state is None or not is_untouched(state, entry.size, entry.modified_ns, entry.changed_ns):
                    if not _may_be_read(path, folder):
                        passed.append(PassedOver(path, Skip.UNREADABLE))
                        continue
                    suspects[path] = entry
                present[path] = entry
        for file in self._too_many_large(present.values()):
            del present[file.path]
            suspects.pop(file.path, None)
            passed.append(PassedOver(file.path, Skip.TOO_MANY_LARGE, size=file.size))
        if self.is_read_otherwise():
            suspects |= {path: file for path, file in present.items() if path in known and is_document_name(path)}
        suspects |= {path: present[path] for path in self._outdated_copies(present, suspects, known)}
        missing = tuple(path for path in known if path not in present)
        stored = self.store.fact(SKIPPED)
        are_skips_stored = stored is None or stored == skipped_fact(passed)
        places = frozenset(place for place in folders if not (self.without and f"{place}/".startswith(self.without)))
        return Changes(len(present), tuple(suspects.values()), missing, tuple(passed), are_skips_stored, places)

    def _too_many_large(self, files: Iterable[FoundFile]) -> list[FoundFile]:
        """The large text files beyond the limit for all of them together; the smallest are read."""
        large = [file for file in files if file.size > LARGE_FILE_BYTES and not self.documents.takes(file.path)]
        limit = max(MAX_LARGE_FILES_BYTES, self.max_file_bytes)
        large.sort(key=lambda file: (file.size, file.path))
        sizes = accumulate(file.size for file in large)
        return [file for file, total in zip(large, sizes, strict=True) if total > limit]

    def _outdated_copies(
        self, present: Mapping[str, FoundFile], suspects: Mapping[str, FoundFile], known: Mapping[str, FileState]
    ) -> list[str]:
        """Documents stored as copies whose original is gone, may have changed, or may have different access now."""
        one_user = self.has_one_user()
        notes = self.store.notes().items()
        copies = {path: note.removeprefix(SAME_AS) for path, note in notes if note.startswith(SAME_AS)}
        unchanged = present.keys() - suspects.keys() if copies else set()
        stay = {
            path
            for path, first in copies.items()
            if one_user and {path, first} <= unchanged and known[first].content_hash == known[path].content_hash
        }
        return [path for path in copies if path in unchanged and path not in stay]

    def is_read_otherwise(self) -> bool:
        """True if the current settings read documents differently from the run that stored them."""
        return self.store.generation > 0 and self.store.fact(WAY) != way_of_reading(self.documents)

    def has_one_user(self) -> bool:
        """True if access to any file implies access to all files; identical documents then share a stored copy."""
        return self.store.default_access() is DefaultAccess.OWNER

    @cached_property
    def _imported(self) -> list[tuple[str, tuple[str, ...]]]:
        """Folders of imported sources, with the suffixes of files that are stored as blocks there."""
        sources = json.loads(self.store.fact("sources") or "{}").values()
        return [
            (os.path.join(source["path"], ""), tuple(source["replaces"])) for source in sources if source["replaces"]
        ]

    def _is_imported(self, path: str) -> bool:
        """True if an imported source stores the file as blocks with access lists of their own."""
        return any(
            path.endswith(suffixes) and os.path.join(self.root, path, "").startswith(place)
            for place, suffixes in self._imported
        )


def is_document_name(path: str) -> bool:
    """True if the file name has a suffix of a document."""
    return extension_of(path) in document_suffixes()


def _may_be_read(path: str, folder: int) -> bool:
    """True if file permissions allow reading; unreadable files are not inspected on every run."""
    return os.access(path, os.R_OK, dir_fd=folder, effective_ids=os.access in os.supports_effective_ids)


# Skipped although a person may have written them and may ask for them; the other files are nobody's text, or ignored.
_WORTH_KNOWING: Final = frozenset({Skip.TOO_LARGE, Skip.TOO_MANY_LARGE, Skip.SECRET, Skip.UNREADABLE, Skip.DOCUMENT})
_MAX_STORED_SKIPS: Final = 1_000  # read at every question; more are a folder of one kind, of which these are examples


def skipped_fact(passed: Iterable[PassedOver]) -> str:
    """The skipped files that a question may ask for, in stored form."""
    files = (
        SkippedFile(f"{entry.path}/" if entry.is_folder else entry.path, entry.reason.value, _rounded(entry.size))
        for entry in passed
        if entry.reason in _WORTH_KNOWING
    )
    return json.dumps(sorted(files)[:_MAX_STORED_SKIPS])


def _rounded(size: int) -> int:
    """The size with two digits, so that a growing log does not change the index at each question."""
    return int(float(f"{size:.1e}"))


class Loaded(NamedTuple):
    """A file's text and state; no state if the file could not be read, `same` if the content is unchanged."""

    path: str
    state: FileState | None
    text: str = ""
    reason: str = ""
    """Reason for skipping the file."""
    same: bool = False
    twin_of: str = ""
    """Path of the document that holds the same content in the store."""
    data: bytes | None = None
    """The bytes of a document; None for source text."""

    @property
    def is_settled(self) -> bool:
        """True if there is nothing to prepare."""
        return self.state is None or self.same or bool(self.reason or self.twin_of)

    @property
    def note(self) -> str:
        """Note stored with a file that needs no preparation."""
        if self.twin_of:
            return SAME_AS + self.twin_of
        return PASSED_OVER + self.reason if self.reason else ""


@dataclass
class FileLoader:
    """Reads files of an open folder."""

    folder: int
    documents: DocumentPolicy
    max_file_bytes: int
    one_user: bool
    known: Mapping[str, FileState]
    notes: Mapping[str, str]
    untrusted: frozenset[str]
    """Paths of files that may have changed or vanished since `known` and `notes` were stored."""

    def load(self, files: Sequence[FoundFile]) -> Iterator[Loaded]:
        """Load the files in the given order, sources first."""
        for file in files:
            if not self.documents.takes(file.path):
                yield self._load(file)
        papers: list[FoundFile] = []
        for file in files:
            if self.documents.takes(file.path):
                if self._is_source(file):
                    yield self._load(file)
                else:
                    papers.append(file)
        # Copies come after their originals; of equal documents, the document with the shortest path holds the text.
        # Equal documents are equally long: those of one length stay together, the first decides when they are read.
        order: dict[int, int] = {}
        for i, file in enumerate(papers):
            order.setdefault(file.size, i)
        for file in sorted(papers, key=lambda f: (order[f.size], f.path in self._copies, len(f.path), f.path)):
            yield self._load(file, is_paper=True)

    def _is_source(self, file: FoundFile) -> bool:
        """True if the file only has a document's suffix and is read as plain source text."""
        if extension_of(file.path) not in document_suffixes(often_source=True):
            return False
        from satchel.indexing.documents.read_document import is_document

        data = read_bytes(self.folder, file.path, self.documents.max_bytes)
        return not isinstance(data, Skip) and not is_document(file.path, data)

    @cached_property
    def _copies(self) -> set[str]:
        """Documents whose content is stored under another path."""
        return {path for path, note in self.notes.items() if note.startswith(SAME_AS)}

    @cached_property
    def _holders(self) -> dict[bytes, str]:
        """Path under which each document's content is stored, by content hash."""
        return {
            state.content_hash: path
            for path, state in self.known.items()
            if path not in self.untrusted and path not in self._copies and self.documents.takes(path)
        }

    def _load(self, file: FoundFile, *, is_paper: bool = False) -> Loaded:
        path, begun = file.path, time.time_ns()
        data = read_bytes(self.folder, path, self.documents.max_bytes if is_paper else self.max_file_bytes)
        if isinstance(data, Skip):
            return Loaded(path, None, reason=data.value)
        # A change after the start of reading makes the next run inspect the file again.
        state = FileState(blake2b(data, digest_size=16).digest(), file.size, file.modified_ns, begun)
        holder = self._holders.setdefault(state.content_hash, path) if is_paper and self.one_user else path
        is_copy = holder != path
        known = self.known.get(path)
        is_known = known is not None and known.content_hash == state.content_hash
        if is_known and (not is_paper or (path in self._copies) == is_copy):
            return Loaded(path, state, reason=self._reason(path), same=True)
        if is_copy:
            return Loaded(path, state, twin_of=holder)
        if is_paper:
            return Loaded(path, state, data=data)
        text = text_of(path, data)
        return Loaded(path, state, reason=text.value) if isinstance(text, Skip) else Loaded(path, state, text)

    def _reason(self, path: str) -> str:
        """Reason why an unchanged file was skipped by an earlier run; empty if the file was read."""
        note = self.notes.get(path, "")
        return note.removeprefix(PASSED_OVER) if note.startswith(PASSED_OVER) else ""
