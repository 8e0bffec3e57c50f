"""What is known of a file: its language, its kind as far as its name tells, and whether it has changed."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple

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


_PATTERNS: Final = {
    "test": re.compile(
        r"(?i:(?:^|/)(?:tests?|__tests__|specs?|testing|testdata|fixtures?|e2e)/)"
        r"|(?:^|/)(?:tests?[_\-.][^/]*|[^/]*[_\-.](?:tests?|specs?)\.[^/.]+|[^/]*(?:Tests?|Spec|Suite)\.(?:java|kt|scala|swift|cs|php)"
        r"|conftest\.py|[^/]*_(?:benchmark|bench|testing|test_util|test_utils|test_helpers?)\.[^/.]+)$"
    ),
    "example": re.compile(r"(?:^|/)(?:_?examples?|samples?|demos?|docs?_src|tutorials?|playground|benchmarks?)/", re.I),
    "docs": re.compile(r"(?:^|/)(?:docs?|documentation|guides?)/", re.I),
    "vendor": re.compile(r"(?:^|/)(?:vendor|vendored|_vendor|third_party|thirdparty|deps|external|extern|lib/vendor)/"),
    "legacy": re.compile(r"(?:^|/)_?(?:compat|legacy|deprecated|shims?|stubs?)(?:/|\.[^/.]+$)", re.I),
    "entry": re.compile(
        r"(?:^|/)(?:__init__\.py|index\.[jt]sx?|mod\.rs|package-info\.java|__main__\.py|prelude\.rs|exports?\.[jt]s|version\.\w+"
        r"|__about__\.py|package\.scala)$"
    ),
    "declarations": re.compile(r"\.d\.[mc]?ts$|\.pyi$|(?:^|/)types?\.[jt]s$"),
    "locale": re.compile(r"(?:^|/)(?:locales?|i18n|translations?|lang|migrations?)/", re.I),
}
"""How the paths of files with each mark look."""

_CONFIG: Final = frozenset({"json", "yaml", "toml", "xml", "ini"})


class FileKind(NamedTuple):
    """Marks of a file; each is a feature of the ranker."""

    test: bool
    example: bool
    docs: bool
    vendor: bool
    legacy: bool
    entry: bool
    declarations: bool
    locale: bool
    prose: bool
    config: bool
    unknown: bool
    depth: int


@lru_cache(maxsize=1 << 16)
def kind_of(path: str) -> FileKind:
    """The marks of the file at a path."""
    language = detect_language(path)
    marks = {name: bool(pattern.search(path)) for name, pattern in _PATTERNS.items()}
    return FileKind(
        **marks,
        prose=language in PROSE,
        config=language in _CONFIG,
        unknown=language is None,
        depth=path.count("/"),
    )


_CLOCK_TICK_NS: Final = 20_000_000
"""A file system's clock may lag behind ours by a few milliseconds."""

SAME_AS: Final = "same content as "
"""How the note of a document begins whose content is indexed under another path; that path follows."""


class FileState(NamedTuple):
    """What tells whether a file has changed since it was read."""

    content_hash: bytes
    size: int
    modified_ns: int
    read_ns: int
    """When it was read: a file whose status changed later has to be looked at again, whatever its own time says."""


def is_untouched(state: FileState, size: int, modified_ns: int, changed_ns: int) -> bool:
    """True if nothing can have been written to a file since it was read.

    Its own time can be set at will; the time of its last change of any kind cannot, and has to lie before the reading.
    """
    return (state.size, state.modified_ns) == (size, modified_ns) and changed_ns + _CLOCK_TICK_NS < state.read_ns
