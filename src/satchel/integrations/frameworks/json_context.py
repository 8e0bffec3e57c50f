"""The sources of a context from JSON, for checking an answer later.

What `satchel build`, `assemble`, `research` and `ask` print with `--json` is understood, and so are S3's sources.
"""

from __future__ import annotations

import json
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.models.context import CitableSource

_TEXT_KEYS: Final = ("text", "markdown_content", "content")
_FILE_KEYS: Final = ("path", "file", "filename")
_NUMBER_KEYS: Final = ("number", "citation_number")


def sources_from_json(data: bytes, name: str = "context") -> tuple[CitableSource, ...]:
    """The sources by number; raises `InvalidOption` if the data is not the JSON of a context."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidOption("context", name, f"is not JSON: {error}") from None
    return sources_from_document(document, name)


def sources_from_document(document: Any, name: str = "context") -> tuple[CitableSource, ...]:
    """The sources of decoded JSON."""
    if isinstance(document, dict) and isinstance(document.get("context"), dict):
        document = document["context"]
    sources = document.get("sources") if isinstance(document, dict) else None
    if not isinstance(sources, list):
        problem = "is JSON, but not a context; give the output of `satchel build --json` or `satchel ask --json`"
        raise InvalidOption("context", name, problem)
    return tuple(_source(source, i, name) for i, source in enumerate(sources))


def _source(source: Any, i: int, name: str) -> CitableSource:
    def refuse(problem: str) -> InvalidOption:
        return InvalidOption("context", name, f"is not a context: sources[{i}] {problem}")

    if not isinstance(source, dict):
        raise refuse("is not an object")
    number = next((source[key] for key in _NUMBER_KEYS if source.get(key)), i + 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise refuse("has no number of 1 or more")
    text = next((source[key] for key in _TEXT_KEYS if isinstance(source.get(key), str)), None)
    if text is None:
        raise refuse("has no shown text")
    file = next((source[key] for key in _FILE_KEYS if isinstance(source.get(key), str) and source[key]), None)
    label = source["name"] if isinstance(source.get("name"), str) and source["name"] else file or ""
    page = source.get("page")
    return CitableSource(number=number, text=text, name=label, file=file, page=page if isinstance(page, int) else None)
