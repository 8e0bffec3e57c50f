"""Whether a text really holds what is expected, judged by the text alone: tools differ in how they name their sources.

A file is there when three pieces of evidence for it are: lines, or runs of three lines, that stand in no other file of
the corpus (all it has, if it has fewer). Lines count by their share, phrases as `satchel eval` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

from satchel.evaluation.dataset import Expected
from satchel.evaluation.judging import RankedHit, Words

_ENOUGH: Final = 3
_LEAST_CHARACTERS: Final = 10
_LEAST_LETTERS: Final = 6
_MOST_REFLOWED: Final = 1500
_KEPT: Final = 16
_MAX_FILE_BYTES: Final = 5_000_000
# Line numbers and bars that tools write before the lines they show.
_GUTTER: Final = re.compile(r"^\s*(?:\d+\s*[:|│\t-]\s?|[│⋮|>█]+\s?)")

Triple = tuple[str, str, str]
T = TypeVar("T")


class Corpus:
    """The files of a folder, and what of each stands in no other."""

    def __init__(self, folder: Path) -> None:
        self.texts = dict(_read(folder))
        self._own_lines = _owned({path: set(filter(_tells, _lines(text))) for path, text in self.texts.items()})
        self._own_triples = _owned({path: set(_triples(_lines(text))) for path, text in self.texts.items()})

    def covered(self, expected: Sequence[Expected], text: str) -> list[float]:
        """For each thing that is expected, how much of it is in the text."""
        seen = _seen(text)
        return [self._share(one, seen) for one in expected]

    def lines(self, path: str, first: int, last: int) -> list[str] | None:
        """Lines of a file, if it has them."""
        text = self.texts.get(path)
        found = None if text is None else text.split("\n")[first - 1 : last]
        return found if found and len(found) == last - first + 1 else None

    def in_lines(self, piece: RankedHit) -> RankedHit | None:
        """The piece as exactly the lines that it names, if it is made of them; blank ones at its ends don't matter."""
        lines = None if piece.first is None or piece.last is None else self.lines(piece.path, piece.first, piece.last)
        if lines is None or piece.text.strip("\n") != "\n".join(lines).strip("\n"):
            return None
        return replace(piece, text="\n".join(lines))

    def _share(self, one: Expected, seen: _Seen) -> float:
        if one.phrases:
            return float(seen.words.hold_one(one))
        if one.first is None or one.last is None:
            return float(self._shows(one.path, seen))
        wanted = [line for line in map(str.strip, self.lines(one.path, one.first, one.last) or []) if line]
        return sum(line in seen.lines for line in wanted) / len(wanted) if wanted else 0.0

    def _shows(self, path: str, seen: _Seen) -> bool:
        lines, triples = self._own_lines.get(path, set()), self._own_triples.get(path, set())
        needed = min(_ENOUGH, len(lines) + len(triples))
        found = len(triples & seen.triples) + len(lines & seen.lines)
        if not needed or found >= needed:
            return bool(needed)
        for line in sorted(lines - seen.lines)[:_MOST_REFLOWED]:
            found += " ".join(line.split()) in seen.flat
            if found >= needed:
                return True
        return False


class _Seen:
    """A context, made ready to look things up in."""

    def __init__(self, text: str) -> None:
        plain = _lines(text)
        bare = _lines("\n".join(_GUTTER.sub("", line) for line in text.split("\n")))
        self.lines = {*plain, *bare}
        self.triples = {*_triples(plain), *_triples(bare)}
        self.flat = " ".join(text.split())
        self.words = Words(text)


@lru_cache(_KEPT)
def _seen(text: str) -> _Seen:
    """Tools that don't look at the question give the same text every time."""
    return _Seen(text)


def _read(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MAX_FILE_BYTES:
            yield path.relative_to(folder).as_posix(), path.read_bytes().decode("utf-8", "replace")


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def _tells(line: str) -> bool:
    """Whether a line is long enough to say where it is from."""
    return len(line) >= _LEAST_CHARACTERS and sum(map(str.isalnum, line)) >= _LEAST_LETTERS


def _triples(lines: list[str]) -> Iterable[Triple]:
    return zip(lines, lines[1:], lines[2:], strict=False)


def _owned(by_path: dict[str, set[T]]) -> dict[str, set[T]]:
    """What of each file is in no other."""
    owner: dict[T, str | None] = {}
    for path, things in by_path.items():
        for thing in things:
            owner[thing] = None if thing in owner else path
    owned: dict[str, set[T]] = {}
    for thing, path_of in owner.items():
        if path_of is not None:
            owned.setdefault(path_of, set()).add(thing)
    return owned
