"""Words of code and prose, search terms, and units for detecting repeated text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

IDENTIFIER = re.compile(r"\w+")
_ASCII_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_MAX_WORD_CHARS = 64
"""A run longer than this is data (a hash, base64, a table of digits), not a word anyone would ask for."""


def words(text: str) -> list[str]:
    """Every word of the text, in order; an identifier is split into parts.

    >>> words("def parseHTTPHeader(raw_bytes): ...")
    ['def', 'parse', 'http', 'header', 'raw', 'bytes']
    """
    return [part for name in IDENTIFIER.findall(text) for part in parts_of(name)]


@lru_cache(maxsize=1 << 17)
def parts_of(identifier: str) -> tuple[str, ...]:
    """The words in an identifier.

    >>> parts_of("getUserByID2")
    ('get', 'user', 'by', 'id', '2')
    """
    parts = _ASCII_PARTS.findall(identifier) if identifier.isascii() else _parts_of_unicode(identifier)
    return tuple(part.lower() for part in parts if len(part) <= _MAX_WORD_CHARS)


def runs_of(identifier: str) -> tuple[str, ...]:
    """The words in an identifier; a run of letters without case (Chinese, Korean, Arabic …) stays whole.

    >>> runs_of("解析HTTPヘッダ")
    ('解析', 'http', 'ヘッタ')
    """
    return tuple(run.lower() for run in _runs(identifier) if len(run) <= _MAX_WORD_CHARS or is_caseless(run))


def is_caseless(run: str) -> bool:
    """True if the run is of a script without upper and lower case, where words may stand without spaces."""
    return unicodedata.category(run[0]) == "Lo"


def _parts_of_unicode(identifier: str) -> Iterator[str]:
    for run in _runs(identifier):
        if len(run) > 2 and is_caseless(run):
            yield from (run[i : i + 2] for i in range(len(run) - 1))
        else:
            yield run


def _runs(identifier: str) -> list[str]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", identifier) if not unicodedata.combining(c))
    runs: list[str] = _unicode_parts().findall(unicodedata.normalize("NFC", plain))
    return runs


@lru_cache(maxsize=1)
def _unicode_parts():  # type: ignore[no-untyped-def]
    import regex  # only text beyond ASCII pays for loading it

    return regex.compile(r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}+|[\p{Lo}\p{Lm}\p{M}]+")


STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been between but by can could did do does doing down each for"
    " from get gets getting had has have having he her here how i if in into is it its just like me more most"
    " my no nor not now of off on once only or other our out over own s same she should so some such t than"
    " that the their them then there these they this those through to too under until up us use used uses using"
    " very via was we were what when where which while who whom why will with within without would you your".split()
)


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """The stem of an English word; non-ASCII and short words stay unchanged."""
    return str(_stemmer().stemWord(word)) if word.isascii() and len(word) > 3 else word


@lru_cache(maxsize=1 << 17)
def terms_of(identifier: str) -> tuple[str, ...]:
    """The stems of an identifier's parts; an identifier of several parts also yields all parts joined.

    >>> terms_of("parsedHeaders")
    ('pars', 'header', 'parsedheaders')
    """
    parts = parts_of(identifier)
    stems = tuple(stem(part) for part in parts)
    return (*stems, "".join(parts)) if len(parts) > 1 else stems


def terms(text: str) -> list[str]:
    """Every term of the text, in order."""
    return [term for name in IDENTIFIER.findall(text) for term in terms_of(name)]


# Shorter lines (`else:`, `return None`, `}`) stand everywhere and are no evidence of repetition.
_MIN_UNIT_CHARS: Final = 16

# A longer line is a paragraph, and is compared sentence by sentence.
_PARAGRAPH_CHARS: Final = 200
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def units(text: str) -> set[str]:
    """The distinct lines of a text, with paragraphs split into sentences."""
    lines = text.split("\n")
    if max(map(len, lines)) > _PARAGRAPH_CHARS:
        lines = [part for line in lines for part in _SENTENCE_END.split(line)]
    return {line for line in map(str.strip, lines) if len(line) >= _MIN_UNIT_CHARS} or {text.strip()}


_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def distinct_words(text: str) -> set[str]:
    """The distinct words in lower case, with identifiers split: `parseHTTPReply` has parse, http, reply."""
    words_in_text: set[str] = set()
    for word in set(_WORD.findall(text)):
        words_in_text.add(word.lower())
        if not word.islower() and not word.isupper():
            words_in_text.update(part.lower() for part in _HUMP.split(word))
    return words_in_text
