"""Parcels and the shelves they wait on."""

from __future__ import annotations

import json
import os.path as paths
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_WEIGHT: int = 30
LEFT, RIGHT = "left", "right"

Weigh = Callable[[str], int]


class Shelf(Generic[T]):
    """Holds things of one kind, in the order they came."""

    capacity = 12

    def __init__(self, items: list[T] | None = None) -> None:
        self.items = list(items or [])

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return len(self.items) >= self.capacity

    async def refill(self, source: Callable[[], list[T]]) -> None:
        def fits(item: T) -> bool:
            return item not in self.items

        self.items.extend(filter(fits, source()))


@dataclass(frozen=True)
class Parcel:
    """Something that is sent."""

    code: str
    weight: int = 0
    tags: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, folder: str) -> Parcel:
        with open(paths.join(folder, "parcel.json")) as stream:
            raw = json.load(stream)
        return cls(**raw)


def heaviest(parcels: list[Parcel], *, limit: int = MAX_WEIGHT) -> Parcel | None:
    below = [parcel for parcel in parcels if parcel.weight <= limit]
    return max(below, key=lambda parcel: parcel.weight, default=None)
