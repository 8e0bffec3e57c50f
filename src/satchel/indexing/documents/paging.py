"""Pages for formats without pages (text, CSV): cut at headings, then between paragraphs or table rows."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from satchel.indexing.documents.recognition import DocumentSource
from satchel.indexing.documents.tidy import CannotRead, captions_in, decoded, one_line, tidy
from satchel.models.document import Document, Page

MOST_CHARS: Final = 3000  # decision 0026; longer parts make citations vague, shorter parts tear sections apart
_MAX_TABLE_ROWS: Final = 20  # longer tables are cut, to keep the header near every row
_BETWEEN: Final = " > "

# The next section starts a new page only if the current page is at least a third full: a page for every short section
# would be too many. Sections of different chapters never share a page.
_MIN_PAGE_DIVISOR: Final = 3

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*?)[ \t]*#*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_MAX_EXTRA_HEADER_ROWS: Final = 4  # titles and groups of columns; further rows are data
# Of cells with text: a row this full has the column names; emptier rows are titles or groups.
_COLUMN_NAMES_SHARE: Final = 0.75
# A number that is not a year.
_AMOUNT: Final = re.compile(r"(?!(?:19|20)\d\d$)[-+(]?[$€£]?\d[\d.,' ]*%?\)?")
_BETWEEN_CELLS: Final = re.compile(r"(?<!\\)\|")
_RULE_OF_TABLE: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")


class _Block(NamedTuple):
    text: str
    level: int = 0
    title: str = ""


def into_pages(markdown: str, most_chars: int = MOST_CHARS, *, within: str = "") -> tuple[Page, ...]:
    """The text as pages of about `most_chars` at most, named by the headings above."""
    pages: list[Page] = []
    trail: list[tuple[int, str]] = []
    gathered: list[_Block] = []
    path, level = within, 0

    def finish() -> None:
        text = "\n\n".join(block.text for block in gathered)
        pages.append(Page(len(pages) + 1, text, path, captions_in(text)))
        gathered.clear()

    for block in _whole_lines(_blocks(cut_tables(markdown)), most_chars):
        size = sum(len(part.text) + 2 for part in gathered)
        only_headings = all(part.level for part in gathered)
        is_full = size + len(block.text) > most_chars or (block.level and size >= most_chars // _MIN_PAGE_DIVISOR)
        if gathered and not only_headings and (is_full or 0 < block.level < level):
            # A heading stays with the text below.
            headings = _trailing_headings(gathered)
            finish()
            gathered += headings
            only_headings = True
        if block.level:
            while trail and trail[-1][0] >= block.level:
                trail.pop()
            trail.append((block.level, block.title))
        if not gathered or only_headings:
            titles = [title for _, title in trail]
            # A chapter's own title is mostly its first heading too.
            path = _BETWEEN.join([within, *titles] if within and titles[:1] != [within] else titles)
            level = trail[-1][0] if trail else 0
        gathered.append(block)
    if gathered:
        finish()
    return tuple(pages)


def cut_tables(markdown: str, most_rows: int = _MAX_TABLE_ROWS) -> str:
    """The Markdown with long tables split into short tables, each with the whole table's header."""

    def cut(table: list[str]) -> list[str]:
        header, rows = table[:2], table[2:]
        if len(rows) > most_rows:
            more = _more_header(header[0], rows[:_MAX_EXTRA_HEADER_ROWS])
            header, rows = header + rows[:more], rows[more:]
        out: list[str] = []
        for start in range(0, max(len(rows), 1), most_rows):
            out += [""] * bool(start) + header + rows[start : start + most_rows]
        return out

    return _with_tables(markdown, cut)


def parted_tables(markdown: str) -> str:
    """The Markdown with the tables of a sheet apart, where rows without text stand between them."""

    def parted(table: list[str]) -> list[str]:
        rows = [_cells(line) for line in (table[0], *table[2:])]
        parts: list[list[list[str]]] = [[]]
        for row in rows:
            if any(row):
                parts[-1].append(row)
            elif parts[-1]:
                parts.append([])
        parts = [part for part in parts if part]
        if not parts or (len(parts) == 1 and len(parts[0]) == len(rows)):
            return table
        joined: list[list[list[str]]] = []
        for part in parts:
            if joined and not _is_another_table(joined[-1], part):
                joined[-1] += part
            else:
                joined.append(part)
        out: list[str] = []
        for part in joined:
            out += ["", *_lines_of(part)] if out else _lines_of(part)
        return out

    return _with_tables(markdown, parted)


