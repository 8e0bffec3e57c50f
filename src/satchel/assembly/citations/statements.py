"""The sentences of an answer that state something: no headings, questions, introductions, quoted lines or refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from satchel.text.boundaries import sentences

_BLANK: Final = re.compile(r"\s*$")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}(?:\s|$)|\s*(?:\*\*|__)[^*_]*[^*_.!?](?:\*\*|__)\s*$")
_RULE: Final = re.compile(r"\s{0,3}(?:=+|-{3,}|\*{3,}|_{3,})\s*$")
_UNDERLINE: Final = re.compile(r"\s{0,3}(?:=+|-{3,})\s*$")
_QUOTED: Final = re.compile(r"\s{0,3}>")
_ROW: Final = re.compile(r"\s*\|.*\|\s*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(?:\[[ xX]\]\s+)?")
_EMPHASIS: Final = re.compile(r"\*+|__+")
_ADDRESS: Final = re.compile(r"!?\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)|<?https?://\S+")
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")

_LEAST_WORDS: Final = 3
_LEAST_UNSPACED: Final = 6
"""Scripts without spaces: so many characters are about three words."""

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
    """A sentence, a row of items or a table that says something: from where to where in the text."""

    start: int
    end: int


def statements(prose: str) -> Iterator[Statement]:
    """The statements of an answer whose code and citations are blanks; what stands before the next belongs to one."""
    for start, end in _paragraphs(prose):
        if prose.startswith("|", start):
            yield Statement(start, end)
            continue
        yield from (one for one in _sentences(prose, start, end) if _states(prose[one.start : one.end]))


def _paragraphs(prose: str) -> Iterator[tuple[int, int]]:
    """Where paragraphs, list items and tables begin and end."""
    start = end = at = 0
    in_table = False
    for line in prose.splitlines(keepends=True):
        is_row = bool(_ROW.match(line))
        item = _ITEM.match(line)
        apart = any(kind.match(line) for kind in (_BLANK, _HEADING, _RULE, _QUOTED))
        if end > start and (apart or item or is_row != in_table):
            # What is underlined is a heading, too.
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
    """The sentences of a paragraph: a full stop ends one only where the next does not begin with a small letter."""
    text = _EMPHASIS.sub(lambda marks: " " * len(marks[0]), prose[start:end].replace("\n", " "))
    begun = at = 0
    parts = sentences(text)
    for i, part in enumerate(parts):
        at += len(part)
        following = "".join(parts[i + 1 : i + 2]).lstrip()
        so_far = text[begun:at]
        if following and (not _is_ended(so_far) or following[0].islower()):
            continue
        said = so_far.strip()
        if said:
            first = begun + len(so_far) - len(so_far.lstrip())
            yield Statement(start + first, start + first + len(said))
        begun = at


def _is_ended(text: str) -> bool:
    said = text.rstrip(_CLOSERS)
    return said[-1:] in tuple(_ENDS) and not _ABBREVIATION.search(said[-12:])


def _states(sentence: str) -> bool:
    said = _ADDRESS.sub(" ", sentence).strip()
    bare = said.rstrip(_CLOSERS + "*_")
    if bare.endswith(("?", "？", ":", "：")) or _REFUSAL.search(said) or _PLEASANTRY.match(said):
        return False
    return len(_WORD.findall(said)) >= _LEAST_WORDS or len(_UNSPACED.findall(said)) >= _LEAST_UNSPACED
