"""Puts a member into JSON with comments, and takes it out again, leaving every other byte as it is.

What is put in is written so that taking it out can tell what was there before. In an object that was there and is
`{}`, the member stands on the same line without spaces; an object that was made for it has its member on a line of
its own, or spaces inside the braces; what stood in an empty object stays behind the member.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from satchel.agents.json_scan import SPACE, Member, Node, scan
from satchel.agents.refusal import CannotEdit, line_end_of, place_in

_INDENTED: Final = re.compile(r'^([ \t]+)"', re.MULTILINE)
_COMMENTS_ON_THE_LINE: Final = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)

Path = tuple[str, ...]


def read(text: str) -> Any:
    """The document; an empty text is an empty object."""
    return scan(text).value if text.strip(SPACE) else {}


def new(path: Path, value: Any) -> str:
    """A text that holds nothing but the value."""
    return _Style(line_end="\n", indent="  ").lines("", path, value) + "\n"


def put(text: str, path: Path, value: Any) -> str:
    """The text with the value at the path, in the place of one that is there or after the others."""
    style = _Style(line_end=line_end_of(text), indent=_indent_of(text))
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


def drop(text: str, path: Path) -> str | None:
    """The text without the value at the path; None if the text was made for it."""
    holders, holder = list[tuple[Node, Member]](), scan(text)
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
        lead, tail = _around(text, holder, member)
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
    """What remains between the braces when the only member is gone."""
    if lead.strip(SPACE):
        return lead.rstrip(SPACE) + tail
    if tail.startswith(close) and tail != close:
        return tail.removeprefix(close)
    return tail if tail.strip(SPACE) else ""


def _around(text: str, holder: Node, member: Member) -> tuple[str, str]:
    end = member.value.end if member.comma is None else member.comma + 1
    return text[holder.start + 1 : member.start], text[end : holder.end - 1]


def _inserted(text: str, holder: Node, path: Path, value: Any, style: _Style) -> str:
    opened = holder.start + 1
    if not holder.members:
        if opened == holder.end - 1:
            return text[:opened] + style.member(path, value) + text[opened:]
        close = style.line_end + _indent_at(text, holder.start)
        added = close + style.indent + style.members(close + style.indent, path, value) + close
        return text[:opened] + added + text[opened:]
    first, last = holder.members[0], holder.members[-1]
    end = last.value.end if last.comma is None else last.comma + 1
    comments = _COMMENTS_ON_THE_LINE.match(text, end)
    assert comments is not None
    broken = "\n" in text[opened : first.start]
    own_line = style.line_end + _indent_at(text, first.start)
    if broken:
        added = own_line + style.members(own_line, path, value)
    else:
        space = "" if text[first.value.start - 1] == ":" else " "
        added = (own_line if "//" in comments[0] else space) + style.member(path, value, compact=not space)
    commas = (",", "") if last.comma is None else ("", ",")
    return f"{text[:end]}{commas[0]}{comments[0]}{added}{commas[1]}{text[comments.end() :]}"


def _replaced(text: str, member: Member, value: Any, style: _Style) -> str:
    old = text[member.value.start : member.value.end]
    base = style.line_end + _indent_at(text, member.start)
    new = style.broken(base, value) if "\n" in old else style.single(value)
    return text[: member.value.start] + new + text[member.value.end :]


def _cut(text: str, holder: Node, member: Member) -> str:
    """The text without one of several members, the space before it and one comma."""
    start, end = member.start, member.value.end
    while text[start - 1] in SPACE:
        start -= 1
    assert holder.members is not None
    at = holder.members.index(member)
    comma = holder.members[at - 1].comma if at else holder.start
    assert comma is not None
    behind = end if member.comma is None else member.comma + 1
    comments = _COMMENT.findall(text, comma + 1, start)
    if comments and comments[-1].startswith("//") and text[behind : behind + 1] not in ("\r", "\n"):
        # What follows would become part of the comment.
        start = member.start
    if member.comma is not None:
        return text[:start] + text[end : member.comma] + text[member.comma + 1 :]
    return text[:comma] + text[comma + 1 : start] + text[end:]


def _object(text: str, node: Node) -> Node:
    if node.members is None:
        raise CannotEdit(f"{place_in(text, node.start)}: an object in braces is expected")
    return node


def _member(text: str, holder: Node, key: str) -> Member | None:
    members = [member for member in holder.members or () if member.key == key]
    if len(members) > 1:
        raise CannotEdit(f"{place_in(text, members[1].start)}: {key} stands twice")
    return members[0] if members else None


def _indent_of(text: str) -> str:
    """How deep a member stands in the outermost object."""
    line = _INDENTED.search(text)
    return line[1] if line else "  "


def _indent_at(text: str, at: int) -> str:
    """The space with which the line begins on which something stands."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    line_end: str
    indent: str

    def single(self, value: Any, *, compact: bool = False) -> str:
        """A value on one line."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)

    def broken(self, base: str, value: Any) -> str:
        """A value on several lines, each beginning with the base."""
        return json.dumps(value, ensure_ascii=False, indent=self.indent).replace("\n", base)

    def member(self, path: Path, value: Any, *, compact: bool = False) -> str:
        """A member on one line; objects on the way have spaces inside their braces."""
        text = self.single(value, compact=compact)
        for key in reversed(path[1:]):
            text = f"{{ {json.dumps(key)}:{'' if compact else ' '}{text} }}"
        return f"{json.dumps(path[0])}:{'' if compact else ' '}{text}"

    def members(self, base: str, path: Path, value: Any) -> str:
        """A member on several lines; the base is a line end and the space before the key."""
        inner = self.broken(base, value) if len(path) == 1 else self.lines(base, path[1:], value)
        return f"{json.dumps(path[0])}: {inner}"

    def lines(self, base: str, path: Path, value: Any) -> str:
        """An object on several lines that holds one member."""
        base = base or self.line_end
        return f"{{{base}{self.indent}{self.members(base + self.indent, path, value)}{base}}}"
