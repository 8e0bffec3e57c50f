"""Blocks of a Markdown page: headings and the content below, each with a place in the tree and a stable id.

A block's id does not change when something else on the page does: headings go by their path, blocks with an explicit
`^id` by that, everything else by a hash of its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from satchel.importers.note_markup import checkbox, only_embed, plain_text, tags, task_metadata, task_title
from satchel.importers.storable import unused
from satchel.models.block import Block, BlockType

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Two levels for each list in a list: fifty of them, far below Python's limit on recursion.
_MAX_NESTING: Final = 100

# The parser takes some 20 µs for a line; a note of more lines than this is a log, and read as plain text from there.
MOST_LINES: Final = 20_000
# Plain text is cut into pieces of this size: smaller ones are many blocks, larger ones coarse hits.
_PLAIN_PIECE_LINES: Final = 200

_MAX_TITLE_CHARS: Final = 500  # a longer heading is prose; its whole text is then stored as content
_MAX_ID_CHARS: Final = 300  # an id is a database key; a longer path of headings is cut and ends in a hash
_MAX_SUMMARY_CHARS: Final = 300  # a summary is one sentence; a longer sentence is cut
_MAX_LANGUAGE_CHARS: Final = 40  # names of languages are short; the metadata keep the whole info string of the fence

_ANCHOR: Final = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]{1,100})[ \t]*$")
_CALLOUT: Final = re.compile(r"\[!([\w-]{1,50})(?:\|([^\]\n]{0,100}))?\][+-]?[ \t]*([^\n]*)\n?")
_CONTAINER_MARKS: Final = re.compile(r"(?:[ \t]|>|[-+*](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]|$))*")
_ASIDE: Final = re.compile(r"</?aside\b[^>]{0,500}>", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!?…](?=\s|$)|[。！？]")
_WORD: Final = re.compile(r"\w")


@dataclass(slots=True, kw_only=True)
class MarkdownPiece:
    """A block before placement on a page: type, text, lines and nested pieces."""

    type: BlockType
    content: str = ""
    title: str = ""
    first: int = 0
    end: int = 0
    language: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    anchor: str = ""
    children: list[MarkdownPiece] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Title and content of the piece; empty for code."""
        return f"{self.title}\n{self.content}" if self.type is not BlockType.CODE else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownPage:
    """The page of a set of blocks: id, path, time of change, parent page and position."""

    id: str
    source_path: str
    last_modified: datetime | None = None
    parent: str | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class MarkdownPieces:
    """The pieces of a text, and the problem if a part was only taken as plain text."""

    roots: list[MarkdownPiece]
    problem: str = ""


def read_pieces(text: str, first_line: int = 1) -> MarkdownPieces:
    """The pieces of a Markdown text, nested below headings; line numbers start at `first_line`."""
    lines = text.split("\n")
    parsed, rest = lines[:MOST_LINES], lines[MOST_LINES:]
    problem = f"of {len(lines):,} lines those after {MOST_LINES:,} were taken as plain text" if rest else ""
    try:
        roots = _Reader(parsed).read()
    except (IndexError, KeyError, ValueError, RecursionError):
        # Import text that breaks the parser as plain text, instead of losing the page.
        roots, problem = _plain_pieces(parsed, 0), "its Markdown could not be parsed and was taken as plain text"
    nested = _below_headings([*roots, *_plain_pieces(rest, MOST_LINES)])
    for piece in walk_pieces(nested):
        piece.first += first_line
        piece.end += first_line - 1
    return MarkdownPieces(nested, problem)


def walk_pieces(pieces: Iterable[MarkdownPiece]) -> Iterator[MarkdownPiece]:
    """Every piece and all nested pieces, in reading order."""
    for piece in pieces:
        yield piece
        yield from walk_pieces(piece.children)


def lay_out(page: MarkdownPage, pieces: Iterable[MarkdownPiece]) -> Iterator[tuple[Block, MarkdownPiece]]:
    """Each piece as a block of the page, in reading order, parents before children."""
    return _Layout(page).below(page.id, "", pieces)


