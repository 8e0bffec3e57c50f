"""Word families: words with the same subject in names, beyond stems (parser and parse, cfg and configuration)."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final

from satchel.text.words import parts_of, stem

# A shorter stem in -er or -or is rarely that of an agent: error, color, user.
_MIN_AGENT_CHARS: Final = 6
# In a shorter stem the doubled letter belongs to the word: add, app.
_MIN_DOUBLED_CHARS: Final = 4


def family_of(word: str) -> str:
    """The family of a word.

    >>> family_of("formatter") == family_of("formatting") and family_of("cfg") == family_of("configuration")
    True
    """
    return family_of_term(stem(word))


@lru_cache(maxsize=1 << 17)
def family_of_term(term: str) -> str:
    """The family of a search term, which is a stem already: a second stemming would cut `pars` to `par`."""
    root = _root(term)
    return _words_of_short_forms().get(root, root)


@lru_cache(maxsize=1 << 17)
def families_of(identifier: str) -> tuple[str, ...]:
    """The families of the words in an identifier.

    >>> families_of("RequestParser") == families_of("parse_requests")[::-1]
    True
    """
    return tuple(family_of(part) for part in parts_of(identifier))


def _root(term: str) -> str:
    """The stem without the ending of an agent, a doubled last letter and a silent e."""
    if term in _no_agents() or not term.isascii():
        return term
    root = term
    if len(root) >= _MIN_AGENT_CHARS and root.endswith(("er", "or")):
        root = root[:-2]
    # Not l and s: their doubling belongs to the word (access, install).
    if len(root) >= _MIN_DOUBLED_CHARS and root[-1] == root[-2] and root[-1] not in "ls":
        root = root[:-1]
    return root.removesuffix("e") or root


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(resources.files("satchel.text").joinpath("word_families.toml").read_text("utf-8"))


@cache
def _no_agents() -> frozenset[str]:
    return frozenset(stem(word) for word in _table()["no_agents"]["words"].split())


@cache
def _words_of_short_forms() -> dict[str, str]:
    """The root of the full word for the root of each short form."""
    forms_of: dict[str, str] = _table()["short_forms"]
    return {_root(stem(form)): _root(stem(word)) for word, forms in forms_of.items() for form in forms.split()}
