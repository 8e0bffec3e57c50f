"""Prepared files of earlier runs, found by content: a second worktree or a branch switched back is not read anew.

What a reader makes of a file depends on the content, the end of the name, the settings for documents and the program
itself; the key of a prepared file is a hash of these four.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.indexing.walk import DocumentPolicy, way_of_reading
from satchel.models.files import DOCUMENT_KINDS, kind_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.indexing.changes import Loaded
    from satchel.ports.embedder import Embedder
    from satchel.ports.prepared_cache import PreparedCache
    from satchel.ports.workers import Prepared

_READING_PACKAGES: Final = ("importers", "indexing", "models", "text")
"""Folders of Satchel whose code and tables decide what is read from a file."""
_READING_LIBRARIES: Final = ("tree_sitter", "liteparse", "xberg", "pypdfium2", "rapidocr")
"""Beginnings of the names of libraries that read files; another version may read otherwise."""
_METADATA: Final = ".dist-info"


@cache
def reader_version() -> str:
    """A hash of the code, tables and libraries that read files; takes a few milliseconds, once in a process."""
    digest = blake2b(digest_size=16)
    for path in _reading_code():
        digest.update(path.read_bytes())
    for library in sorted(set(_installed_readers())):
        digest.update(library.encode())
    return digest.hexdigest()


def _reading_code() -> Iterator[Path]:
    satchel = Path(__file__).parent.parent
    for package in _READING_PACKAGES:
        for path in sorted((satchel / package).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                yield path


def _installed_readers() -> Iterator[str]:
    """Names and versions of the reading libraries, from the names of their metadata folders."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # a ZIP file, or a missing folder
            continue
        yield from (name for name in names if name.startswith(_READING_LIBRARIES) and name.endswith(_METADATA))


def prepared_key(path: str, content_hash: bytes, *, way: str = "") -> bytes | None:
    """The key of a prepared file; `way` is the way of reading for a document. None if a plug-in reads the file."""
    if way and DOCUMENT_KINDS.is_plugin(kind_name(path)):
        return None  # the plug-in's version is unknown
    name = path.rpartition("/")[2]
    ending = name[name.find(".") :].lower() if "." in name else ""
    parts = (reader_version(), way, ending)
    return blake2b("\0".join(parts).encode("utf-8", "surrogateescape") + b"\0" + content_hash, digest_size=16).digest()


class PreparedFiles:
    """The prepared files and vectors of a run: looked up before the work, and kept after it."""

    def __init__(self, known: PreparedCache | None, documents: DocumentPolicy, embedder: Embedder) -> None:
        self._cache = known
        self._way = way_of_reading(documents)
        self._embedder = embedder
        self._missed: dict[str, bytes] = {}
        self._made: dict[bytes, Prepared] = {}
        self._vectors: dict[bytes, NDArray[np.float32]] = {}

    def find(self, file: Loaded) -> Prepared | None:
        """The prepared form of a loaded file, or None; the form made instead is kept by `keep`."""
        if self._cache is None or file.state is None:
            return None
        key = prepared_key(file.path, file.state.content_hash, way="" if file.data is None else self._way)
        known = None if key is None else self._cache.prepared(key)
        if key is not None and known is None:
            self._missed[file.path] = key
        return None if known is None else known._replace(path=file.path)

    def keep(self, made: Prepared) -> None:
        """Keep a prepared file that was not found; not if a parser or a reader had difficulties, as these may pass."""
        key = self._missed.pop(made.path, None)
        if key is not None and not made.unreadable and not made.outline.note:
            self._made[key] = made._replace(path="", vectors=None)

    def embed(self, texts: Mapping[bytes, str]) -> Mapping[bytes, NDArray[np.float32]]:
        """The vectors of texts by hash: the known vectors, and the embedder's for the others."""
        vectors = {} if self._cache is None else self._cache.vectors(list(texts))
        lacking = [key for key in texts if key not in vectors]
        if lacking:
            made = dict(zip(lacking, self._embedder.embed_texts([texts[key] for key in lacking]), strict=True))
            vectors |= made
            if self._cache is not None:
                self._vectors |= made
        return vectors

    def save(self) -> None:
        """Add what was made to the cache."""
        if self._cache is not None and (self._made or self._vectors):
            self._cache.add(self._made, self._vectors)
        self._made, self._vectors = {}, {}

    def close(self) -> list[str]:
        """Release the cache; returns a note if the cache could not be used."""
        if self._cache is None:
            return []
        self._cache.close()
        return [self._cache.problem] if self._cache.problem else []
