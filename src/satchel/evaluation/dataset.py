"""Datasets: questions with the expected content of a good context, as JSON lines.

    {"query": "where is the backoff computed", "files": ["src/retry.py"]}
    {"query": "who may cancel?", "pages": ["contract.pdf#page=3"], "phrases": [["thirty days", "30 days"]]}

Every entry of `files`, `lines` (`path:first-last`), `pages` (`path#page=n`) and `phrases` is expected. A list of
phrases is found if any of the phrases is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from satchel.errors import InvalidInput

# All questions are held in memory; a larger file is refused instead of filling the memory.
MAX_DATASET_BYTES: Final = 256_000_000
_FIELDS: Final = ("id", "query", "files", "lines", "pages", "phrases", "enough", "user", "group")
_WANTED: Final = ("files", "lines", "pages", "phrases")
_LINES: Final = re.compile(r"(?P<path>.+):(?P<first>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))?")
_PAGE: Final = re.compile(r"(?P<path>.+)#page=(?P<page>[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """An expected item of a good context: a file, lines or a page of a file, or any of several phrases."""

    path: str = ""
    first: int | None = None
    last: int | None = None
    page: int | None = None
    phrases: tuple[str, ...] = ()
    enough: float = 0.9
    """Minimum share of a long phrase's runs of five words in a matching text."""

    def __str__(self) -> str:
        if self.phrases:
            return " | ".join(repr(phrase) for phrase in self.phrases)
        if self.page is not None:
            return f"{self.path}#page={self.page}"
        return self.path if self.first is None else f"{self.path}:{self.first}-{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalQuestion:
    """A question with the user who asks and the expected items of the context."""

    id: str
    query: str
    expected: tuple[Expected, ...]
    user: str | None = None
    group: str = ""

    @property
    def mark(self) -> str:
        """Hash of the expected items and the user; changes if either changes."""
        from hashlib import blake2b

        return blake2b(repr((self.expected, self.user)).encode(), digest_size=8).hexdigest()


def read_dataset(path: Path) -> list[EvalQuestion]:
    """The questions in a file; an error names the line of the invalid question."""
    if path.stat().st_size > MAX_DATASET_BYTES:
        raise InvalidInput("dataset", str(path), f"is longer than {MAX_DATASET_BYTES:,} bytes")
    questions: list[EvalQuestion] = []
    lines_of: dict[str, int] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        question = question_from(_decoded(line, where), where=where)
        if question.id in lines_of:
            problem = f"is also the id in line {lines_of[question.id]}; give each question its own id ({where})"
            raise InvalidInput("id", question.id, problem)
        lines_of[question.id] = number
        questions.append(question)
    if not questions:
        raise InvalidInput("dataset", str(path), 'contains no questions; a line is {"query": "…", "files": ["…"]}')
    return questions


def question_from(fields: Any, *, where: str = "question") -> EvalQuestion:
    """The question in a JSON object."""
    if not isinstance(fields, Mapping):
        raise InvalidInput("question", fields, f'must be an object like {{"query": "…", "files": ["…"]}} ({where})')
    for name in fields:
        if name not in _FIELDS:
            problem = f"is not a field of a question; known fields: {', '.join(_FIELDS)} ({where})"
            raise InvalidInput(name, fields[name], problem)
    query = _text(fields, "query", where)
    if not query.strip():
        raise InvalidInput("query", query, f"must not be empty ({where})")
    expected = tuple(_expected(fields, where))
    if not expected:
        raise InvalidInput("question", query, f"has no expected result; add one of {', '.join(_WANTED)} ({where})")
    texts = {name: _text(fields, name, where) for name in ("id", "user", "group") if fields.get(name)}
    return EvalQuestion(**{"id": query, **texts}, query=query, expected=expected)


def _decoded(line: bytes, where: str) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        begin = line[:60].decode("utf-8", "replace")
        raise InvalidInput("question", begin, f"is not JSON ({where}): {error}") from None


def _text(fields: Mapping[str, Any], name: str, where: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise InvalidInput(name, value, f"must be a string ({where})")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(name, ascii(value), f"contains a lone surrogate ({where})") from None
    return value


def _expected(fields: Mapping[str, Any], where: str) -> Iterator[Expected]:
    for name in _WANTED:
        entries = fields.get(name) or ()
        if isinstance(entries, str) or not isinstance(entries, list | tuple):
            raise InvalidInput(name, entries, f"must be a list ({where})")
        for entry in entries:
            yield _phrase(entry, fields.get("enough", 0.9), where) if name == "phrases" else _place(name, entry, where)


def _place(name: str, entry: Any, where: str) -> Expected:
    if not isinstance(entry, str) or not entry.strip():
        raise InvalidInput(name, entry, f"must be paths relative to the folder ({where})")
    if name == "files":
        return Expected(path=_path(entry))
    if name == "pages":
        place = _PAGE.fullmatch(entry)
        if place is None:
            raise InvalidInput(name, entry, f"must be like report.pdf#page=3 ({where})")
        return Expected(path=_path(place["path"]), page=int(place["page"]))
    place = _LINES.fullmatch(entry)
    first, last = (int(place["first"]), int(place["last"] or place["first"])) if place else (1, 0)
    if place is None or last < first:
        raise InvalidInput(name, entry, f"must be like src/app.py:10-20 ({where})")
    return Expected(path=_path(place["path"]), first=first, last=last)


def _path(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def _phrase(entry: Any, enough: Any, where: str) -> Expected:
    texts = (entry,) if isinstance(entry, str) else tuple(entry) if isinstance(entry, list) else ()
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidInput("phrases", entry, f"must be strings, or lists of alternative strings ({where})")
    if not all(any(map(str.isalnum, text)) for text in texts):
        raise InvalidInput("phrases", entry, f"must contain letters or digits ({where})")
    if isinstance(enough, bool) or not isinstance(enough, int | float) or not 0 < enough <= 1:
        raise InvalidInput("enough", enough, f"must be a number from 0 to 1 ({where})")
    return Expected(phrases=texts, enough=float(enough))
