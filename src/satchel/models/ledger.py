"""What became of every hit that was considered, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Fate(StrEnum):
    """How a hit ended: written whole, written in part, written as part of another, or left out."""

    KEPT = "kept"
    TRIMMED = "trimmed"
    MERGED = "merged"
    DROPPED = "dropped"


class Reason(StrEnum):
    """Why a hit ended so."""

    FITS = "fits"
    JOINED = "joined-with-neighbour"
    TRIMMED_TO_FIT = "trimmed-to-fit"
    DUPLICATE = "same-text-as-another"
    COVERED = "lines-already-shown"
    BELOW_RELEVANCE = "below-min-relevance"
    PATTERN = "file-pattern"
    LANGUAGE = "language"
    EMPTY = "no-text"
    OVER_BUDGET = "over-budget"
    LESS_VALUE = "less-value-for-its-tokens"
    MAX_CHUNKS = "max-chunks"
    UNRELATED = "nothing-to-do-with-the-question"
    EXCLUDED = "excluded-by-hint"
    SAME_BLOCK = "same-block-found-otherwise"
    FELL_BACK = "trimmed-otherwise-than-asked"
    AFTER_STOP = "after-the-first-that-did-not-fit"


class LedgerEntry(NamedTuple):
    """One considered hit: its scores by signal, its cost, and what became of it.

    `tokens` is what a written hit takes in the text (0 for one that is written as part of another), and what one that
    did not fit would have taken.
    """

    id: str
    fate: Fate
    reason: Reason
    relevance: float
    score: float
    tokens: int = 0
    number: int | None = None
    into: str | None = None
    collector: str = "given"
    signals: Mapping[str, float] = {}

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON can hold it."""
        return self._asdict() | {"signals": dict(self.signals)}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The entries in the order in which the hits were given."""

    entries: tuple[LedgerEntry, ...] = ()

    @classmethod
    def from_dicts(cls, entries: Iterable[Mapping[str, Any]]) -> Ledger:
        """The ledger that `to_dicts` has written."""
        return cls(
            tuple(
                LedgerEntry(**{key: entry[key] for key in LedgerEntry._fields})._replace(
                    fate=Fate(entry["fate"]), reason=Reason(entry["reason"])
                )
                for entry in entries
            )
        )

    def __iter__(self) -> Iterator[LedgerEntry]:
        return iter(self.entries)

    def __getitem__(self, position: int) -> LedgerEntry:
        return self.entries[position]

    def __len__(self) -> int:
        return len(self.entries)

    def with_fate(self, *fates: Fate) -> tuple[LedgerEntry, ...]:
        """The entries that ended in one of these ways."""
        return tuple(entry for entry in self.entries if entry.fate in fates)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The entries as JSON can hold them."""
        return [entry.to_dict() for entry in self.entries]
