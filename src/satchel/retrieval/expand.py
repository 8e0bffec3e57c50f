"""From an id that was given out to the exact text behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from satchel.errors import InvalidOption, UnknownBlock
from satchel.models.block import BlockType
from satchel.models.checks import as_count, as_text
from satchel.models.files import SAME_AS
from satchel.models.search import Expansion

if TYPE_CHECKING:
    from satchel.models.search import Filters
    from satchel.ports.store import Store
    from satchel.retrieval.freshness import Place
    from satchel.retrieval.search import Folder

LONGEST_NUMBER: Final = 9
"""No file has lines with longer numbers."""


class Expander:
    """Finds what an id stands for, as the file on disk has it now."""

    def __init__(self, folder: Folder, store: Store) -> None:
        self._folder = folder
        self._store = store

    def expand(self, piece_id: str, lines: int, filters: Filters) -> Expansion:
        """The exact text behind an id: a path, a path with lines (`a.py:3-9`), or a block (`a.py#Class.method`).

        `lines` more are given on either side. An id that was shown with its hidden characters made visible will do.
        """
        try:
            return self._expanded(piece_id, lines, filters)
        except UnknownBlock:
            meant = self._as_it_was(piece_id, filters)
            if meant is None:
                raise
            return self._expanded(meant, lines, filters)

    def _as_it_was(self, shown_id: str, filters: Filters) -> str | None:
        """The id as it was before hidden characters in the path were made visible, if it is such a one."""
        from satchel.text.visible import make_visible_line

        if shown_id.isascii():
            return None
        for path in self._store.files():
            if path.isprintable():
                continue
            shown = make_visible_line(path).text
            rest = shown_id.removeprefix(shown)
            if rest != shown_id and rest[:1] in ("", ":", "#") and self._store.text_of(path, filters) is not None:
                return path + rest
        return None

    def _expanded(self, piece_id: str, lines: int, filters: Filters) -> Expansion:
        from satchel.retrieval.freshness import Place, Verdict, find_again

        as_text(InvalidOption, "id", piece_id)
        as_count(InvalidOption, "lines", lines, 0)
        piece_id = self._held_by_another(piece_id, filters) or piece_id
        block = self._store.block(piece_id, filters)
        if block is not None and not (block.qualified_name or block.type == BlockType.FILE):
            return Expansion(piece_id, "", 1, block.content.count("\n") + 1, block.content, block.language)
        path, old, qualified = self._located(piece_id, filters)
        state = self._store.files()[path]
        language = next((block.language for block in self._store.blocks_of(path, filters)), None)
        with self._folder.opened() as folder:
            disk = folder.look(path, state)
        if disk.verdict is Verdict.GONE:
            return _expansion(piece_id, path, old, language, stale=True)
        if disk.verdict is Verdict.SAME:
            text, place = self._store.text_of(path, filters) or "", old
        else:
            again = find_again(path, disk, old, qualified)
            if again is None:
                return _expansion(piece_id, path, old, language, stale=True)
            text, place = disk.text, again
        first, last, shown = widened(lines_of(text), place.first_line, place.last_line, lines)
        return _expansion(piece_id, path, Place(first, last, shown, place.page), language)

    def _held_by_another(self, piece_id: str, filters: Filters) -> str | None:
        """The same id in the file that holds the text, where a document is kept as another of the same content."""
        path = next((one for one in _paths_in(piece_id) if self._store.text_of(one, filters) is not None), None)
        if path is None or self._store.text_of(path, filters):
            return None
        note = self._store.notes().get(path, "")
        holder = note.removeprefix(SAME_AS)
        if not note.startswith(SAME_AS):
            return None
        # The name of what may not be read is not for telling.
        if self._store.text_of(holder, filters) is None:
            raise UnknownBlock(piece_id)
        return holder + piece_id[len(path) :]

    def _located(self, piece_id: str, filters: Filters) -> tuple[str, Place, str]:
        """The path, the place and the name that an id stands for, as they were indexed."""
        from satchel.retrieval.freshness import Place

        text = self._store.text_of(piece_id, filters)
        if text is not None:
            return piece_id, Place(1, max(1, text.rstrip("\n").count("\n") + 1), text), ""
        block = self._store.block(piece_id, filters) if "#" in piece_id else None
        if block is not None:
            return (
                block.source_path,
                Place(block.start_line, block.end_line, block.content, block.page),
                block.qualified_name,
            )
        path, _, span = piece_id.rpartition(":")
        first, _, last = span.partition("-")
        text = self._store.text_of(path, filters) if path else None
        numbers = (first, last or first)
        if text is None or not all(one.isdecimal() and len(one) <= LONGEST_NUMBER for one in numbers):
            near, _, wanted = piece_id.partition("#")
            known = [one.id for one in self._store.blocks_of(near, filters) if wanted and wanted in one.id]
            raise UnknownBlock(piece_id, known[:3])
        start, end = int(first), int(last or first)
        lines = text.split("\n")
        if not 1 <= start <= end <= len(lines):
            raise UnknownBlock(piece_id, [f"{path}:1-{len(lines_of(text))}"])
        inside = [
            one for one in self._store.blocks_of(path, filters) if one.start_line <= start and one.end_line >= end
        ]
        innermost = inside[-1] if inside else None
        place = Place(start, end, "\n".join(lines[start - 1 : end]), innermost.page if innermost else None)
        return path, place, innermost.qualified_name if innermost else ""


def _paths_in(piece_id: str) -> Iterator[str]:
    """What of an id may be a path: all of it, or what stands before a sign that parts."""
    yield piece_id
    for sign in "#:":
        path, found, _ = piece_id.partition(sign)
        if found:
            yield path


def _expansion(piece_id: str, path: str, place: Place, language: str | None, *, stale: bool = False) -> Expansion:
    return Expansion(
        piece_id, path, place.first_line, place.last_line, place.text, language, stale=stale, page=place.page
    )


def lines_of(text: str) -> list[str]:
    """The lines of a text; what ends in a line's end has none after it."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def widened(lines: Sequence[str], first: int, last: int, more: int) -> tuple[int, int, str]:
    """Lines with so many more on either side, without blank ones at the ends; no further than the page."""
    if not more:
        return first, last, "\n".join(lines[first - 1 : last])
    from satchel.models.document import is_border  # most questions never need it

    # No further than the page goes: what is beyond is another place.
    least, most = max(1, first - more), min(len(lines), last + more)
    while first > least and not is_border(lines[first - 2]):
        first -= 1
    while last < most and not is_border(lines[last]):
        last += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    while first < last and not lines[first - 1].strip():
        first += 1
    return first, last, "\n".join(lines[first - 1 : last])
