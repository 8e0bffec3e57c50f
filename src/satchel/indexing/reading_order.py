"""The order in which new files are read: first those that a waiting question names, then the central ones.

The order decides only what can be searched first: the finished index is the same for every order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from satchel.models.files import detect_language, kind_of
from satchel.text.word_families import family_of
from satchel.text.words import IDENTIFIER, STOP_WORDS, parts_of

if TYPE_CHECKING:
    from satchel.indexing.walk import FoundFile

_NAMED_WORTH: Final = 1_000.0  # more than all words of a path together: a path in the question comes first
_BEGINNING_CHARS: Final = 3  # words of a family nearly always begin alike; a quick filter before the exact comparison
_CENTRAL, _BESIDE, _FOREIGN = range(3)
_TEST: Final = re.compile(r"test|spec", re.IGNORECASE)
_PATH: Final = re.compile(r"[\w./\\-]*[\w-]\.\w+")
"""A file name in a question, with or without folders."""


def reading_order(files: Sequence[FoundFile], question: str) -> list[FoundFile]:
    """The files in the order of reading; `question` waits for the index (empty: none does)."""
    worth = _worth_by_path([file.path for file in files], question) if question else {}
    return sorted(files, key=lambda file: (-worth.get(file.path, 0.0), *_centrality(file.path), file.path))


def _worth_by_path(paths: Sequence[str], question: str) -> Mapping[str, float]:
    """For each path that the question names, or with words of the question, the rarity of these words in all paths."""
    asked = _families_in(question)
    begins_alike = re.compile("|".join(sorted({re.escape(word[:_BEGINNING_CHARS]) for word in asked})), re.IGNORECASE)
    alike = [path for path in paths if begins_alike.search(path)] if asked else []
    words = {path: matched for path in alike if (matched := asked & _families_of_path(path))}
    counts = Counter(word for matched in words.values() for word in matched)
    worth = {path: sum(math.log(1 + len(paths) / counts[word]) for word in sorted(words[path])) for path in words}
    named = tuple(name.replace("\\", "/").removeprefix("./") for name in _PATH.findall(question))
    if named:
        worth |= {path: worth.get(path, 0.0) + _NAMED_WORTH for path in paths if f"/{path}".endswith(named)}
    return worth


def _families_of_path(path: str) -> frozenset[str]:
    return frozenset().union(*map(_families_in, path.split("/")))


@lru_cache(maxsize=1 << 14)
def _families_in(text: str) -> frozenset[str]:
    """The word families in a text; names of folders repeat in many paths."""
    words = (word for name in IDENTIFIER.findall(text) for word in parts_of(name))
    return frozenset(family_of(word) for word in words if word not in STOP_WORDS)


def _centrality(path: str) -> tuple[int, int]:
    """How far from the middle of a project a file is (source and docs, tests, foreign files), and the depth."""
    folder, _, name = path.rpartition("/")
    group, depth = _centrality_of_folder(folder)
    if detect_language(name) is None:
        group = _FOREIGN
    elif _TEST.search(name):
        group = max(group, _BESIDE)
    return group, depth


@lru_cache(maxsize=1 << 14)
def _centrality_of_folder(folder: str) -> tuple[int, int]:
    kind = kind_of(f"{folder}/x.py")
    if kind.vendor or kind.locale or kind.legacy:
        return _FOREIGN, kind.depth
    return _BESIDE if kind.test or kind.example else _CENTRAL, kind.depth
