"""Contexts of a change: its consequences as hits, beside what resembles it, and the owners of what it changes."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from satchel.models.files import detect_language
from satchel.models.search import Filters, SearchHit, SearchResult
from satchel.ports.file_index import StoredPiece
from satchel.retrieval.consequences import CHANGED_HERE, Consequences, Reached, innermost
from satchel.retrieval.freshness import lines_of
from satchel.retrieval.search import current_hit
from satchel.text.patterns import matches
from satchel.text.reports import trace_frames
from satchel.text.visible import PLAIN_NAME

if TYPE_CHECKING:
    from satchel.models.files import FileState
    from satchel.models.options import ContextBuildOptions
    from satchel.ports.searched_store import SearchedStore
    from satchel.retrieval.change import Change
    from satchel.retrieval.search import Searcher

_RESEMBLES: Final = 0.5  # times the relevance for the words of the change
_RESEMBLANCE: Final = "resembles the change"
_KNOWN_SHARE: Final = 0.4  # of the relevance, for what the reader knows already
_FILE_SHARE: Final = 0.4  # of the relevance of a file, for its least probable place
_NEAR_LINES: Final = 6  # places as near as this are shown as one
_HEAD_LINES: Final = 12  # of the first definition, shown for a file of which no line is known
_MAX_REASONS: Final = 2  # in a heading
_MAX_OWNED: Final = 8  # changed files whose owners are named

_OWNER_FILES: Final = ("CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_OWNER: Final = re.compile(r"@[\w.-]+(?:/[\w.-]+)*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)


class FindsHits(Protocol):
    """Finds hits for a question in a store."""

    @property
    def store(self) -> SearchedStore:
        """The store in which the hits are."""

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The best hits for a question, each checked against the file on disk."""


