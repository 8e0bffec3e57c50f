"""Language, document kind and ranker features from file names, and detection of changed files."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

from satchel.registry import Registry

PROSE: Final = frozenset({"markdown", "rst", "text", "html"})
"""Languages whose chunks are documentation, not code."""


def detect_language(file_path: str | None) -> str | None:
    """The language for the extension of a path, or None."""
    if not file_path:
        return None
    name = file_path.replace("\\", "/").rsplit("/", 1)[-1]
    _, dot, extension = name.rpartition(".")
    return _languages()["extensions"].get(extension.lower()) if dot else None


def canonical_language(name: str) -> str:
    """The canonical name of a language: `C#`, `cs` and `csharp` are the same."""
    folded = name.strip().lower()
    return _languages()["aliases"].get(folded, folded)


@cache
def _languages() -> dict[str, dict[str, str]]:
    """Tables from `extensions` and from `aliases` to languages."""
    tables = tomllib.loads(resources.files("satchel.models").joinpath("languages.toml").read_text("utf-8"))
    return {
        name: {spelling: language for language, spellings in table.items() for spelling in spellings}
        for name, table in tables.items()
    }


class PageUnit(StrEnum):
    """The name of a document's pages; documents without real pages are cited by section."""

    PAGE = "page"
    SLIDE = "slide"
    SHEET = "sheet"
    SECTION = "section"
    CHAPTER = "chapter"
    PICTURE = "picture"


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document: how to recognize the files, and the reader function.

    Packages add kinds through the entry-point group `satchel.document_kinds` (docs/documents.md).
    """

    unit: PageUnit
    reader: str
    """`module:function`; gets a `DocumentSource` in a sandboxed process and returns a Document or Unreadable."""
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    """Leading bytes of the files; without any other sign (`zip_folder`, …) the suffix alone decides."""
    zip_mime: bytes = b""
    """Content of the archive entry `mimetype`."""
    zip_folder: str = ""
    """A folder that only archives of this kind contain."""
    ole_stream: str = ""
    """A stream that only OLE compound files of this kind contain."""
    is_text: bool = False
    """True if the files are text; a file with binary bytes is of another kind."""
    is_often_source: bool = False
    """True if such files are often no documents: source code, data, or pictures without text."""
    needs_extra: bool = True
    """True if the reader needs the libraries of the extra `documents`."""


def _our_kinds() -> dict[str, DocumentKind]:
    table = tomllib.loads(resources.files("satchel.models").joinpath("document_kinds.toml").read_text("utf-8"))
    for kind in table.values():
        kind["unit"] = PageUnit(kind["unit"])
        kind["suffixes"] = tuple(kind["suffixes"])
        kind["magic"] = tuple(sign.encode("latin-1") for sign in kind.get("magic", ()))
        kind["zip_mime"] = kind.get("zip_mime", "").encode()
    return {name: DocumentKind(**kind) for name, kind in table.items()}


DOCUMENT_KINDS: Final = Registry("document kind", "satchel.document_kinds", _our_kinds(), DocumentKind)
"""All document kinds by name: built-in (`document_kinds.toml`) and from installed packages."""


@cache
def _kind_names() -> dict[str, str]:
    """Kind names by suffix; built-in kinds win over plug-ins."""
    names: dict[str, str] = {}
    for name, kind in DOCUMENT_KINDS.entries():
        for suffix in kind.suffixes:
            names.setdefault(suffix, name)
    return names


@cache
def document_suffixes(*, often_source: bool | None = None) -> frozenset[str]:
    """Suffixes of all document kinds, or only of kinds with the given `is_often_source`."""
    return frozenset(
        suffix
        for suffix, name in _kind_names().items()
        if often_source in (None, DOCUMENT_KINDS.get(name).is_often_source)
    )


def extension_of(path: str) -> str:
    """The suffix of a file in lower case, without the dot."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem else ""


