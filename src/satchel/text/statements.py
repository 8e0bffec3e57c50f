"""Complete parts of a text, by layout alone: statements of code by indentation, paragraphs and lists of prose."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

# A longer statement (a loop, a `match`, a literal) is divided: its head, and the statements inside.
_MAX_WHOLE_LINES: Final = 12

# A longer paragraph is shown by the sentence.
_MAX_WHOLE_CHARS: Final = 400

# A longer list is shown by the item: about 300 tokens.
_MAX_WHOLE_LIST_CHARS: Final = 1200

# A shorter paragraph that is no sentence belongs to what follows: "prints", "For example".
_MIN_PARAGRAPH_CHARS: Final = 45

# A shorter sentence belongs to the next: a clause number, an abbreviation.
_MIN_SENTENCE_CHARS: Final = 25

# A longer example is shown by the statement: half of an example is of little use.
_MAX_WHOLE_EXAMPLE_LINES: Final = 30

# Nesting beyond this is shown as a whole: each level costs the head of the level.
_MAX_DEPTH: Final = 8

# A line that goes on with the statement before: a closing bracket, a branch, a chained call.
_CONTINUES: Final = re.compile(
    r"\s*(?:[)\]}>{.,?:|]|&&|\|\||(?:else|elif|elsif|elseif|except|rescue|ensure|finally|catch|end|done|fi|esac|then|do|in|of"
    r"|where|when|and|or|deriving)\b)"
)
_CLOSES: Final = re.compile(r"\s*(?:[)\]}>]+[;,)]*|end|done|fi|esac)\W*$")
"""A line that only closes the statement above."""
_LEADS: Final = re.compile(r"\s*(?://|/\*|\*|--|#|@|;|\"\"\")")
"""A line that belongs to the statement below: a comment, a decorator, an attribute."""

_PREPROCESSOR: Final = re.compile(r"#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|pragma|include|error)\b")

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?…])[\"')\]”’»]*\s+(?=[\"'“‘(\[]?[A-Z0-9])|(?<=[。！？])\s*|(?<=;)\s+(?=\(?[a-z0-9ivx]{1,4}\)|and\b|or\b)"
)
"""The end of a sentence, or of a clause of an enumeration: `; (b)`."""

_COMMENT_MARK: Final = re.compile(r"\s*(?:///?|//!|\*(?!/)|--+|#(?![\[!])|;+)(?: |$)")
"""The mark of a comment that is repeated in each of its lines."""

_LONG_STRING: Final = re.compile(r"\s*(?:@\w+ )?[rRfuUb]{0,2}(\"{3}|'{3})")
"""The beginning of a docstring: a string over several lines as a statement of its own."""

_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|[a-z][.)]|\([a-z0-9ivx]{1,4}\))\s+\S")
_TABLE_ROW: Final = re.compile(r"\s*\|")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}\s")


def continues_statement(line: str) -> bool:
    """True if the line goes on with the statement above it: a closing bracket, a branch, a chained call."""
    return bool(_CONTINUES.match(line))


class LineRun(NamedTuple):
    """A run of lines, first and last from 1; of prose, the run may begin and end within a line.

    `start` characters of the first line are left out, and the last line ends before column `end` (0: at its end).
    """

    first: int
    last: int
    start: int = 0
    end: int = 0

    def shared_lines(self, other: LineRun) -> int:
        """The number of lines in both runs."""
        return max(0, min(self.last, other.last) - max(self.first, other.first) + 1)


class CompletePart(NamedTuple):
    """A complete part of a text, and the head of the statement around it."""

    lines: LineRun
    parent: CompletePart | None = None


def statements(lines: Sequence[str], first: int, last: int, *, is_prose: bool = False) -> list[CompletePart]:
    """The smallest complete parts of the lines from first to last (from 1); the blank lines between are in none."""
    if is_prose:
        return list(_paragraphs(lines, first, last))
    return list(_Indented(lines, first, last).divided(first, last, None, 0))


class _Indented:
    """Lines of code with their indentation; -1 for blank lines."""

    def __init__(self, lines: Sequence[str], first: int, last: int) -> None:
        self._lines = lines
        self._first = first
        self._indents = [_indent(line) if line.strip() else -1 for line in lines[first - 1 : last]]
        # A preprocessor's line stands at the margin and ends no statement: it counts as the line below it.
        for place in range(len(self._indents) - 2, -1, -1):
            if self._indents[place] == 0 and _PREPROCESSOR.match(lines[first - 1 + place]):
                self._indents[place] = max(0, self._indents[place + 1])
        self._comments = dict(_long_comments(lines, first, last))
        for start, end in self._comments.items():
            self._indents[start - first : end - first + 1] = [_indent(lines[start - 1])] * (end - start + 1)

    def divided(self, first: int, last: int, parent: CompletePart | None, depth: int) -> Iterator[CompletePart]:
        """The statements from first to last; long ones are divided, with their head as the parent of the parts."""
        for start, end in self._groups(first, last):
            if self._comments.get(start) == end:
                yield from _parts_of_comment(self._lines, start, end, parent)
                continue
            head_end = self._head_end(start, end) if end - start >= _MAX_WHOLE_LINES and depth < _MAX_DEPTH else end
            if head_end >= end:
                yield CompletePart(LineRun(start, end), parent)
            else:
                yield from self._inside(CompletePart(LineRun(start, head_end), parent), end, depth + 1)

    def _inside(self, head: CompletePart, last: int, depth: int) -> Iterator[CompletePart]:
        """The parts of a statement below its head, branch by branch; brackets that close it belong to the last part."""
        borders = [head.lines.last, *self._at_or_before(head.lines.first, head.lines.last + 1, last), last + 1]
        parts: list[CompletePart] = []
        first = 0  # of a branch's head that goes on in the next lines: `catch` above `{`
        for border, after in pairwise(borders):
            inner = self._with_text(border + 1, after - 1)
            if border > head.lines.last and not inner:
                if parts and not first and (_CLOSES.match(self._lines[border - 1]) or after > last):
                    parts[-1] = parts[-1]._replace(lines=LineRun(parts[-1].lines.first, border))
                    continue
                if after <= last:
                    first = first or border
                    continue
            yield from parts
            # A branch (`else`, the `{` below a long signature) is the head of what follows it.
            above = head if border == head.lines.last else CompletePart(LineRun(first or border, border), head)
            parts = list(self.divided(border + 1, inner, above, depth)) if inner else [above]
            first = 0
        yield from parts

    def _at_or_before(self, start: int, first: int, last: int) -> list[int]:
        """The lines that are indented no deeper than the line `start`."""
        base = self._indents[start - self._first]
        return [number for number in range(first, last + 1) if 0 <= self._indents[number - self._first] <= base]

    def _with_text(self, first: int, last: int) -> int:
        """The last of the lines that is not blank; 0 if all are."""
        return next((number for number in range(last, first - 1, -1) if self._indents[number - self._first] >= 0), 0)

    def _groups(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The statements at the lowest indentation, comments and decorators with the statement below them."""
        indents = self._indents[first - self._first : last - self._first + 1]
        base = min((indent for indent in indents if indent >= 0), default=0)
        start = end = 0
        is_lead = False
        for number, indent in enumerate(indents, first):
            if indent == base and (comment_end := self._comments.get(number, last + 1)) <= last:
                if start:
                    yield start, end
                yield number, comment_end
                start, end = 0, comment_end
            if number <= end:
                continue
            if indent < 0:
                is_lead = False
                continue
            if start and indent == base and not is_lead and not _CONTINUES.match(self._lines[number - 1]):
                yield start, end
                start = 0
            start = start or number
            end = number
            is_lead = indent == base and bool(_LEADS.match(self._lines[number - 1]))
        if start:
            yield start, end

    def _head_end(self, start: int, end: int) -> int:
        """The last line of a statement's head: before the first line that is indented deeper."""
        base = self._indents[start - self._first]
        for number in range(start + 1, end + 1):
            if self._indents[number - self._first] > base:
                return number - 1
        return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _long_comments(lines: Sequence[str], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The first and last lines of the comments and docstrings that are too long to be shown as a whole."""
    number = first
    while number <= last:
        end = _comment_end(lines, number, last)
        if end - number >= _MAX_WHOLE_LINES:
            yield number, end
        number = end + 1


def _comment_end(lines: Sequence[str], start: int, last: int) -> int:
    """The last line of the comment or docstring that begins at a line; the line itself if none does."""
    line = lines[start - 1]
    if quote := _LONG_STRING.match(line):
        if quote[1] in line[quote.end() :]:
            return start
        return next((number for number in range(start + 1, last + 1) if quote[1] in lines[number - 1]), start)
    if line.lstrip().startswith("/*") and "*/" not in line:
        return next((number for number in range(start + 1, last + 1) if "*/" in lines[number - 1]), start)
    end = start
    if mark := _COMMENT_MARK.match(line):
        while end < last and lines[end].startswith(mark[0].rstrip()):
            end += 1
    return end


def _parts_of_comment(
    lines: Sequence[str], first: int, last: int, parent: CompletePart | None
) -> Iterator[CompletePart]:
    """The paragraphs, lists and fenced blocks of a long comment, as whole lines."""
    text = [_COMMENT_MARK.sub("", line, count=1) for line in lines[first - 1 : last]]
    for part in _paragraphs(text, 1, len(text), by_sentence=False):
        yield _moved(part, first - 1, parent)


def _moved(part: CompletePart, by: int, parent: CompletePart | None) -> CompletePart:
    """A part so many lines further down; the outermost lead gets the parent."""
    lead = _moved(part.parent, by, parent) if part.parent else parent
    return CompletePart(LineRun(part.lines.first + by, part.lines.last + by), lead)


def _paragraphs(lines: Sequence[str], first: int, last: int, *, by_sentence: bool = True) -> Iterator[CompletePart]:
    """Sentences, list items, table rows and fenced blocks; items and rows belong to their lead-in or header."""
    lead: CompletePart | None = None
    was_list = False
    number = first
    while number <= last:
        line = lines[number - 1]
        if not line.strip():
            number += 1
            continue
        end = _block_end(lines, number, last)
        if _TABLE_ROW.match(line):
            header = CompletePart(LineRun(number, min(number + 1, end)), lead)
            if end <= header.lines.last:
                yield header
            yield from (CompletePart(LineRun(row, row), header) for row in range(number + 2, end + 1))
            lead = None
        elif _LIST_ITEM.match(line):
            end = _list_end(lines, number, end, last)
            yield CompletePart(LineRun(number, end), lead)
        elif _FENCE.match(line):
            yield from _parts_of_fence(lines, number, end, lead)
        elif _leads(lines, number, end, last):
            lead = CompletePart(LineRun(number, end), lead if _HEADING.match(line) else None)
        else:
            if was_list and lead and not _HEADING.match(lines[lead.lines.last - 1]):
                lead = lead.parent  # the lead-in of the list above
            parts = _parts_of_paragraph(lines, number, end) if by_sentence else [LineRun(number, end)]
            yield from (CompletePart(part, lead) for part in parts)
            lead = lead if lead and _HEADING.match(lines[lead.lines.last - 1]) else None
        was_list = bool(_LIST_ITEM.match(line) or _FENCE.match(line))
        number = end + 1


def _parts_of_fence(lines: Sequence[str], first: int, last: int, lead: CompletePart | None) -> Iterator[CompletePart]:
    """A fenced block as a whole; of a long one its statements, which are shown between its fences."""
    if last - first <= _MAX_WHOLE_EXAMPLE_LINES or not _FENCE.match(lines[last - 1]):
        yield CompletePart(LineRun(first, last), lead)
        return
    fences = CompletePart(LineRun(last, last), CompletePart(LineRun(first, first), lead))
    yield from _Indented(lines, first + 1, last - 1).divided(first + 1, last - 1, fences, 0)


def _list_end(lines: Sequence[str], start: int, end: int, last: int) -> int:
    """The last line of a list that is short enough to be shown as a whole: steps are of no use without the others."""
    chars = sum(len(line) + 1 for line in lines[start - 1 : end])
    while end < last:
        following = end + 1
        while following < last and not lines[following - 1].strip():
            following += 1
        if not _LIST_ITEM.match(lines[following - 1]):
            break
        next_end = _block_end(lines, following, last)
        chars += sum(len(line) + 1 for line in lines[end:next_end])
        if chars > _MAX_WHOLE_LIST_CHARS:
            break
        end = next_end
    return end


def _parts_of_paragraph(lines: Sequence[str], first: int, last: int) -> list[LineRun]:
    """The paragraph as a whole, or its sentences if it is long."""
    if sum(len(line) + 1 for line in lines[first - 1 : last]) <= _MAX_WHOLE_CHARS:
        return [LineRun(first, last)]
    return sentences_of(lines, first, last)


def sentences_of(lines: Sequence[str], first: int, last: int) -> list[LineRun]:
    """The sentences of a paragraph, which may begin and end within a line."""
    text = "\n".join(lines[first - 1 : last])
    starts = list(accumulate((len(line) + 1 for line in lines[first - 1 : last]), initial=0))
    borders = [0]
    for end in _SENTENCE_END.finditer(text):
        if end.start() - borders[-1] >= _MIN_SENTENCE_CHARS:
            borders.append(end.end())
    borders.append(len(text))
    return [_at_columns(starts, first, start, end, text) for start, end in pairwise(borders) if text[start:end].strip()]


def _at_columns(starts: Sequence[int], first: int, start: int, end: int, text: str) -> LineRun:
    """The lines and columns of a part of a paragraph."""
    end = start + len(text[start:end].rstrip())
    row, last_row = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
    is_whole = end >= starts[last_row + 1] - 1
    return LineRun(first + row, first + last_row, start - starts[row], 0 if is_whole else end - starts[last_row])


def _leads(lines: Sequence[str], start: int, end: int, last: int) -> bool:
    """True if the paragraph introduces what follows: a heading, a few words, or a colon before a list."""
    if not any(lines[i].strip() for i in range(end, last)):
        return False
    if _HEADING.match(lines[end - 1]) or lines[end - 1].rstrip().endswith(":"):
        return True
    words = lines[end - 1].strip()
    return start == end and len(words) < _MIN_PARAGRAPH_CHARS and not words.endswith((".", "!", "?", "。", "！", "？"))


def _block_end(lines: Sequence[str], start: int, last: int) -> int:
    """The last line of the paragraph, list item, table or fenced block that begins at a line."""
    line = lines[start - 1]
    end = start
    if fence := _FENCE.match(line):
        closing = re.compile(rf"\s*{re.escape(fence[1][0])}{{{len(fence[1])},}}\s*")
        while end < last and not (end > start and closing.fullmatch(lines[end - 1])):
            end += 1
        return end
    is_item, is_row, indent = bool(_LIST_ITEM.match(line)), bool(_TABLE_ROW.match(line)), _indent(line)
    if _HEADING.match(line):
        return start
    while end < last:
        after = lines[end]
        is_deeper = bool(after.strip()) and _indent(after) > indent
        if not after.strip():
            # An item goes on after a blank line with what is indented below it.
            more = next((lines[i] for i in range(end, last) if lines[i].strip()), "")
            if not (is_item and _indent(more) > indent):
                break
        elif (
            is_row != bool(_TABLE_ROW.match(after))
            or _HEADING.match(after)
            or _FENCE.match(after)
            or (_LIST_ITEM.match(after) and not (is_item and is_deeper))
        ):
            break
        end += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end
