"""Markup in a note: front matter, links, embeds and tags (outside of code), and to-dos.

Front matter is YAML that is read without trusting who wrote it. The marks of to-dos are those of Obsidian's Tasks
plugin (emoji), of Dataview (`[due:: 2026-11-01]`), of the Kanban plugin (`@{2026-11-01}`) and what people write without
any of them (`due: 2026-11-01`, `@due(2026-11-01)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from satchel.importers.storable import as_json

MAX_CHARS: Final = 65_536
"""Limit of front matter, which is parsed in memory; longer front matter is taken as text."""
_MAX_YAML_DEPTH: Final = 20  # properties are values and lists; the limit bounds the recursion over untrusted YAML
_FENCE: Final = "---"

# As in YAML 1.2, which Obsidian reads: `no` is a word, and 12:30 a time, not 750 seconds.
_SCALARS: Final = {
    "bool": (re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    "int": (re.compile(r"^[-+]?[0-9]{1,18}$"), "-+0123456789"),
    "float": (re.compile(r"^[-+]?[0-9]{1,30}\.[0-9]{1,30}(?:[eE][-+]?[0-9]{1,3})?$"), "-+0123456789"),
}

# Exceptions of PyYAML's constructors for an invalid date, an empty number, or a tag on the wrong value.
_UNBUILDABLE: Final = (ValueError, LookupError, AttributeError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a note: properties and line count, or the raw text and the problem if unreadable."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    lines: int = 0
    problem: str = ""
    unread: str = ""


class _Refused(Exception):
    """The front matter is unsupported: not YAML, no mapping, with aliases, or nested too deeply."""


def read_front_matter(text: str) -> FrontMatter:
    """The properties at the head of a text; empty if absent or unreadable."""
    if not text.startswith(_FENCE) or text.partition("\n")[0].rstrip() != _FENCE:
        return FrontMatter()
    head = text[: MAX_CHARS + 1].split("\n")
    end = next((row for row, line in enumerate(head[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        too_long = f"front matter of more than {MAX_CHARS:,} characters was imported as text"
        return FrontMatter(problem=too_long if len(text) > MAX_CHARS else "")
    source = "\n".join(head[1:end])
    try:
        return FrontMatter(_loaded(source + "\n"), end + 1)
    except _Refused as refused:
        return FrontMatter(lines=end + 1, problem=f"front matter was imported as text: {refused}", unread=source)


def _loaded(source: str) -> dict[str, Any]:
    yaml = _yaml()
    try:
        _check_shape(source)
        try:
            properties = yaml.load(source, Loader=_loader())
        except (*_UNBUILDABLE, yaml.constructor.ConstructorError):
            # Read every value as plain text, without constructors.
            properties = yaml.load(source, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _Refused("not valid YAML") from error
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        raise _Refused("not a mapping of properties")
    return {str(key): value for key, value in as_json(properties).items()}


def _check_shape(source: str) -> None:
    """Refuse YAML with unbounded growth: aliases (billion-laughs attack) and deep nesting."""
    yaml = _yaml()
    depth = 0
    for event in yaml.parse(source, Loader=_loader()):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _Refused("YAML anchors and aliases are not supported")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_YAML_DEPTH:
            raise _Refused(f"nested more than {_MAX_YAML_DEPTH} levels deep")


@lru_cache(maxsize=1)
def _loader() -> Any:
    yaml = _yaml()

    class ObsidianLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """YAML's safe types, limited to the types of Obsidian."""

    tags = ("null", "timestamp", "merge")
    ObsidianLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in tags]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for name, (pattern, first) in _SCALARS.items():
        ObsidianLoader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", pattern, list(first))
    return ObsidianLoader


