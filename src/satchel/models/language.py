"""Which language a file is in, and one name for each language."""

from __future__ import annotations

from typing import Final

_BY_EXTENSION: Final = {
    "ts": "typescript",
    "tsx": "typescript",
    "js": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "py": "python",
    "pyi": "python",
    "go": "go",
    "rs": "rust",
    "java": "java",
    "kt": "kotlin",
    "kts": "kotlin",
    "scala": "scala",
    "c": "c",
    "h": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "cxx": "cpp",
    "hpp": "cpp",
    "cs": "csharp",
    "fs": "fsharp",
    "rb": "ruby",
    "php": "php",
    "swift": "swift",
    "ex": "elixir",
    "exs": "elixir",
    "erl": "erlang",
    "hs": "haskell",
    "ml": "ocaml",
    "lua": "lua",
    "zig": "zig",
    "jl": "julia",
    "r": "r",
    "dart": "dart",
    "sh": "bash",
    "bash": "bash",
    "zsh": "bash",
    "sql": "sql",
    "html": "html",
    "css": "css",
    "md": "markdown",
    "rst": "rst",
    "txt": "text",
    "json": "json",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "xml": "xml",
    "ini": "ini",
    "cfg": "ini",
    "hh": "cpp",
    "hxx": "cpp",
    "sbt": "scala",
    "rake": "ruby",
    "bats": "bash",
    "scss": "css",
}

_ALIASES: Final = {
    "c#": "csharp",
    "c++": "cpp",
    "f#": "fsharp",
    "golang": "go",
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "jsx": "javascript",
    "rs": "rust",
    "rb": "ruby",
    "cs": "csharp",
    "kt": "kotlin",
    "sh": "bash",
    "shell": "bash",
    "md": "markdown",
    "yml": "yaml",
    "plaintext": "text",
}

PROSE: Final = frozenset({"markdown", "rst", "text", "html"})
"""Languages whose chunks are documentation rather than code."""


def detect_language(file_path: str | None) -> str | None:
    """The language that a path's extension stands for, or None."""
    if not file_path:
        return None
    name = file_path.replace("\\", "/").rsplit("/", 1)[-1]
    _, dot, extension = name.rpartition(".")
    return _BY_EXTENSION.get(extension.lower()) if dot else None


def canonical_language(name: str) -> str:
    """One spelling for a language, however it was written: `C#`, `cs` and `csharp` are the same."""
    folded = name.strip().lower()
    return _ALIASES.get(folded, folded)
