"""An Obsidian vault as records: a page with blocks for each note, `[[links]]` resolved by Obsidian's rules."""

from __future__ import annotations

import os
import posixpath
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from satchel.errors import WorkspaceMissing
from satchel.importers.markdown_blocks import (
    MarkdownPage,
    MarkdownPiece,
    MarkdownPieces,
    first_sentence,
    lay_out,
    read_pieces,
    summary_of,
)
from satchel.importers.note_markup import FrontMatter, Reference, read_front_matter, references
from satchel.importers.obsidian_boards import is_board, mark_lanes, read_canvas, without_settings
from satchel.importers.storable import Notices, file_time, moment_in, not_read, storable_line, unused
from satchel.importers.vault_state import NoteReference, NoteState, VaultState
from satchel.indexing.walk import PassedOver, Skip, read_bytes, walk
from satchel.models.block import Block, BlockType, Link, LinkKind, Record
from satchel.models.files import FileState
from satchel.workspace.sources import SourceUpdate

DEFAULT_MAX_FILE_BYTES: Final = 1_000_000  # nobody writes a longer note; each of its paragraphs would become a block

# Characters that Obsidian ignores when it compares a heading with a link.
_NOT_IN_HEADINGS: Final = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")


@dataclass(slots=True)
class _NoteNames:
    """An index of paths, file names, aliases, headings and block ids; holds no note text."""

    _by_path: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _by_alias: dict[str, str] = field(default_factory=dict)
    _inside: dict[tuple[str, str], str] = field(default_factory=dict)
    _by_end: dict[str, str | None] = field(default_factory=dict)
    _by_anchor: dict[str, str] = field(default_factory=dict)

    def add_note(self, path: str, page_id: str) -> None:
        """Register a file (path with extension) under a page id; add all files before resolving links."""
        key = _key(path).removesuffix(_NOTE)
        if self._by_path.setdefault(key, page_id) == page_id:
            self._by_name.setdefault(posixpath.basename(key), []).append(key)

    def add_aliases(self, page_id: str, aliases: Iterable[str]) -> None:
        """Register the aliases of a page; the first page with an alias keeps the alias."""
        for alias in aliases:
            self._by_alias.setdefault(_key(alias), page_id)

    def add_heading(self, page_id: str, path: str, title: str, block_id: str) -> None:
        """Register a heading by title and by heading path."""
        for name in (title, path):
            self._inside.setdefault((page_id, "#" + _heading_key(name)), block_id)

    def add_anchor(self, page_id: str, anchor: str, block_id: str) -> None:
        """Register a block by explicit id."""
        self._inside.setdefault((page_id, "^" + anchor.lower()), block_id)
        self._by_anchor.setdefault(anchor.lower(), block_id)

    def resolve(self, destination: str, source_path: str, source_id: str, *, relative: bool = False) -> str | None:
        """The block id of a link's target: a note, a heading or a block in a note; None if unknown."""
        if destination.startswith("((") and destination.endswith("))"):  # a block by its id, as in Logseq
            return self._by_anchor.get(destination[2:-2].lower())
        name, _, inside = destination.partition("#")
        page = self._page(name.strip(), source_path, relative) if name.strip() else source_id
        if page is None or not inside.strip():
            return page
        return self._within(page, inside.strip())

    def _within(self, page: str, inside: str) -> str:
        if inside.startswith("^"):
            return self._inside.get((page, inside.lower()), page)
        whole = self._inside.get((page, "#" + _heading_key(inside)))
        # A missing heading resolves to the page, as in Obsidian.
        return whole or self._inside.get((page, "#" + _heading_key(inside.rpartition("#")[2])), page)

    def _page(self, name: str, source_path: str, relative: bool) -> str | None:
        folder = posixpath.dirname(source_path)
        if relative or name.startswith(("./", "../")):
            near = _key(posixpath.normpath(posixpath.join(folder, name))).removesuffix(_NOTE)
            if near in self._by_path:
                return self._by_path[near]
        key = _key(posixpath.normpath(name).lstrip("/")).removesuffix(_NOTE)
        return self._by_path.get(key) or self._by_ending(key) or self._by_alias.get(_key(name))

    def _by_ending(self, key: str) -> str | None:
        """The page with the shortest path among the files whose path ends with the key."""
        # Cached: a vault may have a thousand notes of the same name, and as many links to that name.
        if key not in self._by_end:
            same_name = self._by_name.get(posixpath.basename(key), ())
            candidates = [path for path in same_name if path.endswith("/" + key)]
            best = min(candidates, key=lambda path: (path.count("/"), len(path), path), default=None)
            self._by_end[key] = self._by_path[best] if best is not None else None
        return self._by_end[key]


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _heading_key(name: str) -> str:
    return _NOT_IN_HEADINGS.sub(" ", _key(name)).strip()


