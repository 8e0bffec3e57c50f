"""What a to-do says of itself: whether it is done, when it is due, how much it matters.

The marks are those of Obsidian's Tasks plugin (emoji), of Dataview (`[due:: 2026-11-01]`), of the Kanban plugin
(`@{2026-11-01}`) and what people write without any of them (`due: 2026-11-01`, `@due(2026-11-01)`).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final

from satchel.importers.references import plain_text

_MARK: Final = re.compile(r"\[(.)\](?:[ \t\u00a0]+|(?=\n)|$)")

_STATUS: Final = {" ": "open", "x": "done", "X": "done", "/": "in_progress", "-": "cancelled"}

# As the Tasks plugin has it, what was cancelled is no longer to be done: it cannot be overdue.
_CLOSED: Final = frozenset({"done", "cancelled"})

_DATE_EMOJI: Final = {
    "📅": "due", "📆": "due", "🗓": "due", "⏳": "scheduled", "⌛": "scheduled", "🛫": "start", "✅": "completed",
    "❌": "cancelled", "➕": "created",
}  # fmt: skip
_DATE_WORDS: Final = {
    "due": "due", "deadline": "due", "scheduled": "scheduled", "start": "start", "completion": "completed",
    "completed": "completed", "done": "completed", "cancelled": "cancelled", "created": "created",
}  # fmt: skip
_PRIORITY_EMOJI: Final = {"🔺": "highest", "⏫": "high", "🔼": "medium", "🔽": "low", "⏬": "lowest"}

_DAY: Final = r"(?:\[\[)?(?P<day>\d{4}-\d{2}-\d{2})(?:\]\])?"
_DATE: Final = re.compile(
    rf"(?:(?P<emoji>[{''.join(_DATE_EMOJI)}])\ufe0f?[ \t]{{0,9}}"
    rf"|[\[(]?(?<!\w)@?(?P<word>{'|'.join(_DATE_WORDS)})(?:[ \t]?::?[ \t]{{0,9}}|[ \t]|\()"
    rf"|(?P<card>@)\{{|(?P<linked>@)(?=\[\[))"
    rf"{_DAY}(?:[ T]\d\d:\d\d(?::\d\d)?)?[\])}}]?",
    re.IGNORECASE,
)
_PRIORITY: Final = re.compile(
    rf"(?P<emoji>[{''.join(_PRIORITY_EMOJI)}])\ufe0f?"
    r"|[\[(]?(?<!\w)@?priority(?:[ \t]?::?[ \t]{0,9}|\()(?P<word>highest|high|medium|normal|low|lowest)\b[\])]?",
    re.IGNORECASE,
)
_SPACES: Final = re.compile(r"[ \t]{2,}")
_MOST_TITLE_CHARS: Final = 200


def checkbox(text: str) -> tuple[str, str] | None:
    """The mark in the box at the head of a list item and the text behind it, if it has a box."""
    found = _MARK.match(text)
    return (found[1], text[found.end() :].lstrip("\n")) if found else None


def task_metadata(mark: str, text: str) -> dict[str, Any]:
    """What the mark and the text of a to-do say: `done`, `status`, dates as ISO 8601, `priority`."""
    status = _STATUS.get(mark, "open")
    found: dict[str, Any] = {"done": status in _CLOSED, "status": status}
    if mark not in _STATUS:
        found["mark"] = mark
    for match in _DATE.finditer(text):
        key = _DATE_EMOJI.get(match["emoji"] or "") or _DATE_WORDS.get((match["word"] or "").lower(), "due")
        if _is_day(match["day"]):
            found.setdefault(key, match["day"])
    if priority := _PRIORITY.search(text):
        found["priority"] = _PRIORITY_EMOJI.get(priority["emoji"] or "") or priority["word"].lower()
    return found


def task_title(text: str) -> str:
    """The first line of a to-do without the marks for dates and priority, its links as what they show."""
    line = text.strip().partition("\n")[0]
    bare = _SPACES.sub(" ", _PRIORITY.sub("", _DATE.sub("", line))).strip(" \t·,;–-")
    return plain_text(bare or line)[:_MOST_TITLE_CHARS]


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
