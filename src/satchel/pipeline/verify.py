"""Checks an answer against the context it was given: do its numbers exist, and do its quotes stand in their sources?"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from satchel.errors import InvalidInput
from satchel.model.citation import CitationFinding, CitationProblem, CitationReport
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from satchel.model.result import ContextBuildResult

# `[1]`, `[1, 3]`, `[2-4]`, `[1][2]`, also right behind a word (`forever[5].`) where a clause ends after it;
# not `x[1] + 2`, which is an index, nor `[1](…)`, which is a link.
_NUMBERS = r"\[(\d{1,6}(?:\s*[-–,;]\s*\d{1,6})*)\]"
_RUN = _NUMBERS.replace("(", "(?:", 1)
_CITATION: Final = re.compile(_NUMBERS)
_CITATIONS: Final = re.compile(
    rf"(?<![\])_\d])(?:(?<!\w)(?:{_RUN})+(?!\()|(?<=[^\W_\d]{{3}})(?:{_RUN})+(?=[.,;:!?)]|\s*$))", re.MULTILINE
)
_CODE: Final = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL,
)
# Of one line and at most so long; without that bound many opening quotes would each look for their end.
# A straight one behind a digit is an inch, not the start of a quote.
_QUOTE: Final = re.compile(
    r"(?<!\d)\"([^\"\n]{0,2000})\"|„([^„“”\n]{0,2000})[“”]|“([^“”\n]{0,2000})”|«([^«»\n]{0,2000})»"
)
_MIN_QUOTE_CHARS: Final = 3
_SENTENCE_END: Final = re.compile(r"[.!?。]\s|\n")
_DECORATION: Final = re.compile("[*_`\"'‘’‚“”„«»]")
_HYPHENS: Final = re.compile("[\u2010-\u2015\u2212]")
_WHITE_SPACE: Final = re.compile(r"\s+")

# A range such as [1-900000] is a mistake, not a request for 900,000 look-ups.
_MAX_RANGE = 1000


def verify(answer: str, result: ContextBuildResult) -> CitationReport:
    """What is wrong with the answer's citations: unknown numbers, and quotes that no cited source holds."""
    if not isinstance(answer, str):
        raise InvalidInput("answer", answer, "must be text")
    known = result.citations
    findings: list[CitationFinding] = []
    cited: set[int] = set()
    prose = _CODE.sub(lambda code: " " * len(code[0]), answer)
    marks = [
        (match.start(), match[0], numbers)
        for run in _CITATIONS.finditer(prose)
        for match in _CITATION.finditer(prose, run.start(), run.end())
        if (numbers := _numbers(match[1]))
    ]
    for start, text, numbers in marks:
        unknown = tuple(n for n in numbers if n not in known)
        cited.update(n for n in numbers if n in known)
        if unknown:
            findings.append(CitationFinding(CitationProblem.UNKNOWN_NUMBER, text, start, unknown))
    places = [(start, numbers) for start, _, numbers in marks]
    findings += _misquotes(answer, prose, places, result)
    findings.sort(key=lambda finding: finding.position)
    return CitationReport(tuple(sorted(cited)), tuple(sorted(known.keys() - cited)), tuple(findings))


def _numbers(inside: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in re.split(r"\s*[,;]\s*", inside):
        first, *rest = re.split(r"\s*[-–]\s*", part)
        if len(rest) > 1:
            # `[2024-01-15]` is a date, `[1-3-5]` nobody knows what; neither is a citation.
            continue
        low, high = int(first), int(rest[0] if rest else first)
        if low > high:
            # A year and a month.
            continue
        numbers += range(low, high + 1) if low <= high <= low + _MAX_RANGE else (low, high)
    # `[0, 255]` is an interval; citations begin at 1.
    return () if len(numbers) > 1 and 0 in numbers else tuple(dict.fromkeys(numbers))


def _misquotes(
    answer: str, prose: str, places: list[tuple[int, tuple[int, ...]]], result: ContextBuildResult
) -> Iterator[CitationFinding]:
    """Quotes with a citation behind or before them in their sentence that stand in none of the sources it names."""
    texts = {
        source.number: _folded(f"{source.name}\n{source.file or ''}\n{text}")
        for source, text in zip(result.sources, result.shown, strict=True)
    }
    for match in _QUOTE.finditer(prose):
        # Code in a quote is blanked for finding citations; what is compared is what was written.
        quote = answer[match.start() + 1 : match.end() - 1]
        if len(quote.strip()) < _MIN_QUOTE_CHARS:
            continue
        numbers = (
            *_cited_after(prose, match.end(), places),
            *_cited_before(prose, match.start(), places),
        )
        known = tuple(dict.fromkeys(n for n in numbers if n in texts))
        if known and not any(_holds(texts[n], quote) for n in known):
            yield CitationFinding(CitationProblem.QUOTE_NOT_IN_SOURCE, quote, match.start(), known)


def _cited_after(answer: str, position: int, places: list[tuple[int, tuple[int, ...]]]) -> tuple[int, ...]:
    """The numbers of the first citation after the quote, and of those that stand right behind it."""
    following = [place for place in places if place[0] >= position]
    if not following:
        return ()
    between = answer[position : following[0][0]]
    # `"…". [1]` belongs together although a sentence ends in between.
    if between.strip(" .,;:!?") and _SENTENCE_END.search(between):
        return ()
    numbers = list(following[0][1])
    for (before, _), (start, more) in pairwise(following):
        if answer[answer.index("]", before) + 1 : start].strip(" ,"):
            break
        numbers += more
    return tuple(dict.fromkeys(numbers))


def _cited_before(answer: str, position: int, places: list[tuple[int, tuple[int, ...]]]) -> tuple[int, ...]:
    """The numbers of the last citation before the quote in its sentence: `[1] says "…"`."""
    preceding = [place for place in places if place[0] < position]
    if not preceding or _SENTENCE_END.search(answer, answer.index("]", preceding[-1][0]), position):
        return ()
    return preceding[-1][1]


def _holds(text: str, quote: str) -> bool:
    """Whether the quote stands in the text; an ellipsis or a word in brackets stands for anything."""
    at = 0
    for part in re.split(r"\s*(?:\[[^\]]*\]|…|\.\.\.)\s*", quote):
        wanted = _folded(part).rstrip(".,;:!?")
        found = text.find(wanted, at)
        if found < 0:
            return False
        at = found + len(wanted)
    return True


def _folded(text: str) -> str:
    """The text without what people change when they quote: spaces, case, quotation marks, emphasis, hyphens."""
    shown = _DECORATION.sub("", make_visible(text).text)
    return _WHITE_SPACE.sub(" ", _HYPHENS.sub("-", shown)).strip().casefold()