_NOTE: Final = ".md"
_CANVAS: Final = ".canvas"

# Child pages come after a page's own blocks, and a note has fewer blocks than this.
_FIRST_PAGE_POSITION: Final = 1_000_000

_MAX_PAGE_TAGS: Final = 1_000  # bounds the metadata of a page; each inner block keeps its own tags


class VaultFile(NamedTuple):
    """A file of the vault: path, page id, size, and times of change."""

    path: str
    page_id: str
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def folder(self) -> str:
        """The folder of the file; empty for the vault itself."""
        return posixpath.dirname(self.path)

    @property
    def name(self) -> str:
        """The name of the file without its folder."""
        return posixpath.basename(self.path)

    @property
    def is_folder_note(self) -> bool:
        """True for a note that is called like its folder."""
        return bool(self.folder) and self.name[: -len(_NOTE)].casefold() == posixpath.basename(self.folder).casefold()


def is_vault(path: Path) -> bool:
    """True for every folder; a folder without notes is an empty vault."""
    return path.is_dir()


def read_vault(folder: Path, *, max_file_bytes: int = DEFAULT_MAX_FILE_BYTES) -> Iterator[Record]:
    """Every note and canvas of a vault as blocks, then the links; a Notice for anything left out."""
    return read_with(VaultReader(max_file_bytes, VaultState()), folder)


def update_vault(folder: Path, state: str) -> SourceUpdate:
    """The notes changed since an earlier update, and links that lead elsewhere now; everything without a state."""
    return update_with(VaultReader(DEFAULT_MAX_FILE_BYTES, VaultState.from_text(state)), folder)


def update_with(vault: VaultReader, folder: Path) -> SourceUpdate:
    """What a reader finds changed in a folder since the state that it was made with."""
    return SourceUpdate(read_with(vault, folder), vault.kept_blocks, vault.new_state)


def read_with(vault: VaultReader, folder: Path) -> Iterator[Record]:
    """The records of a folder of notes as a reader reads them."""
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise WorkspaceMissing("folder", str(folder), f"cannot be read: {error.strerror}") from error
    try:
        yield from vault.records(root)
    finally:
        os.close(root)


