"""A Notion database from CSV: columns, and rows of dates, checkboxes, relations and texts."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

_MONTHS: Final = "january february march april may june july august september october november december".split()
_YES: Final = {"yes": True, "true": True, "no": False, "false": False}
_SHOWN_TICKS: Final = {True: "Yes", False: "No"}

_MONTH: Final = rf"(?P<name>{'|'.join(_MONTHS)}|{'|'.join(month[:3] for month in _MONTHS)})\.?"
_TIME: Final = r"(?:,?[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d{1,6})?)?[ \u202f]?(?P<half>[AP]M)?)?"
_ZONE: Final = r"(?: ?(?:\([A-Z0-9+:-]{1,9}\)|Z|[+-]\d\d:\d\d))?"
_DATES: Final = tuple(
    re.compile(pattern + _TIME + _ZONE, re.IGNORECASE)
    for pattern in (
        rf"{_MONTH} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})",
        rf"(?P<day>\d{{1,2}})\.? {_MONTH} (?P<year>\d{{4}})",
        r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})",
    )
)
_EITHER_WAY: Final = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_MAX_DATE_CHARS: Final = 80  # a range of two moments with time zones fits; a longer text is no date
# Bounds the size of a row in the store; longer cells are cut, and a notice reports the cut.
_MAX_CELL_CHARS: Final = 20_000
_MAX_COLUMNS: Final = 500  # bounds the properties of a row; further columns are dropped, and a notice reports the limit

_RELATION: Final = re.compile(r"\((\S{1,500}?\.(?:md|csv)|https://(?:www\.)?notion\.so/\S{1,500}?)\)(?=\s*(?:,|$))")

_DONE_COLUMNS: Final = frozenset({"done", "complete", "completed", "finished", "done?", "completed?"})
_STATUS_COLUMNS: Final = frozenset({"status", "state", "stage"})
_TAG_COLUMNS: Final = frozenset({"tags", "tag", "labels"})
_ASSIGNEE_COLUMNS: Final = frozenset({"assignee", "assignees", "assigned to", "assign", "owner", "responsible"})
_DUE_COLUMNS: Final = ("due", "due date", "due on", "deadline")
_EDITED_COLUMNS: Final = frozenset({"last edited time", "last edited", "updated", "last updated", "modified"})
_DONE_VALUES: Final = frozenset(
    {"done", "complete", "completed", "closed", "finished", "resolved", "shipped", "archived", "✅ done", "done ✅"}
)
# A cancelled row counts as done, as in `note_markup`.
_CANCELLED_VALUES: Final = frozenset({"cancelled", "canceled", "won't do", "wont do", "abandoned"})


class Relation(NamedTuple):
    """A page named in a cell: title, and path or URL."""

    title: str
    destination: str


def as_date(text: str) -> str | None:
    """The text as ISO 8601 date, moment or range (`/` between); None if not a date or ambiguous between two days."""
    if len(text) > _MAX_DATE_CHARS:
        return None
    ends = [_one_date(part.strip()) for part in text.split("→")]
    return "/".join(end for end in ends if end) if len(ends) <= 2 and all(ends) else None


def is_checkbox(values: Iterable[str]) -> bool:
    """True if a column holds only checkbox values (yes, no, true, false)."""
    words = {value.strip().lower() for value in values} - {""}
    return bool(words) and words <= _YES.keys()


def relations(text: str) -> list[Relation]:
    """The pages named in a relation cell, in order; empty for an ordinary cell."""
    pages, done = [], 0
    for match in _RELATION.finditer(text):
        title = text[done : match.start()].strip().lstrip(",").strip()
        pages.append(Relation(title, unquote(match[1], errors="replace")))
        done = match.end()
    return pages


def row_metadata(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Task facts in a row's properties: `done`, `status`, `due`, `assignee`, `priority`, `tags`."""
    facts: dict[str, Any] = {}
    columns = {name.strip().casefold(): value for name, value in properties.items()}
    for name, value in columns.items():
        if name in _DONE_COLUMNS and isinstance(value, bool):
            facts["done"] = value
        if not isinstance(value, str) or not value:
            continue
        if name in _STATUS_COLUMNS:
            facts.setdefault("status", value)
        elif name in _ASSIGNEE_COLUMNS:
            facts.setdefault("assignee", value)
        elif name == "priority":
            facts["priority"] = value
        elif name in _TAG_COLUMNS:
            facts["tags"] = [tag.strip() for tag in value.split(",") if tag.strip()]
    if "status" in facts and "done" not in facts:
        facts["done"] = facts["status"].casefold() in _DONE_VALUES | _CANCELLED_VALUES
    # A meeting has a date too, and is not overdue the day after; a date is a task's when the row can be done.
    names = (*_DUE_COLUMNS, "date") if "done" in facts else _DUE_COLUMNS
    due = next((columns[name] for name in names if isinstance(columns.get(name), str) and columns[name]), "")
    day = due.rpartition("/")[2][:10]
    if day and as_date(day) == day:
        facts["due"] = day
    return facts