def summary_of(pieces: Iterable[MarkdownPiece]) -> str:
    """The first sentence of the first paragraph."""
    for piece in walk_pieces(pieces):
        if piece.type is BlockType.TEXT and _WORD.search(piece.content[:_MAX_TITLE_CHARS]):
            return first_sentence(piece.content)
    return ""


def first_sentence(text: str) -> str:
    """The first sentence of a text on a single line, cut at the length limit of a summary."""
    line = " ".join(plain_text(text[: 4 * _MAX_SUMMARY_CHARS].partition("\n\n")[0]).split())
    end = _SENTENCE_END.search(line)
    if end and end.end() <= _MAX_SUMMARY_CHARS:
        return line[: end.end()]
    return line if len(line) <= _MAX_SUMMARY_CHARS else line[: _MAX_SUMMARY_CHARS - 1].rstrip() + "…"


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Inline markup stays as written. Link definitions would vanish from the text, and footnotes look alike.
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    return parser.disable(["inline", "reference"])


@dataclass(frozen=True, slots=True)
class _Reader:
    """Converts the parser's tokens to pieces; lines without a token become text."""

    lines: list[str]

    def read(self) -> list[MarkdownPiece]:
        tokens = iter(_parser().parse("\n".join(self.lines)))
        return self._inside(tokens, "", (0, len(self.lines)))

    def _inside(self, tokens: Iterator[Token], closing: str, span: tuple[int, int]) -> list[MarkdownPiece]:
        pieces: list[MarkdownPiece] = []
        row = span[0]
        for token in tokens:
            if token.type == closing:
                break
            first, end = token.map or (row, row)
            self._put_back(pieces, row, min(first, span[1]))
            self._take(token, tokens, pieces)
            row = max(row, end)
        self._put_back(pieces, row, span[1])
        return _with_asides(pieces)

    def _put_back(self, pieces: list[MarkdownPiece], first: int, end: int) -> None:
        """Add lines without a token as text: content nested deeper than the parser's limit."""
        lines = [_CONTAINER_MARKS.sub("", line, count=1) for line in self.lines[first:end]]
        if any(_WORD.search(line) for line in lines):
            pieces.append(MarkdownPiece(type=BlockType.TEXT, content="\n".join(lines).strip(), first=first, end=end))

    def _take(self, token: Token, tokens: Iterator[Token], pieces: list[MarkdownPiece]) -> None:
        first, end = token.map or (0, 0)
        while end > first + 1 and not self.lines[end - 1].strip():
            end -= 1
        if token.type in ("bullet_list_open", "ordered_list_open"):
            pieces += self._inside(tokens, token.type.replace("open", "close"), (first, end))
        elif piece := self._piece(token, tokens, (first, end), pieces[-1] if pieces else None):
            piece.first, piece.end = first, end
            pieces.append(piece)

    def _piece(
        self, token: Token, tokens: Iterator[Token], span: tuple[int, int], before: MarkdownPiece | None
    ) -> MarkdownPiece | None:
        match token.type:
            case "heading_open":
                title = " ".join(_rest(tokens, "heading_close").split())
                return MarkdownPiece(type=BlockType.HEADING, title=title, metadata={"level": int(token.tag[1:])})
            case "paragraph_open":
                return _paragraph(_rest(tokens, "paragraph_close"), span[1], before)
            case "list_item_open":
                item = _item(self._inside(tokens, "list_item_close", span))
                if token.info.isdecimal():
                    item.metadata["number"] = int(token.info)
                return item
            case "blockquote_open":
                return _quote(self._inside(tokens, "blockquote_close", span))
            case "table_open":
                _rest(tokens, "table_close")
                return MarkdownPiece(type=BlockType.TABLE, content=self._table(span, is_nested=bool(token.level)))
            case "fence" | "code_block":
                return _code(token)
            case "html_block":
                return MarkdownPiece(type=BlockType.TEXT, content=token.content.strip())
            case _:
                # A divider has no text.
                return None

    def _table(self, span: tuple[int, int], *, is_nested: bool) -> str:
        """The table's source lines: the parser drops cells beyond the columns of the header."""
        lines = self.lines[slice(*span)]
        if is_nested:
            lines = [_CONTAINER_MARKS.sub("", line, count=1) for line in lines]
        return "\n".join(line.strip() for line in lines).strip()


