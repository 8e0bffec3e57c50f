"""Pictures of pages, made when they are asked for and kept in the data folder."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from satchel.indexing.documents.readers import DocumentReaders
    from satchel.retrieval.search import Folder

_THUMBNAIL_WIDTH: Final = 240


class PageImages:
    """Pictures of the pages of the documents in a folder, named after the documents' content."""

    def __init__(self, source: Folder, target: Path) -> None:
        self._source = source
        self._target = target
        self._started: DocumentReaders | None = None
        self._ending = ExitStack()
        self._lock = Lock()

    def place(self, doc_id: str, page: int, *, thumbnail: bool = False) -> Path:
        """Where the picture is, or will be."""
        return self._target / f"{doc_id}_page_{page:03d}{'_thumb' if thumbnail else ''}.jpg"

    def existing(self, doc_id: str, page: int, *, thumbnail: bool = False) -> str | None:
        """The path of the picture, if it was made already."""
        place = self.place(doc_id, page, thumbnail=thumbnail)
        return str(place) if place.exists() else None

    def image(self, path: str, doc_id: str, page: int, *, thumbnail: bool = False) -> Path | None:
        """The picture; None for what has no pictures, or is no longer the document of that content."""
        place = self.place(doc_id, page, thumbnail=thumbnail)
        if place.exists():
            return place
        from satchel.models.document import Unreadable

        with self._source.opened() as disk:
            data = disk.document(path)
        if data is None or data.content_hash.hex() != doc_id:
            return None
        width = _THUMBNAIL_WIDTH if thumbnail else None
        made = self._readers().render(data.data, path, page, width=width, format="jpeg")
        if isinstance(made, Unreadable):
            return None
        self._keep(place, made)
        return place

    def close(self) -> None:
        """End the process that makes pictures."""
        self._ending.close()
        self._started = None

    def _readers(self) -> DocumentReaders:
        with self._lock:
            if self._started is None:
                from satchel.indexing.documents.readers import readers_for

                self._started = self._ending.enter_context(readers_for(self._source.documents, 1))
            return self._started

    def _keep(self, place: Path, data: bytes) -> None:
        """Write it whole or not at all."""
        self._target.mkdir(mode=0o700, parents=True, exist_ok=True)
        passing = place.with_suffix(f".{secrets.token_hex(4)}.part")
        try:
            passing.write_bytes(data)
            os.replace(passing, place)
        finally:
            with suppress(OSError):
                passing.unlink()
