"""The grammars: which one reads a file, loaded when the first such file comes by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Final

from satchel.models.language import detect_language

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

_MODULES: Final = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "elixir": ("tree_sitter_elixir", "language"),
    "go": ("tree_sitter_go", "language"),
    "haskell": ("tree_sitter_haskell", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "scala": ("tree_sitter_scala", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "zig": ("tree_sitter_zig", "language"),
}

GRAMMARS: Final = tuple(_MODULES)
"""The grammars that come with Satchel, by name."""

_LOOKED_AT_CHARS: Final = 100_000
REFERENCES_MARK: Final = "\n;; references\n"
_CPP_HEADER: Final = re.compile(
    r"^[ \t]*(?:class\s+\w|namespace\b|template\s*<|using\s+\w|public:|private:)|::", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Grammar:
    """A parser and the two queries that find definitions and references in what it reads."""

    name: str
    parser: Parser
    definitions: Query
    references: Query


def grammar_name(path: str, text: str) -> str | None:
    """The grammar that reads this file, or None: then it is read by lines."""
    language = detect_language(path)
    if language == "typescript" and path.lower().endswith(".tsx"):
        return "tsx"
    if language == "c" and path.lower().endswith(".h") and _CPP_HEADER.search(text, 0, _LOOKED_AT_CHARS):
        return "cpp"
    return language if language in _MODULES else None


@cache
def load_grammar(name: str) -> Grammar:
    """The grammar of that name."""
    from tree_sitter import Language, Parser, Query

    module, function = _MODULES[name]
    language = Language(getattr(import_module(module), function)())
    text = resources.files("satchel.indexing.code").joinpath("queries", f"{name}.scm").read_text("utf-8")
    definitions, _, references = text.partition(REFERENCES_MARK)
    return Grammar(name, Parser(language), Query(language, definitions), Query(language, references))
