"""Units that stand on their own: found lines widened to the block that names them, cut only with elision lines.

A source is a text with named spans: definitions of code, sections of a document, blocks of a page. A unit shows a span
whole, or its head and the complete statements or paragraphs around the found lines. Every gap is marked by a line such
as `⋮ 34 lines (41-74): open(), close()`, and `expand` returns exactly these lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from satchel.models.document import is_border
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.statements import CompletePart, LineRun, continues_statement, sentences_of, statements
from satchel.text.words import IDENTIFIER, terms_of

ELISION_MARK: Final = "⋮"
"""Begins every elision line; repeated where a shown line begins with the same character."""

_ELISION: Final = re.compile(r"(⋮+) (\d+) lines? \((\d+)(?:-(\d+))?\)(?:: (.*))?")

# Names in an elision line: enough to recognise the part; more would cost as much as some of the lines.
_MAX_ELIDED_NAMES: Final = 4

# A gap of so many lines costs no more than the elision line that would replace it.
_FILLED_GAP_LINES: Final = 2

# Worth of a line without a word of the question, beside 1.0 for a word: decides between runs without such words.
_ANY_LINE_WORTH: Final = 0.02

# Worth of a line that the search found, where no word of the question decides.
_FOUND_LINE_WORTH: Final = 0.1

# Of a doc comment in a head: the sentence that says what the block is; the rest is elided first.
_MAX_HEAD_DOC_LINES: Final = 3

# Longer signatures are cut at their first lines; parameters beyond are in the elision.
_MAX_SIGNATURE_LINES: Final = 12

# Lines on each side of a block that is too short to stand alone: a declaration among declarations.
_NEIGHBOURS: Final = 4

# A shorter statement counts as this long.
_MIN_STATEMENT_CHARS: Final = 160

MIN_UNIT_TOKENS: Final = 12
"""Fewer tokens of source text are a fragment: `end`, `}`, an import."""

# Characters of an elision line with the number of lines, their places and a name.
_ELISION_CHARS: Final = 50

# A shorter statement is shown only beside another, unless none is worth more: `continue` alone says nothing.
_MIN_APART_CHARS: Final = 80

# Lines above a long block's found lines in which the beginning of a statement is looked for.
_MAX_STATEMENT_LINES: Final = 100

# Lines on each side in which the ends of a found passage's sentences are looked for: sentences of contracts are long.
_MAX_SENTENCE_LINES: Final = 16

# Text between two parts of one line that costs no more than an elision line.
_FILLED_GAP_CHARS: Final = 60

# More than the columns of any line: stands for the end of the line.
_LINE_END: Final = 1 << 30

_NUMBER_OF_NAME: Final = re.compile(r"~\d+(?=\.|$)")
"""The number that tells apart blocks of the same qualified name."""

_HEADING_MARKUP: Final = re.compile(r"\s*\{[^{}]*#[^{}]*\}?\s*$|\*\*|__|`|(?<=\])\([^()\s]*\)|[\[\]]")
"""In a heading: the id at its end (`Files { #files }`), emphasis, and the targets of links."""

_LINK_TARGET: Final = re.compile(r"[\s/!*#]*\[[^\]]+\]:\s*\S+$")
"""The target of links elsewhere in the text: it repeats their words and explains nothing."""

CLOSING: Final = ")]};"
"""Characters of a line that only ends something."""
_SPACE: Final = re.compile(r"\s+")
_NOT_A_SIGNATURE: Final = re.compile(r"\s*(?://|/\*|\*|--|;|#(?!\[)|\"\"\"|'''|@(?:doc|moduledoc|spec|impl)\b)")


class Elision(NamedTuple):
    """Lines left out of a unit, and the names of the blocks in these lines."""

    first: int
    last: int
    names: tuple[str, ...] = ()

    @property
    def line_count(self) -> int:
        """The number of lines left out."""
        return self.last - self.first + 1

    def render(self, mark: str = ELISION_MARK) -> str:
        """The elision line."""
        lines = "1 line" if self.line_count == 1 else f"{self.line_count} lines"
        where = str(self.first) if self.line_count == 1 else f"{self.first}-{self.last}"
        return f"{mark} {lines} ({where})" + (f": {', '.join(self.names)}" if self.names else "")


def elisions_in(text: str, whole: str | None = None) -> list[Elision]:
    """The elisions in the text of a unit whose heading says that lines are not shown.

    Elision lines are those with the longest mark: a source line that looks like an elision has a shorter one. `whole`
    is the text of the unit if `text` is a part of it: the part may have lost the line with the longest mark.
    """
    matches = _elision_lines(text)
    longest = max((len(match[1]) for match in (matches if whole is None else _elision_lines(whole))), default=0)
    return [
        Elision(int(match[3]), int(match[4] or match[3]), tuple(match[5].split(", ")) if match[5] else ())
        for match in matches
        if len(match[1]) == longest
    ]


def _elision_lines(text: str) -> list[re.Match[str]]:
    return [match for line in text.split("\n") if (match := _ELISION.fullmatch(line))]


def elided_lines(elisions: Iterable[Elision]) -> int:
    """The number of lines that the elisions stand for; a line that is shown in part may be in two of them."""
    return len({line for elision in elisions for line in range(elision.first, elision.last + 1)})


class CutElisions(NamedTuple):
    """The lines that the elisions in a part of a unit stand for, and how many more the cut left out unseen."""

    elided: int
    unmarked: int
    """Lines behind elision lines that were cut away, less these elision lines themselves."""


def cut_elisions(unit: str, elided: int, part: str) -> CutElisions:
    """What becomes of the elisions of a unit (`elided` lines) of which only a part is shown."""
    if not elided:
        return CutElisions(0, 0)
    left = elisions_in(part, unit)
    still_elided = elided_lines(left)
    return CutElisions(still_elided, elided - still_elided - (len(elisions_in(unit)) - len(left)))


@dataclass(eq=False)
class SourceText:
    """The lines of a source and its named spans, in order of their first lines, outer spans first."""

    lines: Sequence[str]
    spans: Sequence[OutlineBlock] = ()
    is_prose: bool = False
    tokens_per_char: float = 0.0
    """Measured on a part of the text, for estimates before counting; 0 until then."""
    small_chars: int = 800
    """A file, class or section of up to so many characters (about 200 tokens) is shown as one."""
    numbers: Sequence[int] = ()
    """The number of each line in the text that `expand` returns, if `lines` are only some of it; empty for all."""
    _parts: dict[LineRun, list[CompletePart]] = field(default_factory=dict)

    def parts(self, lines: LineRun) -> list[CompletePart]:
        """The complete parts of some lines: an excerpt of every size is chosen among the same ones."""
        known = self._parts.get(lines)
        if known is None:
            known = self._parts[lines] = statements(self.lines, lines.first, lines.last, is_prose=self.is_prose)
        return known

    def number(self, line: int) -> int:
        """The number of a line as `expand` counts lines."""
        return self.numbers[line - 1] if self.numbers else line

    def innermost(self, line: int) -> int:
        """The index of the innermost span that contains the line, or -1."""
        index = bisect_right(self._firsts, line) - 1
        while index >= 0 and self.spans[index].last_line < line:
            index = self.spans[index].parent
        return index

    def page(self, line: int) -> LineRun:
        """The lines of the page around a line; all lines of a source without pages."""
        after = bisect_left(self._borders, line)
        first = self._borders[after - 1] + 1 if after else 1
        last = self._borders[after] - 1 if after < len(self._borders) else len(self.lines)
        return LineRun(min(first, line), max(last, line))

    @cached_property
    def whole(self) -> LineRun:
        """All lines, without blank lines at the ends and closing brackets at the beginning."""
        return self.without_blank_ends(LineRun(1, max(1, len(self.lines))), CLOSING)

    @property
    def has_pages(self) -> bool:
        """True for a document with pages."""
        return bool(self._borders)

    def is_border(self, line: int) -> bool:
        """True for a line between two pages."""
        return line in self._borders

    @cached_property
    def _borders(self) -> list[int]:
        """The numbers of the lines between the pages of a document."""
        return [number for number, line in enumerate(self.lines, 1) if is_border(line)] if self.is_prose else []

    def inside(self, lines: LineRun) -> range:
        """The indexes of the spans that begin in the lines."""
        return range(bisect_left(self._firsts, lines.first), bisect_right(self._firsts, lines.last))

    def name(self, span: OutlineBlock) -> str:
        """The qualified name of a definition, or the trail of headings to a section."""
        if not self.is_prose or not span.name:
            return self.plain(span.qualified)
        trail = [span.name]
        while span.parent != WHOLE_FILE:
            span = self.spans[span.parent]
            if trail[-1].endswith(f" {span.name}"):
                continue  # a bookmark without the number of its section: `Usage` above `3.3 Usage`
            if trail[-1].strip("`") in span.name.strip("`"):
                trail.pop()  # a document's page is called by its whole trail
            trail.append(span.name)
        return " › ".join(map(plain_heading, reversed(trail)))

    @staticmethod
    def plain(qualified: str) -> str:
        """A qualified name as written in the source: without the numbers that tell apart blocks of the same name."""
        return _NUMBER_OF_NAME.sub("", qualified)

    def members(self, index: int) -> list[int]:
        """The indexes of the spans directly inside a span."""
        span = self.spans[index]
        return [i for i in self.inside(LineRun(span.first_line, span.last_line)) if self.spans[i].parent == index]

    def size(self, span: OutlineBlock) -> int:
        """The number of characters of a span."""
        return self.chars(LineRun(span.first_line, span.last_line))

    def chars(self, run: LineRun) -> int:
        """The number of characters of a run of lines, with their line ends."""
        cut = len(self.lines[run.last - 1]) - run.end if run.end else 0
        return self._offsets[run.last] - self._offsets[run.first - 1] - run.start - cut

    @cached_property
    def _offsets(self) -> list[int]:
        """The number of characters before each line."""
        return [length + number for number, length in enumerate(accumulate(map(len, self.lines), initial=0))]

    def without_blank_ends(self, lines: LineRun, ignored: str = "") -> LineRun:
        """The lines without blank lines at the ends, and without lines of `ignored` characters at the beginning."""
        first, last = lines.first, lines.last
        while first < last and not self.lines[first - 1].strip(f" \t\r\n{ignored}"):
            first += 1
        while last > first and not self.lines[last - 1].strip():
            last -= 1
        return LineRun(first, last, lines.start if first == lines.first else 0, lines.end if last == lines.last else 0)

    def paragraph(self, lines: LineRun) -> LineRun:
        """The lines with the lines of text right above and below them, a few on each side."""
        first, last = lines.first, lines.last
        while first > max(1, lines.first - _NEIGHBOURS) and self.lines[first - 2].strip():
            first -= 1
        while last < min(len(self.lines), lines.last + _NEIGHBOURS) and self.lines[last].strip():
            if _NOT_A_SIGNATURE.match(self.lines[last]):
                break  # the comment of the next block
            last += 1
        return self.without_blank_ends(LineRun(first, last), CLOSING)

    def completed(self, lines: LineRun) -> LineRun:
        """The lines up to the end of every span that begins in them."""
        return LineRun(lines.first, max([lines.last, *(self.spans[index].last_line for index in self.inside(lines))]))

    def with_neighbour(self, lines: LineRun, most_chars: int) -> LineRun:
        """The lines up to the end of the next block, or from the beginning of the block before, if it is short."""
        for index in self.inside(LineRun(lines.last + 1, len(self.lines)))[:1]:
            joined_lines = LineRun(lines.first, self.spans[index].last_line)
            if self.chars(joined_lines) <= most_chars:
                return joined_lines
        before = [span for span in self.spans if span.last_line < lines.first]
        joined_lines = LineRun(before[-1].first_line, lines.last) if before else lines
        return joined_lines if self.chars(joined_lines) <= most_chars else lines

    def statement_start(self, line: int, first: int) -> int:
        """The line, or a line above it (`first` at most), where a statement of the block begins: the least indented."""
        if self.is_prose:
            return line
        above = range(line, max(first, line - _MAX_STATEMENT_LINES) - 1, -1)
        indents = {number: _indent_of(self.lines[number - 1]) for number in above if self.lines[number - 1].strip()}
        least = min(indents.values(), default=0)
        # The head of the block is less indented than its statements.
        most = (
            min((indent for indent in indents.values() if indent > least), default=least) if first in above else least
        )
        begins = (number for number, indent in indents.items() if indent <= most)
        return next((number for number in begins if not continues_statement(self.lines[number - 1])), line)

    @cached_property
    def _firsts(self) -> list[int]:
        return [span.first_line for span in self.spans]

    def text(self, run: LineRun) -> str:
        """The text of a run of lines."""
        lines = list(self.lines[run.first - 1 : run.last])
        if run.end:
            lines[-1] = lines[-1][: run.end].rstrip()
        if run.start:
            lines[0] = lines[0][run.start :].lstrip()
        return "\n".join(lines)

    def sentences(self, lines: LineRun) -> LineRun:
        """The lines widened to whole sentences, within the paragraph."""
        first, last, page = lines.first, lines.last, self.page(lines.first)
        while first > max(page.first, lines.first - _MAX_SENTENCE_LINES) and self.lines[first - 2].strip():
            first -= 1
        while last < min(page.last, lines.last + _MAX_SENTENCE_LINES) and self.lines[last].strip():
            last += 1
        parts = sentences_of(self.lines, first, last)
        # A sentence that only ends on the first line, or only begins on the last, is not among the found lines.
        inside = [part for part in parts if part.last > lines.first or part.first >= lines.first]
        inside = [part for part in inside if part.first < lines.last or part.last <= lines.last]
        if not inside:
            return lines
        return LineRun(inside[0].first, inside[-1].last, inside[0].start, inside[-1].end)

    def head(self, span: OutlineBlock) -> list[LineRun]:
        """The lines that name a span: a heading; a signature, and the beginning of the comment or docstring."""
        if self.is_prose or not span.signature:
            return [LineRun(span.first_line, span.first_line)]
        signature = self._signature(span)
        doc_last = min(signature.first - 1, span.first_line + _MAX_HEAD_DOC_LINES - 1)
        head = [LineRun(span.first_line, doc_last)] if doc_last >= span.first_line else []
        last = signature.last
        if last < span.last_line and self.lines[last].lstrip().startswith(('"""', "'''", 'r"""')):
            last = self._docstring_end(last + 1, span.last_line)
        return [*head, LineRun(signature.first, last)]

    def _docstring_end(self, first: int, last: int) -> int:
        """The last line of the docstring's first paragraph."""
        quote = self.lines[first - 1].lstrip().lstrip("rR")[:3]
        for line in range(first, min(last, first + _MAX_HEAD_DOC_LINES) + 1):
            text = self.lines[line - 1]
            if text.count(quote) >= (2 if line == first else 1) or not text.strip():
                return line if text.strip() else line - 1
        return first

    def _signature(self, span: OutlineBlock) -> LineRun:
        """The lines of the signature: the first lines whose text begins the stored signature."""
        wanted = span.signature
        for line in range(span.first_line, span.last_line + 1):
            text = self.lines[line - 1]
            if _NOT_A_SIGNATURE.match(text) or not (words := _squeezed(text)):
                continue
            if wanted.startswith(words) or words.startswith(wanted):
                last, length = line, len(words)
                while last < min(span.last_line, line + _MAX_SIGNATURE_LINES) and length + 1 < len(wanted):
                    last += 1
                    length += 1 + len(_squeezed(self.lines[last - 1]))
                return LineRun(line, last)
        return LineRun(span.first_line, span.first_line)


