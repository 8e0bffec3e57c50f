"""A Logseq graph as records: its pages and journals, with properties, tasks, namespaces and links between blocks.

A graph is a folder of outlines in Markdown or org-mode. It is read like an Obsidian vault, but for what Logseq does in
its own way: `a___b.md` is the page `a/b`, `key:: value` is a property of a page or of a block, `((id))` is a link to
the block with the property `id:: …`, and a day of the journal has the name of its date.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from satchel.importers.archive import first_names
from satchel.importers.markdown_blocks import MarkdownPage, MarkdownPiece, MarkdownPieces, read_pieces, walk_pieces
from satchel.importers.note_markup import FrontMatter, Reference, read_front_matter, references, task_metadata
from satchel.importers.org import OrgReader
from satchel.importers.storable import storable_line
from satchel.importers.vault import DEFAULT_MAX_FILE_BYTES, VaultFile, VaultReader, read_with, update_with
from satchel.importers.vault_state import VaultState
from satchel.models.block import BlockType, Record
from satchel.workspace.sources import SourceUpdate

_FOLDERS: Final = ("pages", "journals")
_HIDDEN: Final = ("logseq/", "whiteboards/", "draws/")
_NOTES: Final = (".md", ".org")

_MAX_PROPERTY_CHARS: Final = 2_000
_MAX_PROPERTIES: Final = 100  # of a page or block

_PROPERTY: Final = re.compile(r"[ \t]*([A-Za-z0-9][\w./-]{0,99})::(?:[ \t]+(.*)|[ \t]*)$")
_LOGBOOK: Final = re.compile(r"^[ \t]*:LOGBOOK:[ \t]*\n(?:.*\n)*?[ \t]*:END:[ \t]*(?:\n|\Z)", re.MULTILINE)
_BLOCK_REFERENCE: Final = re.compile(r"\(\(([0-9a-fA-F-]{36})\)\)")
_TAG_WITH_SPACES: Final = re.compile(r"#\[\[([^\[\]\n]{1,200})\]\]")
_DAY: Final = re.compile(r"(\d{4})[-_](\d{2})[-_](\d{2})")
_MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()

# Properties by which Logseq itself remembers how a block is shown.
_UNSEEN: Final = frozenset("collapsed id heading logseq.order-list-type background-color hl-page hl-color".split())
_LISTS: Final = frozenset({"tags", "alias", "aliases"})


def is_logseq(path: Path) -> bool:
    """True for a folder with Logseq's settings, or with its two folders of pages."""
    if not path.is_dir():
        return False
    names = first_names(path)
    has_pages = all(any(name.startswith(f"{folder}/") for name in names) for folder in _FOLDERS)
    return (path / "logseq" / "config.edn").is_file() or (has_pages and not (path / ".obsidian").exists())


def read_logseq(folder: Path) -> Iterator[Record]:
    """The pages of a graph as blocks, then the links; a Notice for anything left out."""
    return read_with(_Graph(DEFAULT_MAX_FILE_BYTES, VaultState()), folder)


def update_logseq(folder: Path, state: str) -> SourceUpdate:
    """The pages changed since an earlier update, and links that lead elsewhere now; everything without a state."""
    return update_with(_Graph(DEFAULT_MAX_FILE_BYTES, VaultState.from_text(state)), folder)