def _code(token: Token) -> MarkdownPiece:
    info = token.info.strip()
    language = info.split()[0][:_MAX_LANGUAGE_CHARS].lower() if info else None
    # Behind the language people keep titles and options.
    more = {"info": info} if info != (language or "") else {}
    return MarkdownPiece(type=BlockType.CODE, content=token.content.rstrip("\n"), language=language, metadata=more)


def _rest(tokens: Iterator[Token], closing: str) -> str:
    """The text up to the closing token."""
    return "\n".join(token.content for token in takewhile(lambda token: token.type != closing, tokens))


def _paragraph(text: str, end: int, before: MarkdownPiece | None) -> MarkdownPiece | None:
    """A text piece, or an embed if the paragraph is only an embed; None for a block id on a separate line."""
    text, anchor = _without_anchor(text.strip())
    if anchor and not text and before and not before.anchor and before.type is not BlockType.HEADING:
        # The anchor belongs to the block before: a table, a quote or code.
        before.anchor, before.end = anchor, end
        return None
    if not text:
        text, anchor = f"^{anchor}", ""
    embed = only_embed(text)
    if embed is None:
        return MarkdownPiece(type=BlockType.TEXT, content=text, anchor=anchor)
    kind = BlockType.IMAGE if embed.is_image or not embed.wiki else BlockType.EMBED
    return MarkdownPiece(
        type=kind, content=text, title=embed.shown, anchor=anchor, metadata={"source": embed.destination}
    )


def _without_anchor(text: str) -> tuple[str, str]:
    match = _ANCHOR.search(text[-120:])
    if not match:
        return text, ""
    return text[: len(text) - (len(match.string) - match.start())].rstrip(), match[1]


def _item(inside: list[MarkdownPiece]) -> MarkdownPiece:
    content, anchor, rest = _leading_text(inside)
    piece = MarkdownPiece(type=BlockType.LIST_ITEM, content=content, anchor=anchor, children=rest)
    if box := checkbox(content):
        mark, piece.content = box
        piece.type = BlockType.TODO
        piece.title, piece.metadata = task_title(piece.content), task_metadata(mark, piece.content)
    return piece


def _quote(inside: list[MarkdownPiece]) -> MarkdownPiece:
    content, anchor, rest = _leading_text(inside)
    piece = MarkdownPiece(type=BlockType.QUOTE, content=content, anchor=anchor, children=rest)
    if callout := _CALLOUT.match(content):
        piece.type = BlockType.CALLOUT
        piece.title = callout[3].strip()
        piece.content = content[callout.end() :].strip()
        piece.metadata["callout"] = callout[1].lower()
        if callout[2]:
            piece.metadata["callout_options"] = callout[2]
    return piece


def _leading_text(inside: list[MarkdownPiece]) -> tuple[str, str, list[MarkdownPiece]]:
    """A container's leading paragraphs as text, the block id at their end, and the remaining pieces."""
    count = 0
    while count < len(inside) and inside[count].type is BlockType.TEXT and not inside[count].children:
        count += 1
        if inside[count - 1].anchor:
            break
    own = inside[:count]
    return "\n\n".join(piece.content for piece in own), own[-1].anchor if own else "", inside[count:]


