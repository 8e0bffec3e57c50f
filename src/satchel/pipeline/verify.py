"""Checks an answer against the context it was given.

Do its numbers exist, do its quotes stand in the sources they cite, and which sentences cite nothing?
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias, runtime_checkable

from satchel.errors import InvalidInput
from satchel.model.citation import CitableSource, CitationFinding, CitationProblem, CitationReport, UncitedSentence
from satchel.model.payload import ContextPayload
from satchel.model.result import ContextBuildResult
from satchel.text.citations import Citation, citations, without, without_code
from satchel.text.quotations import Quotation, Quoted, block_quotations, folded, quotations
from satchel.text.statements import Statement, statements

_SENTENCE_END: Final = re.compile(r"[.!?。]\s|\n")
_STATED_PLACE: Final = re.compile(r"(?:(?P<name>.*?)(?:,\s*|\s+|^))?p(?:age|\.)\s*(?P<page>\d{1,6})\s*", re.IGNORECASE)
_NAMES_A_FILE: Final = re.compile(r"\.\w{1,5}$")
_BLANKS: Final = re.compile(r"[ \t]*(?:\n[ \t]*)?")
_LEAST_UNCITED_QUOTE: Final = 25
"""Shorter ones are mostly terms and irony ("smart" retries), which quote nobody."""


@runtime_checkable
class HasCitableSources(Protocol):
    """A context that says what it showed under which number."""

    def citable_sources(self) -> Iterable[CitableSource]:
        """What was shown, by number."""
        ...


Citable: TypeAlias = ContextBuildResult | ContextPayload | HasCitableSources | Iterable[CitableSource]
"""Whatever an answer can be checked against."""


def verify(answer: str, context: Citable) -> CitationReport:
    """What is wrong with the answer's citations: unknown numbers, and quotes that no cited source holds.

    Sentences that state something and cite nothing are listed as well, and so are long quotes without a citation that
    no source holds; whether those are wrong is for a reader to say.
    """
    if not isinstance(answer, str):
        raise InvalidInput("answer", answer, "must be text")
    shown = _Shown(citable_sources(context))
    prose = without_code(answer)
    cited = citations(prose)
    findings: list[CitationFinding] = []
    warnings: list[CitationFinding] = []
    for finding in _findings(answer, prose, cited, shown):
        is_advice = finding.problem is CitationProblem.QUOTE_NOT_IN_ANY_SOURCE
        (warnings if is_advice else findings).append(finding)
    used = {number for citation in cited for number in citation.numbers} & shown.numbers
    return CitationReport(
        tuple(sorted(used)),
        tuple(sorted(shown.numbers - used)),
        tuple(sorted(findings, key=lambda finding: finding.position)),
        tuple(sorted(warnings, key=lambda finding: finding.position)),
        tuple(_uncited(answer, without(prose, cited), cited)),
    )


def citable_sources(context: Citable) -> tuple[CitableSource, ...]:
    """What a context showed, by number."""
    if isinstance(context, ContextBuildResult):
        return tuple(
            CitableSource(source.number, text, source.name, source.file, source.page)
            for source, text in zip(context.sources, context.shown, strict=True)
        )
    if isinstance(context, ContextPayload):
        return tuple(
            CitableSource(item.number, item.content, item.metadata.page_title or item.block_id, item.file_path or None)
            for item in context.items
            if item.number
        )
    if isinstance(context, HasCitableSources):
        return tuple(context.citable_sources())
    sources = tuple(context) if isinstance(context, Iterable) else (context,)
    if not all(isinstance(source, CitableSource) for source in sources):
        raise InvalidInput("context", context, "must be a context, or sources that can be cited")
    return sources


class _Shown:
    """What was shown, ready to be searched."""

    def __init__(self, sources: Iterable[CitableSource]) -> None:
        self.by_number: dict[int, list[CitableSource]] = {}
        for source in sources:
            self.by_number.setdefault(source.number, []).append(source)
        self.numbers = frozenset(self.by_number)
        self._texts: dict[int, Quoted] = {}

    def holds(self, number: int, quote: str) -> bool:
        """Whether a source holds a quotation: in its text, its name or its path."""
        if number not in self._texts:
            told = [f"{source.name}\n{source.file or ''}\n{source.text}" for source in self.by_number[number]]
            self._texts[number] = Quoted("\n".join(told))
        return self._texts[number].holds(quote)

    def holding(self, quote: str) -> tuple[int, ...]:
        """The numbers of all sources that hold it."""
        return tuple(number for number in sorted(self.numbers) if self.holds(number, quote))


def _findings(answer: str, prose: str, cited: list[Citation], shown: _Shown) -> Iterator[CitationFinding]:
    for citation in cited:
        text = answer[citation.start : citation.end]
        unknown = tuple(number for number in citation.numbers if number not in shown.numbers)
        if unknown:
            yield CitationFinding(CitationProblem.UNKNOWN_NUMBER, text, citation.start, unknown)
        elif citation.place and not _is_there(citation, shown.by_number):
            yield CitationFinding(CitationProblem.OTHER_PLACE, text, citation.start, citation.numbers)
    starts = [citation.start for citation in cited]
    bare = without(prose, cited)
    for quote in quotations(answer, prose):
        near = (*_cited_after(prose, quote.end, cited, starts), *_cited_before(prose, quote.start, cited, starts))
        yield from _misquoted(quote, near, shown)
    for block in block_quotations(answer, bare):
        first, last = bisect_left(starts, block.start), bisect_left(starts, block.end)
        inside = [number for citation in cited[first:last] for number in citation.numbers]
        words = without(block.text, citations(without_code(block.text)))
        yield from _misquoted(block._replace(text=words), inside, shown) if inside else ()


def _misquoted(quote: Quotation, cited: Iterable[int], shown: _Shown) -> Iterator[CitationFinding]:
    """What is wrong with a quote that cites those numbers."""
    numbers = tuple(dict.fromkeys(cited))
    known = tuple(number for number in numbers if number in shown.numbers)
    if known:
        if not any(shown.holds(number, quote.text) for number in known):
            problem, found_in = CitationProblem.QUOTE_NOT_IN_SOURCE, shown.holding(quote.text)
            yield CitationFinding(problem, quote.text, quote.start, known, found_in)
    elif not numbers and len(folded(quote.text)) >= _LEAST_UNCITED_QUOTE and not shown.holding(quote.text):
        yield CitationFinding(CitationProblem.QUOTE_NOT_IN_ANY_SOURCE, quote.text, quote.start, ())


def _cited_after(prose: str, position: int, cited: list[Citation], starts: list[int]) -> tuple[int, ...]:
    """The numbers of the first citation after the quote, and of those that stand right behind it."""
    first = bisect_left(starts, position)
    if first == len(cited):
        return ()
    between = prose[position : starts[first]]
    # `"…". [1]` belongs together although a sentence ends in between.
    if between.strip(" .,;:!?") and _SENTENCE_END.search(between):
        return ()
    numbers = list(cited[first].numbers)
    for before, after in zip(cited[first:], cited[first + 1 :], strict=False):
        if prose[before.end : after.start].strip(" ,"):
            break
        numbers += after.numbers
    return tuple(dict.fromkeys(numbers))


def _cited_before(prose: str, position: int, cited: list[Citation], starts: list[int]) -> tuple[int, ...]:
    """The numbers of the last citation before the quote in its sentence: `[1] says "…"`."""
    last = bisect_left(starts, position) - 1
    if last < 0 or _SENTENCE_END.search(prose, cited[last].end, position):
        return ()
    return cited[last].numbers


def _is_there(citation: Citation, by_number: Mapping[int, list[CitableSource]]) -> bool:
    """Whether one of the numbers is of the file and the page that the citation states."""
    stated = _STATED_PLACE.fullmatch(citation.place)
    page = int(stated["page"]) if stated else None
    name = ((stated["name"] or "") if stated else citation.place).strip(" ,")
    sources = [source for number in citation.numbers for source in by_number[number]]
    right_page = page is None or any(source.page in (None, page) for source in sources)
    # What names no file is a remark: `[Document 2: the second report]`.
    return right_page and (not _NAMES_A_FILE.search(name) or any(_is_named(source, name) for source in sources))


def _is_named(source: CitableSource, name: str) -> bool:
    own = [folded(known) for known in (source.name, source.file or "") if known]
    return not own or any(folded(name) in known or known in folded(name) for known in own)


def _uncited(answer: str, bare: str, cited: list[Citation]) -> Iterator[UncitedSentence]:
    """The statements without a citation, between their beginning and that of the next, in their paragraph."""
    found = list(statements(bare))
    starts = [citation.start for citation in cited]
    for i, one in enumerate(found):
        reach = _reach(bare, one, found[i + 1].start if i + 1 < len(found) else len(bare))
        before = bisect_left(starts, one.start)
        if before == bisect_left(starts, reach) and not (before and _leads(bare, cited[before - 1], one)):
            yield UncitedSentence(answer[one.start : one.end], one.start)


def _reach(bare: str, statement: Statement, following: int) -> int:
    """How far the citations of a statement may stand: in the blanks after it, of its line and the next."""
    blanks = _BLANKS.match(bare, statement.end, following)
    return blanks.end() if blanks else statement.end


def _leads(bare: str, citation: Citation, statement: Statement) -> bool:
    """Whether the citation stands right before it, and begins its line but for the marker of an item."""
    before = bare[bare.rfind("\n", 0, citation.start) + 1 : citation.start]
    return not bare[citation.end : statement.start].strip() and not re.search(r"\w{2,}", before)
