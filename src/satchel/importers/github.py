"""Issues and pull requests of GitHub as exported JSON: a page for each, with its discussion below.

Read are the output of `gh issue list --json …` and `gh pr list --json …`, and what the REST API answers for issues,
pull requests and their comments, in one file or in a folder of them. Paths and addresses of source files in a text
become links, so that an issue is connected to the files it speaks of.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from satchel.errors import InvalidInput
from satchel.importers.chat_messages import time_of
from satchel.importers.json_values import Values, dict_of, field_of, first_value, list_of, text_of
from satchel.importers.markdown_blocks import MarkdownPage, lay_out, read_pieces, summary_of
from satchel.importers.storable import Notices, storable, storable_line, unused
from satchel.importers.threads import title_of
from satchel.models.block import Block, BlockType, Link, LinkKind, Record

_MAX_LINKS: Final = 200  # pasted logs name any number of files
_MAX_NAMED: Final = 50  # labels and people kept with an issue
_INSPECTED_FILES: Final = 20  # of a folder, to recognize it

_SAID_FACTS: Final = {"assignee": "assigned to", "milestone": "milestone", "due": "due"}

_ISSUE_URL: Final = re.compile(
    r"https://(?:api\.)?[\w.-]{1,100}/(?:repos/)?([\w.-]{1,100}/[\w.-]{1,100})/(issues|pull|pulls)/(\d{1,9})"
)
_CODE_URL: Final = re.compile(
    r"https://[\w.-]{1,100}/[\w.-]{1,100}/[\w.-]{1,100}/blob/[^/\s]{1,100}/([^\s#?)>\]\"'`]{1,300})"
)
_CODE_PATH: Final = re.compile(r"(?<![\w/.@:-])((?:[\w.@-]{1,80}/){1,12}[\w.@-]{1,80}\.[A-Za-z]\w{0,7})(?![\w/])")
_REFERENCE: Final = re.compile(r"(?<![\w&#/])(?:GH-|#)(\d{1,9})\b")


def is_github_export(path: Path) -> bool:
    """True for JSON whose first value is an issue, a pull request or a comment, and a folder of such files."""
    if path.is_dir():
        names = sorted(name for name in os.listdir(path)[:1_000] if name.endswith((".json", ".jsonl")))
        return any(is_github_export(path / name) for name in names[:_INSPECTED_FILES])
    if path.suffix.lower() not in (".json", ".jsonl") or not path.is_file():
        return False
    value = first_value(path)
    if isinstance(value, list) and not value:
        try:
            with path.open("rb") as file:
                value = next(iter(Values(file, path.name)), None)
        except (InvalidInput, OSError):
            return False
    if isinstance(value, list):
        value = value[0] if value else None
    return isinstance(value, dict) and (_is_issue(value) or _is_comment(value))


def _is_issue(value: Mapping[str, Any]) -> bool:
    is_numbered = isinstance(value.get("number"), int) and isinstance(value.get("title"), str)
    return is_numbered and ("state" in value or "body" in value or _ISSUE_URL.match(_url(value)) is not None)


def _is_comment(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("body"), str) and bool(
        _ISSUE_URL.match(text_of(value, "issue_url", "pull_request_url"))
    )


def _url(value: Mapping[str, Any]) -> str:
    return text_of(value, "html_url", "url")


def read_github(path: Path) -> Iterator[Record]:
    """The issues and pull requests in a file or folder; a Notice for anything left out."""
    export = _Export()
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    for file in files:
        export.add(file)
        yield from export.notices.take()
    if not export.issues:
        raise InvalidInput("path", str(path), "contains no issue or pull request; export with `gh issue list --json`")
    yield from export.records()


class _Remark(NamedTuple):
    """A comment or review: who wrote what and when."""

    author: str
    text: str
    time: object
    path: str = ""
    """The file that a review comment is about."""


@dataclass(slots=True)
class _Issue:
    value: dict[str, Any]
    kind: str
    remarks: list[_Remark]


@dataclass(slots=True)
class _Export:
    issues: dict[tuple[str, int], _Issue] = field(default_factory=dict)
    """By repository and number: both kinds are numbered together."""
    remarks: dict[tuple[str, int], list[_Remark]] = field(default_factory=dict)
    """Comments from files of their own, by the issue they belong to."""
    notices: Notices = field(default_factory=Notices)

    def add(self, path: Path) -> None:
        """Take up the values of a file."""
        where = storable_line(path.name)
        others = 0
        try:
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(number, "rb") as file:
                for value in _flat(Values(file, path.name)):
                    others += not self._add(value)
        except (InvalidInput, OSError) as error:
            reason = error.problem if isinstance(error, InvalidInput) else error.strerror
            self.notices.add(where, f"not read any further: {reason}")
        if others:
            self.notices.add(where, f"{others} values that are no issue, pull request or comment were left out")

    def _add(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if _is_comment(value):
            match = _ISSUE_URL.match(text_of(value, "issue_url", "pull_request_url"))
            assert match is not None
            self.remarks.setdefault((match[1].lower(), int(match[3])), []).append(_remark(value))
            return True
        if not _is_issue(value):
            return False
        match = _ISSUE_URL.match(_url(value))
        is_pull = (match is not None and match[2] != "issues") or bool(
            value.get("pull_request") or "headRefName" in value or "merged_at" in value or "mergedAt" in value
        )
        key = (match[1].lower() if match else "", value["number"])
        inner = [each for name in ("comments", "reviews") for each in list_of(value, name) if isinstance(each, dict)]
        self.issues[key] = _Issue(value, "pull request" if is_pull else "issue", list(map(_remark, inner)))
        return True

    def records(self) -> Iterator[Record]:
        """The blocks of every issue, by number, then the links between them."""
        pages = {key: f"github/{storable_line(key[0])}#{key[1]}".replace("/#", "#") for key in sorted(self.issues)}
        used: dict[str, int] = {}
        links: list[Link] = []
        for position, (key, issue) in enumerate(sorted(self.issues.items())):
            for block in self._blocks(key, issue, unused(pages[key], used), position):
                yield block
                links += _links(block, key[0], pages)
        yield from links
        if without := sum(len(remarks) for key, remarks in self.remarks.items() if key not in self.issues):
            self.notices.add("", f"{without} comments of issues that are not in the export were left out")
        yield from self.notices.take()

    def _blocks(self, key: tuple[str, int], issue: _Issue, page_id: str, position: int) -> Iterator[Block]:
        value = issue.value
        where = storable_line(f"{key[0]}#{key[1]}".lstrip("#") if key[0] else f"#{key[1]}")
        page = MarkdownPage(
            id=page_id,
            source_path=where,
            last_modified=time_of(field_of(value, "updatedAt", "updated_at", "createdAt", "created_at")),
            position=position,
        )
        body = read_pieces(storable(text_of(value, "body")).replace("\r\n", "\n"))
        if body.problem:
            self.notices.add(where, body.problem)
        facts = _facts(issue)
        yield Block(
            id=page_id,
            type=BlockType.PAGE,
            title=f"#{key[1]} {title_of(value['title'])}",
            source_path=where,
            position=position,
            summary=summary_of(body.roots),
            content=_in_words(facts),
            last_modified=page.last_modified,
            metadata=facts,
        )
        last = 0.0
        for block, _ in lay_out(page, body.roots):
            last = block.position
            yield block
        for number, remark in enumerate([*issue.remarks, *self.remarks.get(key, ())], start=1):
            if remark.text.strip():
                yield Block(
                    id=f"{page_id}/comment-{number}",
                    type=BlockType.MESSAGE,
                    parent=page_id,
                    position=last + number,
                    source_path=where,
                    content=storable(remark.text).replace("\r\n", "\n").strip(),
                    last_modified=time_of(remark.time),
                    metadata={"author": remark.author} | ({"file": remark.path} if remark.path else {}),
                )


def _flat(values: Values) -> Iterator[Any]:
    """The values; those of inner lists one by one, as `gh api --paginate --slurp` has pages."""
    for value in values:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict) and isinstance(value.get("items"), list):
            yield from value["items"]
        else:
            yield value


def _remark(value: Mapping[str, Any]) -> _Remark:
    time = field_of(value, "createdAt", "created_at", "submittedAt", "submitted_at")
    return _Remark(_person(value), text_of(value, "body"), time, storable_line(text_of(value, "path")))


def _person(value: Mapping[str, Any]) -> str:
    person = dict_of(value, "author") or dict_of(value, "user")
    return storable_line(text_of(person, "login", "name")) or "ghost"


def _names(value: Mapping[str, Any], name: str) -> list[str]:
    """The names in a list of labels or people."""
    entries = list_of(value, name)[:_MAX_NAMED]
    texts = [entry if isinstance(entry, str) else text_of(entry, "name", "login") for entry in entries if entry]
    return [storable_line(text) for text in texts if text]


def _facts(issue: _Issue) -> dict[str, Any]:
    """Facts of an issue as a task: state, people, labels, and the milestone with its date."""
    value = issue.value
    state = text_of(value, "state").lower() or "open"
    is_merged = state == "merged" or bool(field_of(value, "mergedAt", "merged_at"))
    milestone = dict_of(value, "milestone")
    due = time_of(field_of(milestone, "dueOn", "due_on"))
    facts = {
        "source": "github",
        "kind": issue.kind,
        "status": "merged" if is_merged else state,
        "done": is_merged or state == "closed",
        "author": _person(value),
        "assignee": ", ".join(_names(value, "assignees")),
        "tags": _names(value, "labels"),
        "milestone": storable_line(text_of(milestone, "title")),
        "due": due.date().isoformat() if due else "",
        "url": storable_line(_url(value)),
        "reason": storable_line(text_of(value, "stateReason", "state_reason").lower()),
    }
    return {name: fact for name, fact in facts.items() if fact not in ("", [], None)}


def _in_words(facts: Mapping[str, Any]) -> str:
    """The facts that a reader of the issue sees beside its title."""
    said = [f"{facts['status'].capitalize()} {facts['kind']} by {facts['author']}"]
    said += [f"{word} {facts[name]}" for name, word in _SAID_FACTS.items() if name in facts]
    return "; ".join([*said, *([f"labels: {', '.join(facts['tags'])}"] if "tags" in facts else [])])


def _links(block: Block, repository: str, pages: Mapping[tuple[str, int], str]) -> list[Link]:
    """Links of a text to other issues, and to the files that it names."""
    text = f"{block.title}\n{block.content}" if block.type != BlockType.PAGE else block.title.partition(" ")[2]
    own = block.id.partition("/comment-")[0].partition("#~")[0]
    targets = {
        pages[key]: None
        for match in [*_REFERENCE.finditer(text), *_ISSUE_URL.finditer(text)]
        if (key := _key_of(match, repository)) in pages and pages[key] != own
    }
    places = [unquote(match[1], errors="replace") for match in _CODE_URL.finditer(text)]
    files = dict.fromkeys(map(storable_line, [*places, *_CODE_PATH.findall(text)]))
    if isinstance(file := block.metadata.get("file"), str):
        files = {file: None} | files
    links = [Link(source=block.id, kind=LinkKind.MENTIONS, target=target) for target in [*targets, *files]]
    return links[:_MAX_LINKS]


def _key_of(match: re.Match[str], repository: str) -> tuple[str, int]:
    if match.re is _REFERENCE:
        return repository, int(match[1])
    return match[1].lower(), int(match[3])
