"""A workspace as JSON lines: importing an export restores the same records.

The first line is `{"record": "workspace", "version": 1}`; each line after it is one record: its kind under `record`
and the fields of the value of that name, without those that have their defaults. Lines are ASCII, so that nothing on
the way can harm them. Metadata are JSON's own values. Two things come back in another form: a moment without a zone as
one in UTC, and the two halves of a character (which no encoding gives) as that character.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from satchel.errors import InvalidInput
from satchel.importers.json_values import first_value
from satchel.models.access import DefaultAccess, Effect, Grant, Group, principal
from satchel.models.block import Activity, Block, Link, LinkKind, Notice, Policy, Record, block_type
from satchel.models.checks import as_choice

VERSION: Final = 1
"""Version of the format, in the header of each file; files of a newer version are refused."""

_HEADER: Final = {"record": "workspace", "version": VERSION}
_KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__.lower(): kind for kind in (Block, Link, Activity, Grant, Group, Policy)
}
_KIND_OF: Final = {kind: name for name, kind in _KINDS.items()}

_MAX_LINE_CHARS: Final = 16_000_000  # a line is parsed in memory as a whole; a longer one is hardly a single record
_MAX_DEPTH: Final = 100  # levels of nesting, far below Python's recursion limit, for every later reader of the value

_MAX_INTEGER_BITS: Final = 14_280  # Python reads and writes no number of more than 4,300 digits

_SHOWN_LINE_CHARS: Final = 60  # enough to recognize the line in an error message, and still one line of a terminal


class _Invalid(Exception):
    """An invalid value; the handler of the exception knows where the value stands."""


def write_jsonl(records: Iterable[Record]) -> Iterator[str]:
    """The lines of a file, each with a line end; notices are not part of a workspace and are left out."""
    yield json.dumps(_HEADER) + "\n"
    for record in records:
        if not isinstance(record, Notice):
            yield _record_line(record) + "\n"


def is_record_file(path: Path) -> bool:
    """True if the file begins like the output of `write_jsonl`."""
    if not path.is_file():
        return False
    value = first_value(path)
    return isinstance(value, dict) and "record" in value


def read_record_file(path: Path) -> Iterator[Record]:
    """The records in a file."""
    with path.open("rb") as file:
        yield from read_jsonl(file)


def read_jsonl(file: IO[bytes]) -> Iterator[Record]:
    """The records in an open file, read lazily; the first invalid line raises `InvalidInput`."""
    lines = _lines(file)
    header = next(lines, None)
    if header is None:
        raise InvalidInput("line 1", "", f"is missing; a workspace begins with {json.dumps(_HEADER)}")
    _check_header(header[0], _object(*header))
    for where, line in lines:
        yield _record(where, _object(where, line))


# -- lines


def _lines(file: IO[bytes]) -> Iterator[tuple[str, str]]:
    """The non-blank lines, each with a label (`line 3`) for messages."""
    for number in count(1):
        where = f"line {number}"
        try:
            # Limited read: a hostile file may be a single line of many gigabytes.
            data = file.readline(_MAX_LINE_CHARS + 1)
            line = data.decode()
        except UnicodeDecodeError as error:
            wrong = error.object[error.start : error.start + 1]
            raise InvalidInput(where, wrong, "is not UTF-8; save the file as UTF-8") from None
        except OSError as error:
            raise InvalidInput(where, "", f"cannot be read ({error.strerror})") from None
        if not data:
            return
        if len(data) > _MAX_LINE_CHARS:
            problem = f"is longer than {_MAX_LINE_CHARS:,} characters; is there one record per line?"
            raise InvalidInput(where, line[:_SHOWN_LINE_CHARS], problem)
        line = line.removeprefix("\ufeff") if number == 1 else line
        if line.strip():
            yield where, line


def _object(where: str, line: str) -> dict[str, Any]:
    try:
        values = _DECODER.decode(line)
        _check_json(values)
    except RecursionError:
        raise InvalidInput(where, line[:_SHOWN_LINE_CHARS], "is nested too deeply; flatten it") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(where, line[:_SHOWN_LINE_CHARS], f"is not JSON ({error.msg} at {error.colno})") from None
    except (_Invalid, ValueError) as error:
        raise InvalidInput(where, line[:_SHOWN_LINE_CHARS], str(error)) from None
    if not isinstance(values, dict):
        raise InvalidInput(where, values, "must be an object with a record")
    return values


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise _Invalid(f"has {json.dumps(name)[:_SHOWN_LINE_CHARS]} twice in one object; remove one")
        fields[name] = value
    return fields


def _refuse_constant(text: str) -> NoReturn:
    raise _Invalid(f"contains {text}, which is not valid JSON; leave it out, or write it as text")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Invalid(f"contains {text}, which is too large for a number; write it as text")
    return number


def _bounded(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _Invalid(f"contains a number of {len(text):,} digits; write it as text") from None


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_bounded
)


def _check_header(where: str, values: Mapping[str, Any]) -> None:
    if values.get("record") != "workspace":
        raise InvalidInput(where, values, f"must be the header of a workspace: {json.dumps(_HEADER)}")
    version = values.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InvalidInput(f"{where}, version", version, f"must be a whole number from 1 to {VERSION}")
    if version > VERSION:
        raise InvalidInput(
            f"{where}, version",
            version,
            f"is newer than {VERSION}, the latest version that this Satchel reads; update Satchel",
        )
    _check_names(where, values, _HEADER)


# -- records


def record_from(where: str, values: Mapping[str, Any]) -> Record:
    """The record of a JSON object with the same fields as a line of the file."""
    try:
        _check_json(values)
    except _Invalid as error:
        raise InvalidInput(where, _showable(values), str(error)) from None
    return _record(where, dict(values))


def _record(where: str, values: dict[str, Any]) -> Record:
    kind = values.pop("record", None)
    made = _KINDS.get(kind) if isinstance(kind, str) else None
    if made is None:
        raise InvalidInput(f"{where}, record", kind, f"must be one of {', '.join(_KINDS)}")
    readers = _FIELDS[made]
    _check_names(where, values, readers)
    for name, field in _REQUIRED[made].items():
        if name not in values:
            raise InvalidInput(f"{where}, {name}", None, f"is missing; a {kind} needs it ({field.type})")
    read = {name: _read_field(f"{where}, {name}", readers[name], value) for name, value in values.items()}
    record: Record = made(**read)
    return record


def _read_field(where: str, reader: Callable[[Any], Any], value: Any) -> Any:
    try:
        return reader(value)
    except (InvalidInput, _Invalid) as error:
        raise InvalidInput(where, _showable(value), getattr(error, "problem", str(error))) from None


def _check_names(where: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in values:
        if name not in known:
            raise InvalidInput(where, name, f"is not a field of this record; known fields: {', '.join(known)}")


def _record_line(record: Record) -> str:
    name = _KIND_OF.get(type(record))
    if name is None:
        raise InvalidInput("record", type(record).__name__, f"must be one of {', '.join(_KINDS)}")
    values: dict[str, Any] = {"record": name}
    for field in fields(record):
        value = getattr(record, field.name)
        if value != _default(field):
            values[field.name] = _checked(f"{name}.{field.name}", _FIELDS[type(record)][field.name], value)
    try:
        line = json.dumps(values, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(name, _showable(record), f"cannot be written ({error})") from None
    if len(line) > _MAX_LINE_CHARS:
        problem = f"has {len(line):,} characters, and a line may have at most {_MAX_LINE_CHARS:,}; split it"
        raise InvalidInput(name, line[:_SHOWN_LINE_CHARS], problem)
    return line


def _checked(where: str, reader: Callable[[Any], Any], value: Any) -> Any:
    """The value in JSON form; raises InvalidInput unless the reader accepts the value and returns a text unchanged."""
    plain = _plain(value)
    read = _read_field(where, reader, plain)
    if isinstance(value, str) and read != value:
        raise InvalidInput(where, value, f"would be read as {read!r}; use that value")
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value if value.utcoffset() is not None else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _showable(value: Any) -> Any:
    """The value, or the name of the value's type if the value cannot be printed."""
    try:
        ascii(value)
    except (ValueError, RecursionError):
        return type(value).__name__
    return value


