"""Which language a file is in, and one name for each language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any, Final

PROSE: Final = frozenset({"markdown", "rst", "text", "html"})
"""Languages whose chunks are documentation rather than code."""


def detect_language(file_path: str | None) -> str | None:
    """The language that a path's extension stands for, or None."""
    if not file_path:
        return None
    name = file_path.replace("\\", "/").rsplit("/", 1)[-1]
    _, dot, extension = name.rpartition(".")
    return _table("extensions").get(extension.lower()) if dot else None


def canonical_language(name: str) -> str:
    """One spelling for a language, however it was written: `C#`, `cs` and `csharp` are the same."""
    folded = name.strip().lower()
    return _table("aliases").get(folded, folded)


@cache
def _table(name: str) -> dict[str, str]:
    """The language that each extension or alias stands for."""
    spellings = _languages()[name]
    return {spelling: language for language, of_language in spellings.items() for spelling in of_language}


@cache
def _languages() -> dict[str, Any]:
    return tomllib.loads(resources.files("satchel.models").joinpath("languages.toml").read_text("utf-8"))
