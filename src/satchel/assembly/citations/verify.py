"""Checks the citations, quotations and claims of an answer against the context.

Four questions: do the cited numbers exist, do the cited sources contain the quotes, which sentences cite nothing, and
what do the sources say about each sentence (claims.py)?
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from satchel.assembly.citations.claims import ClaimChecker
from satchel.assembly.citations.markers import Citation, citations, without, without_code
from satchel.assembly.citations.quotations import (
    Quotation,
    QuotationMatch,
    Quoted,
    block_quotations,
    folded,
    quotations,
)
from satchel.errors import InvalidInput
from satchel.models.context import (
    CitableSource,
    CitationFinding,
    CitationProblem,
    CitationReport,
    Claim,
    UncitedSentence,
    Verdict,
)
from satchel.text.boundaries import sentences

_BLANK: Final = re.compile(r"\s*$")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}(?:\s|$)|\s*(?:\*\*|__)[^*_]*[^*_.!?](?:\*\*|__)\s*$")
_RULE: Final = re.compile(r"\s{0,3}(?:=+|-{3,}|\*{3,}|_{3,})\s*$")
_UNDERLINE: Final = re.compile(r"\s{0,3}(?:=+|-{3,})\s*$")
_QUOTED: Final = re.compile(r"\s{0,3}>")
_ROW: Final = re.compile(r"\s*\|.*\|\s*$")
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS: Final = re.compile(r"\*+|__+")
_ADDRESS: Final = re.compile(r"!?\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)|<?https?://\S+")
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")

# Fewer words ("Yes.", "Not quite.") state nothing that could be cited (docs/citations.md).
_MIN_STATEMENT_WORDS: Final = 3

# Characters of scripts without spaces: about three words.
_MIN_UNSPACED_CHARS: Final = 6

_ENDS: Final = ".!?…。！？"
_CLOSERS: Final = "\"')]”’»」 \t"
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(\[\"“])(?:[A-Za-z]|[A-Za-z](?:\.[A-Za-z])+|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|ca|cf|al|Fig|Figs|Eq|Eqs|No|Nos|Vol"
    r"|pp|Sec|Ch|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)\.$",
    re.IGNORECASE,
)

_GIVEN: Final = r"(?:context|documents?|sources?|material|excerpts?|passages?)"
_TELL: Final = (
    "(?:contain|mention|say|hold|include|provide|specify|state|give|cover|answer|show|discuss|describe|address|reveal|"
    "indicate|explain|tell|have)"
)
_REFUSAL: Final = re.compile(
    rf"\b{_GIVEN}\b[^.]{{0,60}}\b(?:do|does|did)(?:\s+not|n['’]t)\s+(?:\w+\s+)?{_TELL}\b"
    rf"|\b(?:no|not enough|insufficient)\s+(?:\w+\s+)?(?:information|mention|answer|details?|evidence|data)\b"
    rf"|\bnot\s+(?:\w+\s+)?(?:mentioned|stated|specified|found|given|contained|covered|included|provided)\b[^.]{{0,40}}\b{_GIVEN}"
    r"|^\W*I\s+(?:can\s*not|can['’]?t|could\s*n[o'’]t|do\s+not|don['’]t|am\s+(?:not|unable)|was\s+(?:not|unable))\b"
    r"|^\W*(?:sorry|unfortunately|I apologi[sz]e)\b",
    re.IGNORECASE,
)
_PLEASANTRY: Final = re.compile(
    r"\W*(?:let me know|I hope|feel free|here(?:'s|’s| is| are)\b)"
    r"|\W*(?:yes|no|sure|certainly|of course)\b\W*(?:\w+\W+){0,3}$",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """Start and end of a statement in the text: a sentence, a list item or a table."""

    start: int
    end: int


def statements(prose: str) -> Iterator[Statement]:
    """The statements of an answer in which code and citations are replaced by blanks."""
    for start, end in _paragraphs(prose):
        if prose.startswith("|", start):
            yield Statement(start, end)
            continue
        for sentence in _sentences(prose, start, end):
            if _states(prose[sentence.start : sentence.end]):
                yield sentence


def _paragraphs(prose: str) -> Iterator[tuple[int, int]]:
    """Start and end of each paragraph, list item and table."""
    start = end = at = 0
    in_table = False
    for line in prose.splitlines(keepends=True):
        is_row = bool(_ROW.match(line))
        item = _LIST_ITEM.match(line)
        apart = any(kind.match(line) for kind in (_BLANK, _HEADING, _RULE, _QUOTED))
        if end > start and (apart or item or is_row != in_table):
            # An underlined line is a heading too (setext).
            if not (_UNDERLINE.match(line) and "\n" not in prose[start:end]):
                yield start, end
            start = end = at
        if not apart:
            if end <= start:
                start = at + (item.end() if item else len(line) - len(line.lstrip()))
            end = at + len(line.rstrip())
        in_table = is_row and not apart
        at += len(line)
    if end > start:
        yield start, end


def _sentences(prose: str, start: int, end: int) -> Iterator[Statement]:
    """The sentences of a paragraph; a full stop before a small letter does not end a sentence."""
    text = _EMPHASIS.sub(lambda marks: " " * len(marks[0]), prose[start:end].replace("\n", " "))
    begun = at = 0
    parts = sentences(text)
    for i, part in enumerate(parts):
        at += len(part)
        following = "".join(parts[i + 1 : i + 2]).lstrip()
        so_far = text[begun:at]
        if following and (not _is_ended(so_far) or following[0].islower()):
            continue
        sentence = so_far.strip()
        if sentence:
            first = begun + len(so_far) - len(so_far.lstrip())
            yield Statement(start + first, start + first + len(sentence))
        begun = at


def _is_ended(text: str) -> bool:
    sentence = text.rstrip(_CLOSERS)
    return sentence[-1:] in tuple(_ENDS) and not _ABBREVIATION.search(sentence[-12:])


def _states(sentence: str) -> bool:
    prose = _ADDRESS.sub(" ", sentence).strip()
    bare = prose.rstrip(_CLOSERS + "*_")
    if bare.endswith(("?", "？", ":", "：")) or _REFUSAL.search(prose) or _PLEASANTRY.match(prose):
        return False
    return len(_WORD.findall(prose)) >= _MIN_STATEMENT_WORDS or len(_UNSPACED.findall(prose)) >= _MIN_UNSPACED_CHARS


# A sentence also ends with its paragraph, list item, heading or table row, but not at a plain line break.
_SENTENCE_END: Final = re.compile(r"[.!?]\s|[。！？]|\n(?=[ \t\r]*(?:\n|[#|>]|[-*+•][ \t]|\d{1,3}[.)][ \t]))")
_HEADING_END: Final = re.compile(r"^ {0,3}#[^\n]*(\n)", re.MULTILINE)
_BETWEEN_QUOTE_AND_CITATION: Final = re.compile(r"[ \t.,;:!?。！？，、；：]{0,9}\n?[ \t]{0,9}")
_MAX_ADJACENT_CITATIONS: Final = 50  # `"…" [1][2][3]…`: bounds the time for hostile answers with endless runs
_NEXT_LINE: Final = re.compile(r"(?:[ \t\r]*\n){0,2}([^\n]*)")
_ATTRIBUTION: Final = re.compile(r"\s*(?:[-–—―(]|sources?\b)", re.IGNORECASE)
_MAX_ATTRIBUTION_CHARS: Final = 100  # a longer line beside a quote is a sentence, not a name of a source
_STATED_PLACE: Final = re.compile(r"(?:(?P<name>.*?)(?:,\s*|\s+|^))?p(?:age|\.)\s*(?P<page>\d{1,6})\s*", re.IGNORECASE)
_NAMES_A_FILE: Final = re.compile(r"\.\w{1,5}$")
_BLANKS: Final = re.compile(r"[ \t]*(?:\n[ \t]*)?")

# Shorter quotes are mostly terms and irony ("smart" retries), which quote nobody.
_MIN_UNCITED_QUOTE_CHARS: Final = 25


@runtime_checkable
class HasCitableSources(Protocol):
    """A context with numbered sources that answers can cite."""

    def citable_sources(self) -> Iterable[CitableSource]:
        """The sources with the text shown for each number."""
        ...


Citable: TypeAlias = HasCitableSources | Iterable[CitableSource]
"""A context, or its sources, against which `verify` checks an answer."""


def verify(answer: str, context: Citable) -> CitationReport:
    """Report the citation errors of an answer: unknown numbers, and quotes missing from every cited source.

    The report also lists statements without a citation, long uncited quotes found in no source, quotes with words put
    in, and each statement with what the sources say about it; a reader has to decide if these are wrong.
    """
    if not isinstance(answer, str):
        raise InvalidInput("answer", answer, "must be text")
    sources = _NumberedSources(citable_sources(context))
    prose = without_code(answer)
    cited = citations(prose, sources.highest)
    findings = sorted(_findings(answer, prose, cited, sources), key=lambda finding: finding[0].position)
    cited_statements = list(_cited_statements(answer, without(prose, cited), cited))
    used = {number for citation in cited for number in citation.numbers} & sources.numbers
    return CitationReport(
        tuple(sorted(used)),
        tuple(sorted(sources.numbers - used)),
        tuple(finding for finding, is_advice in findings if not is_advice),
        tuple(finding for finding, is_advice in findings if is_advice),
        tuple(UncitedSentence(each.text, each.start) for each in cited_statements if not each.is_cited),
        tuple(_claims(cited_statements, sources)),
    )


def citable_sources(context: Citable) -> tuple[CitableSource, ...]:
    """The sources of a context with the text shown for each number."""
    if isinstance(context, HasCitableSources):
        return tuple(context.citable_sources())
    sources = tuple(context) if isinstance(context, Iterable) else (context,)
    if not all(isinstance(source, CitableSource) for source in sources):
        raise InvalidInput("context", context, "must be a context, or a list of CitableSource values")
    return sources


class _NumberedSources:
    """The sources by number, prepared for quotation look-ups."""

    def __init__(self, sources: Iterable[CitableSource]) -> None:
        self.by_number: dict[int, list[CitableSource]] = {}
        for source in sources:
            self.by_number.setdefault(source.number, []).append(source)
        self.numbers = frozenset(self.by_number)
        self.highest = max(self.numbers, default=0)
        self._texts: dict[int, Quoted] = {}

    def holds(self, number: int, quote: str) -> QuotationMatch:
        """The match of the quotation in a source's text, name or path."""
        if number not in self._texts:
            texts = [f"{source.name}\n{source.file or ''}\n{source.text}" for source in self.by_number[number]]
            self._texts[number] = Quoted("\n".join(texts))
        return self._texts[number].holds(quote)

    def holding(self, quote: str, least: QuotationMatch = QuotationMatch.FULL) -> tuple[int, ...]:
        """The numbers of all sources with at least the match `least` for the quotation."""
        return tuple(number for number in sorted(self.numbers) if self.holds(number, quote) >= least)