def _yaml() -> Any:
    """The PyYAML module, imported late: most runs need no YAML, and PyYAML has no type hints."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    return yaml


_BACKTICKS: Final = re.compile("`+")
_WIKILINK: Final = re.compile(r"(!?)\[\[([^\[\]\n]{1,1000})\]\]")
_MARKDOWN_LINK: Final = re.compile(
    r"(!?)\[([^\[\]]{0,1000})\]\(\s{0,9}(?:<([^<>\n]{1,2000})>|([^\s()<]{1,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,9}))"
    r"(?:\s{1,9}(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'))?\s{0,9}\)"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:|//")
_TAG: Final = re.compile(r"(?:^|(?<=[\s(]))#((?:[\w/-]|[^\x00-\x7f\s\u2000-\u206f\u3000-\u303f]){1,200})")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".svg", ".webp", ".avif", ".heic", ".tif", ".tiff")


@dataclass(frozen=True, slots=True)
class Reference:
    """A link as written: destination (without brackets or alias), shown text, and syntax."""

    destination: str
    shown: str
    embeds: bool
    wiki: bool

    @property
    def is_image(self) -> bool:
        """True if the destination is an image file."""
        return self.destination.partition("#")[0].lower().endswith(IMAGES)

    @property
    def is_external(self) -> bool:
        """True if the link leads out of the workspace."""
        return not self.wiki and bool(_SCHEME.match(self.destination))


def without_code(text: str) -> str:
    """The text with code spans blanked; all remaining characters keep their offsets."""
    if "`" not in text:
        return text
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    closers: dict[int, list[int]] = {}
    for at in range(len(runs) - 1, -1, -1):
        closers.setdefault(runs[at][1] - runs[at][0], []).append(at)
    parts, done, at = [], 0, 0
    while at < len(runs):
        start, end = runs[at]
        later = closers[end - start]
        while later and later[-1] <= at:
            later.pop()
        if not later:
            at += 1
            continue
        close = later.pop()
        parts += [text[done:start], " " * (runs[close][1] - start)]
        done, at = runs[close][1], close + 1
    return "".join([*parts, text[done:]])


def references(text: str) -> Iterator[Reference]:
    """Every link and embed in the text outside of code: first all wikilinks, then all Markdown links."""
    if "[" not in text:
        return
    plain = without_code(text)
    for match in _WIKILINK.finditer(plain):
        # In a table the bar before an alias is escaped.
        destination, _, alias = match[2].replace("\\|", "|").partition("|")
        yield Reference(destination.strip(), (alias or destination).strip(), bool(match[1]), wiki=True)
    for match in _MARKDOWN_LINK.finditer(plain):
        written = _ESCAPED.sub(r"\1", match[3] or match[4])
        # Take the label from the original text: a code span in a label is blanked in `plain`.
        start, end = match.span(2)
        yield Reference(_unquoted(written), text[start:end], bool(match[1]), wiki=False)


def only_embed(text: str) -> Reference | None:
    """The embed if the text is a single embed and nothing else, or None."""
    if not text.startswith("![") or not text.endswith((")", "]]")):
        return None
    for pattern in (_WIKILINK, _MARKDOWN_LINK):
        if pattern.fullmatch(text):
            return next(references(text), None)
    return None


def tags(text: str) -> list[str]:
    """The `#tags` in the text outside of code, without `#`; a tag must hold more than digits."""
    if "#" not in text:
        return []
    names = (match[1].rstrip("/-") for match in _TAG.finditer(without_code(text)))
    return [name for name in names if name and not name.isdigit()]


def plain_text(text: str) -> str:
    """The text with links replaced by their labels and without bold marks, for a summary or a title."""
    text = text.replace("**", "")
    text = _WIKILINK.sub(lambda match: match[2].replace("\\|", "|").rpartition("|")[2].strip(), text)
    return _MARKDOWN_LINK.sub(lambda match: match[2], text)


def _unquoted(written: str) -> str:
    if "%" not in written:
        return written
    # What is not UTF-8 after decoding was not meant to be decoded.
    try:
        return unquote(written, errors="strict")
    except UnicodeDecodeError:
        return written


_MARK: Final = re.compile(r"\[(.)\](?:[ \t\u00a0]+|(?=\n)|$)")

# The words of Logseq and org-mode in front of a to-do, with the checkbox that says the same.
_STATE_WORDS: Final = {
    "TODO": " ", "LATER": " ", "WAITING": " ", "WAIT": " ", "DOING": "/", "NOW": "/", "IN-PROGRESS": "/", "DONE": "x",
    "CANCELED": "-", "CANCELLED": "-",
}  # fmt: skip
_STATE_WORD: Final = re.compile(rf"({'|'.join(_STATE_WORDS)})[ \t]+(?=\S)")

_STATUS: Final = {" ": "open", "x": "done", "X": "done", "/": "in_progress", "-": "cancelled"}

# As in the Tasks plugin, a cancelled task counts as closed and cannot be overdue.
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

_PRIORITY_LETTERS: Final = {"A": "high", "B": "medium", "C": "low"}

_DAY: Final = r"(?:\[\[)?(?P<day>\d{4}-\d{2}-\d{2})(?:\]\])?"
_DATE: Final = re.compile(
    rf"(?:(?P<emoji>[{''.join(_DATE_EMOJI)}])\ufe0f?[ \t]{{0,9}}"
    rf"|[\[(]?(?<!\w)@?(?P<word>{'|'.join(_DATE_WORDS)})(?:[ \t]?::?[ \t]{{0,9}}<?|[ \t]|\()"
    rf"|(?P<card>@)\{{|(?P<linked>@)(?=\[\[))"
    rf"{_DAY}(?:[ T]\d\d:\d\d(?::\d\d)?)?(?:[\])}}]|[ \t]?[^<>\n]{{0,24}}>)?",
    re.IGNORECASE,
)
_PRIORITY: Final = re.compile(
    rf"(?P<emoji>[{''.join(_PRIORITY_EMOJI)}])\ufe0f?|\[#(?P<letter>[ABC])\]"
    r"|[\[(]?(?<!\w)@?priority(?:[ \t]?::?[ \t]{0,9}|\()(?P<word>highest|high|medium|normal|low|lowest)\b[\])]?",
    re.IGNORECASE,
)
_SPACES: Final = re.compile(r"[ \t]{2,}")
_MAX_TITLE_CHARS: Final = 200  # a title is a line in a list; the to-do's content is not cut


def checkbox(text: str) -> tuple[str, str] | None:
    """The mark of a to-do, as in a checkbox, and the text behind its box or state word; None for other items."""
    if match := _MARK.match(text):
        return match[1], text[match.end() :].lstrip("\n")
    match = _STATE_WORD.match(text)
    return (_STATE_WORDS[match[1]], text[match.end() :]) if match else None


def task_metadata(mark: str, text: str) -> dict[str, Any]:
    """Facts in the mark and text of a to-do: `done`, `status`, dates as ISO 8601, `priority`."""
    status = _STATUS.get(mark, "open")
    facts: dict[str, Any] = {"done": status in _CLOSED, "status": status}
    if mark not in _STATUS:
        facts["mark"] = mark
    for match in _DATE.finditer(text):
        key = _DATE_EMOJI.get(match["emoji"] or "") or _DATE_WORDS.get((match["word"] or "").lower(), "due")
        if _is_day(match["day"]):
            facts.setdefault(key, match["day"])
    if priority := _PRIORITY.search(text):
        named = _PRIORITY_EMOJI.get(priority["emoji"] or "") or _PRIORITY_LETTERS.get(priority["letter"] or "")
        facts["priority"] = named or priority["word"].lower()
    return facts


def task_title(text: str) -> str:
    """The first line of a to-do without date and priority marks, links replaced by their labels."""
    line = text.strip().partition("\n")[0]
    bare = _SPACES.sub(" ", _PRIORITY.sub("", _DATE.sub("", line))).strip(" \t·,;–-")
    return plain_text(bare or line)[:_MAX_TITLE_CHARS]


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
