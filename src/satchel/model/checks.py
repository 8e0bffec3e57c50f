"""The checks that several values share: each names the field, the value and the way out."""

from __future__ import annotations

import math
import os

from satchel.errors import InvalidInput


def check_unit(error: type[InvalidInput], field: str, value: float) -> None:
    """Refuse anything but a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise error(field, value, "must be a number from 0 to 1")
    if not 0.0 <= value <= 1.0:
        raise error(
            field,
            value,
            "must be from 0 to 1; say what other scores are (scores='rank', 'cosine' or 'distance'; --scores-are)",
        )


def check_count(error: type[InvalidInput], field: str, value: int, least: int) -> None:
    """Refuse anything but a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise error(field, value, "must be a whole number")
    if value < least:
        raise error(field, value, f"must be at least {least}")


def check_lines(error: type[InvalidInput], start_line: int | None, end_line: int | None) -> None:
    """Refuse half a line range, a negative line, and a range that ends before it starts."""
    if start_line is None and end_line is None:
        return
    if start_line is None or end_line is None:
        raise error("end_line" if end_line is None else "start_line", None, "give both lines or neither")
    check_count(error, "start_line", start_line, 0)
    check_count(error, "end_line", end_line, 0)
    if end_line < start_line:
        raise error("end_line", end_line, f"must not be before start_line={start_line}")


def as_path(error: type[InvalidInput], field: str, value: object) -> str:
    """The value as the text of a path."""
    return as_text(error, field, os.fspath(value) if isinstance(value, os.PathLike) else value)


def as_text(error: type[InvalidInput], field: str, value: object) -> str:
    """The value as text; bytes that are not UTF-8 are kept as lone surrogates, to be shown as bytes later."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "surrogateescape")
    raise error(field, value, "must be text")
