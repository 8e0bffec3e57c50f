"""The terms by which a text is found: its words reduced to their stems, and its identifiers whole."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from satchel.text.words import IDENTIFIER, parts_of

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
    """The stem of an English word; other words stay as they are."""
    return str(_stemmer().stemWord(word)) if word.isascii() and len(word) > 3 else word


@lru_cache(maxsize=1 << 17)
def terms_of(identifier: str) -> tuple[str, ...]:
    """The stems of an identifier's parts; one of several parts also stands for itself.

    >>> terms_of("parsedHeaders")
    ('pars', 'header', 'parsedheaders')
    """
    parts = parts_of(identifier)
    stems = tuple(stem(part) for part in parts)
    return (*stems, "".join(parts)) if len(parts) > 1 else stems


def terms(text: str) -> list[str]:
    """Every term of the text, in order."""
    return [term for name in IDENTIFIER.findall(text) for term in terms_of(name)]
