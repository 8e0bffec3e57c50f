"""What the API's answers look like, for its description; the answers themselves are made by the library.

Numbers and names are those of `to_dict` in the library, and of `--json` on the command line.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from satchel.models.search import Expansion, SearchHit
from satchel.service.auto_index import IndexState
from satchel.service.client import Indexed, Status
from satchel.service.research import ResearchAnswer


class Said(BaseModel):
    """An answer's part; more may be added in time."""

    model_config = ConfigDict(extra="allow")


def _model_of(record: type, name: str, description: str) -> type[Said]:
    """A model with the fields of a record, which are always there."""
    types = get_type_hints(record)
    required: dict[str, Any] = {field.name: (types[field.name], ...) for field in fields(record)}
    return create_model(name, __base__=Said, __doc__=description, **required)


_OWNERS = "What the index holds; what only its owner may know is null for others."
StatusAnswer = _model_of(Status, "StatusAnswer", _OWNERS)
Progress = _model_of(IndexState, "Progress", "How far an index run is.")
IndexedAnswer = _model_of(Indexed, "IndexedAnswer", "What an index run did.")
Answered = _model_of(ResearchAnswer, "Answered", "An answer from the documents (S3).")
Expanded = _model_of(Expansion, "Expanded", "The exact text behind an id.")
Hit = _model_of(SearchHit, "Hit", "A piece that may answer.")


class Problem(Said):
    """RFC 9457: what went wrong."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str


class Entry(Said):
    """What became of one considered piece, and why."""

    id: str
    fate: Literal["kept", "trimmed", "merged", "dropped"]
    reason: str
    relevance: float
    score: float
    tokens: int
    number: int | None
    into: str | None
    collector: str
    signals: dict[str, float]


class Source(Said):
    """A numbered source, and what was shown of it."""

    number: int
    id: str
    name: str
    type: str
    path: str | None
    line: int | None
    end_line: int | None
    page: int | None
    relevance: float
    section: str
    text: str


class Section(Said):
    """A titled part of the context."""

    name: str
    title: str
    tokens: int


class ContextAnswer(Said):
    """A context: the same keys whatever was asked; `kind` says which recipe made it."""

    kind: Literal["chunks", "workspace", "research"]
    text: str
    tokens: int
    budget: int
    format: str
    sources: list[Source]
    spans: list[tuple[int, int]]
    sections: list[Section]
    ledger: list[Entry]
    notes: list[str]
    sufficiency: dict[str, Any] | None
    provider_content: list[dict[str, Any]]
    statistics: dict[str, Any]


class Found(Said):
    """What a search found, best first."""

    hits: list[Hit]  # type: ignore[valid-type]  # made from a record
    generation: int
    notes: list[str]


class Report(Said):
    """What is wrong with an answer's citations."""

    ok: bool
    cited: list[int]
    uncited: list[int]
    findings: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    uncited_sentences: list[dict[str, Any]]


class Health(Said):
    """Up."""

    status: Literal["ok"]
    version: str


class Edited(Said):
    """A commit."""

    done: int
    generation: int


class BlockAnswer(Said):
    """A block with what is above and directly below it, as far as the caller may read."""

    block: dict[str, Any]
    trail: list[dict[str, Any]]
    children: list[dict[str, Any]]


class Uploaded(Said):
    """A file that was taken over, and whether it can be found now."""

    path: str
    bytes: int
    indexed: bool
    note: str | None


class DocumentRow(Said):
    """A document with pages; copies of the same content have the same `doc_id`."""

    path: str
    doc_id: str


class Documents(Said):
    """The documents that the caller may read."""

    documents: list[DocumentRow]
    uploads: list[str]
