"""Why a settings file is left alone."""

from __future__ import annotations


class CannotEdit(ValueError):
    """The file cannot be read, or not be edited with certainty that the rest of it stays as it is."""


def place_in(text: str, at: int) -> str:
    """A place in a text as editors name it."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def line_end_of(text: str) -> str:
    """The line end that a text uses first."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
