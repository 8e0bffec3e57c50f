"""The sources of a context from the JSON that was printed of it, so that an answer can be checked later.

Understood are what `satchel build --json`, `satchel assemble --json` and `satchel ask --json` print, and a research
context's `to_dict()`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.models.citation import CitableSource
from satchel.models.options import ContextFormat

_TEXTS: Final = ("text", "markdown_content", "content")


def sources_from_json(data: bytes, name: str = "context") -> tuple[CitableSource, ...]:
    """The sources by number; an `InvalidOption` where it is not the JSON of a context."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidOption("context", name, f"is not JSON: {error}") from None
    return sources_from_document(document, name)


def sources_from_document(document: Any, name: str = "context") -> tuple[CitableSource, ...]:
    """The same of JSON that has been read already."""
    if isinstance(document, dict) and isinstance(document.get("context"), dict):
        document = document["context"]
    problem = "is JSON, but not of a context; give what `satchel build --json` or `satchel ask --json` printed"
    if not isinstance(document, dict) or not isinstance(document.get("sources", document.get("sections")), list):
        raise InvalidOption("context", name, problem)
    try:
        return tuple(_listed(document) if "sources" in document else _of_sections(document))
    except _NotAContext as error:
        raise InvalidOption("context", name, f"is not of a context: {error}") from None


class _NotAContext(Exception):
    """What is wrong with it."""


def _of_sections(document: Mapping[str, Any]) -> Iterator[CitableSource]:
    """A payload's items; those without a number cannot be cited."""
    for i, section in enumerate(document["sections"]):
        items = section.get("items") if isinstance(section, dict) else None
        if not isinstance(items, list):
            raise _NotAContext(f"sections[{i}] has no items")
        for j, item in enumerate(items):
            where = f"sections[{i}].items[{j}]"
            if not isinstance(item, dict):
                raise _NotAContext(f"{where} is no object")
            if "number" in item:
                told = item.get("metadata")
                title = told.get("pageTitle") if isinstance(told, dict) else None
                name = _text(title) or _text(item.get("blockId"))
                number = _number(item["number"], where)
                place = item.get("place")
                place = place if isinstance(place, dict) else {}
                file = _text(place.get("path")) or _text(item.get("filePath")) or _text(item.get("sourcePath"))
                page = place.get("page")
                yield CitableSource(
                    number, _shown(item, where), name, file or None, page if isinstance(page, int) else None
                )


def _listed(document: Mapping[str, Any]) -> Iterator[CitableSource]:
    sources: list[Any] = document["sources"]
    for i, source in enumerate(sources):
        where = f"sources[{i}]"
        if not isinstance(source, dict):
            raise _NotAContext(f"{where} is no object")
        number = _number(source.get("number") or source.get("citation_number") or i + 1, where)
        file = _text(source.get("file")) or _text(source.get("filename"))
        name = _text(source.get("name")) or file
        page = source.get("page")
        text = _first_text(document, sources, i, where)
        yield CitableSource(number, text, name, file or None, page if isinstance(page, int) else None)


def _first_text(document: Mapping[str, Any], sources: list[Any], i: int, where: str) -> str:
    """What was shown of a source: as the JSON says it, or else as it stands in the text that it was written into."""
    shown, spans, written = (document.get(key) for key in ("shown", "spans", "context"))
    if isinstance(shown, list) and len(shown) == len(sources):
        return _shown({"text": shown[i]}, where)
    if any(key in sources[i] for key in _TEXTS):
        return _shown(sources[i], where)
    if isinstance(spans, list) and len(spans) == len(sources) and isinstance(written, str):
        return _at(spans[i], written, document.get("format"), where)
    if isinstance(document.get("formatted_text"), str):
        return _below_its_header(document["formatted_text"], sources, i, where)
    raise _NotAContext(f"{where} does not say what was shown of it")


def _at(span: Any, written: str, form: Any, where: str) -> str:
    match span:
        case [int(start), int(end)] if 0 <= start <= end <= len(written):
            piece = written[start:end]
        case _:
            raise _NotAContext(f"{where} has no place in the text")
    if form == ContextFormat.XML:
        return html.unescape(piece)
    if form == ContextFormat.JSON:
        try:
            return _shown(json.loads(piece.strip().rstrip(",")), where)
        except (ValueError, AttributeError, RecursionError):
            return piece
    return piece


def _below_its_header(written: str, sources: list[Any], i: int, where: str) -> str:
    """The lines below `[Document 2: crisis.pdf, Page 3]`, up to the header of the next."""
    at = 0
    for j, source in enumerate(sources[: i + 2]):
        header = f"[Document {j + 1}: {source.get('filename')}, Page {source.get('page')}]\n"
        found = written.find(header, at)
        if j > i:
            return written[at : found if found >= 0 else len(written)]
        if found < 0:
            raise _NotAContext(f"{where} has no header in the text")
        at = found + len(header)
    return written[at:]


def _shown(item: Mapping[str, Any], where: str) -> str:
    for key in _TEXTS:
        text = item.get(key)
        if isinstance(text, str):
            return text
    raise _NotAContext(f"{where} has no text")


def _number(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _NotAContext(f"{where} has no number from 1")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
