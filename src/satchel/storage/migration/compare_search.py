"""The same questions to two stores: what is derived from the truth must answer the same, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.models.access import DEFAULT, EVERYONE
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.text.words import terms

if TYPE_CHECKING:
    from satchel.ports.file_index import Candidate, FileIndex
    from satchel.storage.migration.tally import Sample, Tally

_TOP: Final = 10
_DIGITS: Final = 4
_MEANT_MOST: Final = 20_000
"""With more pieces than that a store may look for what is near in meaning through an index, which may miss some."""


class _Hit(NamedTuple):
    """What speaks for a piece, and where it is."""

    evidence: tuple[tuple[str, float], ...]
    place: tuple[str, str, int, int]


def answered_otherwise(source: FileIndex, target: FileIndex, held: Tally) -> str | None:
    """The first of the questions that two stores do not answer alike; each is asked as another reader."""
    principals = held.principals or [EVERYONE]
    for i, sample in enumerate(held.samples):
        readers = frozenset({DEFAULT, EVERYONE, principals[i % len(principals)]})
        query = _query(sample, with_meaning=held.kinds["pieces"].count <= _MEANT_MOST)
        ours, theirs = (_hits(store, query, Filters(readers=readers)) for store in (source, target))
        if not _alike(ours, theirs):
            return sample.name
    return None


def _query(sample: Sample, *, with_meaning: bool) -> StoreQuery:
    asked = dict.fromkeys(terms(sample.name), 1.0)
    if not with_meaning or sample.vector is None:
        return StoreQuery(terms=asked, names=(sample.name,))
    import numpy as np

    vector = np.frombuffer(sample.vector, np.int8).astype(np.float32) / np.float32(127)
    return StoreQuery(terms=asked, names=(sample.name,), vector=vector)


def _hits(store: FileIndex, query: StoreQuery, filters: Filters) -> list[_Hit]:
    found = store.search(query, filters, top_k=_TOP)
    pieces = {one.id: one for one in store.pieces([one.piece for one in found], filters)}
    return [
        _Hit(_evidence(one), (piece.path, piece.block, piece.first_line, piece.last_line))
        for one in found
        if (piece := pieces.get(one.piece)) is not None
    ]


def _evidence(candidate: Candidate) -> tuple[tuple[str, float], ...]:
    told = {**candidate.signals, **{f"of file {name}": value for name, value in candidate.of_file.items()}}
    return tuple(sorted((name, round(value, _DIGITS)) for name, value in told.items()))


def _alike(ours: Sequence[_Hit], theirs: Sequence[_Hit]) -> bool:
    """Whether the same speaks for the same. Of those that are equally good, any may be the last that has room."""
    if sorted(one.evidence for one in ours) != sorted(one.evidence for one in theirs):
        return False
    known = {one.place: one.evidence for one in ours}
    return all(known.get(one.place, one.evidence) == one.evidence for one in theirs)
