"""When room is short, a part of each of many pieces tells more than all of a few: the lines that were asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.retrieval.expand import lines_of, widened
from satchel.retrieval.query import understand
from satchel.text.words import terms

if TYPE_CHECKING:
    from satchel.models.options import ContextBuildOptions
    from satchel.models.search import SearchHit

_CHARS_PER_TOKEN: Final = 4
_HANDFUL: Final = 8
_LEAST_EXCERPT_CHARS: Final = 320
_PASSAGE_EXCERPT_CHARS: Final = 400
_PASSAGES_SHARE: Final = 0.85
_BEST_SHARE: Final = 0.6


class Excerpt(NamedTuple):
    """A run of lines of a piece: how many lines stand before it, how many it has, and its text."""

    before: int
    lines: int
    text: str


def excerpt(text: str, asked: Mapping[str, float], most_chars: int) -> Excerpt:
    """The run of lines within `most_chars` that says most of what was asked; at least one line, never part of one."""
    lines = text.split("\n")
    if len(text) <= most_chars:
        return Excerpt(0, len(lines), text)
    worth = [_worth(line, asked) for line in lines]
    best, best_value = (0, 1), -1.0
    first = size = 0
    value = 0.0
    for last, line in enumerate(lines):
        size += len(line) + 1
        value += worth[last]
        while size > most_chars and first < last:
            size -= len(lines[first]) + 1
            value -= worth[first]
            first += 1
        # A run that begins at the top shows what the piece is; it wins over an equal one further down.
        if value > best_value + 1e-9:
            best, best_value = (first, last + 1), value
    first, after = _whole(best, lines, most_chars)
    return Excerpt(first, after - first, "\n".join(lines[first:after]))


def _worth(line: str, asked: Mapping[str, float]) -> float:
    found = {term for term in terms(line) if term in asked}
    return sum(asked[term] for term in found) + 0.01 * bool(line.strip())


def _whole(run: tuple[int, int], lines: list[str], most_chars: int) -> tuple[int, int]:
    """Begin the run at a line that is indented no deeper than what follows, and let go of blank lines at its ends."""
    first, after = run
    size = sum(len(line) + 1 for line in lines[first:after])
    indent = min((_indent(line) for line in lines[first:after] if line.strip()), default=0)
    # Room that is left goes to the lines above, up to the head of what the run is in.
    while first > 0 and size + len(lines[first - 1]) + 1 <= most_chars:
        first -= 1
        size += len(lines[first]) + 1
        if lines[first].strip() and _indent(lines[first]) < indent:
            break
    while after < len(lines) and size + len(lines[after]) + 1 <= most_chars:
        size += len(lines[after]) + 1
        after += 1
    while first < after - 1 and not lines[first].strip():
        first += 1
    while after > first + 1 and not lines[after - 1].strip():
        after -= 1
    return first, after


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


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