def plain_heading(title: str) -> str:
    """A heading without markup."""
    return _HEADING_MARKUP.sub("", title).strip() or title


def _squeezed(line: str) -> str:
    return _SPACE.sub(" ", line).strip(" {:=")


def joined(runs: Iterable[LineRun], source: SourceText) -> list[LineRun]:
    """The runs in order, overlapping runs merged, and gaps filled that cost no more than an elision line."""
    merged: list[LineRun] = []
    for run in sorted(map(source.without_blank_ends, runs)):
        if merged and not _is_apart(source, merged[-1], run):
            before, last = merged[-1], max(merged[-1], run, key=lambda part: (part.last, part.end or _LINE_END))
            merged[-1] = LineRun(before.first, last.last, before.start, last.end)
        else:
            merged.append(run)
    return merged


def _is_apart(source: SourceText, before: LineRun, after: LineRun) -> bool:
    """True if an elision line between the runs costs less than the text between them."""
    if after.first <= before.last:
        return bool(before.last == after.first and before.end and after.start - before.end > _FILLED_GAP_CHARS)
    return lines_between(source, before, after) > _FILLED_GAP_LINES


def lines_between(source: SourceText, before: LineRun, after: LineRun) -> int:
    """The number of lines with text between two runs."""
    return sum(bool(line.strip()) for line in source.lines[before.last : after.first - 1])


