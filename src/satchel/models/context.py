"""Contexts (the result of every recipe), with sources and ledger, and reports on citations."""

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
"""A cited source; both types have every key of `source_dict`."""


class ContextSource(NamedTuple):
    """A source with S2's field names; `id` and `path` (common to all sources) are `entity_id` and `file`."""

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
    elided: int = 0
    """The number of lines that elision lines in the text stand for; 0 if the text has no elision lines."""
    is_entity: bool = False
    """True for an entity, whose row in an XML list of sources has the attributes of S2 alone; in no dictionary."""

    @property
    def id(self) -> str:
        """The id for `expand`, to get the exact text."""
        return self.entity_id

    @property
    def path(self) -> str | None:
        """The path of the file."""
        return self.file

    @property
    def location(self) -> str:
        """`file:line`, `file, page 3`, the file alone, or the type of a source without a file."""
        if not self.file:
            return self.type
        if self.page:
            return f"{self.file}, {page_words(self.file, self.page)}"
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def label(self) -> str:
        """The name for lists of sources; the location if the name is only the file name."""
        return self.location if self.name == self.file else self.name

    def to_dict(self) -> dict[str, Any]:
        """The source as a dictionary with S2's field names."""
        return {name: value for name, value in self._asdict().items() if name != "is_entity"}