@dataclass(slots=True)
class VaultReader:
    """Reads the notes of a folder; programs with other rules for names and texts override its lower half."""

    max_file_bytes: int
    earlier: VaultState
    root: int = -1
    names: _NoteNames = field(default_factory=_NoteNames)
    folder_pages: dict[str, str] = field(default_factory=dict)
    notes: dict[str, NoteState] = field(default_factory=dict)
    """What becomes of each note, by path."""
    read: set[str] = field(default_factory=set)
    """Paths of the notes read in this run; the others are as they were."""
    moved: set[str] = field(default_factory=set)
    """Ids of pages that are stored again because of their place alone."""
    notices: Notices = field(default_factory=Notices)

    def records(self, root: int) -> Iterator[Record]:
        """The blocks of the notes in an open folder, then the links."""
        self.root = root
        files = self._listed()
        for file in files:
            self.names.add_note(self.note_path(file.path), file.page_id)
            if file.is_folder_note:
                self.folder_pages.setdefault(file.folder, file.page_id)
        yield from self.notices.take()
        for place, file in enumerate(files):
            position = _FIRST_PAGE_POSITION + place
            self.names.add_aliases(file.page_id, self.other_names(file.path))
            known = self.earlier.unchanged(file.path, file.page_id, file.size, file.modified_ns, file.changed_ns)
            yield from self._page(file, position) if known is None else self._known_page(file, position, known)
            yield from self.notices.take()
        yield from self._links()

    def kept_blocks(self) -> list[str]:
        """The ids of the blocks of all notes that are as they were."""
        return [block for path, note in self.notes.items() if path not in self.read for block in note.blocks]

    def new_state(self) -> str:
        """The state for the next update."""
        return VaultState(self.notes).to_text()

    def _known_page(self, file: VaultFile, position: int, known: NoteState) -> Iterator[Record]:
        """Take over an unchanged note; the page is stored again if it has another place."""
        page, parent = known.page, self.parent_of(file)
        if page is None or (page.parent, page.position) != (parent, position):
            if page is None:
                yield from self._page(file, position)
                return
            page = replace(page, parent=parent, position=position)
            self.moved.add(page.id)
            yield page
        self.names.add_aliases(file.page_id, known.aliases)
        for path, title, block_id in known.headings:
            self.names.add_heading(file.page_id, path, title, block_id)
        for anchor, block_id in known.anchors:
            self.names.add_anchor(file.page_id, anchor, block_id)
        self.notes[file.path] = replace(known, page=page)

    def _listed(self) -> list[VaultFile]:
        """The notes, folder notes first in their folder: a parent must come before the children."""
        files: list[VaultFile] = []
        used: dict[str, int] = {}
        others: Counter[str] = Counter()
        for entry in walk(self.root, max_file_bytes=self.max_file_bytes):
            if self.is_hidden(entry.path):
                continue
            if not self.is_note(entry.path) and not getattr(entry, "is_folder", False):
                others[posixpath.splitext(entry.path)[1].lower() or "no ending"] += 1
            elif isinstance(entry, PassedOver):
                self.notices.append(not_read(entry.path, entry.reason))
            else:
                page_id = _page_id(entry.path, used)
                files.append(VaultFile(entry.path, page_id, entry.size, entry.modified_ns, entry.changed_ns))
        self.notices.add_unread(others, "files that are no notes")
        return sorted(files, key=self.order)

    def parent_of(self, file: VaultFile) -> str | None:
        """The page of the nearest enclosing folder with a page; a folder note belongs to the folder above."""
        folder = file.folder
        if self.folder_pages.get(folder) == file.page_id:
            folder = posixpath.dirname(folder)
        while folder and folder not in self.folder_pages:
            folder = posixpath.dirname(folder)
        return self.folder_pages.get(folder)

    def _page(self, file: VaultFile, position: int) -> Iterator[Record]:
        where, begun = storable_line(file.path), time.time_ns()
        self.read.add(file.path)
        data = read_bytes(self.root, file.path, self.max_file_bytes)
        text = ""
        if isinstance(data, Skip):
            self.notices.add(where, f"not read: {data}")
        else:
            text = self.notices.text_of(where, data)
        page = MarkdownPage(
            id=file.page_id,
            source_path=where,
            last_modified=file_time(file.modified_ns),
            parent=self.parent_of(file),
            position=position,
        )
        state = FileState(b"", file.size, file.modified_ns, begun)
        note = self.notes[file.path] = NoteState(file.page_id, state)
        is_canvas = file.name.lower().endswith(_CANVAS)
        for record in (self._canvas if is_canvas else self._note)(page, text, note):
            if isinstance(record, Block):
                note.blocks.append(record.id)
            if isinstance(record, Block) and record.id == page.id and not is_canvas:
                note.page = record
            yield record

    def _note(self, page: MarkdownPage, text: str, note: NoteState) -> Iterator[Record]:
        front, read = self.read_note(page, text)
        if front.unread:
            unread = MarkdownPiece(type=BlockType.CODE, content=front.unread, language="yaml", first=1, end=front.lines)
            read.roots.insert(0, unread)
        for problem in filter(None, (front.problem, read.problem)):
            self.notices.add(page.source_path, problem)
        page = replace(page, last_modified=_changed(front.properties, page))
        inside = list(lay_out(page, read.roots))
        yield self._page_block(page, front.properties, inside, text.count("\n") + 1, note)
        for block, piece in inside:
            self._remember(page, block, piece, note)
            yield block

    def _page_block(
        self,
        page: MarkdownPage,
        properties: Mapping[str, Any],
        inside: list[tuple[Block, MarkdownPiece]],
        lines: int,
        note: NoteState,
    ) -> Block:
        aliases = _texts(properties, "aliases", "alias")
        self.names.add_aliases(page.id, aliases)
        note.aliases.extend(aliases)
        for value in _strings(properties.values()):
            self._note_references(page.id, value, note)
        tagged = dict.fromkeys(tag.lstrip("#") for tag in _texts(properties, "tags", "tag"))
        tagged |= dict.fromkeys(tag for block, _ in inside for tag in block.metadata.get("tags", ()))
        derived = {"tags": list(tagged)[:_MAX_PAGE_TAGS], "aliases": aliases}
        summary = _text(properties, "summary") or _text(properties, "description")
        return Block(
            id=page.id,
            type=BlockType.KANBAN_BOARD if is_board(properties) else BlockType.PAGE,
            source_path=page.source_path,
            title=_text(properties, "title") or self.title_of(page.source_path),
            parent=page.parent,
            position=page.position,
            end_line=lines,
            summary=first_sentence(summary) if summary else summary_of(piece for _, piece in inside),
            last_modified=page.last_modified,
            metadata={**properties, **{name: values for name, values in derived.items() if values}},
        )

    def _remember(self, page: MarkdownPage, block: Block, piece: MarkdownPiece, note: NoteState) -> None:
        if piece.type is BlockType.HEADING:
            path = block.id[len(page.id) + 1 :]
            self.names.add_heading(page.id, path, piece.title, block.id)
            note.headings.append((path, piece.title, block.id))
        if piece.anchor:
            self.names.add_anchor(page.id, piece.anchor, block.id)
            note.anchors.append((piece.anchor, block.id))
        self._note_references(block.id, piece.text, note)

    def _canvas(self, page: MarkdownPage, text: str, note: NoteState) -> Iterator[Record]:
        canvas = read_canvas(page, text)
        if canvas.problem:
            self.notices.add(page.source_path, f"not read: {canvas.problem}")
        yield Block(
            id=page.id,
            type=BlockType.PAGE,
            source_path=page.source_path,
            title=posixpath.basename(page.source_path)[: -len(_CANVAS)],
            parent=page.parent,
            position=page.position,
            last_modified=page.last_modified,
            metadata={"canvas": True},
        )
        for card in canvas.cards:
            yield card.block
            self._note_references(card.block.id, card.text, note)
            if card.file:
                note.references.append(NoteReference(card.block.id, card.file, embeds=True, wiki=True))
        yield from canvas.arrows

    def _links(self) -> Iterator[Link]:
        """The links of all notes read and of all blocks whose links lead elsewhere now."""
        for path, note in self.notes.items():
            where = storable_line(path)
            targets = [
                self.names.resolve(reference.destination, where, note.page_id, relative=not reference.wiki)
                for reference in note.references
            ]
            pairs = list(zip(note.references, targets, strict=True))
            again = set(note.blocks) if path in self.read else self.moved
            again = again | {reference.source for reference, target in pairs if reference.target != target}
            note.references = [reference._replace(target=target) for reference, target in pairs]
            for reference in note.references:
                if reference.source in again:
                    kind = LinkKind.EMBEDS if reference.embeds else LinkKind.MENTIONS
                    name, target = reference.destination, reference.target
                    yield Link(source=reference.source, kind=kind, name=name, target=target)

    def _note_references(self, source: str, text: str, note: NoteState) -> None:
        for reference in dict.fromkeys(self.references_in(text)):
            if not reference.is_external and reference.destination:
                found = NoteReference(source, reference.destination, embeds=reference.embeds, wiki=reference.wiki)
                note.references.append(found)

    # -- what other programs do in another way

    def is_hidden(self, path: str) -> bool:
        """True for files of which nothing is said: settings and bins."""
        return any(part.startswith(".") for part in path.split("/"))

    def is_note(self, path: str) -> bool:
        """True for files that are read."""
        return path.lower().endswith((_NOTE, _CANVAS))

    def order(self, file: VaultFile) -> tuple[Any, ...]:
        """The place of a note among all: its parent comes before it."""
        return file.folder.split("/"), not file.is_folder_note, file.name

    def note_path(self, path: str) -> str:
        """The path by which links name a note."""
        return storable_line(path)

    def other_names(self, path: str) -> Sequence[str]:
        """Names beside path and title by which links name a note."""
        del path  # Obsidian has none; aliases are properties
        return ()

    def title_of(self, path: str) -> str:
        """The title of a note that states none."""
        return posixpath.basename(path)[: -len(_NOTE)]

    def references_in(self, text: str) -> Iterable[Reference]:
        """The links in a text."""
        return references(text)

    def read_note(self, page: MarkdownPage, text: str) -> tuple[FrontMatter, MarkdownPieces]:
        """The properties of a note and the pieces of its text."""
        del page  # other programs need its path
        front = read_front_matter(text)
        board = is_board(front.properties)
        body = "\n".join(text.split("\n")[front.lines :]) if front.lines else text
        read = read_pieces(without_settings(body) if board else body, front.lines + 1)
        if board:
            mark_lanes(read.roots)
        return front, read


def _page_id(path: str, used: dict[str, int]) -> str:
    path = storable_line(path)
    # `#` separates the page's id from the name of a block on the page.
    return unused((path[: -len(_NOTE)] if path.lower().endswith(_NOTE) else path).replace("#", "%23"), used)


def _changed(properties: Mapping[str, Any], page: MarkdownPage) -> datetime | None:
    """The modification time from the note's properties, else from the file system."""
    moments = (moment_in(_text(properties, name)) for name in ("modified", "updated"))
    return next(filter(None, moments), page.last_modified)


def _text(properties: Mapping[str, Any], name: str) -> str:
    value = properties.get(name)
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and value != "" else ""


def _texts(properties: Mapping[str, Any], *names: str) -> list[str]:
    """The values of a property: a list, or a text split at commas."""
    texts: list[str] = []
    for name in names:
        value = properties.get(name)
        entries = value if isinstance(value, list) else str(value).split(",") if isinstance(value, str | int) else []
        texts += [str(entry).strip() for entry in entries if isinstance(entry, str | int | float)]
    return list(dict.fromkeys(filter(None, texts)))


def _strings(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _strings(value)
        elif isinstance(value, dict):
            yield from _strings(value.values())
