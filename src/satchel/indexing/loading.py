"""Taking up files that may have changed: which are as they were, which have to be prepared anew, which are passed over.

Documents of one content are read once: of several, the one with the shortest name holds the text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from satchel.indexing.documents.policy import DocumentPolicy
from satchel.indexing.read import read_bytes, text_of
from satchel.indexing.walk import FoundFile, Skip
from satchel.models.files import SAME_AS, FileState, document_suffixes, extension_of

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
        from satchel.indexing.documents.kinds import is_document

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
