"""One door to every reader: a path and its text in, an outline out."""

from __future__ import annotations

from satchel.ingest.code.grammars import grammar_name
from satchel.ingest.sections import read_sections
from satchel.model.language import detect_language
from satchel.model.outline import Outline


def read_outline(path: str, text: str) -> Outline:
    """What a file holds; a language that has no grammar here is read by its lines."""
    language = detect_language(path)
    grammar = grammar_name(path, text)
    if grammar is None:
        return _with_own_names(read_sections(text, language))
    from satchel.ingest.code.read_code import read_code

    return _with_own_names(read_code(text, grammar, language))


def _with_own_names(outline: Outline) -> Outline:
    """The same with a number after names that come again: overloads, setters, sections called Example."""
    seen: dict[str, int] = {}
    blocks = []
    for block in outline.blocks:
        count = seen[block.qualified] = seen.get(block.qualified, 0) + 1
        blocks.append(block if count == 1 else block._replace(qualified=f"{block.qualified}~{count}"))
    return outline._replace(blocks=tuple(blocks))