@dataclass(slots=True)
class SourceDocument:
    """A cited page (S3). `page` counts from 1; `relevance_score` is from 0 to 1, and 0 without a search."""

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
    """The path of the file in the library, for opening the file; not part of S3's source."""
    number: int = 0
    """The citation number, from 1 once the page is in a context."""

    def __post_init__(self) -> None:
        for name in ("doc_id", "filename", "extension", "markdown_content"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(name, getattr(self, name), "must be text")
        if isinstance(self.page, bool) or not isinstance(self.page, int) or self.page < 1:
            raise InvalidInput("page", self.page, "must be a whole number of at least 1")
        score = self.relevance_score
        if not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
            raise InvalidInput("relevance_score", score, "must be a number from 0 to 1")

    @classmethod
    def from_metadata(cls, metadata: PageMetadata, *, markdown: str = "", score: float = 0.0) -> SourceDocument:
        """Make a source from the metadata and the text of a page."""
        shared = {
            attribute.name: getattr(metadata, attribute.name)
            for attribute in fields(cls)
            if hasattr(metadata, attribute.name)
        }
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
        """Always `page`: research cites only pages."""
        return "page"

    @property
    def path(self) -> str:
        """The path of the file, or the file name if the library has no path."""
        return self.source_path or self.filename

    @property
    def line(self) -> None:
        """None: pages have no line numbers."""

    @property
    def end_line(self) -> None:
        """None: pages have no line numbers."""

    @property
    def relevance(self) -> float:
        """`relevance_score` under the common name of all sources."""
        return self.relevance_score

    @property
    def section(self) -> str:
        """Always empty: research has no sections."""
        return ""

    @property
    def text(self) -> str:
        """The rendered text of the page."""
        return self.markdown_content

    @property
    def elided(self) -> int:
        """Always 0: pages have no elision lines."""
        return 0

    def to_dict(self) -> dict[str, Any]:
        """The source as a dictionary with S3's field names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "number"}


_SOURCE_KEYS: Final = (
    *("number", "id", "name", "type", "path", "line", "end_line", "page"),
    *("relevance", "section", "text", "elided"),
)


def source_dict(source: Source) -> dict[str, Any]:
    """The source as a dictionary with the common JSON keys of all contexts."""
    return {key: getattr(source, key) for key in _SOURCE_KEYS}


def source_from_dict(values: Mapping[str, Any]) -> ContextSource:
    """Read a source from the output of `source_dict`."""
    other_fields = {key: values[key] for key in _SOURCE_KEYS if key not in ("id", "path")}
    return ContextSource(entity_id=values["id"], file=values["path"], **other_fields)


class CitableSource(NamedTuple):
    """A source as shown to a model, with number, text and location: the input for checking citations."""

    number: int
    text: str
    name: str = ""
    file: str | None = None
    page: int | None = None


class CitationProblem(StrEnum):
    """Problems of citations in an answer."""

    UNKNOWN_NUMBER = "unknown-number"
    """No source has the number."""
    QUOTE_NOT_IN_SOURCE = "quote-not-in-source"
    """The quotation is in none of the cited sources."""
    OTHER_PLACE = "other-place"
    """`[Document 2: a.pdf, Page 7]`, and source 2 is another file or another page."""
    QUOTE_NOT_IN_ANY_SOURCE = "quote-not-in-any-source"
    """A quotation without a citation is in no source; only a warning, because answers may quote other texts."""


@dataclass(frozen=True, slots=True)
class CitationFinding:
    """A citation problem and its position in the answer; `found_in` are sources with the quotation."""

    problem: CitationProblem
    text: str
    position: int
    numbers: tuple[int, ...]
    found_in: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding as a JSON-compatible dictionary."""
        return asdict(self) | {"numbers": list(self.numbers), "found_in": list(self.found_in)}


class UncitedSentence(NamedTuple):
    """A statement without a citation, and its position in the answer."""

    text: str
    position: int


class Verdict(StrEnum):
    """What the sources say about a sentence of an answer."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    """The source states another number, day, name or direction."""
    NOT_IN_SOURCES = "not-in-sources"
    """The cited sources do not have something that the sentence states."""
    NOT_CHECKABLE = "not-checkable"
    """The sentence shares too few words with its sources to be compared by rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence of an answer, compared with its sources; `evidence` is the sentence of the source `source`."""

    text: str
    position: int
    verdict: Verdict
    reason: str = ""
    """What is stated otherwise; empty for a supported sentence."""
    cited: tuple[int, ...] = ()
    """The numbers that the sentence cites."""
    source: int | None = None
    evidence: str = ""
    is_likely: bool = False
    """True if the verdict is a language model's word."""

    @property
    def is_doubted(self) -> bool:
        """True if the sources say something else, or nothing."""
        return self.verdict in (Verdict.CONTRADICTED, Verdict.NOT_IN_SOURCES)

    def to_dict(self) -> dict[str, Any]:
        """The claim as a JSON-compatible dictionary."""
        return asdict(self) | {"cited": list(self.cited)}


@dataclass(frozen=True, slots=True)
class CitationReport:
    """Results of a citation check: `findings` are errors, the rest is for a reader to judge.

    `cited` and `uncited` are the numbers of the sources with and without a citation in the answer.
    """

    cited: tuple[int, ...]
    uncited: tuple[int, ...]
    findings: tuple[CitationFinding, ...]
    warnings: tuple[CitationFinding, ...] = ()
    uncited_sentences: tuple[UncitedSentence, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Every statement with what the sources say about it."""

    @property
    def doubted(self) -> tuple[Claim, ...]:
        """The statements that the sources contradict, or that state what the cited sources do not."""
        return tuple(claim for claim in self.claims if claim.is_doubted)

    @property
    def ok(self) -> bool:
        """True if every number resolves and every quotation is in a cited source."""
        return not self.findings

    @property
    def is_fully_cited(self) -> bool:
        """True if there are no findings, warnings or doubted statements, and every statement cites a source."""
        return self.ok and not self.warnings and not self.uncited_sentences and not self.doubted

    def to_dict(self) -> dict[str, Any]:
        """The report as a JSON-compatible dictionary."""
        return {
            "ok": self.ok,
            "cited": list(self.cited),
            "uncited": list(self.uncited),
            "findings": [finding.to_dict() for finding in self.findings],
            "warnings": [finding.to_dict() for finding in self.warnings],
            "uncited_sentences": [sentence._asdict() for sentence in self.uncited_sentences],
            "claims": [claim.to_dict() for claim in self.claims],
        }


class Fate(StrEnum):
    """The fate of a candidate: rendered whole, rendered in part, merged into another, or left out."""

    KEPT = "kept"
    TRIMMED = "trimmed"
    MERGED = "merged"
    DROPPED = "dropped"


class Reason(StrEnum):
    """The reason for the fate of a candidate."""

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
    NOT_WORTH_ITS_TOKENS = "not-worth-its-tokens"
    EXCERPT = "shown-with-elisions"
    MAX_CHUNKS = "max-chunks"
    UNRELATED = "nothing-to-do-with-the-question"
    EXCLUDED = "excluded-by-hint"
    SAME_BLOCK = "same-block-found-otherwise"
    FELL_BACK = "trimmed-otherwise-than-asked"
    AFTER_STOP = "after-the-first-that-did-not-fit"
    SHOWN_BEFORE = "shown-before-in-the-session"


class LedgerEntry(NamedTuple):
    """The record of a candidate: scores by signal, cost, fate and reason.

    `tokens` is the cost of a rendered candidate in the text (0 if merged into another), or the tokens that a candidate
    over the budget would have needed.
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
        """The entry as a JSON-compatible dictionary."""
        return self._asdict() | {"signals": dict(self.signals)}


@dataclass(frozen=True, slots=True)
class Ledger:
    """Ledger entries of all candidates, in input order."""

    entries: tuple[LedgerEntry, ...] = ()

    @classmethod
    def from_dicts(cls, entries: Iterable[Mapping[str, Any]]) -> Ledger:
        """Read a ledger from the output of `to_dicts`."""
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
        """The entries with any of the given fates."""
        return tuple(entry for entry in self.entries if entry.fate in fates)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The entries as JSON-compatible dictionaries."""
        return [entry.to_dict() for entry in self.entries]


class ContextKind(StrEnum):
    """The recipe of a context: chunks of files, sections of a workspace, or pages of documents."""

    CHUNKS = "chunks"
    WORKSPACE = "workspace"
    RESEARCH = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStatistics:
    """Statistics of a build: duration, generation of the index, and collectors."""

    build_time: timedelta = timedelta(0)
    characters_made_visible: int = 0
    generation: int = 0
    cached: bool = False
    collectors_used: tuple[str, ...] = ()
    collectors_failed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BuildStatistics:
        """Read statistics from the output of `to_dict`."""
        given = {attribute.name: values[attribute.name] for attribute in fields(cls) if attribute.name in values}
        given |= {"collectors_used": tuple(values["collectors_used"])}
        return cls(build_time=timedelta(milliseconds=values["build_ms"]), **given)

    def to_dict(self, ledger: Ledger) -> dict[str, Any]:
        """The statistics as a JSON-compatible dictionary, with counts of the fates in the ledger."""
        fates = Counter(entry.fate for entry in ledger)
        return {
            "candidates": len(ledger),
            **{fate.value: fates[fate] for fate in Fate},
            "build_ms": round(self.build_time.total_seconds() * 1000, 3),
            **{
                attribute.name: getattr(self, attribute.name)
                for attribute in fields(self)
                if attribute.name != "build_time"
            },
            "collectors_used": list(self.collectors_used),
            "collectors_failed": dict(self.collectors_failed),
        }


_LEFT_OUT_BY_PACKING: Final = frozenset({Reason.OVER_BUDGET, Reason.LESS_VALUE, Reason.MAX_CHUNKS, Reason.AFTER_STOP})


class Titled(Protocol):
    """A titled section of a context; implementations add the names of their specification."""

    @property
    def name(self) -> str:
        """The name of the section, for programs."""

    @property
    def title(self) -> str:
        """The title of the section, for readers."""

    @property
    def tokens(self) -> int:
        """The tokens of the rendered section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSummary:
    """The name, title and rendered tokens of a section."""

    name: str
    title: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Sufficiency:
    """How likely it is that a context answers its question (0 to 1), and if not, why, in words for a reader."""

    probability: float
    reasons: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> Sufficiency | None:
        """Read an estimate from the output of `to_dict`; None for a context without an estimate."""
        return None if values is None else cls(values["probability"], tuple(values["reasons"]))

    def to_dict(self) -> dict[str, Any]:
        """The estimate as a JSON-compatible dictionary."""
        return {"probability": round(self.probability, 4), "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The finished text for a model, with sources, ledger and statistics.

    `sources` and `spans` (start and end of each piece in `text`) are parallel: the n-th of each belongs to citation
    number n. `sufficiency` says how likely the context answers its question; None if nothing was searched.
    """

    kind: ContextKind = ContextKind.CHUNKS
    text: str = ""
    tokens: int = 0
    budget: int = 0
    is_estimated: bool = False
    """True if `tokens` is an estimate: the model has no public tokenizer, or a formula counts."""
    format: ContextFormat | str = ContextFormat.MARKDOWN
    sources: Sequence[Source] = ()
    spans: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    sections: Sequence[Titled] = ()
    ledger: Ledger = field(default_factory=Ledger)
    notes: tuple[str, ...] = ()
    sufficiency: Sufficiency | None = None
    provider_content: tuple[Mapping[str, Any], ...] = ()
    statistics: BuildStatistics = field(default_factory=BuildStatistics)
    originals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The exact text of each candidate by id, whether rendered or not."""

    @property
    def is_empty(self) -> bool:
        """True if the text is empty or blank."""
        return not self.text.strip()

    @property
    def citations(self) -> dict[int, Source]:
        """The sources by citation number, from 1 without gaps."""
        return {source.number: source for source in self.sources}

    @property
    def nothing_fits(self) -> bool:
        """True if there were candidates, but the budget was too small for any of them."""
        return self.is_empty and any(entry.reason in _LEFT_OUT_BY_PACKING for entry in self.ledger)

    def citable_sources(self) -> tuple[CitableSource, ...]:
        """The sources as shown to the model, for `verify`."""
        return tuple(
            CitableSource(number=source.number, text=source.text, name=source.name, file=source.path, page=source.page)
            for source in self.sources
        )

    def expand(self, piece_id: str) -> str:
        """The exact text of a candidate, whether rendered or not; raises UnknownPiece."""
        try:
            return self.originals[piece_id]
        except KeyError:
            raise UnknownPiece(piece_id, len(self.originals)) from None

    def to_specification(self) -> dict[str, Any]:
        """The context as a dictionary with the names of its specification, if there is a specification."""
        return self.to_dict()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Context:
        """Read a context of any kind from the output of `to_dict`."""
        return Context(
            **{name: values[name] for name in ("text", "tokens", "budget", "format")},
            kind=ContextKind(values["kind"]),
            is_estimated=values["estimated"],
            sources=tuple(source_from_dict(source) for source in values["sources"]),
            spans=tuple((start, end) for start, end in values["spans"]),
            sections=tuple(
                SectionSummary(name=section["name"], title=section["title"], tokens=section["tokens"])
                for section in values["sections"]
            ),
            ledger=Ledger.from_dicts(values["ledger"]),
            notes=tuple(values["notes"]),
            sufficiency=Sufficiency.from_dict(values["sufficiency"]),
            provider_content=tuple(values["provider_content"]),
            statistics=BuildStatistics.from_dict(values["statistics"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The context as a JSON-compatible dictionary, with the same keys for every kind."""
        return {
            "kind": self.kind.value,
            "text": self.text,
            "tokens": self.tokens,
            "budget": self.budget,
            "estimated": self.is_estimated,
            "format": str(self.format),
            "sources": [source_dict(source) for source in self.sources],
            "spans": [list(span) for span in self.spans],
            "sections": [
                {"name": section.name, "title": section.title, "tokens": section.tokens} for section in self.sections
            ],
            "ledger": self.ledger.to_dicts(),
            "notes": list(self.notes),
            "sufficiency": self.sufficiency.to_dict() if self.sufficiency else None,
            "provider_content": [dict(part) for part in self.provider_content],
            "statistics": self.statistics.to_dict(self.ledger),
        }
