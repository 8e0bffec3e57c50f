"""What of each hit is shown: all of it, with the lines in which its sentences end, or the lines asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from satchel.retrieval.excerpts import excerpt
from satchel.retrieval.expand import lines_of, widened
from satchel.retrieval.query import understand

if TYPE_CHECKING:
    from satchel.models.options import ContextBuildOptions
    from satchel.models.search import SearchHit

_CHARS_PER_TOKEN: Final = 4
_HANDFUL: Final = 8
_LEAST_EXCERPT_CHARS: Final = 320
_PASSAGE_EXCERPT_CHARS: Final = 400
_PASSAGES_SHARE: Final = 0.85
_BEST_SHARE: Final = 0.6


def as_shown(
    question: str, hits: Sequence[SearchHit], options: ContextBuildOptions, text_of: Callable[[str], str]
) -> list[SearchHit]:
    """The hits, each with as much of it as the room is for; `text_of` gives the text of a file."""
    whole = _shown_whole(hits, options)
    return _excerpts(question, _rounded(hits, whole, text_of), whole, options)


def _shown_whole(hits: Sequence[SearchHit], options: ContextBuildOptions) -> frozenset[int]:
    """The best hit, blocks of their own, and passages for most of the room: an answer is a sentence, not a line."""
    room = options.max_tokens * _CHARS_PER_TOKEN * _PASSAGES_SHARE
    # What of a passage was asked about may stand at its end, where a cut would take it away.
    whole = set() if hits and hits[0].is_passage else {0}
    for i, hit in enumerate(hits):
        if not hit.path:
            whole.add(i)  # a block of its own is short, and is known by its id alone
        elif hit.is_passage:
            room -= len(hit.content)
            if room >= 0:
                whole.add(i)
    return frozenset(whole)


def _rounded(hits: Sequence[SearchHit], whole: frozenset[int], text_of: Callable[[str], str]) -> Sequence[SearchHit]:
    """The hits; passages that are shown whole with the lines before and after them, in which sentences end."""
    lines: dict[str, list[str]] = {}
    rounded = list(hits)
    for i, hit in enumerate(hits):
        if i in whole and hit.is_passage and not hit.reanchored:
            if hit.path not in lines:
                lines[hit.path] = lines_of(text_of(hit.path))
            first, last, text = widened(lines[hit.path], hit.start_line, hit.end_line, 1)
            name = f"{hit.path}:{first}-{last}"
            rounded[i] = replace(hit, id=name, start_line=first, end_line=last, content=text)
    return rounded


def _excerpts(
    question: str, hits: Sequence[SearchHit], whole: frozenset[int], options: ContextBuildOptions
) -> list[SearchHit]:
    """Some hits whole, and of the others as much as lets a handful of them in."""
    asked = understand(question).terms
    handful = max(_LEAST_EXCERPT_CHARS, options.max_tokens * _CHARS_PER_TOKEN // _HANDFUL)
    shown = []
    for i, hit in enumerate(hits):
        if i in whole:
            shown.append(hit)
            continue
        most = min(handful, _PASSAGE_EXCERPT_CHARS) if hit.is_passage and i else handful
        if hit.is_passage and not i:
            most = int(options.max_tokens * _CHARS_PER_TOKEN * _BEST_SHARE)
        part = excerpt(hit.content, asked, most)
        if hit.is_passage and i and _is_headings(part.text):
            continue  # a heading without what stands under it answers nothing
        first = hit.start_line + part.before
        last = first + part.lines - 1
        shown.append(
            hit
            if part.text == hit.content
            else replace(hit, id=f"{hit.path}:{first}-{last}", start_line=first, end_line=last, content=part.text)
        )
    return shown


def _is_headings(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.split("\n"))
