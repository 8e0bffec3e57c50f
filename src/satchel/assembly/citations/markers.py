"""Finds citation markers: `[1]`, `[1, 3]`, `[2-4]`, `［1］`, `【1】`, `[Source 1]`, `[Document 2: a.pdf, Page 3]`.

Code is skipped. An index (`x[1]`), a link (`[1](…)`), a date, a year and an interval are no citations.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NUMBERS: Final = r"\[[ \t]*\^?(\d{1,6}(?:\s*[-–,;，、]\s*\d{1,6})*)[ \t]*\]"
_RUN: Final = _NUMBERS.replace("(", "(?:", 1)
_NUMBERED: Final = re.compile(_NUMBERS)
_PLAIN: Final = re.compile(rf"(?:{_RUN})++")
_WIDE_BRACKETS: Final = str.maketrans("［］", "[]")
_LISTED: Final = r"(\d{1,6}(?:\s*(?:[-–,;&]|\band\b)\s*\d{1,6})*)"
# The first form prefers a name without brackets, which cannot run on into the next citation.
_WIDE: Final = re.compile(
    rf"\[\s*(?:Doc(?:ument)?|Source)s?\.?:?\s*#?{_LISTED}\s*"
    r"(?:\]|[:,]\s*([^\[\]\n]{0,300})\]|[:,]\s*([^\n]{0,300}?,\s*p(?:age|\.)\s*\d{1,6})\s*\])"
    rf"|\(\s*(?:see\s+|cf\.\s+)?(?:Doc(?:ument)?|Source)s?\.?\s*#?{_LISTED}\s*(?:\)|[:,]\s*([^()\n]{{0,300}})\))"
    rf"|【\s*(?:(?:Doc(?:ument)?|Source)s?\.?:?\s*)?{_LISTED}([^【】\n]{{0,300}})】",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL,
)

# Characters before a bracket, on its line, that tell an index of a variable from a citation behind a word: room for
# long names; a bound keeps lines of many brackets linear.
_INDEX_CONTEXT_CHARS: Final = 200
_NAME: Final = re.compile(r"(?:(?<![\w'’.-])|(?<=\]-))[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$")
_CALL: Final = re.compile(r"[A-Za-z0-9_]\((?!e?s\))[^()\n]*\)$")
_VARIABLE: Final = re.compile(
    r"[A-Za-z]|[a-z]\d+|\$.*|_+\w*[^\W_]|\w*[^\W_]_+[^\W_]\w*|[a-z]+[a-z0-9]*[A-Z]\w*"
    r"|arr|argv|args|vec|buf|lst|idx|ptr|tmp|str|int|char|(?:self|this|sys)\..*"
)
_ARRAY: Final = re.compile(r"array|matrix")
_CLAUSE_END: Final = re.compile(r"[ \t]*(?:[.,;:!?)。，；：！？]|$)", re.MULTILINE)
_EMPHASIS: Final = re.compile(r"(?<!\w)_+(?=\w)")
_OPERATOR_BEFORE: Final = re.compile(r"(?:[\w)\]][ \t]*[-+*/=!<>]?=|[\d)\]][ \t]+[+*<>])[ \t]*$")
# No dash, no end of emphasis or of a table's cell, and no tag.
_OPERATOR_AFTER: Final = re.compile(
    r"[ \t]*(?:!?=|\+|[-*/%&|<>]=|\|\||&&|<(?=[ \t\d<])|>|(?<=[ \t])[*%](?=[ \t])|[*/](?=\d)|-[ \t]?(?=\d))"
    r"|->?(?=\w)|\.(?=[a-z_])|\[[a-z]\]|\("
)
_ZERO: Final = re.compile(r"\[[ \t]*0")

_YEARS: Final = range(1500, 2100)

# A wider range such as [1-900000] is a mistake, not 900,000 citations; only its two ends are checked.
_MAX_RANGE_NUMBERS: Final = 1000


class Citation(NamedTuple):
    """A citation marker: start and end in the text, source numbers, and the stated place (`crisis.pdf, Page 3`)."""

    start: int
    end: int
    numbers: tuple[int, ...]
    place: str = ""


def without_code(text: str) -> str:
    """The text with code replaced by blanks, all positions unchanged."""
    # Line ends stay: the text before and after code must not become a single paragraph.
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def citations(prose: str, highest: int | None = None) -> list[Citation]:
    """The citations of a text without code, in order; with `highest` (the last source number), `[2008]` is a year."""
    prose = prose.translate(_WIDE_BRACKETS)
    markers = []
    for wide in _WIDE.finditer(prose):
        in_brackets, plain_name, odd_name, in_parentheses, name, in_lenses, _ = wide.groups()
        listed = in_brackets or in_parentheses or in_lenses or ""
        if numbers := _numbers(re.sub(r"\band\b|&", ",", listed, flags=re.IGNORECASE)):
            place = plain_name or odd_name or name or ""
            markers.append(Citation(wide.start(), wide.end(), numbers, place.strip()))
    remaining_text = without(prose, markers)
    for run in _PLAIN.finditer(remaining_text):
        if _is_index(remaining_text, run.start(), run.end()):
            continue
        for marker in _NUMBERED.finditer(remaining_text, run.start(), run.end()):
            numbers = _numbers(marker[1])
            # `[1](…)` is a link.
            if numbers and not remaining_text.startswith("(", marker.end()) and not _are_years(numbers, highest):
                markers.append(Citation(marker.start(), marker.end(), numbers))
    return sorted(markers)


def without(text: str, cited: list[Citation]) -> str:
    """The text with the citations (in order) replaced by blanks."""
    parts, copied_to = [], 0
    for citation in cited:
        parts += [text[copied_to : citation.start], " " * (citation.end - citation.start)]
        copied_to = citation.end
    return "".join([*parts, text[copied_to:]])


def _is_index(text: str, start: int, end: int) -> bool:
    """True if the word before the brackets or an operator beside them makes them an index: `x[1]`, `a_b[2]`."""
    before = text[max(start - _INDEX_CONTEXT_CHARS, 0) : start].rpartition("\n")[2]
    if before.endswith(")"):
        return bool(_CALL.search(before) or _OPERATOR_AFTER.match(text, end))
    name = _NAME.search(before)
    if not name:
        # Only names have an index, not numbers or words in another script. `[text][1]` is a link.
        return before.endswith("]")
    word = name[0]
    if word.endswith("_") or text.startswith("_", end):
        # `_It fell_[1]` is emphasis.
        if not _EMPHASIS.search(before):
            return True
        word = word.strip("_")
    owner, _, attribute = word.rpartition(".")
    return bool(
        _VARIABLE.fullmatch(word)
        or (len(owner) > 1 and _VARIABLE.fullmatch(attribute))
        or _ZERO.match(text, start)
        or _OPERATOR_AFTER.match(text, end)
        or _OPERATOR_BEFORE.search(before, 0, name.start())
        or (_ARRAY.fullmatch(word) and not _CLAUSE_END.match(text, end))
    )


def _are_years(numbers: tuple[int, ...], highest: int | None) -> bool:
    """True if all numbers look like years and are more than twice the highest source number."""
    return highest is not None and all(number in _YEARS and number > 2 * highest for number in numbers)


def _numbers(inside: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in re.split(r"\s*[,;，、]\s*", inside):
        first, *rest = re.split(r"\s*[-–]\s*", part)
        if len(rest) > 1:
            # `[2024-01-15]` is a date, `[1-3-5]` is meaningless; neither is a citation.
            continue
        low, high = int(first), int(rest[0] if rest else first)
        if low > high:
            # A year and a month.
            continue
        numbers += range(low, high + 1) if low <= high <= low + _MAX_RANGE_NUMBERS else (low, high)
    # `[0, 255]` is an interval; citations begin at 1.
    return () if len(numbers) > 1 and 0 in numbers else tuple(dict.fromkeys(numbers))
