"""Remembers what a session was shown, so that a later context has only what is new.

A session is named by the caller, and is a user's: nothing is guessed, and two agents share it only if both name it. A
piece is left out if each of its lines was shown before in the same session, under the same number and with the same
words; after an edit it is shown again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Final

from satchel.models.context import Fate, Ledger, LedgerEntry, Reason
from satchel.text.visible import PLAIN_NAME, counted

if TYPE_CHECKING:
    from satchel.models.context import Source
    from satchel.models.options import ContextBuildOptions
    from satchel.models.results import ContextBuildResult
    from satchel.models.search import SearchHit

MAX_SESSIONS: Final = 256
"""Sessions remembered by a process; the one that was asked for longest ago is forgotten, and is shown everything."""

_MAX_LINES: Final = 100_000  # remembered of a session: some hundred contexts; then it is shown everything again
_MAX_NAMED: Final = 12  # pieces named in the line about what is left out
_ELISION: Final = re.compile(r"\s*⋮ .*?\((\d+)(?:-(\d+))?\)")


@dataclass(slots=True)
class ShownLines:
    """The lines that a session was shown: their hashes by path and number."""

    lines: dict[str, dict[int, int]] = field(default_factory=dict)
    count: int = 0

    def has(self, hit: SearchHit) -> bool:
        """True if each line of a hit was shown, as it is now."""
        shown = self.lines.get(hit.path) if hit.path else None
        if not shown:
            return False
        lines = list(enumerate(hit.content.rstrip("\n").split("\n"), start=hit.start_line))
        return all(shown.get(number) == _hash(line) for number, line in lines if line.strip())

    def add(self, sources: Iterable[Source]) -> None:
        """Remember the lines of the sources of a context."""
        if self.count > _MAX_LINES:
            self.lines, self.count = {}, 0
        for source in sources:
            if source.path and source.line and source.page is None:
                shown = self.lines.setdefault(source.path, {})
                before = len(shown)
                shown.update(_numbered(source.text, source.line, source.end_line or source.line))
                self.count += len(shown) - before


def _numbered(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The number and hash of each line that a text shows; elision lines tell which lines they stand for."""
    number = first
    for line in text.rstrip("\n").split("\n"):
        if elision := _ELISION.match(line):
            number = int(elision[2] or elision[1]) + 1
            continue
        if number > last:
            return
        yield number, _hash(line)
        number += 1


def _hash(line: str) -> int:
    return hash(line.strip())


class Sessions:
    """The sessions of a process, by user and name."""

    def __init__(self) -> None:
        self._shown: OrderedDict[tuple[str, str], ShownLines] = OrderedDict()
        self._lock = Lock()

    def of(self, user: str, name: str) -> ShownLines:
        """What the session of a user was shown."""
        with self._lock:
            shown = self._shown.setdefault((user, name), ShownLines())
            self._shown.move_to_end((user, name))
            while len(self._shown) > MAX_SESSIONS:
                self._shown.popitem(last=False)
            return shown


def without_shown(
    hits: Iterable[SearchHit], shown: ShownLines | None, options: ContextBuildOptions
) -> tuple[list[SearchHit], list[SearchHit], ContextBuildOptions]:
    """The new hits, the hits that were shown before, and the options with a last line that names these."""
    new: list[SearchHit] = []
    old: list[SearchHit] = []
    for hit in hits:
        (old if shown is not None and shown.has(hit) else new).append(hit)
    if not old:
        return new, old, options
    # A name of a file is untrusted text, and stands here outside its piece: only plain ones are named.
    named = [hit.id for hit in old if PLAIN_NAME.fullmatch(hit.id)][:_MAX_NAMED]
    more = f"{len(old) - len(named)} more" if len(old) > len(named) else ""
    line = f"Shown before in this session: {', '.join(filter(None, (*named, more)))}"
    return new, old, replace(options, context_footer="\n\n".join(filter(None, (options.context_footer, line))))


def with_shown(result: ContextBuildResult, old: Iterable[SearchHit]) -> ContextBuildResult:
    """The result with entries in the ledger for the hits that were shown before."""
    entries = [
        LedgerEntry(hit.id, Fate.DROPPED, Reason.SHOWN_BEFORE, hit.relevance, hit.relevance, collector="semantic")
        for hit in old
    ]
    if not entries:
        return result
    note = f"{counted(len(entries), 'piece')} shown before in this session left out"
    return replace(result, ledger=Ledger((*result.ledger, *entries)), notes=(*result.notes, note))