def _is_another_table(above: list[list[str]], below: list[list[str]]) -> bool:
    """True if rows below a gap have a header of their own, stand in other columns, or are a line of text."""
    columns, others = ({at for row in rows for at, cell in enumerate(row) if cell} for rows in (above, below))
    first = [cell for cell in below[0] if cell]
    if not others <= columns or len(first) == 1:
        return True
    is_header = len(below) > 1 and not any(_AMOUNT.fullmatch(cell) for cell in first)
    has_amounts = any(_AMOUNT.fullmatch(cell) for row in below[1:] for cell in row if cell)
    return is_header and has_amounts


def _lines_of(rows: list[list[str]]) -> list[str]:
    """A table of its own, without the columns that have no text; lines with a single cell stand above it."""
    titles: list[str] = []
    while rows and sum(map(bool, rows[0])) == 1:
        titles += ["".join(rows[0]), ""]
        rows = rows[1:]
    if not rows:
        return titles[:-1]
    full = [at for at in range(max(map(len, rows))) if any(at < len(row) and row[at] for row in rows)]
    lines = [f"| {' | '.join(row[at] if at < len(row) else '' for at in full)} |" for row in rows]
    return [*titles, lines[0], "|" + " --- |" * len(full), *lines[1:]]


def without_empty_columns(markdown: str) -> str:
    """The Markdown with empty table columns removed."""

    def narrowed(table: list[str]) -> list[str]:
        rows = [_cells(line) for line in table]
        full = sorted({column for row in (rows[0], *rows[2:]) for column, cell in enumerate(row) if cell})
        if len(full) in (0, len(rows[0])):
            return table
        return [f"| {' | '.join(row[column] if column < len(row) else '' for column in full)} |" for row in rows]

    return _with_tables(markdown, narrowed)


def _with_tables(markdown: str, change: Callable[[list[str]], list[str]]) -> str:
    """The Markdown with each table, passed to `change` as a list of lines, replaced."""
    lines = markdown.split("\n")
    out: list[str] = []
    at = 0
    while at < len(lines):
        if not _starts_table(lines, at):
            out.append(lines[at])
            at += 1
            continue
        first, at = at, at + 2
        while at < len(lines) and lines[at].startswith("|"):
            at += 1
        out += change(lines[first:at])
    return "\n".join(out)


def first_heading(markdown: str) -> str:
    """The text of the first heading, or nothing."""
    return next((block.title for block in _blocks(markdown) if block.level), "")


def _trailing_headings(gathered: list[_Block]) -> list[_Block]:
    """Remove and return the headings at the end, because these headings belong to the next page."""
    headings: list[_Block] = []
    while gathered and gathered[-1].level:
        headings.insert(0, gathered.pop())
    return headings


def _more_header(first: str, rows: list[str]) -> int:
    """Number of additional header rows: a title or groups of columns stand above the column names."""
    width = max(len(_cells(first)), 1)
    for count, row in enumerate([first, *rows]):
        cells = [cell for cell in _cells(row) if cell]
        if any(_AMOUNT.fullmatch(cell) for cell in cells):
            return max(count - 1, 0)
        if len(cells) >= _COLUMN_NAMES_SHARE * width:
            return count
    return 0


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BETWEEN_CELLS.split(line.strip()[1:].removesuffix("|"))]


def _starts_table(lines: list[str], at: int) -> bool:
    is_row = lines[at].startswith("|") and at + 1 < len(lines)
    return is_row and lines[at + 1].startswith("|") and bool(_RULE_OF_TABLE.match(lines[at + 1]))


