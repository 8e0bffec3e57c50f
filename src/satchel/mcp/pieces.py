"""The files of an index and the pieces of them as resources: `satchel://piece/` and a percent-encoded id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from satchel.errors import InvalidOption
from satchel.mcp.paging import Cursor, Limits, Page, Pages, Result, digest_of, digest_of_asked, read_cursor
from satchel.mcp.results import RESTARTED, escaped_length
from satchel.text.visible import show_lone_bytes

if TYPE_CHECKING:
    from satchel.service.local_client import LocalSatchel

PREFIX: Final = "satchel://piece/"
TEMPLATE: Final = {
    "name": "piece",
    "title": "A piece of the index",
    "uriTemplate": PREFIX + "{+id}",
    "description": "The exact text behind an id: a path, path:10-40, path#Symbol or a block's id.",
}
_PARTED: Final = "?cursor="
_ON_A_PAGE: Final = 100
_LONGEST_URI: Final = 3_000
_MARKDOWN: Final = (".md", ".markdown", ".mdx")


def uri_of(piece_id: str) -> str:
    """The address of a piece."""
    return PREFIX + quote(piece_id, safe="/:@!$&'()*+,;=-._~", errors="surrogateescape")


def id_in(uri: str) -> tuple[str, str | None]:
    """The id that an address stands for, and where in it to begin; an error if it is no address of ours."""
    if not uri.startswith(PREFIX):
        raise InvalidOption("uri", uri, f"must begin with {PREFIX}")
    encoded, parted, cursor = uri.removeprefix(PREFIX).partition(_PARTED)
    return unquote(encoded, errors="surrogateescape"), cursor if parted else None


def read(bag: LocalSatchel, uri: str, limits: Limits) -> Result:
    """The text behind an address; where it is too long for one answer, a page of it and the address of the next."""
    piece_id, cursor = id_in(uri)
    found = bag.expand(piece_id)
    text = show_lone_bytes(found.text).text
    kind = "text/markdown" if found.language == "markdown" else "text/plain"

    def make(page: Page[str]) -> Result:
        contents = [{"uri": uri, "mimeType": kind, "text": page.part}]
        if page.restarted:
            contents.insert(0, {"uri": uri, "mimeType": "text/plain", "text": f"[satchel: {RESTARTED}]"})
        if page.next_cursor:
            after = uri_of(piece_id) + _PARTED + page.next_cursor
            contents.append({"uri": after, "mimeType": "text/plain", "text": f"[satchel: there is more at {after}]"})
        return {"contents": contents}

    asked = digest_of_asked("read", {"id": piece_id})
    return Pages(whole=text, asked=asked, make=make, limits=limits).at(cursor)


def listed(bag: LocalSatchel, cursor: str | None, limits: Limits) -> Result:
    """A page of the files of the index by name; for others than the owner there is nothing to list."""
    is_open = bag.caller.is_owner and bag.filters().readers is None
    paths = sorted(bag.engine.store.files()) if is_open else []
    paths = [path for path in paths if escaped_length(uri_of(path)) + escaped_length(path) <= _LONGEST_URI]
    start = _start(cursor, paths)
    resources: list[Mapping[str, Any]] = []
    room = limits.chars // 2
    for path in paths[start : start + _ON_A_PAGE]:
        one = {
            "uri": uri_of(path),
            "name": show_lone_bytes(path).text,
            "mimeType": "text/markdown" if path.lower().endswith(_MARKDOWN) else "text/plain",
        }
        room -= sum(escaped_length(value) + 16 for value in one.values())
        if room < 0:
            break
        resources.append(one)
    result: Result = {"resources": resources}
    end = start + len(resources)
    if end < len(paths):
        # The name, not the number: files may come and go between two pages.
        result["nextCursor"] = Cursor(offset=end, asked=_LISTED, whole=digest_of(paths[end - 1])).written()
    return result


_LISTED: Final = digest_of_asked("list", {})


def _start(cursor: str | None, paths: list[str]) -> int:
    """Where to go on: after the file that was last, if it is still there, or else at the same number."""
    if not cursor:
        return 0
    found = read_cursor(cursor)
    if found.asked != _LISTED:
        raise InvalidOption("cursor", cursor, "is not one of this list; leave it out to begin anew")
    if 0 < found.offset <= len(paths) and digest_of(paths[found.offset - 1]) == found.whole:
        return found.offset
    last = next((i for i, path in enumerate(paths) if digest_of(path) == found.whole), None)
    return found.offset if last is None else last + 1