def last_edited(properties: Mapping[str, Any]) -> str | None:
    """The last-edited time in the row's properties as ISO 8601, or None."""
    values = (value for name, value in properties.items() if name.strip().casefold() in _EDITED_COLUMNS)
    return next((value for value in values if isinstance(value, str) and as_date(value[:10])), None)


def _one_date(text: str) -> str | None:
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            month = int(parts["month"]) if "month" in parts else _month(parts["name"])
            return _iso(int(parts["year"]), month, int(parts["day"]), parts)
    if match := _EITHER_WAY.fullmatch(text):
        first, second, year = map(int, match.groups())
        # 13/11 can only be a day and a month, 11/13 only a month and a day, 5/5 is the same day both ways.
        if first > 12 or first == second:
            return _iso(year, second, first, {})
        if second > 12:
            return _iso(year, first, second, {})
    return None


def _month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()))


def _iso(year: int, month: int, day: int, parts: Mapping[str, str | None]) -> str | None:
    try:
        day_text = date(year, month, day).isoformat()
    except ValueError:
        return None
    if not parts.get("hour"):
        return day_text
    hour, minute = int(parts["hour"] or 0), int(parts["minute"] or 0)
    if half := (parts.get("half") or "").upper():
        hour = hour % 12 + (12 if half == "PM" else 0)
    return f"{day_text}T{hour:02}:{minute:02}" if hour < 24 and minute < 60 else None


@dataclass(frozen=True, slots=True)
class Row:
    """A row: title, remaining values by column, and related pages."""

    title: str
    properties: Mapping[str, Any]
    relations: tuple[Relation, ...] = ()

    @property
    def content(self) -> str:
        """The row as text, a line for each non-empty column."""
        return "\n".join(
            f"{name}: {_SHOWN_TICKS.get(value, value)}" for name, value in self.properties.items() if value != ""
        )


@dataclass(frozen=True, slots=True)
class NotionTable:
    """The columns and rows of a database, and problems like cut cells."""

    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    problems: tuple[str, ...] = ()

    @property
    def ticks(self) -> frozenset[str]:
        """The names of the checkbox columns."""
        first = self.rows[0].properties if self.rows else {}
        return frozenset(name for name, value in first.items() if isinstance(value, bool))


def read_table(text: str) -> NotionTable:
    """The rows of a CSV; the first line names the columns, the first column the rows."""
    problems: dict[str, None] = {}
    # `csv` rejects a whole file for a single long field, unless its limit (shared by all threads) is raised.
    limit = csv.field_size_limit()
    csv.field_size_limit(max(limit, len(text) + 1))
    try:
        lines = [_cut(line, problems) for line in csv.reader(io.StringIO(text, newline="")) if any(line)]
    except csv.Error as error:
        return NotionTable(problems=(f"not read: {error}",))
    finally:
        csv.field_size_limit(limit)
    if not lines:
        return NotionTable(problems=tuple(problems))
    columns = _columns(lines[0], max(map(len, lines)))
    values = [line + [""] * (len(columns) - len(line)) for line in lines[1:]]
    ticks = frozenset(name for at, name in enumerate(columns) if at and is_checkbox(line[at] for line in values))
    rows = [as_row(line[0], dict(zip(columns[1:], line[1:], strict=True)), ticks) for line in values]
    return NotionTable(columns, rows, tuple(problems))


def as_row(title: str, cells: Mapping[str, str], ticks: Iterable[str] = ()) -> Row:
    """A row from cell texts: dates as ISO 8601, checkboxes as booleans, relations as page titles."""
    properties: dict[str, Any] = {}
    related: list[Relation] = []
    for name, cell in cells.items():
        value = cell.strip()
        if name in ticks:
            properties[name] = _YES.get(value.lower(), False)
        elif cell_relations := relations(value):
            related += cell_relations
            properties[name] = ", ".join(relation.title for relation in cell_relations)
        else:
            properties[name] = as_date(value) or value
    return Row(title.strip(), properties, tuple(related))


def _columns(header: list[str], width: int) -> tuple[str, ...]:
    """A unique name for each column, including columns with an empty or repeated header."""
    names: dict[str, None] = {}
    for at in range(width):
        name = header[at].strip() if at < len(header) else ""
        names.setdefault(name if name and name not in names else f"{name or 'Column'} {at + 1}")
    return tuple(names) if len(names) == width else tuple(f"Column {at + 1}" for at in range(width))


def _cut(line: list[str], problems: dict[str, None]) -> list[str]:
    if len(line) > _MAX_COLUMNS:
        problems[f"only the first {_MAX_COLUMNS} columns were read"] = None
    if any(len(cell) > _MAX_CELL_CHARS for cell in line):
        problems[f"cells were cut at {_MAX_CELL_CHARS:,} characters"] = None
    return [cell[:_MAX_CELL_CHARS] for cell in line[:_MAX_COLUMNS]]