def _whole_lines(blocks: Iterable[_Block], most_chars: int) -> Iterator[_Block]:
    """The blocks, with overlong blocks cut between lines: logs and verses have no empty lines."""
    for block in blocks:
        if len(block.text) <= 2 * most_chars or "\n" not in block.text:
            yield block
            continue
        part: list[str] = []
        size = 0
        for line in block.text.split("\n"):
            if part and size + len(line) > most_chars:
                yield _Block("\n".join(part))
                part, size = [], 0
            part.append(line)
            size += len(line) + 1
        yield _Block("\n".join(part))


def _blocks(markdown: str) -> Iterator[_Block]:
    """Headings, paragraphs, tables and fenced code, in order."""
    gathered: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            gathered.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                yield _Block("\n".join(gathered))
                gathered, fence = [], ""
            continue
        opening = _FENCE.match(line)
        heading = _HEADING.match(line)
        if (opening or heading or not line.strip()) and gathered:
            yield _Block("\n".join(gathered))
            gathered = []
        if opening:
            fence = opening[1]
            gathered = [line]
        elif heading:
            yield _Block(line, len(heading[1]), one_line(heading[2].strip("*_ ")))
        elif line.strip():
            gathered.append(line)
    if gathered:
        yield _Block("\n".join(gathered))


# In order of preference: a comma may be a decimal sign, and a bar stands in texts.
_DELIMITERS: Final = "\t;,|"
_SAMPLE_CHARS: Final = 20_000  # bounds the search for the delimiter
# Excel's declaration of the delimiter.
_SEPARATOR: Final = re.compile(r"sep=([,;\t|])\r?\n", re.IGNORECASE)
_SAMPLE_ROWS: Final = 20  # the first rows show the delimiter and the width of a table
_MAX_CELL_CHARS: Final = 1_000_000  # longer cells come from an unclosed quotation mark or from data that is no table
_MAX_COLUMNS: Final = 2000  # bounds the length of a row in Markdown; further columns are left out
_MAX_PADDED_COLUMNS: Final = 100  # in wider tables, padding of short rows would be most of the text


def read_table(source: DocumentSource) -> Document:
    """A CSV or TSV table as a single page, split into short tables with the header above each."""
    kind, data, options, _ = source
    text = decoded(data).replace("\0", "")
    separator = _SEPARATOR.match(text)
    text = text[separator.end() :] if separator else text
    delimiter = separator[1] if separator else "\t" if kind == "tsv" else _delimiter(text)
    csv.field_size_limit(_MAX_CELL_CHARS)
    rows: list[list[str]] = []
    notes: tuple[str, ...] = ()
    left = options.most_chars
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if not any(cell.strip() for cell in row):
                continue
            cells = [" ".join(tidy(cell).split()).replace("|", "\\|") for cell in row[:_MAX_COLUMNS]]
            left -= sum(len(cell) + 3 for cell in cells)
            if left < 0:
                notes = (f"is longer than {options.most_chars:,} characters; the rest of it was not read",)
                break
            rows.append(cells)
    except csv.Error:
        raise CannotRead(f"is not a table of text: a cell is longer than {_MAX_CELL_CHARS:,} characters") from None
    return Document((Page(1, cut_tables(without_empty_columns(_markdown(rows)))),), notes=notes)


def _delimiter(text: str) -> str:
    """The delimiter by which most rows have equal numbers of columns; the first of several equals."""
    sample = text[:_SAMPLE_CHARS]

    def evidence(mark: str) -> int:
        with suppress(csv.Error):
            rows = islice(csv.reader(io.StringIO(sample, newline=""), delimiter=mark), _SAMPLE_ROWS)
            counts = Counter(len(row) for row in rows if len(row) > 1)
            return max(counts.values(), default=0)
        return 0

    return max(_DELIMITERS, key=evidence)


def _markdown(rows: list[list[str]]) -> str:
    if not rows:
        return ""
    # A title over the table is a row with one cell.
    width = max(1, *map(len, rows[:_SAMPLE_ROWS]))
    # Short rows of very wide tables are not padded: empty cells would be most of the text.
    filled = width if width <= _MAX_PADDED_COLUMNS else 1
    lines = [f"| {' | '.join(row + [''] * (filled - len(row)))} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])
