"""From source text to an outline, with tree-sitter: definitions as blocks, calls and imports as mentions."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, resources
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.split import MOST_CHARS, cut, line_starts
from satchel.models.block import BlockType, LinkKind
from satchel.models.files import detect_language
from satchel.models.outline import WHOLE_FILE, Mention, Outline, OutlineBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node, Parser, Query


GRAMMARS: Final = tuple(
    "bash c cpp csharp elixir go haskell java javascript kotlin lua php python ruby rust scala swift tsx typescript"
    " zig".split()
)
"""The grammars that come with Satchel, by name."""

# Grammars whose package or function has an unusual name.
_MODULES: Final = {"csharp": "c_sharp", "tsx": "typescript"}
_FUNCTIONS: Final = {"php": "language_php", "tsx": "language_tsx", "typescript": "language_typescript"}

_HEADER_SEARCH_CHARS: Final = 100_000  # C++ shows early in a header; bounds the search in large generated headers
REFERENCES_MARK: Final = "\n;; references\n"
_CPP_HEADER: Final = re.compile(
    r"^[ \t]*(?:class\s+\w|namespace\b|template\s*<|using\s+\w|public:|private:)|::", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Grammar:
    """A tree-sitter parser with the queries for definitions and references."""

    name: str
    parser: Parser
    definitions: Query
    references: Query


def grammar_name(path: str, text: str) -> str | None:
    """The grammar for a file, or None for a file to be read by lines."""
    language = detect_language(path)
    if language == "typescript" and path.lower().endswith(".tsx"):
        return "tsx"
    if language == "c" and path.lower().endswith(".h") and _CPP_HEADER.search(text, 0, _HEADER_SEARCH_CHARS):
        return "cpp"
    return language if language in GRAMMARS else None


@cache
def load_grammar(name: str) -> Grammar:
    """The grammar with the given name."""
    from tree_sitter import Language, Parser, Query

    module = import_module(f"tree_sitter_{_MODULES.get(name, name)}")
    language = Language(getattr(module, _FUNCTIONS.get(name, "language"))())
    text = resources.files("satchel.indexing.code").joinpath("queries", f"{name}.scm").read_text("utf-8")
    definitions, _, references = text.partition(REFERENCES_MARK)
    return Grammar(name, Parser(language), Query(language, definitions), Query(language, references))


# Per query: bounds memory on hostile nesting; tree-sitter drops the earliest matches beyond.
_MAX_OPEN_MATCHES: Final = 4096
_MAX_NAME_CHARS: Final = 200  # longer names are minified or generated code; the rest is cut
_MAX_QUALIFIED_CHARS: Final = 300  # of the parent's name: bounds names of functions nested in functions
_MAX_SIGNATURE_CHARS: Final = 240  # a signature summarizes a block within the budget; longer parameter lists are cut
_MAX_DOC_CHARS: Final = 160  # a summary of a line or two; longer sentences are cut to save budget
# Of nested nodes; bounds the walk over hostile nesting, deeper code is cut at outer borders.
_MAX_BORDER_LEVELS: Final = 24
_KINDS: Final = frozenset(kind.value for kind in BlockType)
_LINKS: Final = {
    "call": LinkKind.CALLS.value,
    "import": LinkKind.IMPORTS.value,
    "imported": LinkKind.IMPORTS.value,
    "inherit": LinkKind.INHERITS.value,
    "type": LinkKind.MENTIONS.value,
}
_DOCSTRING: Final = re.compile(r"[\s{:]*[rRuUbB]{0,2}(\"\"\"|'''|\"|')(.+?)(?:\1|\n\s*\n|\Z)", re.DOTALL)
_COMMENT_LINE: Final = re.compile(r"\s*(?://|/\*|\*(?:[\s/<{@]|$)|#\[|--|\{-|@[\w.]+(?:\([^()]*\))?\s*$)")
_COMMENT_LINE_WITH_HASH: Final = re.compile(r"\s*(?:#(?!!)|//|/\*|\*(?:[\s/<{@]|$)|@[\w.]+(?:\([^()]*\))?\s*$)")
_COMMENT_LINE_OF_ELIXIR: Final = re.compile(r"\s*(?:#|@(?:doc|moduledoc|spec|impl|deprecated|typedoc)\b)")
_MAX_COMMENT_LINE_CHARS: Final = 400  # of a line; no pattern should run over a line of minified code
_COMMENT_LINES: Final = {"elixir": _COMMENT_LINE_OF_ELIXIR} | dict.fromkeys(
    ("bash", "php", "python", "ruby"), _COMMENT_LINE_WITH_HASH
)
_COMMENT_MARKS: Final = re.compile(r"^\s*(?:/\*+!?|\*+/?|//+!?|#+!?|--+\s*\|?|;;+|\{-\s*\|?|%+)\s?|\s*(?:\*+/|-\})\s*$")
_QUOTED_DOC: Final = re.compile(r"\s*@(?:module|type)?doc\b.*\"\"\"\s*$")
_SPACE: Final = re.compile(r"\s+")
_TAG: Final = re.compile(r"</?\w+>|^@\w+.*|\{@\w+ ([^}]*)\}")


class _Definition(NamedTuple):
    start: int
    end: int
    first_row: int
    last_row: int
    kind: str
    name: str
    name_at: int
    body: int
    owner: str


def read_code(text: str, grammar_name: str, language: str | None) -> Outline:
    """The outline of a source text."""
    grammar = load_grammar(grammar_name)
    data = text.encode("utf-8", "surrogateescape")
    root = grammar.parser.parse(data).root_node
    starts = line_starts(text)
    lines = _Lines(text, starts, _COMMENT_LINES.get(grammar_name, _COMMENT_LINE))
    definitions = _definitions(root, grammar, data)
    blocks = _blocks(definitions, data, lines)
    mentions = _mentions(root, grammar, data, definitions, blocks)
    borders = _borders(root, definitions, lines)
    note = "has syntax errors" if root.has_error else ""
    return Outline(language, blocks, cut(text, starts, borders, blocks), mentions, note)


class _Lines:
    def __init__(self, text: str, starts: Sequence[int], comment: re.Pattern[str]) -> None:
        self._text = text
        self._comment = comment
        self.starts = starts
        self.count = len(starts) - 1

    def __getitem__(self, row: int) -> str:
        return self._text[self.starts[row] : self.starts[row + 1]]

    @cached_property
    def tops(self) -> list[int]:
        """For each row, the first row of the comment that ends right above the row, or the row itself."""
        text, match, top = self._text, self._comment.match, 0
        tops = [0]
        is_open = False  # a blank line inside a comment does not end it
        for row, (start, after) in enumerate(pairwise(self.starts)):
            line = text[start : min(after, start + _MAX_COMMENT_LINE_CHARS)]
            is_comment = match(line) is not None or (is_open and not line.strip())
            # What follows a comment on its line is code.
            if not is_comment or line.partition("*/")[2].strip():
                top = row + 1
            is_open = is_comment and "*/" not in line and (is_open or line.lstrip().startswith("/*"))
            tops.append(top)
        return tops

    def comment_top(self, row: int, floor: int = 0) -> int:
        """The first row of the comment that ends right above this row, or the row itself."""
        return max(self.tops[row], min(floor, row))


def _definitions(root: Node, grammar: Grammar, data: bytes) -> list[_Definition]:
    """The definitions from the outside in; of several nodes with the same name node, the outermost."""
    from tree_sitter import QueryCursor

    by_name: dict[int, _Definition] = {}
    for _, captures in QueryCursor(grammar.definitions, match_limit=_MAX_OPEN_MATCHES).matches(root):
        kind = next((name for name in captures if name in _KINDS), None)
        if kind is None or "name" not in captures:
            continue
        node, name = captures[kind][0], captures["name"][0]
        known = by_name.get(name.start_byte)
        if known is not None and (known.end - known.start) >= (node.end_byte - node.start_byte):
            continue
        body = captures["body"][0].start_byte if "body" in captures else (known.body if known else 0)
        if text := _text(data, name):
            by_name[name.start_byte] = _Definition(
                start=node.start_byte,
                end=node.end_byte,
                first_row=node.start_point.row,
                last_row=_last_row(node, data, runs_on=grammar.name == "scala"),
                kind=kind,
                name=text,
                name_at=name.start_byte,
                body=body,
                owner=_text(data, captures["owner"][0]) if "owner" in captures else "",
            )
    definitions = sorted(by_name.values(), key=lambda d: (d.start, -d.end))
    return _joined(definitions) if grammar.name == "haskell" else definitions


def _joined(definitions: list[_Definition]) -> list[_Definition]:
    """The definitions, with each Haskell signature merged with the equations below."""
    joined: list[_Definition] = []
    for new in definitions:
        last = joined[-1] if joined else None
        if last and (last.name, last.kind) == (new.name, new.kind) and new.first_row <= last.last_row + 2:
            joined[-1] = last._replace(end=new.end, last_row=new.last_row)
        else:
            joined.append(new)
    return joined


def _text(data: bytes, node: Node) -> str:
    text = data[node.start_byte : min(node.end_byte, node.start_byte + _MAX_NAME_CHARS)].decode("utf-8", "replace")
    text = _SPACE.sub(" ", text.strip("\"'` \t\r\n"))
    # Ruby names definitions by symbols (`:name`).
    return text[1:] if text.startswith(":") and not text.startswith("::") else text


def _last_row(node: Node, data: bytes, *, runs_on: bool) -> int:
    """The last row with text of the definition; Scala's nodes run on to the next token, over comments."""
    while runs_on:
        inside = [child for child in node.children if "comment" not in child.type]
        if not inside:
            break
        node = inside[-1]
    text = data[node.start_byte : node.end_byte]
    return node.start_point.row + text.rstrip().count(b"\n")


