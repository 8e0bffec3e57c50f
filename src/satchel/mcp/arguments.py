"""What a tool is told: described to models as JSON Schema, and checked against the same description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from satchel.errors import InvalidOption

_LONGEST: Final = 4_000
_LONGEST_OF_MANY: Final = 500
_MOST_OF_MANY: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text; one that must be given must not be blank."""

    name: str
    says: str
    required: bool = False
    choices: tuple[str, ...] = ()
    default: str | None = None
    longest: int = _LONGEST

    def schema(self) -> dict[str, Any]:
        """How it is described."""
        told: dict[str, Any] = {"type": "string", "description": self.says}
        if self.choices:
            told["enum"] = list(self.choices)
        else:
            told["maxLength"] = self.longest
        if self.required:
            told["minLength"] = 1
        if self.default is not None:
            told["default"] = self.default
        return told

    def checked(self, value: object) -> str:
        """The value, if it may be one."""
        if self.choices:
            if value not in self.choices:
                raise InvalidOption(self.name, value, f"must be one of {', '.join(self.choices)}")
            return str(value)
        if not isinstance(value, str):
            raise InvalidOption(self.name, value, "must be a text")
        if len(value) > self.longest:
            raise InvalidOption(self.name, value, f"must have at most {self.longest:,} characters")
        if self.required and not value.strip():
            raise InvalidOption(self.name, value, "must not be empty")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A whole number within bounds."""

    name: str
    says: str
    least: int
    most: int
    default: int
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """How it is described."""
        bounds = {"minimum": self.least, "maximum": self.most, "default": self.default}
        return {"type": "integer", "description": self.says, **bounds}

    def checked(self, value: object) -> int:
        """The value, if it may be one."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows one kind of number
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            raise InvalidOption(self.name, value, f"must be a whole number from {self.least:,} to {self.most:,}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Several short texts."""

    name: str
    says: str
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """How it is described."""
        return {"type": "array", "items": {"type": "string"}, "maxItems": _MOST_OF_MANY, "description": self.says}

    def checked(self, value: object) -> tuple[str, ...]:
        """The value, if it may be one."""
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise InvalidOption(self.name, value, "must be a list of texts")
        if len(value) > _MOST_OF_MANY:
            raise InvalidOption(self.name, value, f"must have at most {_MOST_OF_MANY} texts")
        for one in value:
            if not one or len(one) > _LONGEST_OF_MANY:
                raise InvalidOption(self.name, one, f"must be texts of 1 to {_LONGEST_OF_MANY} characters")
        return tuple(value)


Argument = Text | Count | Texts


def schema_of(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The JSON Schema for an object of these arguments."""
    told: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: one.schema() for one in arguments},
        "additionalProperties": False,
    }
    required = [one.name for one in arguments if one.required]
    if required:
        told["required"] = required
    return told


def checked(arguments: Sequence[Argument], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was given, by name; what is null or empty was not given."""
    given = given or {}
    known = {one.name: one for one in arguments}
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            guess = f"did you mean {near[0]}? " if near else ""
            names = f"known are {', '.join(known)}" if known else "this tool takes none"
            raise InvalidOption(str(name)[:80], value, f"there is no such argument; {guess}{names}")
    for one in arguments:
        if one.required and given.get(one.name) is None:
            raise InvalidOption(one.name, None, "must be given")
    return {
        name: known[name].checked(value)
        for name, value in given.items()
        if value is not None and (known[name].required or value not in ("", [], ()))
    }
