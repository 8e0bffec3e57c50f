"""How pages are written: each below a line with its number, its file and its page, that no page can counterfeit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.research.context import SourceDocument

BETWEEN_SOURCES: Final = "\n\n"

# Whatever stands before it on its line: quotation, list and heading marks, and blanks of any kind.
_LIKE_A_HEADER: Final = re.compile(r"^([^\w\[\n]*)\[(?=\s*document\s*\d)", re.IGNORECASE | re.MULTILINE)
_IN_A_NAME: Final = re.compile(r"\[(?=\s*document\s*\d)", re.IGNORECASE)


def header(source: SourceDocument, number: int) -> str:
    """`[Document 1: crisis.pdf, Page 3]`, in one line whatever the file is called."""
    name = _IN_A_NAME.sub(r"\\[", make_visible_line(source.filename).text)
    return f"[Document {number}: {name}, Page {source.page}]"


def citation(source: SourceDocument, number: int) -> str:
    """A page as it is written: its header, then what it says."""
    return f"{header(source, number)}\n{safe_text(source.markdown_content)}"


def safe_text(markdown: str) -> str:
    """The text with everything hidden shown; a line that looks like a header of ours no longer does."""
    return _LIKE_A_HEADER.sub(r"\1\\[", make_visible(markdown).text)


def joined(sources: Sequence[SourceDocument]) -> str:
    """All pages as one text."""
    return BETWEEN_SOURCES.join(citation(source, number) for number, source in enumerate(sources, start=1))
