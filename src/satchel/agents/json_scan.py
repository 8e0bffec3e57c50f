"""Reads JSON with comments and trailing commas into nodes that know their places in the text.

Editors write settings in this form; parsers of strict JSON refuse it, and those that accept it forget the spaces.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from satchel.agents.refusal import CannotEdit, place_in

SPACE: Final = " \t\r\n"
_DEEPEST: Final = 100
# Deeper objects are never changed inside: a parser of strict JSON may read them, if it can, and is faster.
_EDITED: Final = 3
_GAP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\r\n]|\\.)*"')
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")


def _no_number(name: str) -> None:
    raise ValueError(name)


_STRICT: Final = json.JSONDecoder(parse_constant=_no_number)


@dataclass(slots=True, kw_only=True)
class Node:
    """A value and its place in the text."""

    start: int
    end: int
    scalar: Any = None
    members: list[Member] | None = None
    """Of an object."""
    items: list[Node] | None = None
    """Of an array."""

    @property
    def value(self) -> Any:
        """The value itself."""
        if self.members is not None:
            return {member.key: member.value.value for member in self.members}
        if self.items is not None:
            return [item.value for item in self.items]
        return self.scalar


@dataclass(slots=True, kw_only=True)
class Member:
    """A key and its value; `comma` is where the comma after them stands, if there is one."""

    key: str
    start: int
    value: Node
    comma: int | None = field(default=None)


@lru_cache(maxsize=2)
def scan(text: str) -> Node:
    """The value that a whole text holds. Cached: an edit reads the text before and after it several times."""
    scanner = _Scanner(text)
    node = scanner.value(0)
    scanner.skip()
    if scanner.at < len(text):
        raise scanner.refused("there is something after the end")
    return node


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        """Go on to what is neither space nor comment."""
        gap = _GAP.match(self.text, self.at)
        assert gap is not None
        self.at = gap.end()

    def refused(self, problem: str) -> CannotEdit:
        return CannotEdit(f"{place_in(self.text, self.at)}: {problem}")

    def value(self, depth: int) -> Node:
        self.skip()
        if depth > _DEEPEST:
            raise self.refused("values are nested too deeply")
        start, opening = self.at, self.text[self.at : self.at + 1]
        if opening == "[" or (opening == "{" and depth >= _EDITED):
            with suppress(ValueError, RecursionError):
                whole, self.at = _STRICT.raw_decode(self.text, start)
                return Node(start=start, end=self.at, scalar=whole)
        if opening == "{":
            return self._object(depth)
        if opening == "[":
            return self._array(depth)
        scalar = self._string() if opening == '"' else self._other()
        return Node(start=start, end=self.at, scalar=scalar)

    def _object(self, depth: int) -> Node:
        start, members = self.at, list[Member]()
        self.at += 1
        while not self._closed("}"):
            key_start = self.at
            if self.text[self.at : self.at + 1] != '"':
                raise self.refused("a key in double quotes, or }, is expected")
            key = self._string()
            self.skip()
            if self.text[self.at : self.at + 1] != ":":
                raise self.refused("a colon is expected")
            self.at += 1
            member = Member(key=key, start=key_start, value=self.value(depth + 1))
            member.comma = self._comma("}")
            members.append(member)
        return Node(start=start, end=self.at, members=members)

    def _array(self, depth: int) -> Node:
        start, items = self.at, list[Node]()
        self.at += 1
        while not self._closed("]"):
            items.append(self.value(depth + 1))
            self._comma("]")
        return Node(start=start, end=self.at, items=items)

    def _closed(self, bracket: str) -> bool:
        self.skip()
        if self.text[self.at : self.at + 1] != bracket:
            return False
        self.at += 1
        return True

    def _comma(self, bracket: str) -> int | None:
        self.skip()
        sign = self.text[self.at : self.at + 1]
        if sign == ",":
            self.at += 1
            return self.at - 1
        if sign != bracket:
            raise self.refused(f"a comma or {bracket} is expected")
        return None

    def _string(self) -> str:
        token = _STRING.match(self.text, self.at)
        if token is None:
            raise self.refused("a string does not end on its line")
        text = token[0][1:-1]
        if "\\" in text:
            try:
                text = json.loads(token[0], strict=False)
            except ValueError:
                raise self.refused("a string holds an escape that JSON does not know") from None
        self.at = token.end()
        return text

    def _other(self) -> Any:
        token = _SCALAR.match(self.text, self.at)
        if token is None:
            raise self.refused("a value is expected")
        self.at = token.end()
        return json.loads(token[0])
