"""A hit as a retriever hands it over, and the same hit as it is written."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidHit
from satchel.models.checks import as_count, as_lines, as_path, as_text, as_unit

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class KnowledgeChunk:
    """One retrieval hit: a piece of text, where it came from, and how relevant it is (0..1)."""

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
        for name in ("content", "id", "type", "name"):
            self._set(name, as_text(InvalidHit, name, getattr(self, name)))
        for name in ("expanded_context", "language"):
            value = getattr(self, name)
            if value is not None:
                self._set(name, as_text(InvalidHit, name, value))
        self._set("file_path", as_path(InvalidHit, "file_path", self.file_path))
        first, last = as_lines(InvalidHit, self.start_line, self.end_line)
        self._set("start_line", first)
        self._set("end_line", last)
        if self.page is not None:
            self._set("page", as_count(InvalidHit, "page", self.page, 1))
        self._set("relevance", as_unit(InvalidHit, "relevance", self.relevance))
        if self.last_modified is not None and not isinstance(self.last_modified, datetime):
            raise InvalidHit("last_modified", self.last_modified, "must be a datetime.datetime")
        if not self.id:
            self._set("id", self._place() or self._fingerprint())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _place(self) -> str:
        if not self.file_path or self.start_line is None:
            return ""
        return f"{self.file_path}:{self.start_line}-{self.end_line}"

    def _fingerprint(self) -> str:
        digest = blake2b(self.content.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return f"{self.file_path}#{digest}" if self.file_path else digest


@dataclass(frozen=True, slots=True)
class FormattedChunk:
    """A chunk as it is written: with its headers and wrappers, and what that costs."""

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
        """How many characters the formatted content has."""
        return len(self.formatted_content)

    @property
    def line_range(self) -> str:
        """`line 5` or `lines 5-8`."""
        if self.start_line == self.end_line:
            return f"line {self.start_line}"
        return f"lines {self.start_line}-{self.end_line}"
