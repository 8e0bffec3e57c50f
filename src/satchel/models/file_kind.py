"""What kind of file a path stands for, as far as its name tells."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from satchel.models.language import PROSE, detect_language

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