class UnitText(NamedTuple):
    """The text of a unit with its elision lines, the lines it stands for, and how many of them are left out."""

    text: str
    first: int
    last: int
    shown: Sequence[LineRun]
    elided: int = 0


def unit_text(source: SourceText, around: LineRun, runs: Sequence[LineRun]) -> UnitText:
    """The text of the runs within `around`, with an elision line for each gap."""
    runs = joined(runs, source)
    first, last = around.first, around.last
    # At the ends, blank lines are not missed, and a short line costs less than the elision line in its place.
    if _costs_less_than_elision(source, before := LineRun(first, runs[0].first - 1)):
        first = runs[0].first if _is_blank(source, before) else first
        runs[0] = LineRun(first, runs[0].last, 0 if first < runs[0].first else runs[0].start, runs[0].end)
    if _costs_less_than_elision(source, after := LineRun(runs[-1].last + 1, last)):
        last = runs[-1].last if _is_blank(source, after) else last
        runs[-1] = LineRun(runs[-1].first, last, runs[-1].start, 0 if last > runs[-1].last else runs[-1].end)
    # A line that is shown in part counts as left out: `expand` returns it whole.
    gaps = [
        LineRun(first_missing, last_missing)
        for before, after in pairwise([LineRun(0, first - 1), *runs, LineRun(last + 1, last + 1)])
        if (first_missing := before.last + (not before.end)) <= (last_missing := after.first - (not after.start))
    ]
    if not gaps:
        return UnitText(source.text(LineRun(first, last)), first, last, [LineRun(first, last)])
    mark = ELISION_MARK * (
        1 + max(_mark_length(line) for run in runs for line in source.lines[run.first - 1 : run.last])
    )
    elisions = [_elision(source, gap) for gap in gaps]
    parts: list[str] = []
    missing = deque(zip(gaps, elisions, strict=True))
    for run in [*runs, None]:
        if missing and (run is None or missing[0][0].first <= run.first):
            parts.append(missing.popleft()[1].render(mark))
        if run is not None:
            parts.append(source.text(run))
    return UnitText("\n".join(parts), first, last, runs, elided_lines(elisions))