def kind_name(path: str) -> str:
    """The name of the document kind for the suffix of a path; the suffix itself if unknown."""
    suffix = extension_of(path)
    return _kind_names().get(suffix, suffix)


def page_unit(path: str) -> PageUnit | None:
    """The page unit of the document at a path; None for files read as plain text."""
    name = _kind_names().get(extension_of(path))
    return DOCUMENT_KINDS.get(name).unit if name else None


def page_words(path: str, page: int) -> str:
    """A page in words: `page 3`, `slide 3`, `section 3`."""
    return f"{page_unit(path) or PageUnit.PAGE} {page}"


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
    "build": re.compile(
        r"(?:^|/)(?:requirements[^/]*\.(?:txt|in)|constraints[^/]*\.txt|setup\.(?:py|cfg)|pyproject\.toml|package\.json|environment\.ya?ml"
        r"|(?:[^/]*\.)?Dockerfile(?:\.[^/]*)?|docker-compose[^/]*|compose\.ya?ml|Makefile|CMakeLists\.txt|Cargo\.toml|go\.mod|pom\.xml"
        r"|build\.gradle(?:\.kts)?|Gemfile|[^/]*\.gemspec|composer\.json|tox\.ini|Procfile|mix\.exs|[^/]*\.csproj)$"
    ),
    "locale": re.compile(r"(?:^|/)(?:locales?|i18n|translations?|lang|migrations?)/", re.I),
}
"""Path patterns of the ranker features."""

_CONFIG: Final = frozenset({"json", "yaml", "toml", "xml", "ini"})


class FileKind(NamedTuple):
    """Features of a file for the ranker, from the path."""

    test: bool
    example: bool
    docs: bool
    vendor: bool
    legacy: bool
    entry: bool
    declarations: bool
    build: bool
    locale: bool
    prose: bool
    config: bool
    unknown: bool
    depth: int


@lru_cache(maxsize=1 << 16)
def kind_of(path: str) -> FileKind:
    """The ranker features of the file at a path."""
    language = detect_language(path)
    marks = {name: bool(pattern.search(path)) for name, pattern in _PATTERNS.items()}
    return FileKind(
        **marks,
        prose=language in PROSE and not marks["build"],
        config=language in _CONFIG,
        unknown=language is None,
        depth=path.count("/"),
    )


_CLOCK_TICK_NS: Final = 20_000_000
"""In nanoseconds: the clock of a file system may lag behind the system clock by a few milliseconds."""

SAME_AS: Final = "same content as "
"""Prefix of the note on a duplicate document; the path of the indexed document follows."""


PASSED_OVER: Final = "passed over: "
"""Prefix of the note on a file skipped after reading; the reason follows."""

SKIPPED: Final = "skipped"
"""Key of the fact in the store: the files skipped without reading, as JSON (`SkippedFile`)."""


READER: Final = "reader"
"""Key of the fact in the store: the version of the readers of all its files; "" if different versions read them."""

SKETCH: Final = "sketch"
"""Key of the fact in the store: the sketch of the indexed folder, as JSON (`satchel.indexing.tree_sketch`)."""


class SkippedFile(NamedTuple):
    """A file (or a folder, with a final `/`) left out of the index, with the reason."""

    path: str
    reason: str
    size: int = 0
    """In bytes, where the size is the reason."""


class FileState(NamedTuple):
    """Data for detecting whether a file changed after reading."""

    content_hash: bytes
    size: int
    modified_ns: int
    read_ns: int
    """Time of reading: a file with a later status change must be read again, whatever its modification time."""


def is_untouched(state: FileState, size: int, modified_ns: int, changed_ns: int) -> bool:
    """True if the file cannot have changed after reading.

    Programs can set the modification time, but not the status change time (ctime), which must precede the reading.
    """
    return (state.size, state.modified_ns) == (size, modified_ns) and changed_ns + _CLOCK_TICK_NS < state.read_ns