# A finding, and True if the finding is only advice: a reader has to decide.
_Finding: TypeAlias = tuple[CitationFinding, bool]


def _findings(answer: str, prose: str, cited: list[Citation], sources: _NumberedSources) -> Iterator[_Finding]:
    for citation in cited:
        text = answer[citation.start : citation.end]
        unknown = tuple(number for number in citation.numbers if number not in sources.numbers)
        if unknown:
            yield CitationFinding(CitationProblem.UNKNOWN_NUMBER, text, citation.start, unknown), False
        elif citation.place and not _is_there(citation, sources.by_number):
            yield CitationFinding(CitationProblem.OTHER_PLACE, text, citation.start, citation.numbers), False
    bare = without(prose, cited)
    near = _NearbyCitations(prose, bare, cited)
    for quote in quotations(answer, prose):
        yield from _misquoted(quote, near.quotation(quote), sources)
    for block in block_quotations(answer, bare):
        if numbers := near.block(block):
            words = without(block.text, citations(without_code(block.text), sources.highest))
            yield from _misquoted(block._replace(text=words), numbers, sources)


def _misquoted(quote: Quotation, cited: Iterable[int], sources: _NumberedSources) -> Iterator[_Finding]:
    """The findings on a quote and the numbers cited for the quote."""
    numbers = tuple(dict.fromkeys(cited))
    cited_sources = tuple(number for number in numbers if number in sources.numbers)
    if cited_sources:
        match = max(sources.holds(number, quote.text) for number in cited_sources)
        if match is not QuotationMatch.FULL:
            problem, found_in = CitationProblem.QUOTE_NOT_IN_SOURCE, sources.holding(quote.text)
            yield (
                CitationFinding(problem, quote.text, quote.start, cited_sources, found_in),
                match is QuotationMatch.ALTERED,
            )
        return
    is_long = not numbers and len(folded(quote.text)) >= _MIN_UNCITED_QUOTE_CHARS
    if is_long and not sources.holding(quote.text, QuotationMatch.ALTERED):
        problem = CitationProblem.QUOTE_NOT_IN_ANY_SOURCE
        yield CitationFinding(problem, quote.text, quote.start, ()), True