def _holds(outer: _Definition, inner: _Definition) -> bool:
    """True if `outer` contains `inner`; definitions of the same node are neighbours."""
    return inner.end <= outer.end and (outer.start, outer.end) != (inner.start, inner.end)


def _blocks(definitions: list[_Definition], data: bytes, lines: _Lines) -> tuple[OutlineBlock, ...]:
    blocks: list[OutlineBlock] = []
    open_: list[int] = []
    closed = 0
    for definition in definitions:
        while open_ and not _holds(definitions[open_[-1]], definition):
            closed = max(closed, definitions[open_.pop()].last_row + 1)
        parent = open_[-1] if open_ else WHOLE_FILE
        above = blocks[parent] if parent != WHOLE_FILE else None
        is_member = bool(definition.owner) or (above is not None and BlockType(above.type).holds_members)
        is_method = is_member and definition.kind == BlockType.FUNCTION
        # The names of functions nested many levels deep are shortened.
        prefix = f"{above.qualified[:_MAX_QUALIFIED_CHARS]}." if above else ""
        if definition.owner and not (above and above.name == definition.owner):
            prefix += f"{definition.owner}."
        floor = max(above.first_line if above else 0, closed)
        first, comment = _with_comment(definition.first_row, floor, lines)
        blocks.append(
            OutlineBlock(
                type=BlockType.METHOD.value if is_method else definition.kind,
                name=definition.name,
                qualified=prefix + definition.name,
                parent=parent,
                first_line=first + 1,
                last_line=min(definition.last_row + 1, lines.count),
                signature=_signature(definition, data),
                doc=comment or _docstring(definition, data),
            )
        )
        open_.append(len(blocks) - 1)
    return tuple(blocks)


