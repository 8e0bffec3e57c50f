"""A Notion database as its CSV has it: columns, and rows of values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from satchel.importers.notion_values import Relation, as_date, as_tick, is_checkbox, relations

_MOST_CELL_CHARS: Final = 20_000
_MOST_COLUMNS: Final = 500


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its title, its other values by their columns, and the pages that its relations name."""

    title: str
    properties: Mapping[str, Any]
    relations: tuple[Relation, ...] = ()

    @property
    def content(self) -> str:
        """What the row says, a line for each column that says anything."""
        return "\n".join(f"{name}: {_shown(value)}" for name, value in self.properties.items() if value != "")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a database, its columns, and what had to be cut."""

    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    problems: tuple[str, ...] = ()

    @property
    def ticks(self) -> frozenset[str]:
        """The columns that hold checkboxes."""
        first = self.rows[0].properties if self.rows else {}
        return frozenset(name for name, value in first.items() if isinstance(value, bool))


def read_table(text: str) -> Table:
    """The rows of a CSV; its first line names the columns, its first column the rows."""
    problems: dict[str, None] = {}
    lines = []
    try:
        with _fields_of_any_length(len(text)):
            lines = [_cut(line, problems) for line in csv.reader(io.StringIO(text, newline="")) if any(line)]
    except csv.Error as error:
        return Table(problems=(f"not read: {error}",))
    if not lines:
        return Table(problems=tuple(problems))
    columns = _columns(lines[0], max(map(len, lines)))
    values = [line + [""] * (len(columns) - len(line)) for line in lines[1:]]
    ticks = frozenset(name for at, name in enumerate(columns) if at and is_checkbox(line[at] for line in values))
    rows = [as_row(line[0], dict(zip(columns[1:], line[1:], strict=True)), ticks) for line in values]
    return Table(columns, rows, tuple(problems))


def as_row(title: str, cells: Mapping[str, str], ticks: Iterable[str] = ()) -> Row:
    """A row from what its cells say: dates as ISO 8601, ticks as booleans, relations as the titles they name."""
    properties: dict[str, Any] = {}
    named: list[Relation] = []
    for name, cell in cells.items():
        value = cell.strip()
        if name in ticks:
            properties[name] = as_tick(value)
        elif found := relations(value):
            named += found
            properties[name] = ", ".join(relation.title for relation in found)
        else:
            properties[name] = as_date(value) or value
    return Row(title.strip(), properties, tuple(named))


def _columns(header: list[str], width: int) -> tuple[str, ...]:
    """A name for each column, also for those that have none or one that is taken."""
    found: dict[str, None] = {}
    for at in range(min(width, _MOST_COLUMNS)):
        name = header[at].strip() if at < len(header) else ""
        found.setdefault(name if name and name not in found else f"{name or 'Column'} {at + 1}")
    return tuple(found) if len(found) == min(width, _MOST_COLUMNS) else tuple(f"Column {at + 1}" for at in range(width))


def _cut(line: list[str], problems: dict[str, None]) -> list[str]:
    if len(line) > _MOST_COLUMNS:
        problems[f"only the first {_MOST_COLUMNS} columns were read"] = None
    if any(len(cell) > _MOST_CELL_CHARS for cell in line):
        problems[f"cells were cut at {_MOST_CELL_CHARS:,} characters"] = None
    return [cell[:_MOST_CELL_CHARS] for cell in line[:_MOST_COLUMNS]]


@contextmanager
def _fields_of_any_length(most: int) -> Iterator[None]:
    """The csv module gives up a whole file for one long field, unless its limit, which all threads share, is raised."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, most + 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return str(value)
