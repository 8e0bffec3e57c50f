"""One door to every reader: a path and its text in, an outline out."""

from __future__ import annotations

from satchel.indexing.code.grammars import grammar_name
from satchel.indexing.sections import read_sections
from satchel.models.files import detect_language
from satchel.models.outline import Outline


def read_outline(path: str, text: str) -> Outline:
    """What a file holds; a language that has no grammar here is read by its lines."""
    language = detect_language(path)
    grammar = grammar_name(path, text)
    if grammar is None:
        return with_own_names(read_sections(text, language))
    from satchel.indexing.code.read_code import read_code

    return with_own_names(read_code(text, grammar, "cpp" if grammar == "cpp" else language))


def with_own_names(outline: Outline) -> Outline:
    """The same with a number after names that come again: overloads, setters, sections called Example."""
    seen: dict[str, int] = {}
    blocks = []
    for block in outline.blocks:
        own = block.qualified
        while own in seen:
            seen[block.qualified] += 1
            own = f"{block.qualified}~{seen[block.qualified]}"
        seen[own] = 1
        blocks.append(block if own == block.qualified else block._replace(qualified=own))
    return outline._replace(blocks=tuple(blocks))