def _signature(definition: _Definition, data: bytes) -> str:
    end = definition.body if definition.body > definition.start else definition.end
    raw = data[definition.start : min(end, definition.start + 4 * _MAX_SIGNATURE_CHARS)].decode("utf-8", "replace")
    if definition.body <= definition.start:
        raw = raw.partition("\n")[0]
    code = [line for line in raw.split("\n") if not _COMMENT_LINE.match(line)] or [raw]
    return _SPACE.sub(" ", " ".join(code)).strip(" {:=")[:_MAX_SIGNATURE_CHARS]


def _docstring(definition: _Definition, data: bytes) -> str:
    if not definition.body:
        return ""
    match = _DOCSTRING.match(data[definition.body : definition.body + 1500].decode("utf-8", "replace"))
    return _first_sentence(match[2]) if match else ""


def _with_comment(row: int, floor: int, lines: _Lines) -> tuple[int, str]:
    """The first row of the comment right above the row, and the comment's first sentence."""
    top = lines.comment_top(row, floor)
    if top > floor and lines[top - 1].strip() == '"""':
        # Elixir keeps its documentation in an attribute with a quoted text.
        for above in range(top - 2, max(floor, top - 80) - 1, -1):
            if _QUOTED_DOC.match(lines[above]):
                return above, _first_sentence("".join(lines[i] for i in range(above + 1, top - 1)))
    if top == row:
        return row, ""
    comment = [_COMMENT_MARKS.sub("", lines[i][:_MAX_COMMENT_LINE_CHARS]) for i in range(top, min(row, top + 12))]
    return top, _first_sentence("\n".join(comment))


