"""The grammars: which one reads a file, loaded when the first such file comes by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Final

from satchel.models.files import detect_language

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

GRAMMARS: Final = tuple(
    "bash c cpp csharp elixir go haskell java javascript kotlin lua php python ruby rust scala swift tsx typescript"
    " zig".split()
)
"""The grammars that come with Satchel, by name."""

_MODULES: Final = {"csharp": "c_sharp", "tsx": "typescript"}
_FUNCTIONS: Final = {"php": "language_php", "tsx": "language_tsx", "typescript": "language_typescript"}
"""Where a grammar's package or function is not called as usual."""

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
    return language if language in GRAMMARS else None


@cache
def load_grammar(name: str) -> Grammar:
    """The grammar of that name."""
    from tree_sitter import Language, Parser, Query

    module = import_module(f"tree_sitter_{_MODULES.get(name, name)}")
    language = Language(getattr(module, _FUNCTIONS.get(name, "language"))())
    text = resources.files("satchel.indexing.code").joinpath("queries", f"{name}.scm").read_text("utf-8")
    definitions, _, references = text.partition(REFERENCES_MARK)
    return Grammar(name, Parser(language), Query(language, definitions), Query(language, references))
