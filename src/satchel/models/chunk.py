"""Chunks and entities from retrievers, and the candidates, pieces and sections of a context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from satchel.errors import InvalidHit, InvalidInput
from satchel.models.checks import as_count, as_lines, as_path, as_text, as_unit, check_fields
from satchel.models.files import PROSE

_TYPES: Final = {
    "code": "function method class interface type file module",
    "documentation": "document section requirement feature",
    "conversation": "session message decision",
}
_CATEGORIES: Final = {type_name: category for category, types in _TYPES.items() for type_name in types.split()}

CATEGORY_TITLES: Final = {
    "code": "Relevant Code",
    "documentation": "Related Documentation",
    "conversation": "Previous Conversations",
    "other": "Other Context",
}
CATEGORY_ORDER: Final = tuple(CATEGORY_TITLES)


def categorize(type_name: str, language: str | None = None) -> str:
    """The category of a type; for a chunk without a type, the category of the language."""
    if not type_name and language:
        return "documentation" if language in PROSE else "code"
    return _CATEGORIES.get(type_name, "other")


_REQUIRED_TEXTS: Final = ("content", "id", "type", "name")


@dataclass(frozen=True, slots=True)
class KnowledgeChunk:
    """A retrieval hit: text, location, and relevance (0..1)."""

    content: str
    _: KW_ONLY
    file_path: str = ""
    start_line: int | None = None
    end_line: int | None = None
    relevance: float = 1.0
    language: str | None = None
    expanded_context: str | None = None
    id: str = ""
    type: str = ""
    name: str = ""
    last_modified: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    page: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, InvalidHit, as_text, *_REQUIRED_TEXTS)
        check_fields(self, InvalidHit, as_text, "expanded_context", "language", optional=True)
        object.__setattr__(self, "file_path", as_path(InvalidHit, "file_path", self.file_path))
        first, last = as_lines(InvalidHit, self.start_line, self.end_line)
        object.__setattr__(self, "start_line", first)
        object.__setattr__(self, "end_line", last)
        if self.page is not None:
            object.__setattr__(self, "page", as_count(InvalidHit, "page", self.page, 1))
        object.__setattr__(self, "relevance", as_unit(InvalidHit, "relevance", self.relevance))
        if self.last_modified is not None and not isinstance(self.last_modified, datetime):
            raise InvalidHit("last_modified", self.last_modified, "must be a datetime.datetime")
        if not self.id:
            object.__setattr__(self, "id", self._place_or_fingerprint())

    def _place_or_fingerprint(self) -> str:
        if self.file_path and self.start_line is not None:
            return f"{self.file_path}:{self.start_line}-{self.end_line}"
        digest = blake2b(self.content.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return f"{self.file_path}#{digest}" if self.file_path else digest


@dataclass(frozen=True, slots=True)
class FormattedChunk:
    """A rendered chunk with headers and wrappers, and its estimated tokens."""

    formatted_content: str = ""
    estimated_tokens: int = 0
    file_path: str = ""
    start_line: int = 0
    end_line: int = 0
    relevance: float = 0.0
    language: str | None = None
    source_chunk: KnowledgeChunk | None = None

    @property
    def character_count(self) -> int:
        """The number of characters of the formatted content."""
        return len(self.formatted_content)

    @property
    def line_range(self) -> str:
        """`line 5` or `lines 5-8`."""
        if self.start_line == self.end_line:
            return f"line {self.start_line}"
        return f"lines {self.start_line}-{self.end_line}"


@dataclass(frozen=True, slots=True)
class Entity:
    """A named, typed search result (class, document, decision …) with optional location, summary and content."""

    id: str
    name: str
    type: str
    file_path: str | None = None
    start_line: int | None = None
    summary: str | None = None
    content: str | None = None

    def __post_init__(self) -> None:
        check_fields(self, InvalidHit, _as_name, "id", "name", "type")
        check_fields(self, InvalidHit, as_path, "file_path", optional=True)
        check_fields(self, InvalidHit, as_text, "summary", "content", optional=True)
        check_fields(self, InvalidHit, partial(as_count, least=0), "start_line", optional=True)


def _as_name(error: type[InvalidInput], field_name: str, value: object) -> str:
    name = as_text(error, field_name, value)
    if not name:
        raise error(field_name, name, "must not be empty")
    return name


@dataclass(frozen=True, slots=True)
class EntityResult:
    """A search result: an entity and how well it matched (0..1)."""

    entity: Entity
    score: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.entity, Entity):
            raise InvalidHit("entity", self.entity, "must be an Entity")
        check_fields(self, InvalidHit, as_unit, "score")

    @property
    def entity_id(self) -> str:
        """The id of the matching entity."""
        return self.entity.id


class CandidateKind(StrEnum):
    """The kind of a candidate: lines of a file, a named entity, a page of a document, or a block of a workspace."""

    CHUNK = "chunk"
    ENTITY = "entity"
    PAGE = "page"
    BLOCK = "block"


class Trim(NamedTuple):
    """The receipt for trimmed text: the missing amount, and the id for `expand`."""

    id: str
    missing_lines: int
    missing_characters: int


class Candidate(NamedTuple):
    """A possible piece of a context, with all data for the stages of the pipeline.

    `place` is the position among all gathered candidates, and the key in every mapping of the pipeline. `path`, `name`
    and `type` are safe on one line; `text` and `summary` contain no invisible characters. `whole_lines` is true if
    `text` has exactly one line for each number from `first_line` to `last_line`. `trail` names the ancestors of a
    block, outermost first. `collector` found the candidate, with `signals`; `score` is the result of the ranking.
    `trim` is the receipt of a trimmed `text`; `elided` counts the lines that elision lines in `text` stand for.
    `leads` is true for what comes first in its file, whatever its lines: the definition that was asked for by name, or
    a piece far better than the others.
    `shortened` is true for an entity whose summary was shortened to fit the budget.
    `of_lines` counts the lines of the file where the text is a run of lines outside of all named blocks.
    `is_passage` is true for a passage of a document, whose relevance is its own and not its document's.
    `copies` are the paths of files with mostly the same text, which are not shown.
    `why` says in the heading what speaks for the candidate: `calls Session.send`.
    """

    place: int
    id: str
    kind: CandidateKind
    path: str = ""
    name: str = ""
    type: str = ""
    section: str = ""
    text: str = ""
    summary: str = ""
    language: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    whole_lines: bool = False
    relevance: float = 0.0
    modified: datetime | None = None
    made_visible: int = 0
    origin: object = None
    page: int | None = None
    trail: tuple[str, ...] = ()
    collector: str = "given"
    signals: Mapping[str, float] = {}
    score: float = 0.0
    trim: Trim | None = None
    elided: int = 0
    leads: bool = False
    shortened: bool = False
    of_lines: int = 0
    is_passage: bool = False
    copies: tuple[str, ...] = ()
    why: str = ""


class Piece(NamedTuple):
    """The text under a citation number: a candidate, several joined candidates, or a part of a candidate.

    `continues_file` is true if the previous piece has the same file, and the heading need not repeat the file. Number 0
    is for pieces that cannot be cited.
    """

    candidates: tuple[Candidate, ...]
    text: str
    first_line: int | None
    last_line: int | None
    relevance: float
    trim: Trim | None = None
    number: int = 0
    continues_file: bool = False

    def numbered(self, number: int, *, continues_file: bool) -> Piece:
        """A copy of the piece with a number; made from a slice for speed, because every draft numbers all pieces."""
        return Piece._make((*self[:-2], number, continues_file))

    @property
    def lead(self) -> Candidate:
        """The first candidate: the piece takes the name and location from the lead."""
        return self.candidates[0]


class Section(NamedTuple):
    """Pieces under a common title, or without a title."""

    title: str | None
    pieces: tuple[Piece, ...]
    name: str = ""


def alone(candidate: Candidate, number: int) -> Piece:
    """A piece with a single candidate."""
    first, last = candidate.first_line, candidate.last_line
    # Positional arguments for speed: every draft of a text makes a piece of every candidate.
    return Piece((candidate,), candidate.text, first, last, candidate.relevance, candidate.trim, number=number)