def _is_blank(source: SourceText, lines: LineRun) -> bool:
    return not any(line.strip() for line in source.lines[lines.first - 1 : lines.last])


def _costs_less_than_elision(source: SourceText, lines: LineRun) -> bool:
    """True for blank lines, and for a single short line among them."""
    texts = [line for line in source.lines[lines.first - 1 : lines.last] if line.strip()]
    return len(texts) <= 1 and sum(map(len, texts)) <= _FILLED_GAP_CHARS


def on_its_own(source: SourceText, around: LineRun, runs: Sequence[LineRun]) -> tuple[LineRun, list[LineRun]]:
    """The lines widened to the blocks that they begin or end inside, and the runs with the head of the block around.

    Without it, lines from the middle of a block would look like a block of their own.
    """
    runs = list(runs)
    around = LineRun(min(around.first, *(run.first for run in runs)), max(around.last, *(run.last for run in runs)))
    page, index = source.page(around.first), source.innermost(around.first)
    if index != WHOLE_FILE and page.first <= source.spans[index].first_line < around.first:
        span = source.spans[index]
        around = LineRun(span.first_line, max(around.last, span.last_line))
        runs = [*source.head(span), *runs]
    return LineRun(around.first, min(source.completed(around).last, max(around.last, page.last))), runs


