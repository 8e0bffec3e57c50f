"""An entity of a knowledge base (a function, a document, a decision), and a search result on one."""

from __future__ import annotations

from dataclasses import dataclass

from satchel.errors import InvalidHit
from satchel.models.checks import as_count, as_path, as_text, as_unit


@dataclass(frozen=True, slots=True)
class Entity:
    """Something with a name and a type, and perhaps a place, a summary and content."""

    id: str
    name: str
    type: str
    file_path: str | None = None
    start_line: int | None = None
    summary: str | None = None
    content: str | None = None

    def __post_init__(self) -> None:
        for attribute in ("id", "name", "type"):
            value = as_text(InvalidHit, attribute, getattr(self, attribute))
            if not value:
                raise InvalidHit(attribute, value, "must not be empty")
            object.__setattr__(self, attribute, value)
        if self.file_path is not None:
            object.__setattr__(self, "file_path", as_path(InvalidHit, "file_path", self.file_path))
        for attribute in ("summary", "content"):
            value = getattr(self, attribute)
            if value is not None:
                object.__setattr__(self, attribute, as_text(InvalidHit, attribute, value))
        if self.start_line is not None:
            line = as_count(InvalidHit, "start_line", self.start_line, 0)
            object.__setattr__(self, "start_line", line)


@dataclass(frozen=True, slots=True)
class EntityResult:
    """A search result: an entity and how well it matched (0..1)."""

    entity: Entity
    score: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.entity, Entity):
            raise InvalidHit("entity", self.entity, "must be an Entity")
        object.__setattr__(self, "score", as_unit(InvalidHit, "score", self.score))

    @property
    def entity_id(self) -> str:
        """The id of the entity that was found."""
        return self.entity.id
