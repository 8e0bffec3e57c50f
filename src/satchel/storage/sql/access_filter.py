"""Who may see a file, as a condition of a statement: what may not be read never leaves the database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple


class Seeing(NamedTuple):
    """A condition on `file`, and the values of its marks; it stands behind the other marks of a statement."""

    condition: str
    values: tuple[Any, ...] = ()


EVERYTHING: Final = Seeing("true")


def listed(access: Collection[int] | None) -> Seeing:
    """What those may see whom these access lists let in; None for all of them."""
    if access is None:
        return EVERYTHING
    return Seeing(f"file.access IN ({','.join(map(str, sorted(access))) or 'NULL'})")