# -- field values


def _require(is_valid: Callable[[Any], bool], problem: str) -> Callable[[Any], Any]:
    """A reader for valid values; any invalid value raises `_Invalid` with the given problem."""

    def read(value: Any) -> Any:
        if not is_valid(value):
            raise _Invalid(problem)
        return value

    return read


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Invalid("must be a number")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise _Invalid("must be a finite number")
    return value


def _moment(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
        moment = moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)
        # Near years 1 and 9999 the conversion to UTC can leave Python's range; fail here, not later.
        moment.astimezone(UTC)
    except (ValueError, OverflowError, _Invalid):
        raise _Invalid("must be a time such as 2026-11-01T09:00:00+00:00, within the years 1 to 9999 in UTC") from None
    return moment


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Invalid("must be an object")
    _check_json(value)
    return value


def _check_json(value: Any, level: int = 0) -> None:
    if level > _MAX_DEPTH:
        raise _Invalid(f"is nested more than {_MAX_DEPTH} levels deep; flatten it")
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise _Invalid(f"has a key of type {type(name).__name__}; JSON keys must be text")
            _check_json(inner, level + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_json(inner, level + 1)
    elif isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
        raise _Invalid("contains a number of more than 4,300 digits; write it as text")
    elif isinstance(value, float) and not math.isfinite(value):
        raise _Invalid(f"contains {value}, which is not valid JSON; leave it out, or write it as text")
    elif value is not None and not isinstance(value, str | int | float):
        raise _Invalid(
            f"contains a {type(value).__name__}, which JSON cannot represent; write it as text, a list or an object"
        )


def _optional(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else reader(value)


_text: Final = _require(lambda value: isinstance(value, str), "must be text")
_texts: Final = _require(_is_list_of_texts, "must be a list of texts")
_whole: Final = _require(_is_whole, "must be a whole number of at most 64 bits")
# By the annotation in the model; a field of an unlisted type fails at import of this module.
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "str": _text,
    "str | None": _optional(_text),
    "int": _whole,
    "int | None": _optional(_whole),
    "float": _number,
    "bool": _require(lambda value: isinstance(value, bool), "must be true or false"),
    "datetime": _moment,
    "datetime | None": _optional(_moment),
    "Mapping[str, Any]": _metadata,
    "tuple[str, ...]": lambda value: tuple(_texts(value)),
    "LinkKind": partial(as_choice, InvalidInput, "", choices=LinkKind),
    "Effect": partial(as_choice, InvalidInput, "", choices=Effect),
    "DefaultAccess": partial(as_choice, InvalidInput, "", choices=DefaultAccess),
}
_SPECIAL: Final[dict[tuple[type[Any], str], Callable[[Any], Any]]] = {
    (Block, "type"): lambda value: block_type(_text(value)),
    # Normalize `ann` to `user:ann`: a denial of plain `ann` would match nobody.
    (Grant, "principal"): lambda value: principal(_text(value)),
}
_FIELDS: Final = {
    kind: {field.name: _SPECIAL.get((kind, field.name)) or _READERS[str(field.type)] for field in fields(kind)}
    for kind in _KINDS.values()
}
_REQUIRED: Final = {
    kind: {field.name: field for field in fields(kind) if _default(field) is MISSING} for kind in _KINDS.values()
}
