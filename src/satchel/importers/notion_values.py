"""What the cells of a Notion database say: dates, checkboxes, relations, and whether a row is done or due."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

_MONTHS: Final = "january february march april may june july august september october november december".split()
_YES: Final = {"yes": True, "true": True, "no": False, "false": False}

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
_LONGEST_DATE: Final = 80

_RELATION: Final = re.compile(r"\((\S{1,500}?\.(?:md|csv)|https://(?:www\.)?notion\.so/\S{1,500}?)\)(?=\s*(?:,|$))")

_DONE_COLUMNS: Final = frozenset({"done", "complete", "completed", "finished", "done?", "completed?"})
_STATUS_COLUMNS: Final = frozenset({"status", "state", "stage"})
_TAG_COLUMNS: Final = frozenset({"tags", "tag", "labels"})
_DUE_COLUMNS: Final = ("due", "due date", "due on", "deadline")
_EDITED_COLUMNS: Final = frozenset({"last edited time", "last edited", "updated", "last updated", "modified"})
_DONE_VALUES: Final = frozenset(
    {"done", "complete", "completed", "closed", "finished", "resolved", "shipped", "archived", "✅ done", "done ✅"}
)
# What was cancelled is no longer to be done, as in `tasks`.
_CANCELLED_VALUES: Final = frozenset({"cancelled", "canceled", "won't do", "wont do", "abandoned"})


class Relation(NamedTuple):
    """A page that a cell names: its title, and the path or address behind it."""

    title: str
    destination: str


def as_date(text: str) -> str | None:
    """The text as an ISO date or moment, or a range of them with `/` between; nothing where it could mean two days."""
    if len(text) > _LONGEST_DATE:
        return None
    ends = [_one_date(part.strip()) for part in text.split("→")]
    return "/".join(end for end in ends if end) if len(ends) <= 2 and all(ends) else None


def is_checkbox(values: Iterable[str]) -> bool:
    """Whether a column holds nothing but ticks."""
    said = [value.strip().lower() for value in values if value.strip()]
    return bool(said) and all(value in _YES for value in said)


def as_tick(text: str) -> bool:
    """Whether a checkbox is ticked; an empty one is not."""
    return _YES.get(text.strip().lower(), False)


def relations(text: str) -> list[Relation]:
    """The pages that a relation's cell names, in its order; none when it is an ordinary cell."""
    found, done = [], 0
    for match in _RELATION.finditer(text):
        title = text[done : match.start()].strip().lstrip(",").strip()
        found.append(Relation(title, unquote(match[1], errors="replace")))
        done = match.end()
    return found


def row_metadata(properties: Mapping[str, Any]) -> dict[str, Any]:
    """What a row's properties say of it as a task: `done`, `status`, `due`, `priority`, `tags`."""
    found: dict[str, Any] = {}
    columns = {name.strip().casefold(): value for name, value in properties.items()}
    for name, value in columns.items():
        if name in _STATUS_COLUMNS and isinstance(value, str) and value:
            found.setdefault("status", value)
        elif name in _DONE_COLUMNS and isinstance(value, bool):
            found["done"] = value
        elif name == "priority" and isinstance(value, str) and value:
            found["priority"] = value
        elif name in _TAG_COLUMNS and isinstance(value, str) and value:
            found["tags"] = [tag.strip() for tag in value.split(",") if tag.strip()]
    if "status" in found and "done" not in found:
        found["done"] = found["status"].casefold() in _DONE_VALUES | _CANCELLED_VALUES
    # A meeting has a date too, and is not overdue the day after; a date is a task's when the row can be done.
    names = (*_DUE_COLUMNS, "date") if "done" in found else _DUE_COLUMNS
    due = next((columns[name] for name in names if isinstance(columns.get(name), str) and columns[name]), "")
    day = due.rpartition("/")[2][:10]
    if day and as_date(day) == day:
        found["due"] = day
    return found


def last_edited(properties: Mapping[str, Any]) -> str | None:
    """When the row says that it was changed, as ISO 8601."""
    said = (value for name, value in properties.items() if name.strip().casefold() in _EDITED_COLUMNS)
    return next((value for value in said if isinstance(value, str) and as_date(value[:10])), None)


def _one_date(text: str) -> str | None:
    for pattern in _DATES:
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            month = int(parts["month"]) if "month" in parts else _month(parts["name"])
            return _iso(int(parts["year"]), month, int(parts["day"]), parts)
    if found := _EITHER_WAY.fullmatch(text):
        first, second, year = (int(part) for part in found.groups())
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
        found = date(year, month, day).isoformat()
    except ValueError:
        return None
    if not parts.get("hour"):
        return found
    hour, minute = int(parts["hour"] or 0), int(parts["minute"] or 0)
    if half := (parts.get("half") or "").upper():
        hour = hour % 12 + (12 if half == "PM" else 0)
    return f"{found}T{hour:02}:{minute:02}" if hour < 24 and minute < 60 else None