def _first_sentence(text: str) -> str:
    paragraph = _TAG.sub(r"\1", text).strip().split("\n\n")[0]
    flat = _SPACE.sub(" ", paragraph).strip()
    if not any(c.isalpha() for c in flat):
        return ""
    end = flat.find(". ")
    return (flat if end < 0 else flat[: end + 1])[:_MAX_DOC_CHARS]


def _mentions(
    root: Node, grammar: Grammar, data: bytes, definitions: list[_Definition], blocks: Sequence[OutlineBlock]
) -> tuple[Mention, ...]:
    """Names mentioned in each block; `blocks` correspond to `definitions` by index."""
    from tree_sitter import QueryCursor

    captures = QueryCursor(grammar.references, match_limit=_MAX_OPEN_MATCHES).captures(root)
    own = {(definition.name_at, definition.name) for definition in definitions}
    edges = [definition.start for definition in definitions]
    mentions: set[Mention] = set()
    for capture, kind in _LINKS.items():
        for node in captures.get(capture, ()):
            start = node.start_byte
            block = bisect_right(edges, start) - 1
            while block != WHOLE_FILE and definitions[block].end <= start:
                block = blocks[block].parent
            name = data[start : min(node.end_byte, start + _MAX_NAME_CHARS)].decode("utf-8", "replace")
            name = name.strip("\"'`<> \t\r\n" if kind == LinkKind.IMPORTS else "\"'` \t\r\n")
            # tree-sitter parses Elixir's `def f(x)` as a call of the defined function.
            if name and "\n" not in name and (start, name) not in own:
                mentions.add(Mention(block, kind, name))
    return tuple(sorted(mentions))


def _borders(root: Node, definitions: list[_Definition], lines: _Lines) -> dict[int, int]:
    """Rows before which a cut is natural: statements of a node too large to stay whole."""
    borders: dict[int, int] = {}
    tops, starts = lines.tops, lines.starts
    defined = {definition.first_row for definition in definitions}
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        previous = -1
        for child in node.children:
            row, last = child.start_point.row, child.end_point.row
            if row != previous and row > 0:
                top = tops[row]
                level = depth * 2 + (0 if row in defined else 1)
                borders[top] = min(level, borders.get(top, level))
            previous = row
            # The end of a node may be on the row after the last.
            if depth < _MAX_BORDER_LEVELS and starts[min(last + 1, lines.count)] - starts[row] > MOST_CHARS:
                waiting.append((child, depth + 1))
    return borders