class _NearbyCitations:
    """Finds the numbers cited for a quotation."""

    def __init__(self, prose: str, bare: str, cited: list[Citation]) -> None:
        self._prose, self._bare, self._cited = prose, bare, cited
        self._starts = [citation.start for citation in cited]
        ends = [end.span() for end in _SENTENCE_END.finditer(prose)]
        self._ends = sorted([*ends, *(end.span(1) for end in _HEADING_END.finditer(prose))])

    def quotation(self, quote: Quotation) -> tuple[int, ...]:
        """The numbers cited after, within and before a quotation in marks."""
        return (*self._after(quote.end), *self._between(quote.start, quote.end), *self._before(quote.start))

    def block(self, block: Quotation) -> tuple[int, ...]:
        """The numbers cited within a block quotation, else on an attribution line below, else on a line above."""
        return self._between(block.start, block.end) or self._below(block.end) or self._above(block.start)

    def _between(self, start: int, end: int) -> tuple[int, ...]:
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return tuple(number for citation in self._cited[first:last] for number in citation.numbers)

    def _after(self, position: int) -> tuple[int, ...]:
        """The numbers of the first citation after the quote, and of further citations directly behind."""
        first = bisect_left(self._starts, position)
        if first == len(self._cited):
            return ()
        # `"…". [1]` belongs together although a sentence ends in between.
        start = self._starts[first]
        if not _BETWEEN_QUOTE_AND_CITATION.fullmatch(self._prose, position, start) and self._ends_in(position, start):
            return ()
        numbers = list(self._cited[first].numbers)
        for i in range(first + 1, min(first + _MAX_ADJACENT_CITATIONS, len(self._cited))):
            if self._prose[self._cited[i - 1].end : self._starts[i]].strip(" ,"):
                break
            numbers += self._cited[i].numbers
        return tuple(dict.fromkeys(numbers))

    def _before(self, position: int) -> tuple[int, ...]:
        """The numbers of the last citation before the quote in its sentence: `[1] says "…"`."""
        last = bisect_left(self._starts, position) - 1
        if last < 0 or self._ends_in(self._cited[last].end, position):
            return ()
        return self._cited[last].numbers

    def _below(self, position: int) -> tuple[int, ...]:
        """The numbers on the line below a block quotation: only citations, or an attribution (`— the report [1]`)."""
        line = _NEXT_LINE.match(self._bare, position)
        if not line or not (numbers := self._between(*line.span(1))):
            return ()
        words = line[1].strip()
        is_attribution = len(words) <= _MAX_ATTRIBUTION_CHARS and _ATTRIBUTION.match(words)
        return numbers if is_attribution or not re.search(r"\w", words) else ()

    def _above(self, position: int) -> tuple[int, ...]:
        """The numbers on a line above a block quotation, if the line ends in a colon: `As [1] says:`."""
        last = bisect_left(self._starts, position) - 1
        if last < 0:
            return ()
        end = self._cited[last].end
        words = self._bare[end:position] if position - end <= _MAX_ATTRIBUTION_CHARS else ""
        is_led_to = words.rstrip().rstrip("*_").endswith((":", "：")) and "\n" not in words.rstrip()
        return self._cited[last].numbers if is_led_to and not self._ends_in(end, end + len(words.rstrip())) else ()

    def _ends_in(self, start: int, end: int) -> bool:
        """True if a sentence ends between the two positions."""
        at = bisect_left(self._ends, (start, 0))
        return at < len(self._ends) and self._ends[at][1] <= end


