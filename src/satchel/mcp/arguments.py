"""The arguments of tools as pydantic models: described to language models as JSON Schema, and checked by it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, ValidationError, create_model

from satchel.errors import InvalidOption
from satchel.service.question import Kind, Option, Surface, options_of

_LONGEST: Final = 4_000
_LONGEST_OF_MANY: Final = 500
_MOST_OF_MANY: Final = 50


def _whole(value: object) -> object:
    """JSON knows one kind of number: 3.0 is 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Whole = Annotated[StrictInt, BeforeValidator(_whole)]
_Many = Annotated[
    list[Annotated[StrictStr, Field(min_length=1, max_length=_LONGEST_OF_MANY)]], Field(max_length=_MOST_OF_MANY)
]


class Arguments(BaseModel):
    """What a tool takes; nothing else."""

    model_config = ConfigDict(extra="forbid")


def text(description: str, *, longest: int = _LONGEST, required: bool = False) -> tuple[Any, Any]:
    """A field for a text; one that is required must not be empty."""
    kind = Annotated[StrictStr, Field(min_length=1 if required else None, max_length=longest)]
    return kind, Field(... if required else None, description=description)


def count(description: str, *, least: int, most: int, default: int | None) -> tuple[Any, Any]:
    """A field for a whole number within bounds."""
    return _Whole, Field(default, description=description, ge=least, le=most)


def options(surface: Surface) -> dict[str, tuple[Any, Any]]:
    """A field for each option of questions that a tool takes."""
    return {option.name: _field(option) for option in options_of(surface)}


def _field(option: Option) -> tuple[Any, Any]:
    match option.kind:
        case Kind.BUDGET | Kind.COUNT:
            least, most = option.tool_range
            return count(option.help, least=least, most=most, default=option.default)
        case Kind.TEXTS | Kind.GLOBS:
            return _Many, Field(None, description=option.help)
        case Kind.CHOICE:
            choices = Literal.__getitem__(tuple(map(str, option.choices)))
            return choices, Field(option.default, description=option.help)
        case _:
            return text(option.help)


def arguments(**fields: tuple[Any, Any]) -> type[Arguments]:
    """The model of a tool's arguments."""
    model: type[Arguments] = create_model("Arguments", __base__=Arguments, **fields)  # type: ignore[call-overload]
    return model


def schema_of(model: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, without what a language model need not read."""
    schema = model.model_json_schema()
    fields = {
        name: {key: value for key, value in field.items() if key != "title" and (key, value) != ("default", None)}
        for name, field in schema.get("properties", {}).items()
    }
    for field in fields.values():
        if "items" in field:
            field["items"] = {"type": "string"}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, "additionalProperties": False, **required}


def checked(model: type[Arguments], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments that were given, by name; what is null or empty was not given."""
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    values = {
        name: value
        for name, value in (given or {}).items()
        if name not in model.model_fields or (value is not None and (name in required or value not in ("", [], ())))
    }
    try:
        found = model.model_validate(values).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _refusal(model, values, error) from None
    for name in required:
        if isinstance(found[name], str) and not found[name].strip():
            raise InvalidOption(name, found[name], "must not be empty")
    return found


def _refusal(model: type[Arguments], given: Mapping[str, Any], error: ValidationError) -> InvalidOption:
    """What is wrong with the first argument that is, in words for a language model."""
    first = min(error.errors(include_url=False), key=lambda problem: problem["type"] != "extra_forbidden")
    name, known = str(first["loc"][0]), model.model_fields
    value = given.get(name)
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, known, 1)
        guess = f"did you mean {near[0]}? " if near else ""
        names = f"known are {', '.join(known)}" if known else "this tool takes none"
        return InvalidOption(name[:80], value, f"there is no such argument; {guess}{names}")
    if first["type"] == "missing":
        return InvalidOption(name, None, "must be given")
    return InvalidOption(name, value, f"must be {_expected(schema_of(model)['properties'][name])}")


def _expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["type"] == "integer":
        return f"a whole number from {schema['minimum']:,} to {schema['maximum']:,}"
    if schema["type"] == "array":
        return f"a list of texts (at most {_MOST_OF_MANY}, each of 1 to {_LONGEST_OF_MANY} characters)"
    return f"a text of at most {schema['maxLength']:,} characters"
