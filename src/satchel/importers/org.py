"""Org-mode files as records: a page for each file, its headlines, tasks, lists, tables and blocks of code below.

A headline with a state is a task, with its dates, priority, tags and properties. Files are read line by line, since an
outline may have any number of levels; deeper levels than Satchel's are put at the deepest.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from satchel.errors import InvalidInput, WorkspaceMissing
from satchel.importers.archive import first_names
from satchel.importers.markdown_blocks import MarkdownPage, MarkdownPiece, lay_out, summary_of, walk_pieces
from satchel.importers.note_markup import task_metadata
from satchel.importers.storable import Notices, file_time, not_read, storable_line, unused
from satchel.indexing.walk import PassedOver, Skip, read_bytes, walk
from satchel.models.block import Block, BlockType, Link, LinkKind, Record

_SUFFIX: Final = ".org"
_MAX_FILE_BYTES: Final = 8_000_000  # an outline of years has a megabyte; each of its paragraphs becomes a block
_MAX_LEVELS: Final = 60  # lists and headlines below are put at this depth: records are laid out recursively
_MAX_ITEM_DEPTH: Final = 20
_MAX_FACT_CHARS: Final = 500  # of a property
_MAX_FACTS: Final = 100  # properties of a headline

_HEADLINE: Final = re.compile(r"(\*+)[ \t]+(.*)")
_PRIORITY: Final = re.compile(r"\[#([A-Za-z0-9])\][ \t]*")
_TAGS: Final = re.compile(r"[ \t]+:((?:[\w@#%]+:)+)[ \t]*$")
_PLANNING: Final = re.compile(
    r"[ \t]*(?:(?:SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[][^>\]\n]*[>\]](?:--[<\[][^>\]\n]*[>\]])?[ \t]*)+$"
)
_PLAN: Final = re.compile(r"(SCHEDULED|DEADLINE|CLOSED):[ \t]*[<\[](\d{4}-\d{2}-\d{2})([^>\]\n]*)[>\]]")
_REPEATER: Final = re.compile(r"(?:\+\+|\.\+|\+)\d+[hdwmy]")
_DRAWER: Final = re.compile(r"[ \t]*:([\w-]+):[ \t]*$")
_PROPERTY: Final = re.compile(r"[ \t]*:([^\s:]+):(?:[ \t]+(.*))?$")
_KEYWORD: Final = re.compile(r"[ \t]*#\+([A-Za-z_]+):[ \t]*(.*)")
_BEGIN: Final = re.compile(r"[ \t]*#\+begin_(\w+)[ \t]*(.*)", re.IGNORECASE)
_ITEM: Final = re.compile(r"([ \t]*)(?:[-+]|\d+[.)]|(?<=[ \t])\*)[ \t]+(.*)|([ \t]*)[-+][ \t]*$")
_CHECKBOX: Final = re.compile(r"\[([ xX-])\][ \t]+")
_COUNTER: Final = re.compile(r"\[@[0-9a-zA-Z]{1,9}\][ \t]*")  # the number that an item begins with
_LINK: Final = re.compile(r"\[\[([^\[\]\n]{1,1000})\](?:\[([^\[\]\n]{0,1000})\])?\]")
_TARGET: Final = re.compile(r"<<([^<>\n]{1,200})>>")

# States that org-mode and its users end with, where a file does not declare its own.
_DONE: Final = frozenset({"DONE", "CANCELED", "CANCELLED", "FIXED", "KILLED", "ABANDONED"})
_OPEN: Final = frozenset(
    "TODO NEXT DOING WAITING WAIT HOLD STARTED INPROGRESS IN-PROGRESS SOMEDAY PROJ LATER NOW".split()
)
_CANCELLED: Final = frozenset({"CANCELED", "CANCELLED", "KILLED", "ABANDONED"})
_STATUS: Final = {"TODO": "open", "DONE": "done"}
_LETTERS: Final = {"A": "high", "B": "medium", "C": "low"}
_PLAN_FACTS: Final = {"SCHEDULED": "scheduled", "DEADLINE": "due", "CLOSED": "completed"}
_WEB: Final = ("http:", "https:", "mailto:")
_QUOTED_BLOCKS: Final = frozenset({"quote", "verse", "center"})


def is_org(path: Path) -> bool:
    """True for an .org file, and a folder whose notes are mostly such files."""
    if path.is_dir():
        endings = Counter(posixpath.splitext(name)[1].lower() for name in first_names(path))
        return endings[_SUFFIX] > endings[".md"]
    return path.name.lower().endswith(_SUFFIX)


def read_org(path: Path) -> Iterator[Record]:
    """The pages of an .org file or of a folder of them, then the links between them; a Notice for what is left out."""
    folder = path if path.is_dir() else path.parent
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise WorkspaceMissing("folder", str(folder), f"cannot be read: {error.strerror}") from error
    try:
        yield from _Org(root, "" if path.is_dir() else path.name).records(str(path))
    finally:
        os.close(root)


class _Reference(NamedTuple):
    """A link as written in a block of a file."""

    source: str
    destination: str
    path: str


@dataclass(slots=True)
class _Org:
    root: int
    only: str
    """The one file that is read; empty for all in the folder."""
    pages: dict[str, str] = field(default_factory=dict)
    """Page ids by path."""
    ids: dict[str, str] = field(default_factory=dict)
    """Block ids by the `ID` of a property drawer."""
    titles: dict[tuple[str, str], str] = field(default_factory=dict)
    """Block ids by page and headline, custom id or target."""
    references: list[_Reference] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)

    def records(self, source: str) -> Iterator[Record]:
        used: dict[str, int] = {}
        read = 0
        for entry in walk(self.root, max_file_bytes=_MAX_FILE_BYTES):
            if not entry.path.lower().endswith(_SUFFIX) or (self.only and entry.path != self.only):
                continue
            if isinstance(entry, PassedOver):
                yield not_read(entry.path, entry.reason)
                continue
            read += 1
            name = storable_line(entry.path)[: -len(_SUFFIX)].replace("#", "%23")
            page = MarkdownPage(
                id=unused(name, used),
                source_path=storable_line(entry.path),
                last_modified=file_time(entry.modified_ns),
                position=read,
            )
            self.pages[entry.path] = page.id
            yield from self._page(page, entry.path)
            yield from self.notices.take()
        if not read:
            raise InvalidInput("path", source, "contains no .org file that can be read")
        yield from self._links()

    def _page(self, page: MarkdownPage, path: str) -> Iterator[Record]:
        data = read_bytes(self.root, path, _MAX_FILE_BYTES)
        if isinstance(data, Skip):
            self.notices.append(not_read(path, data))
            return
        text = self.notices.text_of(page.source_path, data)
        reader = OrgReader(text.split("\n"))
        roots = reader.read()
        if reader.flattened:
            problem = f"{reader.flattened} headlines or items below {_MAX_LEVELS} levels were put at that level"
            self.notices.add(page.source_path, problem)
        inside = list(lay_out(page, roots))
        facts = {name: value for name, value in reader.keywords.items() if name not in ("title", "filetags")}
        tags = [tag for tag in re.split(r"[:\s]+", reader.keywords.get("filetags", "")) if tag]
        yield Block(
            id=page.id,
            type=BlockType.PAGE,
            source_path=page.source_path,
            title=reader.keywords.get("title") or posixpath.basename(page.source_path)[: -len(_SUFFIX)],
            position=page.position,
            end_line=max(1, text.count("\n") + 1),
            summary=reader.keywords.get("description") or summary_of(piece for _, piece in inside),
            last_modified=page.last_modified,
            metadata=facts | ({"tags": tags} if tags else {}) | reader.properties,
        )
        self._remember(page.id, page.id, path, reader.properties, "")
        for block, piece in inside:
            self._remember(page.id, block.id, path, piece.metadata, f"{piece.title}\n{piece.content}")
            if piece.title:
                self.titles.setdefault((page.id, piece.title.casefold()), block.id)
            yield replace(
                block, language="org" if block.type is BlockType.CODE and not block.language else block.language
            )

    def _remember(self, page: str, block: str, path: str, facts: dict[str, Any], text: str) -> None:
        if isinstance(own := facts.get("ID"), str):
            self.ids.setdefault(own, block)
        if isinstance(own := facts.get("CUSTOM_ID"), str):
            self.titles.setdefault((page, f"#{own}".casefold()), block)
        for match in _TARGET.finditer(text):
            self.titles.setdefault((page, match[1].casefold()), block)
        found = dict.fromkeys(match[1] for match in _LINK.finditer(text))
        self.references += [_Reference(block, destination, path) for destination in found]

    def _links(self) -> Iterator[Link]:
        for reference in self.references:
            target = self._resolved(reference)
            if target is not None and target != reference.source:
                yield Link(source=reference.source, kind=LinkKind.MENTIONS, name=reference.destination, target=target)

    def _resolved(self, reference: _Reference) -> str | None:
        """The block or file that a link leads to; None for the web and for what is not there."""
        destination = reference.destination
        if destination.startswith("id:"):
            return self.ids.get(destination[3:].partition("::")[0])
        if re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+-]{1,30}:", destination):
            return None
        name, _, inside = destination.removeprefix("file:").partition("::")
        page: str | None = self.pages.get(reference.path)
        if destination.startswith("file:") or name.startswith(("./", "../", "/")) or name.lower().endswith(_SUFFIX):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(reference.path), name))
            page = self.pages.get(place)
            if page is None:
                return place if not place.startswith(("/", "..")) else None
        else:
            inside = name
        if page is None or not inside:
            return page
        whole = page if name != inside else None  # what is named alone is a headline, or nothing
        return self.titles.get((page, inside.lstrip("*").strip().casefold()), whole)


class OrgReader:
    """The pieces of an org file, nested below headlines, with the keywords and properties of the file."""

    def __init__(self, lines: Sequence[str], first_line: int = 1) -> None:
        self._lines = lines
        self._first_line = first_line
        self._at = 0
        self._open_states = set(_OPEN)
        self._done_states = set(_DONE)
        self.keywords: dict[str, str] = {}
        self.properties: dict[str, Any] = {}
        self.flattened = 0
        """Headlines and items that are deeper than the deepest level."""

    def read(self) -> list[MarkdownPiece]:
        """The pieces of all lines."""
        self._declare_states()
        roots: list[MarkdownPiece] = []
        open_: list[tuple[int, MarkdownPiece]] = []
        while self._at < len(self._lines):
            headline = _HEADLINE.match(self._lines[self._at])
            if not headline:
                self._body(open_[-1][1].children if open_ else roots, open_[-1][1] if open_ else None)
                continue
            depth = len(headline[1])
            while open_ and open_[-1][0] >= depth:
                open_.pop()
            if len(open_) >= _MAX_LEVELS:
                self.flattened += 1
                del open_[_MAX_LEVELS - 1 :]
            piece = self._headline(headline[2], len(open_) + 1)
            (open_[-1][1].children if open_ else roots).append(piece)
            open_.append((depth, piece))
        for piece in walk_pieces(roots):
            piece.first += self._first_line
            piece.end += self._first_line - 1
        return roots

    def _declare_states(self) -> None:
        """Take the states that the file declares, wherever it does."""
        for line in self._lines:
            keyword = _KEYWORD.match(line)
            if keyword and keyword[1].upper() in ("TODO", "SEQ_TODO", "TYP_TODO"):
                words = [word.partition("(")[0] for word in keyword[2].split()]
                border = words.index("|") if "|" in words else max(0, len(words) - 1)
                self._open_states |= set(words[:border])
                self._done_states |= set(words[border:]) - {"|"}
                self._open_states -= self._done_states

    def _headline(self, text: str, level: int) -> MarkdownPiece:
        first = self._at
        self._at += 1
        facts: dict[str, Any] = {}
        state, _, rest = text.partition(" ")
        is_task = state in self._open_states or state in self._done_states
        text = rest.strip() if is_task else text.strip()
        if match := _PRIORITY.match(text):
            facts["priority"] = _LETTERS.get(match[1].upper(), match[1])
            text = text[match.end() :]
        if match := _TAGS.search(f" {text}"):
            facts["tags"] = [tag for tag in match[1].split(":") if tag]
            text = f" {text}"[: match.start()].strip()
        facts |= self._plan()
        facts |= self._drawers()
        facts["level"] = level
        title = _LINK.sub(lambda link: link[2] if link[2] and link[1].startswith(_WEB) else link[0], text)
        piece = MarkdownPiece(type=BlockType.HEADING, title=title or "…", first=first, end=self._at)
        if is_task:
            is_done = state in self._done_states
            status = "cancelled" if state in _CANCELLED else "done" if is_done else state.lower()
            piece.type, piece.content = BlockType.TODO, _readable(text)
            facts |= {"done": is_done, "status": _STATUS.get(state, status)}
        piece.metadata = facts
        return piece

    def _plan(self) -> dict[str, Any]:
        """The dates in the line below a headline."""
        facts: dict[str, Any] = {}
        if self._at < len(self._lines) and _PLANNING.match(self._lines[self._at]):
            for word, day, rest in _PLAN.findall(self._lines[self._at]):
                if _is_day(day):
                    facts.setdefault(_PLAN_FACTS[word], day)
                if repeater := _REPEATER.search(rest):
                    facts["repeat"] = repeater[0]
            self._at += 1
        return facts

    def _drawers(self) -> dict[str, Any]:
        """The properties below a headline; what is logged about it is skipped."""
        facts: dict[str, Any] = {}
        while self._at < len(self._lines) and (drawer := _DRAWER.match(self._lines[self._at])):
            end = self._end_of(r"[ \t]*:END:[ \t]*$", self._at + 1)
            if end is None:
                return facts
            if drawer[1].upper() == "PROPERTIES":
                for line in self._lines[self._at + 1 : end]:
                    entry = _PROPERTY.match(line)
                    if entry and len(facts) < _MAX_FACTS:
                        facts[storable_line(entry[1])[:_MAX_FACT_CHARS]] = (entry[2] or "").strip()[:_MAX_FACT_CHARS]
            self._at = end + 1
        return facts

    def _end_of(self, pattern: str, at: int) -> int | None:
        """The next line that matches, before the next headline."""
        matches = re.compile(pattern, re.IGNORECASE).match
        for row in range(at, len(self._lines)):
            if matches(self._lines[row]):
                return row
            if _HEADLINE.match(self._lines[row]):
                return None
        return None

    # -- below a headline

    def _body(self, pieces: list[MarkdownPiece], above: MarkdownPiece | None) -> None:
        """Take the piece that begins at the current line."""
        line = self._lines[self._at]
        if not line.strip() or line.lstrip().startswith("# ") or line.strip() == "#":
            self._at += 1
        elif begin := _BEGIN.match(line):
            self._block(pieces, begin)
        elif drawer := _DRAWER.match(line):
            self._loose_drawer(drawer[1], above)
        elif keyword := _KEYWORD.match(line):
            self._keyword(pieces, keyword)
        elif line.lstrip().startswith("|"):
            self._run(pieces, BlockType.TABLE, lambda text: text.lstrip().startswith("|"))
        elif _ITEM.match(line):
            self._list(pieces)
        elif line.lstrip().startswith(": "):
            self._run(pieces, BlockType.CODE, lambda text: text.lstrip().startswith(":"))
        else:
            self._run(pieces, BlockType.TEXT, self._goes_on)

    def _goes_on(self, line: str) -> bool:
        """True for a line that belongs to the paragraph above it."""
        begins = (_HEADLINE, _BEGIN, _DRAWER, _KEYWORD, _ITEM)
        return bool(line.strip()) and not line.lstrip().startswith("|") and not any(each.match(line) for each in begins)

    def _run(self, pieces: list[MarkdownPiece], kind: BlockType, goes_on: Any) -> None:
        """Take the current line and those after it that go on."""
        first = self._at
        self._at += 1
        while (
            self._at < len(self._lines)
            and not _HEADLINE.match(self._lines[self._at])
            and goes_on(self._lines[self._at])
        ):
            self._at += 1
        lines = [line.strip() for line in self._lines[first : self._at]]
        if kind is BlockType.CODE:
            content = "\n".join(line.removeprefix(":").removeprefix(" ") for line in lines)
        else:
            content = "\n".join(_readable(line) for line in lines)
        pieces.append(MarkdownPiece(type=kind, content=content, first=first, end=self._at))

    def _block(self, pieces: list[MarkdownPiece], begin: re.Match[str]) -> None:
        first, name = self._at, begin[1].lower()
        end = self._end_of(rf"[ \t]*#\+end_{re.escape(name)}\b", self._at + 1)
        last = len(self._lines) if end is None else end
        if end is None:  # up to the next headline, so that nothing is lost
            last = next((row for row in range(first + 1, last) if _HEADLINE.match(self._lines[row])), last)
        inner = list(self._lines[first + 1 : last])
        self._at = last if end is None else end + 1
        width = min((len(line) - len(line.lstrip()) for line in inner if line.strip()), default=0)
        # A comma protects a line that would be a headline.
        text = "\n".join(re.sub(r"^(\s*),(?=\*|#\+|,)", r"\1", line[width:].rstrip()) for line in inner).strip("\n")
        if name == "comment" or not text.strip():
            return
        kind = BlockType.QUOTE if name in _QUOTED_BLOCKS else BlockType.CODE
        language = begin[2].split()[0].lower()[:40] if kind is BlockType.CODE and begin[2].strip() else None
        content = _readable(text) if kind is BlockType.QUOTE else text
        pieces.append(MarkdownPiece(type=kind, content=content, language=language, first=first, end=self._at))

    def _loose_drawer(self, name: str, above: MarkdownPiece | None) -> None:
        """Skip a drawer; the first properties of a file are the file's."""
        end = self._end_of(r"[ \t]*:END:[ \t]*$", self._at + 1)
        if end is None:
            self._at += 1
            return
        if name.upper() == "PROPERTIES" and above is None:
            self.properties |= self._drawers()
        else:
            self._at = end + 1

    def _keyword(self, pieces: list[MarkdownPiece], keyword: re.Match[str]) -> None:
        name, value = keyword[1].lower(), keyword[2].strip()
        if name in ("title", "author", "date", "description", "filetags", "email", "category"):
            joined = f"{self.keywords[name]} {value}" if name == "title" and name in self.keywords else value
            self.keywords[name] = storable_line(joined)[:_MAX_FACT_CHARS]
        elif name == "caption" and value:
            pieces.append(
                MarkdownPiece(type=BlockType.TEXT, content=_readable(value), first=self._at, end=self._at + 1)
            )
        self._at += 1

    def _list(self, pieces: list[MarkdownPiece]) -> None:
        """Take a list: items by their indentation, with the lines below them."""
        open_: list[tuple[int, MarkdownPiece]] = []
        blank = 0
        while self._at < len(self._lines):
            line = self._lines[self._at]
            width = len(line) - len(line.lstrip())
            item = _ITEM.match(line)
            if _HEADLINE.match(line) or (not line.strip() and blank):
                break
            if not line.strip():
                blank += 1
            elif item:
                while open_ and open_[-1][0] >= width:
                    open_.pop()
                if len(open_) >= _MAX_ITEM_DEPTH:
                    self.flattened += 1
                    del open_[_MAX_ITEM_DEPTH - 1 :]
                piece = _item((item[2] or "").strip(), self._at)
                (open_[-1][1].children if open_ else pieces).append(piece)
                open_.append((width, piece))
                blank = 0
            elif open_ and width > open_[0][0] and not _BEGIN.match(line) and not blank:
                open_[-1][1].content += "\n" + _readable(line.strip())
                open_[-1][1].end = self._at + 1
            elif open_ and width > open_[0][0] and _BEGIN.match(line):
                begin = _BEGIN.match(line)
                assert begin is not None
                self._block(open_[-1][1].children, begin)
                blank = 0
                continue
            else:
                break
            self._at += 1


def _item(text: str, row: int) -> MarkdownPiece:
    text = _COUNTER.sub("", text)
    piece = MarkdownPiece(type=BlockType.LIST_ITEM, content=_readable(text), first=row, end=row + 1)
    if box := _CHECKBOX.match(text):
        piece.type, piece.content = BlockType.TODO, _readable(text[box.end() :])
        # In org-mode `[-]` means that some of the items below are done.
        piece.metadata = task_metadata("/" if box[1] == "-" else box[1], piece.content)
        piece.title = piece.content.partition("\n")[0][:200]
    return piece


def _readable(text: str) -> str:
    """Text with links as label and address."""
    return _LINK.sub(lambda match: match[0] if not match[2] or match[1].startswith("id:") else _label(match), text)


def _label(match: re.Match[str]) -> str:
    return f"{match[2]} ({match[1]})" if match[1].startswith(_WEB) else match[0]


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
