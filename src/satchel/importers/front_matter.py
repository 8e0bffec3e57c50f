"""The YAML block at the head of a note: a few properties, read without trusting who wrote them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from satchel.importers.storable import as_json

MAX_CHARS: Final = 65_536
_DEEPEST: Final = 20
_FENCE: Final = "---"

# As in YAML 1.2, which Obsidian reads: `no` is a word, and 12:30 a time, not 750 seconds.
_SCALARS: Final = {
    "bool": (re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    "int": (re.compile(r"^[-+]?[0-9]{1,18}$"), "-+0123456789"),
    "float": (re.compile(r"^[-+]?[0-9]{1,30}\.[0-9]{1,30}(?:[eE][-+]?[0-9]{1,3})?$"), "-+0123456789"),
}

# What PyYAML's constructors raise for a date that is none, an empty number, a tag on the wrong value.
_UNBUILDABLE: Final = (ValueError, LookupError, AttributeError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands at the head of a note: its properties, the lines it takes, or its text and why it was not read."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 0
    problem: str = ""
    unread: str = ""


class _Refused(Exception):
    """It has a shape that front matter has no need of."""


def read_front_matter(text: str) -> FrontMatter:
    """The properties at the head of a text; none where there are none or they cannot be read."""
    if not text.startswith(_FENCE) or text.partition("\n")[0].rstrip() != _FENCE:
        return FrontMatter()
    head = text[: MAX_CHARS + 1].split("\n")
    end = next((row for row, line in enumerate(head[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        too_long = f"front matter of more than {MAX_CHARS:,} characters was taken as text"
        return FrontMatter(problem=too_long if len(text) > MAX_CHARS else "")
    source = "\n".join(head[1:end])
    try:
        return FrontMatter(_loaded(source + "\n"), end + 1)
    except _Refused as refused:
        return FrontMatter(lines=end + 1, problem=f"front matter was kept as text: {refused}", unread=source)


def _loaded(source: str) -> dict[str, Any]:
    yaml = _yaml()
    try:
        _check_shape(source)
        try:
            found = yaml.load(source, Loader=_loader())
        except (*_UNBUILDABLE, yaml.constructor.ConstructorError):
            # Every value as the text it was written as, for which nothing is built.
            found = yaml.load(source, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _Refused("it is not YAML") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _Refused("it is no list of properties")
    return {str(key): value for key, value in as_json(found).items()}


def _check_shape(source: str) -> None:
    """Refuses what can grow beyond what was written: aliases, and nesting without end."""
    yaml = _yaml()
    depth = 0
    for event in yaml.parse(source, Loader=_loader()):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _Refused("anchors and aliases are not followed")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise _Refused(f"it is nested more than {_DEEPEST} deep")


@lru_cache(maxsize=1)
def _loader() -> Any:
    yaml = _yaml()

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """YAML's safe types, those that Obsidian has."""

    kept = ("null", "timestamp", "merge")
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in kept]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for name, (pattern, first) in _SCALARS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", pattern, list(first))
    return Loader


def _yaml() -> Any:
    """PyYAML, which most runs have no need of and which has no types of its own."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    return yaml
