"""Tables in plain text (CSV, TSV) as Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import Final

from satchel.indexing.documents.office import decoded
from satchel.indexing.documents.paging import cut_tables, without_empty_columns
from satchel.indexing.documents.recognition import DocumentSource
from satchel.indexing.documents.tidy import tidy
from satchel.models.document import Document, Page, Unreadable

# A comma is as often the sign of a fraction, and a bar stands in texts.
_DELIMITERS: Final = "\t;,|"
_LOOKED_AT_CHARS: Final = 20_000
# How Excel tells the mark that it used.
_TOLD: Final = re.compile(r"sep=([,;\t|])\r?\n", re.IGNORECASE)
_LOOKED_AT_LINES: Final = 20
_LONGEST_CELL: Final = 1_000_000
_MOST_COLUMNS: Final = 2000
_MOST_FILLED: Final = 100


def read_table(source: DocumentSource) -> Document | Unreadable:
    """A table as one page, cut so that every piece has the header over it."""
    kind, data, options, _ = source
    text = decoded(data).replace("\0", "")
    told = _TOLD.match(text)
    text = text[told.end() :] if told else text
    delimiter = told[1] if told else "\t" if kind == "tsv" else _delimiter(text)
    csv.field_size_limit(_LONGEST_CELL)
    rows: list[list[str]] = []
    notes: tuple[str, ...] = ()
    left = options.most_chars
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if not any(cell.strip() for cell in row):
                continue
            cells = [_cell(cell) for cell in row[:_MOST_COLUMNS]]
            left -= sum(len(cell) + 3 for cell in cells)
            if left < 0:
                notes = (f"is longer than {options.most_chars:,} characters; the rest of it was not read",)
                break
            rows.append(cells)
    except csv.Error:
        return Unreadable(f"is no table of text: a cell is longer than {_LONGEST_CELL:,} characters")
    return Document((Page(1, cut_tables(without_empty_columns(_markdown(rows)))),), notes=notes)


def _delimiter(text: str) -> str:
    """The mark that parts the columns: the one by which most rows have equally many, of several the first."""
    sample = text[:_LOOKED_AT_CHARS]

    def evidence(mark: str) -> int:
        with suppress(csv.Error):
            rows = islice(csv.reader(io.StringIO(sample, newline=""), delimiter=mark), _LOOKED_AT_LINES)
            counts = Counter(len(row) for row in rows if len(row) > 1)
            return max(counts.values(), default=0)
        return 0

    return max(_DELIMITERS, key=evidence)


def _cell(text: str) -> str:
    return " ".join(tidy(text).split()).replace("|", "\\|")


def _markdown(rows: list[list[str]]) -> str:
    if not rows:
        return ""
    # A title over the table is a row with one cell.
    width = max(1, *map(len, rows[:_LOOKED_AT_LINES]))
    # Short rows of very wide tables are left short: the cells they lack would be most of the text.
    filled = width if width <= _MOST_FILLED else 1
    lines = [f"| {' | '.join(row + [''] * (filled - len(row)))} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])
