"""The one result of every recipe: a text with its sources and its ledger, and what a check of its citations found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from satchel.errors import InvalidInput, UnknownPiece
from satchel.models.files import page_words
from satchel.models.options import ContextFormat

if TYPE_CHECKING:
    from satchel.models.document import PageMetadata


Source: TypeAlias = "ContextSource | SourceDocument"
"""What a context cites under a number; both have every key of `source_dict`."""


class ContextSource(NamedTuple):
    """A source under S2's names; `entity_id` and `file` are `id` and `path` for every kind of source."""

    entity_id: str
    name: str
    type: str
    file: str | None = None
    line: int | None = None
    relevance: float = 0.0
    number: int = 0
    end_line: int | None = None
    page: int | None = None
    section: str = ""
    text: str = ""

    @property
    def id(self) -> str:
        """The id by which `expand` gives the exact text."""
        return self.entity_id

    @property
    def path(self) -> str | None:
        """The file it stands in."""
        return self.file

    @property
    def location(self) -> str:
        """`file:line`, `file, page 3`, the file alone, or the type of something that is in no file."""
        if not self.file:
            return self.type
        if self.page:
            return f"{self.file}, {page_words(self.file, self.page)}"
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def label(self) -> str:
        """How a list names it: by its name, or by its place where it has no name but its file's."""
        return self.location if self.name == self.file else self.name

    def to_dict(self) -> dict[str, Any]:
        """The source under S2's names."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A page that is cited. `page` counts from 1; `relevance_score` is from 0 to 1, and 0 unless a search set it."""

    doc_id: str
    filename: str
    page: int
    extension: str
    thumbnail_path: str | None = None
    image_path: str | None = None
    timestamp: str = ""
    section_path: str | None = None
    parent_heading: str | None = None
    markdown_content: str = ""
    relevance_score: float = 0.0
    source_path: str | None = None
    """Where the library found the file; not part of S3's source, but what opens it."""
    number: int = 0
    """The citation number, from 1 once the page is in a context."""

    def __post_init__(self) -> None:
        for name in ("doc_id", "filename", "extension", "markdown_content"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(name, getattr(self, name), "must be text")
        if isinstance(self.page, bool) or not isinstance(self.page, int) or self.page < 1:
            raise InvalidInput("page", self.page, "must be a whole number from 1 on")
        score = self.relevance_score
        if not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
            raise InvalidInput("relevance_score", score, "must be a number from 0 to 1")

    @classmethod
    def from_metadata(cls, metadata: PageMetadata, *, markdown: str = "", score: float = 0.0) -> SourceDocument:
        """The source that a page's metadata and text make."""
        shared = {own.name: getattr(metadata, own.name) for own in fields(cls) if hasattr(metadata, own.name)}
        return cls(**shared, thumbnail_path=metadata.thumb_path, markdown_content=markdown, relevance_score=score)

    @property
    def id(self) -> str:
        """The id of the document."""
        return self.doc_id

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.filename

    @property
    def type(self) -> str:
        """Every source of research is a page."""
        return "page"

    @property
    def path(self) -> str:
        """The file, with its folder where the library knows it."""
        return self.source_path or self.filename

    @property
    def line(self) -> None:
        """Pages have no lines that a reader could open."""

    @property
    def end_line(self) -> None:
        """Pages have no lines that a reader could open."""

    @property
    def relevance(self) -> float:
        """The relevance under the name that every source has it."""
        return self.relevance_score

    @property
    def section(self) -> str:
        """Research has no sections."""
        return ""

    @property
    def text(self) -> str:
        """What was shown of the page."""
        return self.markdown_content

    def to_dict(self) -> dict[str, Any]:
        """The source under S3's names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "number"}


_SOURCE_KEYS: Final = (
    *("number", "id", "name", "type", "path", "line", "end_line", "page"),
    *("relevance", "section", "text"),
)


def source_dict(source: Source) -> dict[str, Any]:
    """The source as JSON has it in every context, under whichever names it came."""
    return {key: getattr(source, key) for key in _SOURCE_KEYS}


def source_from_dict(values: Mapping[str, Any]) -> ContextSource:
    """The source that `source_dict` has written."""
    own = {key: values[key] for key in _SOURCE_KEYS if key not in ("id", "path")}
    return ContextSource(entity_id=values["id"], file=values["path"], **own)


class CitableSource(NamedTuple):
    """What was shown to a model under a number, and where it came from: all that checking an answer needs."""

    number: int
    text: str
    name: str = ""
    file: str | None = None
    page: int | None = None


class CitationProblem(StrEnum):
    """What can be wrong with a citation in an answer."""

    UNKNOWN_NUMBER = "unknown-number"
    """No source has the number."""
    QUOTE_NOT_IN_SOURCE = "quote-not-in-source"
    """None of the sources that it cites holds the quotation."""
    OTHER_PLACE = "other-place"
    """`[Document 2: a.pdf, Page 7]`, and source 2 is another file or another page."""
    QUOTE_NOT_IN_ANY_SOURCE = "quote-not-in-any-source"
    """A quotation without a citation that no source holds; a warning, for answers quote others too."""


@dataclass(frozen=True, slots=True)
class CitationFinding:
    """One thing that is wrong, and where in the answer; `found_in` are the sources that do hold the quotation."""

    problem: CitationProblem
    text: str
    position: int
    numbers: tuple[int, ...]
    found_in: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON can hold it."""
        return asdict(self) | {"numbers": list(self.numbers), "found_in": list(self.found_in)}


class UncitedSentence(NamedTuple):
    """A sentence that states something and cites nothing, and where in the answer it begins."""

    text: str
    position: int


@dataclass(frozen=True, slots=True)
class CitationReport:
    """What a check of an answer's citations found: `findings` are wrong, the rest is for a reader to judge.

    `cited` and `uncited` are the numbers of the sources that the answer does and does not cite.
    """

    cited: tuple[int, ...]
    uncited: tuple[int, ...]
    findings: tuple[CitationFinding, ...]
    warnings: tuple[CitationFinding, ...] = ()
    uncited_sentences: tuple[UncitedSentence, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every number resolves and every quote stands in a source it cites."""
        return not self.findings

    @property
    def is_fully_cited(self) -> bool:
        """Whether there is not even a warning: every sentence that states something cites a source as well."""
        return self.ok and not self.warnings and not self.uncited_sentences

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return {
            "ok": self.ok,
            "cited": list(self.cited),
            "uncited": list(self.uncited),
            "findings": [finding.to_dict() for finding in self.findings],
            "warnings": [finding.to_dict() for finding in self.warnings],
            "uncited_sentences": [sentence._asdict() for sentence in self.uncited_sentences],
        }


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
        own = {own.name: values[own.name] for own in fields(cls) if own.name in values}
        own |= {"collectors_used": tuple(values["collectors_used"])}
        return cls(build_time=timedelta(milliseconds=values["build_ms"]), **own)

    def to_dict(self, ledger: Ledger) -> dict[str, Any]:
        """The statistics as JSON can hold them, with how many candidates of the ledger had which fate."""
        fates = Counter(entry.fate for entry in ledger)
        return {
            "candidates": len(ledger),
            **{fate.value: fates[fate] for fate in Fate},
            "build_ms": round(self.build_time.total_seconds() * 1000, 3),
            **{own.name: getattr(self, own.name) for own in fields(self) if own.name != "build_time"},
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
            **{name: values[name] for name in ("text", "tokens", "budget", "format", "sufficiency")},
            kind=ContextKind(values["kind"]),
            sources=tuple(source_from_dict(source) for source in values["sources"]),
            spans=tuple((start, end) for start, end in values["spans"]),
            sections=tuple(
                SectionSummary(name=section["name"], title=section["title"], tokens=section["tokens"])
                for section in values["sections"]
            ),
            ledger=Ledger.from_dicts(values["ledger"]),
            notes=tuple(values["notes"]),
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
