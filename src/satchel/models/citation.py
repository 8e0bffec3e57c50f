"""Where a piece came from, under the number by which an answer cites it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from satchel.errors import InvalidInput
from satchel.models.document import page_words

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
        return cls(
            doc_id=metadata.doc_id,
            filename=metadata.filename,
            page=metadata.page,
            extension=metadata.extension,
            thumbnail_path=metadata.thumb_path,
            image_path=metadata.image_path,
            timestamp=metadata.timestamp,
            section_path=metadata.section_path,
            parent_heading=metadata.parent_heading,
            markdown_content=markdown,
            relevance_score=score,
            source_path=metadata.source_path,
        )

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
        return {
            "problem": self.problem.value,
            "text": self.text,
            "position": self.position,
            "numbers": list(self.numbers),
            "found_in": list(self.found_in),
        }


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