@dataclass(frozen=True)
class ImpactSearcher:
    """Finds hits for a change: `search` takes the words of the change, and finds what the change reaches, too."""

    searcher: Searcher
    change: Change

    @property
    def store(self) -> SearchedStore:
        """The store in which the hits are."""
        return self.searcher.store

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The places that the change reaches, most probable first, each checked against the file on disk."""
        filters = filters or Filters()
        found = self.searcher.search(question, top_k=top_k, filters=filters)
        with self.store.snapshot():
            consequences = Consequences(self.store, filters, self.change)
            reached = [*consequences.reached(), *_resembling(found.hits)]
            runs = [run for file in _by_file(reached)[:top_k] for run in self._runs(file, filters)]
            states = self.store.files()
        runs.sort(key=lambda run: -run.relevance)
        like = {(hit.path, hit.start_line): hit for hit in found.hits}
        notes: list[str] = []
        hits: dict[str, SearchHit] = {}
        with self.searcher.folder.opened() as disk:
            for run in runs:
                hit: SearchHit | None = like.get((run.path, run.first))
                if (hit is None or hit.end_line < run.last) and run.path in states:
                    piece = self._piece(run, filters, states)
                    hit = current_hit(piece, disk, notes) if piece else None
                if hit is not None and len(hits) < top_k:
                    hits.setdefault(hit.id, replace(hit, relevance=run.relevance, signals=run.signals, why=run.why))
        return replace(found, hits=tuple(hits.values()), notes=(*consequences.notes, *found.notes, *notes))

    def _runs(self, file: _File, filters: Filters) -> list[_Run]:
        """The places of a file, neighbours together; for a file as a whole its first definition."""
        spans = self.store.outline_of(file.path, filters)
        lines = sorted({place.line for place in file.places if place.line})
        if not lines:
            first = next((span for span in spans if span.qualified), None)
            start, end = (first.first_line, first.last_line) if first else (1, _HEAD_LINES)
            return [_run(file, start, min(end, start + _HEAD_LINES - 1), [], 0.0)]
        groups: list[list[int]] = []
        blocks = {line: innermost(spans, line) for line in lines}
        for line in lines:
            last = groups[-1][-1] if groups else None
            if last is None or line - last > _NEAR_LINES or blocks[line] != blocks[last]:
                groups.append([])
            groups[-1].append(line)
        placed = [[place for place in file.places if place.line in group] for group in groups]
        most = max(map(_together, placed))
        return [_run(file, group[0], group[-1], places, most) for group, places in zip(groups, placed, strict=True)]

    def _piece(self, run: _Run, filters: Filters, states: Mapping[str, FileState]) -> StoredPiece | None:
        """The lines of a run as the index has them; None if the reader may not read the file."""
        text = lines_of(self.store.text_of(run.path, filters) or "")
        last = min(run.last, len(text))
        if not 1 <= run.first <= last:
            return None
        block = innermost(self.store.outline_of(run.path, filters), run.first)
        name = block.qualified if block else ""
        return StoredPiece(
            id=0,
            path=run.path,
            language=detect_language(run.path),
            block=f"{run.path}#{name}" if name else run.path,
            block_type=block.type if block else "",
            title=name,
            summary=block.summary if block else "",
            first_line=run.first,
            last_line=last,
            text="\n".join(text[run.first - 1 : last]),
            state=states[run.path],
        )


class _File(NamedTuple):
    """A file that the change may reach: its places, and how probably one of them matters."""

    path: str
    places: list[Reached]
    probability: float


class _Run(NamedTuple):
    """Neighbouring lines that the change may reach."""

    path: str
    first: int
    last: int
    relevance: float
    signals: dict[str, float]
    why: str


def _resembling(hits: Iterable[SearchHit]) -> Iterator[Reached]:
    """The hits for the words of a change as places that it may reach."""
    return (Reached(hit.path, hit.start_line, _RESEMBLES * hit.relevance, _RESEMBLANCE) for hit in hits if hit.path)


def _by_file(reached: Iterable[Reached]) -> list[_File]:
    """The files, most probable first."""
    by_path: dict[str, list[Reached]] = defaultdict(list)
    for place in reached:
        by_path[place.path].append(place)
    files = [_File(path, places, _together(_distinct(places))) for path, places in by_path.items()]
    return sorted(files, key=lambda file: (-file.probability, file.path))


def _run(file: _File, first: int, last: int, places: Sequence[Reached], most: float) -> _Run:
    """The lines from first to last, with what speaks for them and for their file; `most` speaks for its best place."""
    reasons = sorted((*places, *(place for place in file.places if not place.line)), key=lambda place: -place.weight)
    share = _together(places) / most if most else 1.0
    relevance = file.probability * (_FILE_SHARE + (1 - _FILE_SHARE) * share)
    if any(place.why == CHANGED_HERE for place in places):
        relevance *= _KNOWN_SHARE  # the reader has the diff
    said = dict.fromkeys(place.why for place in reasons if place.why != _RESEMBLANCE)
    return _Run(
        path=file.path,
        first=first,
        last=last,
        relevance=round(relevance, 4),
        signals={place.why: round(place.weight, 4) for place in reversed(reasons)},
        why="; ".join(list(said)[:_MAX_REASONS]),
    )


def _distinct(places: Iterable[Reached]) -> list[Reached]:
    """Of each kind of reason the strongest place: fifty calls in a file are hardly more than three."""
    best: dict[str, Reached] = {}
    for place in sorted(places, key=lambda place: -place.weight):
        best.setdefault(place.why.partition(" ")[0], place)
    return list(best.values())


def _together(places: Iterable[Reached]) -> float:
    """The probability that one of several places matters, as if each was independent of the others."""
    return 1 - math.prod(1 - min(0.95, place.weight) for place in places)


def with_owners(
    options: ContextBuildOptions, change: Change, store: SearchedStore, filters: Filters
) -> ContextBuildOptions:
    """The options with a last line that names the owners of the changed files."""
    if owned := owners(change, store, filters):
        line = f"Owners (CODEOWNERS): {'; '.join(owned)}"
        return replace(options, context_footer="\n\n".join(filter(None, (options.context_footer, line))))
    return options


def owners(change: Change, store: SearchedStore, filters: Filters) -> list[str]:
    """The changed files with their owners by the repository's CODEOWNERS: `src/a.py: @team`."""
    text = next(filter(None, (store.text_of(path, filters) for path in _OWNER_FILES)), "")
    rules = [rule for line in text.split("\n") if (rule := line.split("#")[0].split())]
    if not rules:
        return []
    named = {hunk.path or hunk.old_path for hunk in change.hunks}
    named |= {frame.path for frame in trace_frames(change.trace)}
    consequences = Consequences(store, filters, change)
    shown = []
    # A name of a file is untrusted text, and stands here outside its piece: only plain ones are named.
    for path in sorted(filter(PLAIN_NAME.fullmatch, map(consequences.located, named)))[:_MAX_OWNED]:
        _, *found = next((rule for rule in reversed(rules) if _owns(rule[0], path)), [""])
        if names := [name for name in found if _OWNER.fullmatch(name)]:
            shown.append(f"{path}: {' '.join(names)}")
    return shown


def _owns(pattern: str, path: str) -> bool:
    """True if a line of CODEOWNERS is for a path; its patterns are those of .gitignore without `!`."""
    anchored = pattern.startswith("/") or "/" in pattern.rstrip("/")
    glob = pattern.strip("/")
    globs = [glob, f"{glob}/**"] if anchored else [f"**/{glob}", f"**/{glob}/**"]
    with suppress(ValueError):
        return matches(path, globs[1:] if pattern.endswith("/") else globs)
    return False
