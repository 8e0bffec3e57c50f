"""What is wrong with an answer's citations, in words for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.models.citation import CitationProblem
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel.models.citation import CitableSource, CitationFinding, UncitedSentence

_SHOWN_CHARS: Final = 80


def place_in(text: str, position: int) -> str:
    """`line:column` of a position, both from 1."""
    before = text[:position]
    return f"{before.count(chr(10)) + 1}:{position - before.rfind(chr(10))}"


def told(finding: CitationFinding, sources: Sequence[CitableSource]) -> str:
    """A finding in words, on one line."""
    text = shortened(finding.text)
    match finding.problem:
        case CitationProblem.UNKNOWN_NUMBER:
            numbers = [source.number for source in sources]
            known = f"they are {min(numbers)} to {max(numbers)}" if numbers else "there are none"
            return f"{text}: no source has the number {_listed(finding.numbers)} ({known})"
        case CitationProblem.QUOTE_NOT_IN_SOURCE:
            instead = f", but it does in {_cited(finding.found_in)}" if finding.found_in else ""
            return f'"{text}" does not stand in {_cited(finding.numbers)}{instead}'
        case CitationProblem.OTHER_PLACE:
            places = ", ".join(_place(source) for source in sources if source.number in finding.numbers)
            return f"{text}: {_cited(finding.numbers)} is {shortened(places)}"
        case CitationProblem.QUOTE_NOT_IN_ANY_SOURCE:
            return f'"{text}" stands in no source'


def told_uncited(sentence: UncitedSentence) -> str:
    """An uncited sentence in words, on one line."""
    return f"cites no source: {shortened(sentence.text)}"


def shortened(text: str) -> str:
    """The text on one line that hides nothing, and not too long."""
    line = make_visible_line(" ".join(text.split())).text
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1].rstrip()}…"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _cited(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


def _place(source: CitableSource) -> str:
    file = source.file or source.name
    return f"{file}, page {source.page}" if source.page else file
