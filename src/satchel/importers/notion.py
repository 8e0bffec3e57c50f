"""A Notion export (Markdown & CSV) as records: pages nested by folder, databases with a block for each row."""

from __future__ import annotations

import posixpath
import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from satchel.importers.archive import Export, ExportFile, first_names, open_export
from satchel.importers.markdown_blocks import MarkdownPage, digest, lay_out, read_pieces, summary_of
from satchel.importers.note_markup import references
from satchel.importers.notion_table import NotionTable, Row, as_row, last_edited, read_table, row_metadata
from satchel.importers.storable import Notices, moment_in, storable_line, unused
from satchel.models.block import Block, BlockType, Link, LinkKind, Notice, Record

DEFAULT_MAX_FILE_BYTES: Final = 16_000_000
"""Larger than for notes, because a whole database is a single file."""

_NOTION_NAME: Final = re.compile(r" [0-9a-f]{32}(?:_all)?(?:\.md|\.csv|$)")
_ID: Final = re.compile(r"(?:^|[ _-])([0-9a-f]{32})$")
_ID_ANYWHERE: Final = re.compile(r"(?<![0-9a-f])([0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-f])")
_ALL: Final = "_all"
_PROPERTY: Final = re.compile(r"([^:\n]{1,100}): ?(.*)")
# Child pages come after a page's own blocks, and a page has fewer blocks than this.
_FIRST_PAGE_POSITION: Final = 1_000_000

# Notion cuts long titles in file names; a shorter common prefix is no evidence of the same title.
_MIN_CUT_NAME_CHARS: Final = 30
_MAX_FILE_NAME_CHARS: Final = 255  # common file systems allow no longer names

# Rows with equal titles are matched by reading candidate pages: the limit avoids quadratic reads.
_MAX_NAMESAKE_PAGES: Final = 50


class _File(NamedTuple):
    """A page or a table of the export."""

    path: str
    id: str
    name: str
    modified: datetime | None

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    @property
    def where(self) -> str:
        return storable_line(self.path)


class _Text(NamedTuple):
    """A page's Markdown split into title, property cells and body, with the line number of the body."""

    title: str = ""
    cells: Mapping[str, str] = {}
    body: str = ""
    first_line: int = 1


class _Database(NamedTuple):
    """A table, and the file of the table."""

    file: _File
    table: NotionTable


class _PendingLink(NamedTuple):
    source: str
    kind: LinkKind
    name: str
    destination: str
    folder: str


@dataclass(slots=True)
class _Catalogue:
    """Index of the export's pages and tables by path, title and id; holds no page text."""

    pages: list[_File] = field(default_factory=list)
    tables: list[_File] = field(default_factory=list)
    owners: dict[str, _File] = field(default_factory=dict)
    row_pages: dict[str, list[_File]] = field(default_factory=dict)
    by_path: dict[str, str] = field(default_factory=dict)
    by_title: dict[str, str] = field(default_factory=dict)
    beside: dict[str, _File] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

    def owner(self, folder: str) -> _File | None:
        """The page or table with this folder, or with the nearest folder above."""
        while folder and folder not in self.owners:
            folder = posixpath.dirname(folder)
        return self.owners.get(folder)

    def resolve(self, destination: str, folder: str, name: str = "") -> str | None:
        """The block id of a link's target, for a link in a file of `folder`; None if unknown."""
        path = destination.partition("#")[0].partition("?")[0]
        ids = _ID_ANYWHERE.findall(posixpath.basename(path))
        if ids and ids[-1].replace("-", "") in self.ids:
            return str(ids[-1].replace("-", ""))
        for place in (posixpath.join(folder, path), path):
            if known := self.by_path.get(posixpath.normpath(place)):
                return known
        return self.by_title.get(_letters(name)) if name else None


def is_notion_export(path: Path) -> bool:
    """True for a folder with file names in Notion's form, and for every ZIP."""
    return has_notion_names(first_names(path)) if path.is_dir() else zipfile.is_zipfile(path)


def has_notion_names(names: Iterable[str]) -> bool:
    """True if any of the names ends in a Notion id."""
    return any(map(_NOTION_NAME.search, names))


def read_notion(export: Path, *, max_file_bytes: int = DEFAULT_MAX_FILE_BYTES) -> Iterator[Record]:
    """Pages, databases and rows of an export (folder or zip), then links; a Notice for anything left out."""
    with open_export(export, max_file_bytes) as files:
        yield from _Reader(files).records()


