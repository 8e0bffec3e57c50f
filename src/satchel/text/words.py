"""The words of code and prose, with identifiers taken apart.

Search, the static embedder and the ranker all see a text as the same words, so that ``HTTPServer``, ``http_server`` and
"HTTP server" meet. An identifier is split where its case, its underscores or its digits change; the words are in lower
case and without accents; a run of letters that knows no case (Chinese, Japanese, Thai) becomes its overlapping pairs.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

IDENTIFIER = re.compile(r"\w+")
_ASCII_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LONGEST_WORD = 64
"""A run longer than this is data (a hash, base64, a table of digits), not a word anyone would ask for."""


def words(text: str) -> list[str]:
    """Every word of the text, in order; an identifier gives its parts.

    >>> words("def parseHTTPHeader(raw_bytes): ...")
    ['def', 'parse', 'http', 'header', 'raw', 'bytes']
    """
    return [part for name in IDENTIFIER.findall(text) for part in parts_of(name)]


@lru_cache(maxsize=1 << 17)
def parts_of(identifier: str) -> tuple[str, ...]:
    """The words that an identifier is made of.

    >>> parts_of("getUserByID2")
    ('get', 'user', 'by', 'id', '2')
    """
    parts = _ASCII_PARTS.findall(identifier) if identifier.isascii() else _parts_of_unicode(identifier)
    return tuple(part.lower() for part in parts if len(part) <= _LONGEST_WORD)


def _parts_of_unicode(identifier: str) -> Iterator[str]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", identifier) if not unicodedata.combining(c))
    for part in _unicode_parts().findall(unicodedata.normalize("NFC", plain)):
        if len(part) > 2 and unicodedata.category(part[0]) == "Lo":
            yield from (part[i : i + 2] for i in range(len(part) - 1))
        else:
            yield part


@lru_cache(maxsize=1)
def _unicode_parts():  # type: ignore[no-untyped-def]
    import regex  # only text beyond ASCII pays for loading it

    return regex.compile(r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}+|[\p{Lo}\p{Lm}\p{M}]+")
