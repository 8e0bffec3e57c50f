"""Validation helpers for value types; errors name the field, the value and the fix."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Choice = TypeVar("Choice", bound=StrEnum)
Record = TypeVar("Record", bound="DataclassInstance")

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")


def check_fields(
    record: object,
    error: type[InvalidInput],
    check: Callable[[type[InvalidInput], str, Any], object],
    *names: str,
    prefix: str = "",
    optional: bool = False,
) -> None:
    """Validate fields of a frozen record and store the converted values; `optional` fields may be None."""
    for name in names:
        value = getattr(record, name)
        if value is not None or not optional:
            object.__setattr__(record, name, check(error, prefix + name, value))


def as_unit(error: type[InvalidInput], field: str, value: object) -> float:
    """The value as a float from 0 to 1; numpy numbers are accepted."""
    number: Any = value
    if isinstance(value, bool) or not isinstance(value, Real) or not -math.inf <= number <= math.inf:
        raise error(field, value, "must be a number from 0 to 1")
    if not 0 <= number <= 1:
        ways = "scores='rank', 'cosine' or 'distance'; --scores-are on the command line"
        raise error(field, value, f"must be from 0 to 1; for scores on another scale, name the scale ({ways})")
    return float(number)


def as_count(error: type[InvalidInput], field: str, value: object, least: int) -> int:
    """The value as an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise error(field, value, "must be a whole number")
    if value < least:
        raise error(field, value, f"must be at least {least}")
    return int(value)


def as_choice(error: type[InvalidInput], field: str, value: object, choices: type[Choice]) -> Choice:
    """The value as a member of the enum; the text of a member is accepted."""
    try:
        return choices(value)  # type: ignore[arg-type]
    except ValueError:
        raise error(field, value, f"must be one of {', '.join(choices)}") from None


def as_record(error: type[InvalidInput], field: str, value: object, kind: type[Record], none: str = "") -> Record:
    """The value as a record; a dictionary with its fields, in snake_case or the specification's camelCase, is taken."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise error(field, value, f"must be a {kind.__name__}, or a dictionary of its fields{none}")
    names = {_CAPITAL.sub(lambda found: f"_{found[0].lower()}", str(name)): each for name, each in value.items()}
    known = [each.name for each in fields(kind)]
    for name, each in names.items():
        if name not in known:
            raise error(f"{field}.{name}", each, f"is not a field of {kind.__name__} ({', '.join(known)})")
    return kind(**names)


def as_lines(error: type[InvalidInput], start_line: object, end_line: object) -> tuple[int, int] | tuple[None, None]:
    """The values as a range of lines: both or neither, not negative, the end not before the start."""
    if start_line is None and end_line is None:
        return None, None
    if start_line is None or end_line is None:
        raise error(
            "end_line" if end_line is None else "start_line",
            None,
            "is missing; give both start_line and end_line, or neither",
        )
    start = as_count(error, "start_line", start_line, 0)
    end = as_count(error, "end_line", end_line, 0)
    if end < start:
        raise error("end_line", end, f"must not be before start_line={start}")
    return start, end


def as_path(error: type[InvalidInput], field: str, value: object) -> str:
    """The value as a path in text form."""
    return as_text(error, field, os.fspath(value) if isinstance(value, os.PathLike) else value)


def as_text(error: type[InvalidInput], field: str, value: object) -> str:
    """The value as text; invalid UTF-8 becomes lone surrogates, to be rendered as bytes later."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "surrogateescape")
    raise error(field, value, "must be text")