def _is_there(citation: Citation, by_number: Mapping[int, list[CitableSource]]) -> bool:
    """True if a cited source has the file name and the page stated by the citation."""
    stated = _STATED_PLACE.fullmatch(citation.place)
    page = int(stated["page"]) if stated else None
    name = ((stated["name"] or "") if stated else citation.place).strip(" ,")
    sources = [source for number in citation.numbers for source in by_number[number]]
    right_page = page is None or any(source.page in (None, page) for source in sources)
    # A place without a file name is a remark: `[Document 2: the second report]`.
    return right_page and (not _NAMES_A_FILE.search(name) or any(_is_named(source, name) for source in sources))


def _is_named(source: CitableSource, name: str) -> bool:
    source_names = [folded(source_name) for source_name in (source.name, source.file or "") if source_name]
    return not source_names or any(
        folded(name) in source_name or source_name in folded(name) for source_name in source_names
    )


class _CitedStatement(NamedTuple):
    """A statement of the answer with the numbers that it cites."""

    text: str
    start: int
    words: str
    """The text without citations."""
    is_cited: bool
    numbers: tuple[int, ...]


def _cited_statements(answer: str, bare: str, cited: list[Citation]) -> Iterator[_CitedStatement]:
    """The statements with the citations between their start and the start of the next statement."""
    all_statements, words = list(statements(bare)), without(answer, cited)
    starts = [citation.start for citation in cited]
    for i, statement in enumerate(all_statements):
        reach = _reach(bare, statement, all_statements[i + 1].start if i + 1 < len(all_statements) else len(bare))
        before, after = bisect_left(starts, statement.start), bisect_left(starts, reach)
        own = cited[before:after]
        if not own and before and _leads(bare, cited[before - 1], statement):
            own = [cited[before - 1]]
        text = answer[statement.start : statement.end]
        numbers = tuple(dict.fromkeys(number for citation in own for number in citation.numbers))
        yield _CitedStatement(text, statement.start, words[statement.start : statement.end], bool(own), numbers)


def _claims(cited_statements: Iterable[_CitedStatement], sources: _NumberedSources) -> Iterator[Claim]:
    """What the sources say about each statement; tables are not compared."""
    checker = ClaimChecker(source for each in sources.by_number.values() for source in each)
    for statement in cited_statements:
        if statement.words.startswith("|"):
            claim = Claim(text=statement.text, position=statement.start, verdict=Verdict.NOT_CHECKABLE)
        else:
            claim = checker.check(statement.text, statement.words, statement.start, statement.numbers)
        yield replace(claim, cited=statement.numbers)


def _reach(bare: str, statement: Statement, following: int) -> int:
    """The end of the blanks after a statement (up to the next line), where citations belong to the statement."""
    blanks = _BLANKS.match(bare, statement.end, following)
    return blanks.end() if blanks else statement.end


def _leads(bare: str, citation: Citation, statement: Statement) -> bool:
    """True if the citation directly precedes the statement and begins the line, apart from a list marker."""
    before = bare[bare.rfind("\n", 0, citation.start) + 1 : citation.start]
    return not bare[citation.end : statement.start].strip() and not re.search(r"\w{2,}", before)