def _mark_length(line: str) -> int:
    line = line.lstrip()
    return len(line) - len(line.lstrip(ELISION_MARK))


def _elision(source: SourceText, gap: LineRun) -> Elision:
    """The elision of a gap, with the names of the outermost spans that begin and end in the gap."""
    inside = {index for index in source.inside(gap) if source.spans[index].last_line <= gap.last}
    outermost = (source.spans[index] for index in sorted(inside) if source.spans[index].parent not in inside)
    names = tuple(dict.fromkeys(_title(span, source) for span in outermost if span.name))
    if len(names) > _MAX_ELIDED_NAMES:
        names = (*names[:_MAX_ELIDED_NAMES], "…")
    return Elision(source.number(gap.first), source.number(gap.last), names)


_CALLABLE: Final = frozenset({"function", "method", "macro"})


def _title(span: OutlineBlock, source: SourceText) -> str:
    title = span.name.replace(", ", " ").strip()
    if source.is_prose:
        return plain_heading(title)
    return f"{title}()" if span.type in _CALLABLE else title


@dataclass(eq=False)
class LineWorths:
    """The worth of lines for a question: the weights of the question's terms in them."""

    asked: Mapping[str, float]
    """The terms of the question with their weights."""
    _words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The terms of the question in each word."""
    _lines: dict[str, float] = field(default_factory=dict)
    """The worth of each line so far."""

    @cached_property
    def _beginnings(self) -> re.Pattern[str]:
        """Matches a line that may have a term of the question: the beginnings of the terms, which stemming keeps."""
        beginnings = sorted({re.escape(term[: max(2, min(4, len(term) - 1))]) for term in self.asked}) or [r"(?!)"]
        return re.compile("|".join(beginnings))

    def _of(self, line: str) -> float:
        if _LINK_TARGET.match(line):
            return 0.0
        if line.isascii() and not self._beginnings.search(line.lower()):
            return _ANY_LINE_WORTH if line.strip() else 0.0  # most lines: not worth their words
        found: set[str] = set()
        for word in IDENTIFIER.findall(line):
            matching = self._words.get(word)
            if matching is None:
                matching = self._words[word] = tuple(term for term in terms_of(word) if term in self.asked)
            found.update(matching)
        return sum([self.asked[term] for term in found], _ANY_LINE_WORTH if line.strip() else 0.0)

    def of_run(self, source: SourceText, run: LineRun, found: Sequence[LineRun] = ()) -> float:
        """The worth of a run of lines, with a little more for the lines that the search found."""
        is_whole = not (run.start or run.end)
        known, total = self._lines, 0.0
        for line in source.lines[run.first - 1 : run.last] if is_whole else source.text(run).split("\n"):
            worth = known.get(line)
            if worth is None:
                worth = known[line] = self._of(line)
            total += worth
        return total + _FOUND_LINE_WORTH * sum(run.shared_lines(part) for part in found)


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def best_runs(
    source: SourceText, block: LineRun, head: Sequence[LineRun], worth_of: Callable[[LineRun], float], room: int
) -> list[LineRun]:
    """The head and the most valuable complete statements within `room` characters, as runs of lines.

    A statement beside a chosen one needs no elision line, so it is preferred to an equal statement elsewhere, and a
    short one is shown nowhere else unless none is worth more.
    """
    parts = [part for gap in _between(head, block) for part in source.parts(gap)]
    chosen = _Chosen(source, room)
    for run in head:
        chosen.add(run)
    worths = [worth_of(part.lines) for part in parts]
    most = max(worths, default=0.0)
    order = [
        (-_density(source, part.lines, worth_of, apart=place > 0), place)
        for place, part in enumerate(parts)
        if not place or worths[place] >= most or source.chars(part.lines) >= _MIN_APART_CHARS
    ]
    heapify(order)
    taken: set[int] = set()
    while order:
        _, place = heappop(order)
        if place not in taken and chosen.add_if_room(parts[place]):
            taken.add(place)
            for beside in (place - 1, place + 1):
                if 0 <= beside < len(parts) and beside not in taken:
                    heappush(order, (-_density(source, parts[beside].lines, worth_of, apart=False), beside))
    if len(chosen.runs) == len(head):
        chosen.add_first_lines(parts)
    return chosen.runs or [LineRun(block.first, block.first)]


def _between(head: Sequence[LineRun], block: LineRun) -> Iterator[LineRun]:
    """The lines of a block that are not in its head, from the head's first line on."""
    last = min((run.first for run in head), default=block.first) - 1
    for run in (*head, LineRun(block.last + 1, block.last + 1)):
        if max(last + 1, block.first) < run.first:
            yield LineRun(max(last + 1, block.first), run.first - 1)
        last = max(last, run.last)


