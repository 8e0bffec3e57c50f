"""So many of something, in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 file`, `1,200 files`, `2 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
