"""The citations in a text: `[1]`, `[1, 3]`, `[2-4]`, `[1][2]`, `【1】`, `[Document 2: a.pdf, Page 3]`, `(Document 2)`.

Code is not read for them, and neither an index (`x[1]`), a link (`[1](…)`), a date nor an interval is one.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# `[1]`, also right behind a word (`forever[5].`) where a clause ends after it; not `x[1] + 2`, nor `[1](…)`.
_NUMBERS: Final = r"\[\^?(\d{1,6}(?:\s*[-–,;]\s*\d{1,6})*)\]"
_RUN: Final = _NUMBERS.replace("(", "(?:", 1)
_NUMBERED: Final = re.compile(_NUMBERS)
_PLAIN: Final = re.compile(
    rf"(?<![\])_\d])(?:(?<!\w)(?:{_RUN})+(?!\()|(?<=[^\W_\d]{{3}})(?:{_RUN})+(?=[.,;:!?)]|\s*$))", re.MULTILINE
)
_LISTED: Final = r"(\d{1,6}(?:\s*(?:[-–,;&]|\band\b)\s*\d{1,6})*)"
# In the first form a name without brackets is preferred, so that it does not run on into the next citation.
_WIDE: Final = re.compile(
    rf"\[\s*Doc(?:ument)?s?\.?\s*{_LISTED}\s*"
    r"(?:\]|[:,]\s*([^\[\]\n]{0,300})\]|[:,]\s*([^\n]{0,300}?,\s*p(?:age|\.)\s*\d{1,6})\s*\])"
    rf"|\(\s*(?:see\s+|cf\.\s+)?Doc(?:ument)?s?\.?\s*{_LISTED}\s*(?:\)|[:,]\s*([^()\n]{{0,300}})\))"
    rf"|【\s*(?:Doc(?:ument)?s?\.?\s*)?{_LISTED}([^【】\n]{{0,300}})】",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL,
)

# A range such as [1-900000] is a mistake, not a request for 900,000 look-ups.
_MAX_RANGE: Final = 1000


class Citation(NamedTuple):
    """Where a citation stands, the numbers it names, and what it says of their place (`crisis.pdf, Page 3`)."""

    start: int
    end: int
    numbers: tuple[int, ...]
    place: str = ""


def without_code(text: str) -> str:
    """The text with blanks for its code: every other character stays where it was."""
    return _CODE.sub(_blanked, text)


def citations(prose: str) -> list[Citation]:
    """The citations of a text without code, in order."""
    found = []
    for wide in _WIDE.finditer(prose):
        listed, place = _listed_and_place(wide)
        if numbers := _numbers(re.sub(r"\band\b|&", ",", listed, flags=re.IGNORECASE)):
            found.append(Citation(wide.start(), wide.end(), numbers, place))
    rest = without(prose, found)
    for run in _PLAIN.finditer(rest):
        for one in _NUMBERED.finditer(rest, run.start(), run.end()):
            if numbers := _numbers(one[1]):
                found.append(Citation(one.start(), one.end(), numbers))
    return sorted(found)


def without(text: str, cited: list[Citation]) -> str:
    """The text with blanks for those citations, which are in order."""
    parts, at = [], 0
    for citation in cited:
        parts += [text[at : citation.start], " " * (citation.end - citation.start)]
        at = citation.end
    return "".join([*parts, text[at:]])


def _listed_and_place(wide: re.Match[str]) -> tuple[str, str]:
    in_brackets, plain_name, odd_name, in_parentheses, name, in_lenses, _ = wide.groups()
    return in_brackets or in_parentheses or in_lenses or "", (plain_name or odd_name or name or "").strip()


def _blanked(found: re.Match[str]) -> str:
    # Line ends stay, so that what is before and after code does not become one paragraph.
    return re.sub(r"[^\n]", " ", found[0])


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