def _with_asides(pieces: list[MarkdownPiece]) -> list[MarkdownPiece]:
    """The pieces with Notion's callouts (`<aside>` tags) nested: pieces between the tags become children."""
    if not any(piece.content[:6].lower() == "<aside" for piece in pieces):
        return pieces
    outer: list[MarkdownPiece] = []
    callout: MarkdownPiece | None = None
    for piece in pieces:
        tags_here = _ASIDE.findall(piece.content) if piece.type is BlockType.TEXT else []
        closes = bool(tags_here) and tags_here[-1].startswith("</")
        if tags_here:
            piece.content = _ASIDE.sub("", piece.content).strip()
        if tags_here and callout is None and not tags_here[0].startswith("</"):
            piece.type, piece.metadata = BlockType.CALLOUT, {"callout": "aside"}
            outer.append(piece)
            callout = None if closes else piece
            continue
        if piece.content or not tags_here:
            (callout.children if callout else outer).append(piece)
        if callout and closes:
            callout.end, callout = piece.end, None
    return outer


def _plain_pieces(lines: list[str], offset: int) -> list[MarkdownPiece]:
    pieces = []
    for at in range(0, len(lines), _PLAIN_PIECE_LINES):
        part = lines[at : at + _PLAIN_PIECE_LINES]
        if text := "\n".join(part).strip():
            first = offset + at
            pieces.append(MarkdownPiece(type=BlockType.TEXT, content=text, first=first, end=first + len(part)))
    return pieces


def _below_headings(pieces: list[MarkdownPiece]) -> list[MarkdownPiece]:
    roots: list[MarkdownPiece] = []
    open_: list[MarkdownPiece] = []
    for piece in pieces:
        if piece.type is BlockType.HEADING:
            while open_ and open_[-1].metadata["level"] >= piece.metadata["level"]:
                open_.pop()
        (open_[-1].children if open_ else roots).append(piece)
        if piece.type is BlockType.HEADING:
            open_.append(piece)
    return roots


@dataclass(slots=True)
class _Layout:
    """Assigns ids, positions and parents to the pieces of a page."""

    page: MarkdownPage
    used: dict[str, int] = field(default_factory=dict)
    position: int = 0

    def below(self, parent: str, path: str, pieces: Iterable[MarkdownPiece]) -> Iterator[tuple[Block, MarkdownPiece]]:
        for piece in pieces:
            name, inner = self._name_and_path(piece, path)
            block = self._block(piece, unused(f"{self.page.id}#{name}", self.used), parent)
            yield block, piece
            yield from self.below(block.id, inner, piece.children)

    def _name_and_path(self, piece: MarkdownPiece, path: str) -> tuple[str, str]:
        """The block's name on the page, and the heading path for nested blocks."""
        if piece.type is BlockType.HEADING:
            title = piece.title[:_MAX_TITLE_CHARS]
            inner = f"{path}/{title}" if path else title
            # Nested long headings make long paths; a hash keeps a shortened id unique.
            if len(inner) > _MAX_ID_CHARS:
                inner = f"{inner[:_MAX_ID_CHARS]}~{digest(inner)}"
            return inner, inner
        return (f"^{piece.anchor}" if piece.anchor else f"~{digest(piece.type, piece.title, piece.content)}"), path

    def _block(self, piece: MarkdownPiece, block_id: str, parent: str) -> Block:
        self.position += 1
        tagged = list(dict.fromkeys(tags(piece.text)))
        return Block(
            id=block_id,
            type=piece.type,
            source_path=self.page.source_path,
            title=piece.title[:_MAX_TITLE_CHARS],
            parent=parent,
            position=self.position,
            start_line=piece.first,
            end_line=max(piece.end, piece.first),
            language=piece.language,
            # A heading too long for a title keeps the whole text as content.
            content=piece.content or (piece.title if len(piece.title) > _MAX_TITLE_CHARS else ""),
            last_modified=self.page.last_modified,
            metadata=piece.metadata | ({"tags": tagged} if tagged else {}),
        )


def digest(*texts: str) -> str:
    """A BLAKE2b hash of the texts, ten hex characters long."""
    return blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