def _density(source: SourceText, lines: LineRun, worth_of: Callable[[LineRun], float], *, apart: bool) -> float:
    """The worth of some lines per character, with the elision line if they stand apart from other shown lines.

    A short statement is not better for being short.
    """
    return worth_of(lines) / (max(_MIN_STATEMENT_CHARS, source.chars(lines)) + _ELISION_CHARS * apart)


@dataclass(eq=False)
class _Chosen:
    """Runs of lines, within a number of characters."""

    source: SourceText
    room: int
    runs: list[LineRun] = field(default_factory=list)

    def add(self, run: LineRun) -> None:
        self.runs.append(run)
        self.room -= self.source.chars(run)

    def add_if_room(self, statement: CompletePart) -> bool:
        """Add a statement with the heads of the statements around it; False if they do not fit."""
        needed = [statement.lines]
        parent = statement.parent
        while parent is not None:
            if parent.lines not in self.runs:
                needed.append(parent.lines)
            parent = parent.parent
        if sum(map(self.source.chars, needed)) > self.room:
            return False
        for run in needed:
            self.add(run)
        return True

    def add_first_lines(self, parts: Sequence[CompletePart]) -> None:
        """Add the first lines of a block whose statements are all longer than the room."""
        lines = range(parts[0].lines.first, parts[-1].lines.last + 1) if parts else range(0)
        for line in lines:
            if len(self.source.lines[line - 1]) >= self.room:
                break
            self.add(LineRun(line, line))
