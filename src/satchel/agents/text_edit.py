"""Put a text into an own file, or as a marked block into a file of somebody else, and take it out to the byte."""

from __future__ import annotations

import re
from typing import Final

from satchel.agents.guides import WRITTEN_BY
from satchel.agents.settings_file import CannotEdit, appended, line_end_of

_BEGIN: Final = "<!-- satchel:begin {name} -->"
_END: Final = "<!-- satchel:end {name} -->"


def with_block(text: str | None, name: str, content: str) -> str:
    """The text with the block of that name: in its place, else at the end."""
    block = f"{_BEGIN.format(name=name)}\n{content.rstrip()}\n{_END.format(name=name)}"
    if not text:
        return f"{block}\n"
    block = block.replace("\n", line_end_of(text))
    found = _find(text, name)
    return text[: found[0]] + block + text[found[1] :] if found else appended(text, block)


def without_block(text: str, name: str) -> str | None:
    """The text without the block of that name; None if there is nothing else."""
    found = _find(text, name)
    if found is None:
        return text
    before, after = text[: found[0]], text[found[1] :]
    line_end = line_end_of(text)
    if not before.strip() and not after.strip():
        return None
    if after == line_end and before.endswith(line_end * 2):  # as it was appended
        return before.removesuffix(line_end)
    if not after and before.endswith(line_end * 2):
        return before.removesuffix(line_end * 2)
    return before + after.removeprefix(line_end)


def holds_block(text: str, name: str) -> bool:
    """True if the text has the block of that name."""
    return _find(text, name) is not None


def is_ours(text: str) -> bool:
    """True if an own file was written by `satchel install`."""
    return WRITTEN_BY in text


def _find(text: str, name: str) -> tuple[int, int] | None:
    """Start and end of the block with its marks; raises CannotEdit if the marks do not fit."""
    begins = [match.start() for match in re.finditer(re.escape(_BEGIN.format(name=name)), text)]
    ends = [match.end() for match in re.finditer(re.escape(_END.format(name=name)), text)]
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise CannotEdit(f"the marks of the block {name} are incomplete or doubled; correct them by hand")
    return begins[0], ends[0]
