"""Add and remove a member in JSON with comments, without changing any byte elsewhere.

The layout of an added member records the text before, for the removal. In an existing `{}`, the member is on the same
line without spaces. An object created for the member has the member on a separate line, or spaces inside the braces.
Comments and spaces of an empty object stay behind the member.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from satchel.agents.settings_file import CannotEdit, line_end_of, place_in

SPACE: Final = " \t\r\n"
# Levels: real settings have a few; the scanner is recursive and must stay below the recursion limit of Python.
_MAX_NESTING: Final = 100
# Deeper objects are never changed inside: a parser of strict JSON may read them, if it can, and is faster.
_EDITED: Final = 3
_GAP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\r\n]|\\.)*"')
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")


def _no_number(name: str) -> None:
    raise ValueError(name)


_STRICT: Final = json.JSONDecoder(parse_constant=_no_number)


@dataclass(slots=True, kw_only=True)
class JsonNode:
    """A value and the position in the text."""

    start: int
    end: int
    value: Any
    members: list[JsonMember] | None = None
    """Members of an object; None for arrays, scalars and objects read by the strict parser."""


@dataclass(slots=True, kw_only=True)
class JsonMember:
    """A key and a value; `comma` is the position of the comma after the value, if present."""

    key: str
    start: int
    value: JsonNode
    comma: int | None = None

    @property
    def end(self) -> int:
        """End position of the member, including the comma."""
        return self.value.end if self.comma is None else self.comma + 1


@lru_cache(maxsize=2)
def scan(text: str) -> JsonNode:
    """Parsed value of a whole text. Cached: an edit reads the texts before and after several times."""
    scanner = _Scanner(text)
    node = scanner.value(0)
    scanner.skip()
    if scanner.at < len(text):
        raise scanner.refused("unexpected text after the end of the value")
    return node


@dataclass(slots=True)
class _Scanner:
    text: str
    at: int = 0

    def skip(self) -> None:
        """Skip spaces and comments."""
        gap = _GAP.match(self.text, self.at)
        assert gap is not None
        self.at = gap.end()

    def refused(self, problem: str) -> CannotEdit:
        return CannotEdit(f"{place_in(self.text, self.at)}: {problem}")

    def value(self, depth: int) -> JsonNode:
        self.skip()
        if depth > _MAX_NESTING:
            raise self.refused("values are nested too deeply")
        start, opening = self.at, self.text[self.at : self.at + 1]
        if opening == "[" or (opening == "{" and depth >= _EDITED):
            with suppress(ValueError, RecursionError):
                whole, self.at = _STRICT.raw_decode(self.text, start)
                return JsonNode(start=start, end=self.at, value=whole)
        if opening == "{":
            return self._object(depth)
        value = self._array(depth) if opening == "[" else self._string() if opening == '"' else self._other()
        return JsonNode(start=start, end=self.at, value=value)

    def _object(self, depth: int) -> JsonNode:
        start, members = self.at, list[JsonMember]()
        self.at += 1
        while not self._take("}"):
            key_start = self.at
            if not self.text.startswith('"', self.at):
                raise self.refused("expected a key in double quotes, or }")
            key = self._string()
            if not self._take(":"):
                raise self.refused("expected a colon")
            value = self.value(depth + 1)
            members.append(JsonMember(key=key, start=key_start, value=value, comma=self._comma("}")))
        content = {member.key: member.value.value for member in members}
        return JsonNode(start=start, end=self.at, value=content, members=members)

    def _array(self, depth: int) -> list[Any]:
        items = []
        self.at += 1
        while not self._take("]"):
            items.append(self.value(depth + 1).value)
            self._comma("]")
        return items

    def _take(self, sign: str) -> bool:
        """True if the given character comes next; skips the character."""
        self.skip()
        is_next = self.text.startswith(sign, self.at)
        self.at += is_next
        return is_next

    def _comma(self, bracket: str) -> int | None:
        if self._take(","):
            return self.at - 1
        if not self.text.startswith(bracket, self.at):
            raise self.refused(f"expected a comma or {bracket}")
        return None

    def _string(self) -> str:
        token = _STRING.match(self.text, self.at)
        if token is None:
            raise self.refused("unterminated string")
        text = token[0][1:-1]
        if "\\" in text:
            try:
                text = json.loads(token[0], strict=False)
            except ValueError:
                raise self.refused("invalid escape in a string") from None
        self.at = token.end()
        return text

    def _other(self) -> Any:
        token = _SCALAR.match(self.text, self.at)
        if token is None:
            raise self.refused("expected a value")
        self.at = token.end()
        return json.loads(token[0])


_INDENTED: Final = re.compile(r'^([ \t]+)"', re.MULTILINE)
_COMMENTS_ON_THE_LINE: Final = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)

Keys = tuple[str, ...]


def read(text: str) -> Any:
    """The document; an empty text is an empty object."""
    return scan(text).value if text.strip(SPACE) else {}


def new(path: Keys, value: Any) -> str:
    """A text with only the value."""
    return _Style(line_end="\n", indent="  ").lines("", path, value) + "\n"


def put(text: str, path: Keys, value: Any) -> str:
    """The text with the value at the path: replaces an existing value, else adds the value after all members."""
    indented = _INDENTED.search(text)
    style = _Style(line_end=line_end_of(text), indent=indented[1] if indented else "  ")
    if not text.strip(SPACE):
        return text + style.lines("", path, value)
    holder = _object(text, scan(text))
    for depth, key in enumerate(path):
        member = _member(text, holder, key)
        if member is None:
            return _inserted(text, holder, path[depth:], value, style)
        if depth == len(path) - 1:
            return _replaced(text, member, value, style)
        holder = _object(text, member.value)
    raise AssertionError("a path has at least one key")


def drop(text: str, path: Keys) -> str | None:
    """The text without the value at the path; None if the text was created for the value."""
    holders, holder = list[tuple[JsonNode, JsonMember]](), scan(text)
    for key in path:
        member = _member(text, _object(text, holder), key)
        if member is None:
            return text
        holders.append((holder, member))
        holder = member.value
    line_end = line_end_of(text)
    for depth in reversed(range(len(path))):
        holder, member = holders[depth]
        if len(holder.members or ()) > 1:
            return _cut(text, holder, member)
        lead, tail = text[holder.start + 1 : member.start], text[member.end : holder.end - 1]
        close = line_end + _indent_at(text, holder.start)
        made = tail == close and lead.startswith(line_end) and not lead.strip(SPACE)
        if depth and (made or lead == tail == " "):
            continue
        before, after = text[: holder.start], text[holder.end :]
        if made and not depth and not before and after == line_end:
            return None
        if made and not depth and not before.strip(SPACE) and not after:
            return before
        return f"{before}{{{_remainder(lead, tail, close)}}}{after}"
    raise AssertionError("the outermost object ends the loop")


def _remainder(lead: str, tail: str, close: str) -> str:
    """Text between the braces after removal of the only member."""
    if lead.strip(SPACE):
        return lead.rstrip(SPACE) + tail
    if tail.startswith(close) and tail != close:
        return tail.removeprefix(close)
    return tail if tail.strip(SPACE) else ""


def _inserted(text: str, holder: JsonNode, path: Keys, value: Any, style: _Style) -> str:
    opened = holder.start + 1
    if not holder.members:
        if opened == holder.end - 1:
            return text[:opened] + style.member(path, value) + text[opened:]
        close = style.line_end + _indent_at(text, holder.start)
        added = close + style.indent + style.members(close + style.indent, path, value) + close
        return text[:opened] + added + text[opened:]
    first, last = holder.members[0], holder.members[-1]
    comments = _COMMENTS_ON_THE_LINE.match(text, last.end)
    assert comments is not None
    own_line = style.line_end + _indent_at(text, first.start)
    if "\n" in text[opened : first.start]:
        added = own_line + style.members(own_line, path, value)
    else:
        space = "" if text[first.value.start - 1] == ":" else " "
        added = (own_line if "//" in comments[0] else space) + style.member(path, value, compact=not space)
    commas = (",", "") if last.comma is None else ("", ",")
    return f"{text[: last.end]}{commas[0]}{comments[0]}{added}{commas[1]}{text[comments.end() :]}"


def _replaced(text: str, member: JsonMember, value: Any, style: _Style) -> str:
    old = text[member.value.start : member.value.end]
    base = style.line_end + _indent_at(text, member.start)
    new = style.broken(base, value) if "\n" in old else style.single(value)
    return text[: member.value.start] + new + text[member.value.end :]


def _cut(text: str, holder: JsonNode, member: JsonMember) -> str:
    """The text without a member, the space before the member and a comma; at least one member remains."""
    start, end = member.start, member.value.end
    while text[start - 1] in SPACE:
        start -= 1
    assert holder.members is not None
    at = holder.members.index(member)
    comma = holder.members[at - 1].comma if at else holder.start
    assert comma is not None
    comments = _COMMENT.findall(text, comma + 1, start)
    if comments and comments[-1].startswith("//") and text[member.end : member.end + 1] not in ("\r", "\n"):
        # What follows would become part of the comment.
        start = member.start
    if member.comma is not None:
        return text[:start] + text[end : member.comma] + text[member.comma + 1 :]
    return text[:comma] + text[comma + 1 : start] + text[end:]


def _object(text: str, node: JsonNode) -> JsonNode:
    if node.members is None:
        raise CannotEdit(f"{place_in(text, node.start)}: expected an object in braces")
    return node


def _member(text: str, holder: JsonNode, key: str) -> JsonMember | None:
    members = [member for member in holder.members or () if member.key == key]
    if len(members) > 1:
        raise CannotEdit(f"{place_in(text, members[1].start)}: duplicate key {key}")
    return members[0] if members else None


def _indent_at(text: str, at: int) -> str:
    """Indentation of the line at a position."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    line_end: str
    indent: str

    def single(self, value: Any, *, compact: bool = False) -> str:
        """A value on a single line."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)

    def broken(self, base: str, value: Any) -> str:
        """A value on several lines, each starting with the base."""
        return json.dumps(value, ensure_ascii=False, indent=self.indent).replace("\n", base)

    def member(self, path: Keys, value: Any, *, compact: bool = False) -> str:
        """A member on a single line; nested objects have spaces inside their braces."""
        text = self.single(value, compact=compact)
        for key in reversed(path[1:]):
            text = f"{{ {json.dumps(key)}:{'' if compact else ' '}{text} }}"
        return f"{json.dumps(path[0])}:{'' if compact else ' '}{text}"

    def members(self, base: str, path: Keys, value: Any) -> str:
        """A member on several lines; the base is a line end and the space before the key."""
        inner = self.broken(base, value) if len(path) == 1 else self.lines(base, path[1:], value)
        return f"{json.dumps(path[0])}: {inner}"

    def lines(self, base: str, path: Keys, value: Any) -> str:
        """An object on several lines with a single member."""
        base = base or self.line_end
        return f"{{{base}{self.indent}{self.members(base + self.indent, path, value)}{base}}}"
