"""The one result of every recipe: a text with its sources, and the ledger that says what became of each candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from satchel.errors import UnknownPiece
from satchel.models.citation import CitableSource, Source, source_dict, source_from_dict
from satchel.models.options import ContextFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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


class ContextKind(StrEnum):
    """Which recipe made a context: chunks of files, the sections of a workspace, or pages of documents."""

    CHUNKS = "chunks"
    WORKSPACE = "workspace"
    RESEARCH = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStatistics:
    """How a context was built: how long it took, from which generation of the index, by which collectors."""

    build_time: timedelta = timedelta(0)
    characters_made_visible: int = 0
    generation: int = 0
    cached: bool = False
    collectors_used: tuple[str, ...] = ()
    collectors_failed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BuildStatistics:
        """The statistics that `to_dict` has written."""
        return cls(
            build_time=timedelta(milliseconds=values["build_ms"]),
            characters_made_visible=values["characters_made_visible"],
            generation=values["generation"],
            cached=values["cached"],
            collectors_used=tuple(values["collectors_used"]),
            collectors_failed=values["collectors_failed"],
        )

    def to_dict(self, ledger: Ledger) -> dict[str, Any]:
        """The statistics as JSON can hold them, with how many candidates of the ledger had which fate."""
        fates = Counter(entry.fate for entry in ledger)
        return {
            "candidates": len(ledger),
            **{fate.value: fates[fate] for fate in Fate},
            "build_ms": round(self.build_time.total_seconds() * 1000, 3),
            "characters_made_visible": self.characters_made_visible,
            "generation": self.generation,
            "cached": self.cached,
            "collectors_used": list(self.collectors_used),
            "collectors_failed": dict(self.collectors_failed),
        }


_LEFT_OUT_BY_PACKING: Final = frozenset({Reason.OVER_BUDGET, Reason.LESS_VALUE, Reason.MAX_CHUNKS, Reason.AFTER_STOP})


class Titled(Protocol):
    """A titled part of a context, under whichever names its specification gives it more."""

    @property
    def name(self) -> str:
        """Its name, for programs."""

    @property
    def title(self) -> str:
        """Its title, for readers."""

    @property
    def tokens(self) -> int:
        """The tokens it takes as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSummary:
    """A titled part of a context: its name, its title, and the tokens it takes as written."""

    name: str
    title: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The one text for a model, and everything about it.

    `sources` and `spans` (where in `text` a piece stands) go together: the n-th of each belongs to citation number n.
    `sufficiency` says how well the context answers the question, once that is estimated.
    """

    kind: ContextKind = ContextKind.CHUNKS
    text: str = ""
    tokens: int = 0
    budget: int = 0
    format: ContextFormat | str = ContextFormat.MARKDOWN
    sources: Sequence[Source] = ()
    spans: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    sections: Sequence[Titled] = ()
    ledger: Ledger = field(default_factory=Ledger)
    notes: tuple[str, ...] = ()
    sufficiency: None = None
    provider_content: tuple[Mapping[str, Any], ...] = ()
    statistics: BuildStatistics = field(default_factory=BuildStatistics)
    originals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The exact text behind each id, whatever became of it."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read in the text."""
        return not self.text.strip()

    @property
    def citations(self) -> dict[int, Source]:
        """The sources by citation number, from 1 without gaps."""
        return {source.number: source for source in self.sources}

    @property
    def nothing_fits(self) -> bool:
        """Whether there was something to show, and the budget was too small for any of it."""
        return self.is_empty and any(entry.reason in _LEFT_OUT_BY_PACKING for entry in self.ledger)

    def citable_sources(self) -> tuple[CitableSource, ...]:
        """What an answer may cite, as it was shown: for `verify`."""
        return tuple(
            CitableSource(number=source.number, text=source.text, name=source.name, file=source.path, page=source.page)
            for source in self.sources
        )

    def expand(self, piece_id: str) -> str:
        """The exact text behind an id, whatever became of it."""
        try:
            return self.originals[piece_id]
        except KeyError:
            raise UnknownPiece(piece_id, len(self.originals)) from None

    def to_specification(self) -> dict[str, Any]:
        """The context under the names of its specification, where it has one."""
        return self.to_dict()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Context:
        """The context that `to_dict` has written, of whichever kind it is."""
        return Context(
            kind=ContextKind(values["kind"]),
            text=values["text"],
            tokens=values["tokens"],
            budget=values["budget"],
            format=values["format"],
            sources=tuple(source_from_dict(source) for source in values["sources"]),
            spans=tuple((start, end) for start, end in values["spans"]),
            sections=tuple(
                SectionSummary(name=section["name"], title=section["title"], tokens=section["tokens"])
                for section in values["sections"]
            ),
            ledger=Ledger.from_dicts(values["ledger"]),
            notes=tuple(values["notes"]),
            sufficiency=values["sufficiency"],
            provider_content=tuple(values["provider_content"]),
            statistics=BuildStatistics.from_dict(values["statistics"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The context as JSON can hold it: the same keys for every kind."""
        return {
            "kind": self.kind.value,
            "text": self.text,
            "tokens": self.tokens,
            "budget": self.budget,
            "format": str(self.format),
            "sources": [source_dict(source) for source in self.sources],
            "spans": [list(span) for span in self.spans],
            "sections": [
                {"name": section.name, "title": section.title, "tokens": section.tokens} for section in self.sections
            ],
            "ledger": self.ledger.to_dicts(),
            "notes": list(self.notes),
            "sufficiency": self.sufficiency,
            "provider_content": [dict(part) for part in self.provider_content],
            "statistics": self.statistics.to_dict(self.ledger),
        }