@dataclass(slots=True)
class _Graph(VaultReader):
    """Reads a graph by Logseq's rules."""

    pages: dict[str, str] = field(default_factory=dict)
    """Page ids by name, lower case."""

    def is_hidden(self, path: str) -> bool:
        return path.startswith(_HIDDEN) or any(part.startswith(".") for part in path.split("/"))

    def is_note(self, path: str) -> bool:
        return path.startswith(tuple(f"{folder}/" for folder in _FOLDERS)) and path.lower().endswith(_NOTES)

    def order(self, file: VaultFile) -> tuple[Any, ...]:
        name = _name_of(file.path)
        self.pages.setdefault(name.casefold(), file.page_id)
        return name.casefold().split("/"), file.path

    def note_path(self, path: str) -> str:
        return storable_line(f"{_name_of(path)}.md")

    def other_names(self, path: str) -> Sequence[str]:
        """A day's name as Logseq writes it in links by default."""
        day = _day_of(path)
        if day is None:
            return ()
        ending = "th" if 10 < day.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
        return (f"{_MONTHS[day.month - 1]} {day.day}{ending}, {day.year}", day.isoformat())

    def title_of(self, path: str) -> str:
        day = _day_of(path)
        return day.isoformat() if day else _name_of(path)

    def parent_of(self, file: VaultFile) -> str | None:
        """The page of the nearest enclosing namespace that has a page."""
        name = _name_of(file.path).casefold()
        while "/" in name:
            name = name.rpartition("/")[0]
            if (page := self.pages.get(name)) and page != file.page_id:
                return page
        return None

    def references_in(self, text: str) -> Iterable[Reference]:
        yield from references(text)
        for match in dict.fromkeys(_BLOCK_REFERENCE.findall(text)):
            yield Reference(f"(({match}))", "", embeds=False, wiki=True)

    def read_note(self, page: MarkdownPage, text: str) -> tuple[FrontMatter, MarkdownPieces]:
        text = _LOGBOOK.sub("", text)
        if page.source_path.lower().endswith(".org"):
            reader = OrgReader(text.split("\n"))
            front, read = FrontMatter(dict(reader.keywords) | reader.properties), MarkdownPieces(reader.read())
        else:
            front = read_front_matter(text)
            rest = text.split("\n")[front.lines :]
            properties, lines = _page_properties(rest)
            read = read_pieces("\n".join(rest[lines:]), front.lines + lines + 1)
            front = FrontMatter({**front.properties, **properties}, front.lines, front.problem, front.unread)
        if day := _day_of(page.source_path):
            front = FrontMatter(
                {**front.properties, "journal": day.isoformat()}, front.lines, front.problem, front.unread
            )
        for piece in walk_pieces(read.roots):
            _adapt(piece)
        return front, read


def _name_of(path: str) -> str:
    """The name of a page from its file: `a___b.md` and `a%2Fb.md` are the page `a/b`."""
    name = posixpath.splitext(path.partition("/")[2] or path)[0].replace("___", "/")
    return unquote(name, errors="replace") if "%" in name else name


def _day_of(path: str) -> date | None:
    match = _DAY.fullmatch(posixpath.splitext(posixpath.basename(path))[0])
    if not path.startswith("journals/") or not match:
        return None
    try:
        return date(*map(int, match.groups()))
    except ValueError:
        return None


def _page_properties(lines: Sequence[str]) -> tuple[dict[str, Any], int]:
    """The properties in a page's first lines, and how many lines they take."""
    facts: dict[str, Any] = {}
    at = 0
    # Logseq writes them as the first block: without a bullet, or with it.
    while at < len(lines) and (match := _PROPERTY.match(lines[at].removeprefix("- ") if not facts else lines[at])):
        _add_property(facts, match)
        at += 1
    return facts, at


def _add_property(facts: dict[str, Any], match: re.Match[str]) -> None:
    name, value = match[1].lower(), (match[2] or "").strip()[:_MAX_PROPERTY_CHARS]
    if name in _UNSEEN or len(facts) >= _MAX_PROPERTIES or not value:
        return
    if name in _LISTS:
        entries = [entry.strip().strip("#").removeprefix("[[").removesuffix("]]") for entry in value.split(",")]
        facts["aliases" if name == "alias" else name] = [entry for entry in entries if entry]
    else:
        facts[name] = value


def _adapt(piece: MarkdownPiece) -> None:
    """Take Logseq's properties out of a block's text, and a heading out of a bullet."""
    if piece.type is BlockType.CODE:
        return
    piece.metadata = {name.lower(): value for name, value in piece.metadata.items()}  # org-mode writes them in capitals
    piece.anchor = piece.anchor or str(piece.metadata.get("id") or "")
    piece.metadata = {name: value for name, value in piece.metadata.items() if name not in _UNSEEN}
    kept = []
    facts: dict[str, Any] = {}
    for line in piece.content.split("\n"):
        match = _PROPERTY.match(line)
        if match is None:
            kept.append(line)
        elif match[1].lower() == "id":
            piece.anchor = (match[2] or "").strip()
        else:
            _add_property(facts, match)
    piece.content = _TAG_WITH_SPACES.sub(r"[[\1]]", "\n".join(kept).strip())
    piece.metadata = {**facts, **piece.metadata}
    if piece.type is BlockType.TODO and piece.metadata.get("status") == "open":
        piece.metadata |= {name: day for name, day in task_metadata(" ", piece.content).items() if name != "done"}
    first = piece.children[0] if piece.children else None
    if piece.type is BlockType.LIST_ITEM and not piece.content and first and first.type is BlockType.HEADING:
        piece.type, piece.title = BlockType.HEADING, first.title
        piece.metadata |= first.metadata
        piece.children = [*first.children, *piece.children[1:]]
