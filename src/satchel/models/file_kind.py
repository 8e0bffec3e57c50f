"""What kind of file a path stands for, as far as its name tells."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from satchel.models.language import PROSE, detect_language

_TEST_FOLDER: Final = re.compile(r"(?:^|/)(?:tests?|__tests__|specs?|testing|testdata|fixtures?|e2e)/", re.IGNORECASE)
_TEST_NAME: Final = re.compile(
    r"(?:^|/)(?:tests?[_\-.][^/]*|[^/]*[_\-.](?:tests?|specs?)\.[^/.]+|[^/]*(?:Tests?|Spec|Suite)\.(?:java|kt|scala|swift|cs|php)"
    r"|conftest\.py|[^/]*_(?:benchmark|bench|testing|test_util|test_utils|test_helpers?)\.[^/.]+)$"
)
_EXAMPLE: Final = re.compile(
    r"(?:^|/)(?:_?examples?|samples?|demos?|docs?_src|tutorials?|playground|benchmarks?)/", re.I
)
_DOCS: Final = re.compile(r"(?:^|/)(?:docs?|documentation|guides?)/", re.IGNORECASE)
_VENDOR: Final = re.compile(
    r"(?:^|/)(?:vendor|vendored|_vendor|third_party|thirdparty|deps|external|extern|lib/vendor)/"
)
_LEGACY: Final = re.compile(r"(?:^|/)_?(?:compat|legacy|deprecated|shims?|stubs?)(?:/|\.[^/.]+$)", re.IGNORECASE)
_ENTRY: Final = re.compile(
    r"(?:^|/)(?:__init__\.py|index\.[jt]sx?|mod\.rs|package-info\.java|__main__\.py|prelude\.rs|exports?\.[jt]s|version\.\w+"
    r"|__about__\.py|package\.scala)$"
)
_DECLARATIONS: Final = re.compile(r"\.d\.[mc]?ts$|\.pyi$|(?:^|/)types?\.[jt]s$")
_LOCALE: Final = re.compile(r"(?:^|/)(?:locales?|i18n|translations?|lang|migrations?)/", re.IGNORECASE)
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
    return FileKind(
        bool(_TEST_FOLDER.search(path) or _TEST_NAME.search(path)),
        bool(_EXAMPLE.search(path)),
        bool(_DOCS.search(path)),
        bool(_VENDOR.search(path)),
        bool(_LEGACY.search(path)),
        bool(_ENTRY.search(path)),
        bool(_DECLARATIONS.search(path)),
        bool(_LOCALE.search(path)),
        language in PROSE,
        language in _CONFIG,
        language is None,
        path.count("/"),
    )