@dataclass(slots=True)
class _Reader:
    export: Export
    names: _Catalogue = field(default_factory=_Catalogue)
    databases: dict[str, _Database] = field(default_factory=dict)
    pending: list[_PendingLink] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)
    used_ids: dict[str, int] = field(default_factory=dict)
    used_files: set[str] = field(default_factory=set)
    places: Iterator[int] = field(default_factory=lambda: count(_FIRST_PAGE_POSITION + 1))

    def records(self) -> Iterator[Record]:
        self._catalogue()
        for file, is_table in self._in_order():
            if file.path not in self.used_files:
                yield from self._database(file) if is_table else self._page(file)
            yield from self.notices.take()
        yield from self.notices.take()
        yield from self._links()

    def _in_order(self) -> list[tuple[_File, bool]]:
        """Files sorted by depth, parents first; tables before pages, because a table claims the pages of rows."""
        everything = [(file, True) for file in self.names.tables] + [(file, False) for file in self.names.pages]
        return sorted(everything, key=lambda entry: (entry[0].path.count("/"), not entry[1], entry[0].path))

    def _catalogue(self) -> None:
        others: Counter[str] = Counter()
        tables: dict[str, ExportFile] = {}
        for entry in self.export.files():
            if isinstance(entry, Notice):
                self.notices.append(entry)
                continue
            stem, ending = posixpath.splitext(entry.path)
            if ending.lower() == ".md":
                self._add(entry, stem, self.names.pages)
            elif ending.lower() == ".csv":
                # The file with all rows (`_all`) is preferred to the file of the current view.
                whole = stem.endswith(_ALL)
                if whole or stem not in tables:
                    tables[stem.removesuffix(_ALL) if whole else stem] = entry
            else:
                others[ending.lower() or "no ending"] += 1
        for stem, entry in tables.items():
            self._add(entry, stem, self.names.tables)
        self.notices.add_unread(others, "attachments")
        self._map_owners()

    def _add(self, entry: ExportFile, stem: str, to: list[_File]) -> None:
        name = posixpath.basename(stem)
        match = _ID.search(name)
        bare = name[: match.start()].strip() if match else name
        block_id = match[1] if match else storable_line(stem).replace("#", "%23")
        file = _File(entry.path, block_id, storable_line(bare) or "Untitled", entry.modified)
        to.append(file)
        self.names.ids.add(block_id)
        self.names.by_path[posixpath.normpath(entry.path)] = block_id
        self.names.by_path.setdefault(posixpath.normpath(f"{stem}.csv"), block_id)
        self.names.by_title.setdefault(_letters(file.name), block_id)

    def _map_owners(self) -> None:
        """Map folders to pages and tables: by name with the id or, in newer exports, without."""
        files = [*self.names.tables, *self.names.pages]
        for file in files:
            self.names.owners.setdefault(posixpath.splitext(file.path)[0].removesuffix(_ALL), file)
        for file in files:
            self.names.owners.setdefault(posixpath.join(file.folder, file.name), file)
        for page in self.names.pages:
            self.names.beside.setdefault(page.id, page)
            if owner := self.names.owner(page.folder):
                self.names.row_pages.setdefault(owner.path, []).append(page)

    def _parent(self, file: _File) -> str | None:
        owner = self.names.owner(file.folder)
        return owner.id if owner and owner.id != file.id else None

    def _is_new(self, file: _File) -> bool:
        """True at the first use of the file's id: Notion exports a linked database again at every link."""
        if file.id in self.used_ids:
            self.notices.add(file.where, "left out: it is in the export twice")
            return False
        self.used_ids[file.id] = 1
        return True

    def _page(self, file: _File) -> Iterator[Record]:
        if not self._is_new(file):
            return
        owner = self.names.owner(file.folder)
        if owner and owner.path in self.databases:
            yield from self._row(file, None, self.databases[owner.path])
            return
        text = _split(self._text(file))
        block = self._block(file, BlockType.PAGE, title=text.title, parent=self._parent(file))
        yield from self._with_blocks(file, text, block)

    def _database(self, file: _File) -> Iterator[Record]:
        if not self._is_new(file):
            return
        database = self.databases[file.path] = _Database(file, read_table(self._text(file)))
        table = database.table
        for problem in table.problems:
            self.notices.add(file.where, problem)
        # Newer exports have a Markdown page for the database beside the table.
        beside = self.names.beside.get(file.id)
        text = _split(self._text(beside)) if beside else _Text()
        if beside:
            self.used_files.add(beside.path)
        metadata = {"columns": list(table.columns), "rows": len(table.rows)}
        block = self._block(file, BlockType.DATABASE, title=text.title, parent=self._parent(file), metadata=metadata)
        yield from self._with_blocks(beside or file, text, block)
        pages = _RowPages(self.names.row_pages.get(file.path, ()), lambda page: _split_row(self._text(page), ()))
        for row in table.rows:
            yield from self._row(pages.take(row), row, database)
        self.databases[file.path] = _Database(file, replace(table, rows=table.rows[:1]))

    def _row(self, page: _File | None, row: Row | None, database: _Database) -> Iterator[Record]:
        """Records of a row and the row's page; of the page alone if the table lacks the row."""
        if page and row:
            self.used_files.add(page.path)
            page = page if self._is_new(page) else None
        text = _split_row(self._text(page), database.table.columns) if page else _Text()
        page_row = as_row(text.title, text.cells, database.table.ticks)
        title = row.title if row else text.title
        properties = dict(row.properties if row else {})
        for name, value in page_row.properties.items():
            properties.setdefault(name, value)
        related = row.relations if row and row.relations else page_row.relations
        file = page
        if file is None:
            row_id = unused(f"{database.file.id}#~{digest(BlockType.DB_ROW, title)}", self.used_ids)
            file = database.file._replace(id=row_id, name="Untitled")
        block = self._block(
            file,
            BlockType.DB_ROW,
            title=title,
            parent=database.file.id,
            metadata={"properties": properties, **row_metadata(properties)},
            content=Row(title, properties).content,
        )
        folder = database.file.folder if row else file.folder
        self.pending += [_PendingLink(block.id, LinkKind.RELATION, *relation, folder) for relation in related]
        yield from self._with_blocks(file, text, block)

    def _block(self, file: _File, kind: BlockType, *, title: str, **fields: Any) -> Block:
        edited = last_edited(fields.get("metadata", {}).get("properties", {}))
        return Block(
            id=file.id,
            type=kind,
            source_path=file.where,
            title=title or file.name,
            position=next(self.places),
            last_modified=moment_in(edited) or file.modified,
            **fields,
        )

    def _with_blocks(self, file: _File, text: _Text, block: Block) -> Iterator[Record]:
        read = read_pieces(text.body, text.first_line)
        if read.problem:
            self.notices.add(file.where, read.problem)
        page = MarkdownPage(id=block.id, source_path=file.where, last_modified=block.last_modified)
        last_line = text.first_line + text.body.count("\n")
        yield replace(block, summary=summary_of(read.roots), end_line=last_line)
        for inner, piece in lay_out(page, read.roots):
            yield inner
            for reference in dict.fromkeys(references(piece.text)):
                if not reference.is_external or _ID_ANYWHERE.search(reference.destination):
                    kind = LinkKind.EMBEDS if reference.embeds else LinkKind.MENTIONS
                    name = reference.shown or reference.destination
                    self.pending.append(_PendingLink(inner.id, kind, name, reference.destination, file.folder))

    def _text(self, file: _File) -> str:
        data = self.export.read(file.path)
        if isinstance(data, Notice):
            self.notices.append(data)
            return ""
        return self.notices.text_of(file.where, data)

    def _links(self) -> Iterator[Link]:
        for source, kind, name, destination, folder in self.pending:
            target = self.names.resolve(destination, folder, name if kind is LinkKind.RELATION else "")
            # An external URL with a Notion-like id is not a link within the workspace.
            if target or "://" not in destination or kind is LinkKind.RELATION:
                yield Link(source=source, kind=kind, name=name, target=target)


