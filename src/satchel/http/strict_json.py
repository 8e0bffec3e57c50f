"""JSON as RFC 8259 and I-JSON have it: what Python's decoder lets through besides is refused, with its place."""

from __future__ import annotations

import json
import math
import re
import threading
from typing import Any, Final, NoReturn

from satchel.errors import shown

_MOST_DIGITS: Final = 1_000
_MOST_FIELDS: Final = 1_000
_MOST_FIELDS_IN_ALL: Final = 150_000
_MOST_CONTAINERS: Final = 300_000
"""Each value costs many times its bytes, and each unknown field an error: 4 MB of them would keep the server busy."""
_MOST_LOCATED_CHARS: Final = 100_000
"""Finding the place of a mistake costs more than finding the mistake; in more text than this it is not looked for."""

_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|-?[0-9][0-9.eE+-]*|-?Infinity|NaN', re.DOTALL)


class BadJson(ValueError):
    """What is wrong with a text that should be JSON, and at which character (None: not known)."""

    def __init__(self, wrong: str, position: int | None = None, text: str = "") -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.position = position
        self.line: int | None = None
        self.column: int | None = None
        if position is not None:
            self.line = text.count("\n", 0, position) + 1
            self.column = position - text.rfind("\n", 0, position)


_counted = threading.local()


class _Strange(ValueError):
    """A value that Python's decoder takes and we do not."""


def check(body: bytes, most_depth: int) -> None:
    """Refuse whatever is not strict JSON, or is nested deeper than that."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson("it is not UTF-8", error.start, body[: error.start].decode("utf-8")) from None
    if body.count(b"[") + body.count(b"{") > _MOST_CONTAINERS:
        raise BadJson(f"it has more than {_MOST_CONTAINERS:,} lists and objects")
    _counted.fields = 0
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadJson(error.msg[:1].lower() + error.msg[1:], error.pos, text) from None
    except RecursionError:
        raise BadJson(_too_deep(most_depth), _place(text, most_depth), text) from None
    except _Strange as error:
        raise BadJson(str(error), _place(text, most_depth), text) from None
    if body.count(b"[") + body.count(b"{") > most_depth and _depth(value, most_depth) > most_depth:
        raise BadJson(_too_deep(most_depth), _place(text, most_depth), text)
    if b"\\u" in body:
        _check_escapes(text)


def _too_deep(most_depth: int) -> str:
    return f"it is nested deeper than {most_depth} levels"


def _check_escapes(text: str) -> None:
    for match in _ESCAPE.finditer(text):
        if match[1]:
            raise BadJson("half of a surrogate pair stands alone", match.start(), text)


def _depth(value: Any, most_depth: int) -> int:
    """How deep it is nested; counting ends one level after the deepest that is allowed."""
    level = [value] if isinstance(value, list | dict) else []
    depth = 0
    while level and depth <= most_depth:
        depth += 1
        level = [
            child
            for one in level
            for child in (one.values() if type(one) is dict else one)
            if type(child) is dict or type(child) is list
        ]
    return depth


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _counted.fields = getattr(_counted, "fields", 0) + len(pairs)
    if len(pairs) > _MOST_FIELDS:
        raise _Strange(f"an object has more than {_MOST_FIELDS:,} fields")
    if _counted.fields > _MOST_FIELDS_IN_ALL:
        raise _Strange(f"there are more than {_MOST_FIELDS_IN_ALL:,} fields")
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Strange(f"{shown(name)} is there twice in one object")
            seen.add(name)
    return found


def _no_constant(text: str) -> NoReturn:
    raise _Strange(f"{text} is no value of JSON's")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Strange("a number is too large")
    return number


def _short(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _Strange(f"a number has more than {_MOST_DIGITS:,} digits")
    return int(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_no_doubles, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
)


def _place(text: str, most_depth: int) -> int | None:
    """Where the first thing stands that is refused; the decoder does not say it of what it would take."""
    if len(text) > _MOST_LOCATED_CHARS:
        return None
    objects: list[set[str] | None] = []
    name_next = False
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part in "[{":
            objects.append(set() if part == "{" else None)
            name_next = part == "{"
            if len(objects) > most_depth:
                return match.start()
        elif part in "]}":
            if objects:
                objects.pop()
        elif part == ",":
            name_next = bool(objects) and objects[-1] is not None
        elif part[0] == '"':
            if name_next and not _added(objects[-1], part):
                return match.start()
            name_next = False
        elif part != ":" and not _is_fine(part):
            return match.start()
    return None


def _added(names: set[str] | None, part: str) -> bool:
    assert names is not None
    try:
        name = json.loads(part, strict=False)
    except ValueError:
        return True
    new = name not in names
    names.add(name)
    return new


def _is_fine(part: str) -> bool:
    try:
        _DECODER.decode(part)
    except _Strange:
        return False
    except ValueError:
        return True
    return True
