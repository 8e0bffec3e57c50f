"""Texts without pages, in parts of about a page, so that they can be cited like documents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.models.document import PageMetadata, extension_of

if TYPE_CHECKING:
    from satchel.models.search import Filters
    from satchel.ports.file_index import FileIndex, StoredPiece

_PAGE_CHARS: Final = 3000


class Part(NamedTuple):
    """About a page of a text that has none."""

    number: int
    pieces: tuple[StoredPiece, ...]

    @property
    def text(self) -> str:
        """What it says."""
        return "\n\n".join(piece.text for piece in self.pieces)

    def metadata(self, path: str) -> PageMetadata:
        """What is known of it, as of a page."""
        state = self.pieces[0].state
        heading = self.pieces[0].title.replace("/", " > ") or None
        return PageMetadata(
            doc_id=state.content_hash.hex(),
            filename=path.rpartition("/")[2],
            page=self.number,
            extension=extension_of(path),
            timestamp=moment(state.read_ns),
            source_path=path,
            section_path=heading,
            parent_heading=heading.rpartition(" > ")[2] if heading else None,
            num_headings=len({piece.title for piece in self.pieces if piece.title}),
        )


class Parts:
    """Texts without pages, cut into parts of about a page, always in the same places."""

    def __init__(self, files: FileIndex) -> None:
        self._files = files
        self._cut: dict[str, list[Part]] = {}

    def part(self, path: str, number: int, filters: Filters) -> Part | None:
        """The part of that number, or None."""
        parts = self._of(path, filters)
        return parts[number - 1] if 1 <= number <= len(parts) else None

    def at(self, path: str, line: int, filters: Filters) -> int:
        """The part in which a line stands."""
        parts = self._of(path, filters)
        return next((one.number for one in reversed(parts) if one.pieces[0].first_line <= line), 1)

    def _of(self, path: str, filters: Filters) -> list[Part]:
        if path not in self._cut:
            parts: list[list[StoredPiece]] = []
            size = 0
            for piece in self._files.pieces_of(path, filters):
                if not parts or size + len(piece.text) > _PAGE_CHARS:
                    parts.append([])
                    size = 0
                parts[-1].append(piece)
                size += len(piece.text)
            self._cut[path] = [Part(i, tuple(pieces)) for i, pieces in enumerate(parts, start=1)]
        return self._cut[path]


def moment(nanoseconds: int) -> str:
    """A file's time as metadata have it."""
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat()