class _RowPages:
    """The pages of a database; each row takes the matching page."""

    def __init__(self, pages: Iterable[_File], head: Callable[[_File], _Text]) -> None:
        self._head = head
        self._by_name: dict[str, list[_File]] = {}
        for page in pages:
            self._by_name.setdefault(_letters(page.name), []).append(page)

    def take(self, row: Row) -> _File | None:
        """The page of a row, matched by title; among several, the page with the most equal properties."""
        name = _letters(row.title or "Untitled")
        pages = self._by_name.get(name) or self._by_name.get(self._cut(name), [])
        if not pages:
            return None
        few = pages[:_MAX_NAMESAKE_PAGES]
        best = pages[0] if len(pages) == 1 else max(few, key=lambda page: _equal_properties(self._head(page), row))
        pages.remove(best)
        return best

    def _cut(self, name: str) -> str:
        lengths = range(min(len(name), _MAX_FILE_NAME_CHARS) - 1, _MIN_CUT_NAME_CHARS - 1, -1)
        return next((name[:length] for length in lengths if self._by_name.get(name[:length])), "")


def _equal_properties(text: _Text, row: Row) -> int:
    written = as_row(text.title, text.cells).properties
    return sum(1 for name, value in row.properties.items() if value != "" and written.get(name) == value)


def _split(text: str) -> _Text:
    """A page's leading title and the remaining text."""
    first, _, rest = text.partition("\n")
    if not first.startswith("# "):
        return _Text(body=text)
    return _Text(" ".join(first[2:].split()), {}, rest, 2)


def _split_row(text: str, columns: tuple[str, ...]) -> _Text:
    """A row page's title, properties (limited to `columns` if any are known) and remaining text."""
    page = _split(text)
    lines = page.body.split("\n")
    row = 0 if lines[0].strip() else 1
    cells: dict[str, str] = {}
    while page.title and row < len(lines) and (match := _PROPERTY.fullmatch(lines[row])):
        if columns and match[1] not in columns:
            break
        cells[match[1]] = match[2]
        row += 1
    return _Text(page.title, cells, "\n".join(lines[row:]), page.first_line + row) if cells else page


def _letters(name: str) -> str:
    """A title reduced to case-folded letters and digits, for comparison with file names."""
    return "".join(char for char in unicodedata.normalize("NFKC", name).casefold() if char.isalnum())
