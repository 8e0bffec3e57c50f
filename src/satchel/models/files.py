"""What a file's name says (language, document kind, marks for the ranker), and whether the file has changed."""

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
"""Languages whose chunks are documentation rather than code."""


def detect_language(file_path: str | None) -> str | None:
    """The language that a path's extension stands for, or None."""
    if not file_path:
        return None
    name = file_path.replace("\\", "/").rsplit("/", 1)[-1]
    _, dot, extension = name.rpartition(".")
    return _languages()["extensions"].get(extension.lower()) if dot else None


def canonical_language(name: str) -> str:
    """One spelling for a language, however it was written: `C#`, `cs` and `csharp` are the same."""
    folded = name.strip().lower()
    return _languages()["aliases"].get(folded, folded)


@cache
def _languages() -> dict[str, dict[str, str]]:
    """The language that each of the `extensions` and `aliases` stands for."""
    tables = tomllib.loads(resources.files("satchel.models").joinpath("languages.toml").read_text("utf-8"))
    return {
        name: {spelling: language for language, spellings in table.items() for spelling in spellings}
        for name, table in tables.items()
    }


class PageUnit(StrEnum):
    """What a document's pages are called: what has no real pages is cited by its sections."""

    PAGE = "page"
    SLIDE = "slide"
    SHEET = "sheet"
    SECTION = "section"
    CHAPTER = "chapter"
    PICTURE = "picture"


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document: how its files are recognized, and who reads them.

    A package adds kinds of its own through the entry-point group `satchel.document_kinds` (docs/documents.md).
    """

    unit: PageUnit
    reader: str
    """`module:function`; it gets a `DocumentSource` in a confined process and returns a Document or Unreadable."""
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    """How its bytes begin; without any other sign (`zip_folder`, …) the suffix alone decides."""
    zip_mime: bytes = b""
    """What the entry `mimetype` of its archive says."""
    zip_folder: str = ""
    """A folder that only its archives have."""
    ole_stream: str = ""
    """A stream that only its compound files have."""
    is_text: bool = False
    """True if its files are text, so that one with binary bytes is something else."""
    is_often_source: bool = False
    """True if its files are as often something else: source, data, or a picture of nothing to read."""
    needs_extra: bool = True
    """True if it is read with the libraries of Satchel's extra `documents`."""


def _our_kinds() -> dict[str, DocumentKind]:
    table = tomllib.loads(resources.files("satchel.models").joinpath("document_kinds.toml").read_text("utf-8"))
    for kind in table.values():
        kind["unit"] = PageUnit(kind["unit"])
        kind["suffixes"] = tuple(kind["suffixes"])
        kind["magic"] = tuple(sign.encode("latin-1") for sign in kind.get("magic", ()))
        kind["zip_mime"] = kind.get("zip_mime", "").encode()
    return {name: DocumentKind(**kind) for name, kind in table.items()}


DOCUMENT_KINDS: Final = Registry("document kind", "satchel.document_kinds", _our_kinds(), DocumentKind)
"""Every kind by its name: ours (`document_kinds.toml`), and those that installed packages add."""


@cache
def _kind_names() -> dict[str, str]:
    """The name of the kind that each suffix stands for; ours come before those of plug-ins."""
    names: dict[str, str] = {}
    for name, kind in DOCUMENT_KINDS.entries():
        for suffix in kind.suffixes:
            names.setdefault(suffix, name)
    return names


@cache
def document_suffixes(*, often_source: bool | None = None) -> frozenset[str]:
    """The suffixes of what can be read as a document; only of kinds that are (or are not) often source."""
    return frozenset(
        suffix
        for suffix, name in _kind_names().items()
        if often_source in (None, DOCUMENT_KINDS.get(name).is_often_source)
    )


def extension_of(path: str) -> str:
    """A file's suffix in lower case, without its dot."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem else ""


def kind_name(path: str) -> str:
    """The name of the document kind that a path's suffix stands for, else the suffix."""
    suffix = extension_of(path)
    return _kind_names().get(suffix, suffix)


def page_unit(path: str) -> PageUnit | None:
    """What the pages of the document at a path are called; None for what is read as plain text."""
    name = _kind_names().get(extension_of(path))
    return DOCUMENT_KINDS.get(name).unit if name else None


def page_words(path: str, page: int) -> str:
    """`page 3`, `slide 3`, `section 3`: how a place in a document is told."""
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
