"""Questions over notes: how often the whole answer is shown, of imported notes, of plain files, and by BM25.

    SATCHEL_NOTES=FOLDER python -m benchmarks.shown.notes      writes the four collections to FOLDER

The questions are in benchmarks/data/notes; the collections of notes are those below `SATCHEL_NOTES`.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import bm25s

import satchel
from benchmarks.places import ROOT, WORK
from benchmarks.scoreboard.corpora.making import write_below
from benchmarks.scoreboard.corpora.repositories import Repositories, Tree, nearest_mirror
from satchel.service.client import Satchel
from satchel.service.importing import import_source
from satchel.tokens.counter import TokenCounter
from satchel.tokens.registry import counter_for

DATA: Final = ROOT / "benchmarks" / "data" / "notes"
BUDGETS: Final = (1000, 4000)
WAYS: Final = ("imported", "files", "bm25")
"""The notes imported into a workspace, the same folder as plain files, BM25 over the sections of the notes."""

_MOST_SECTIONS: Final = 60  # more than fill the largest budget
_IMAGES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4", ".ico")
_COUNTER: Final = counter_for("o200k_base")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the note and lines with its answer."""

    corpus: str
    question: str
    path: str
    lines: tuple[tuple[int, int], ...]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A public collection of notes: part of a repository at a commit."""

    name: str
    slug: str
    commit: str
    root: str
    without: tuple[str, ...]
    """Beginnings of paths (below the root) that are left out."""
    importer: str


class Answered(NamedTuple):
    """Whether the context for a question shows the whole answer."""

    corpus: str
    question: str
    way: str
    budget: int
    whole: bool
    tokens: int
    error: str = ""
    """Why there is no context: then nothing is shown."""
    is_late: bool = False
    """Whether a collector missed its deadline: on a busy machine less is found."""


def questions() -> list[Question]:
    """The questions."""
    rows = map(json.loads, (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    return [Question(**row | {"lines": tuple((first, last) for first, last in row["lines"])}) for row in rows]


def collections() -> list[Collection]:
    """The collections that the questions are about."""
    rows = json.loads((DATA / "corpora.json").read_text(encoding="utf-8"))
    return [
        Collection(
            **{name: row[name] for name in ("name", "slug", "commit", "root")},
            without=tuple(row.get("without", ())),
            importer=row["kind"],
        )
        for row in rows
    ]


def notes_folder() -> Path | None:
    """The folder of the collections: SATCHEL_NOTES, if it is set."""
    named = os.environ.get("SATCHEL_NOTES")
    return Path(named).expanduser().resolve() if named else None


def missing_collections() -> str:
    """Why the questions cannot be asked here; empty if they can."""
    folder = notes_folder()
    if folder is None:
        return "SATCHEL_NOTES does not name a folder with the notes (benchmarks/data/notes/README.md)"
    absent = [collection.name for collection in collections() if not (folder / collection.name).is_dir()]
    return f"{folder} has no {', '.join(absent)} (benchmarks/data/notes/README.md)" if absent else ""


# Judging: an answer is whole if each of its lines is in the text, both without their markup.

_TAG: Final = re.compile(
    r"</?(?:a|aside|b|br|center|code|details|div|em|hr|i|img|kbd|li|ol|p|pre|small|source|span|strong|sub|summary|sup"
    r"|table|tbody|td|th|thead|tr|u|ul|video)\b[^<>]*>",
    re.IGNORECASE,
)
_FENCE_OR_RULE: Final = re.compile(r"\s*(?:>\s*)*(?:`{3,}|~{3,}).*|[\s|:>-]*")
_LINE_MARKS: Final = re.compile(
    r"\s*(?:(?:>+|[-*+]|\d+[.)])(?:\s+|$)|\[[ xX/!<>-]\]\s+|\[![\w-]+\][+-]?\s*|#{1,6}\s+)+"
)
_REPLACED: Final = (
    (re.compile(r"!\[\[[^\]]*\]\]|!\[[^\]]*\]\([^)]*\)"), " "),  # pictures
    (re.compile(r"\[\[(?:[^\]|]*\|)?([^\]|]*)\]\]"), r"\1"),  # links between notes
    (re.compile(r"\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)"), r"\1"),
    (re.compile(r"\[([^\[\]]+)\]\[[^\]]*\]"), r"\1"),
)
_INLINE_MARKS: Final = re.compile(r"[*_`~|\\]|==")
_LETTER: Final = re.compile(r"\w")
_MIN_LETTERS: Final = 3  # lines with fewer are no part of an answer


def plain_line(line: str) -> str:
    """A line without list marks, check boxes, quotes, headings, emphasis, tags and the targets of its links."""
    if _FENCE_OR_RULE.fullmatch(line):
        return ""
    line = html.unescape(_TAG.sub(" ", re.sub(r"<!--.*?-->", " ", line)))
    for pattern, kept in _REPLACED:
        line = pattern.sub(kept, line)
    if marks := _LINE_MARKS.match(line):
        line = line[marks.end() :]
    return " ".join(_INLINE_MARKS.sub("", line).casefold().split())


def squeezed(text: str) -> str:
    """A text without markup and spaces, to look for lines in."""
    return "".join(map(plain_line, text.splitlines())).replace(" ", "")


def answer_lines(question: Question, folder: Path) -> list[str]:
    """The lines of the answer, without markup and spaces."""
    lines = (folder / question.corpus / question.path).read_text(encoding="utf-8").splitlines()
    wanted = (plain_line(lines[n - 1]) for first, last in question.lines for n in range(first, last + 1))
    return [line.replace(" ", "") for line in wanted if len(_LETTER.findall(line)) >= _MIN_LETTERS]


def share_shown(wanted: Sequence[str], text: str) -> float:
    """The share of the answer's lines that is in a text."""
    shown = squeezed(text)
    return sum(line in shown for line in wanted) / len(wanted)


def without_question(text: str) -> str:
    """The text of a workspace's context before the question at its end, which is no answer."""
    return text.rpartition("\nUser Query:")[0] or text


# Asking


class Built(NamedTuple):
    """The text for a question; whether a collector missed its deadline."""

    text: str = ""
    is_late: bool = False


Build = Callable[[str, int], Built]
"""The context for a question within a budget."""


def ask_collection(name: str) -> list[Answered]:
    """The questions of a collection, asked in each way at each budget, of indexes made from nothing."""
    folder = notes_folder()
    assert folder is not None, "SATCHEL_NOTES is not set"
    collection = next(one for one in collections() if one.name == name)
    asked = [question for question in questions() if question.corpus == name]
    answered: list[Answered] = []
    with tempfile.TemporaryDirectory(prefix="satchel-notes-") as place:
        for way, build in _ways(collection, folder / name, Path(place)):
            for question in asked:
                wanted = answer_lines(question, folder)
                answered += [ask(question, way, build, budget, wanted) for budget in BUDGETS]
    return answered


def ask(question: Question, way: str, build: Build, budget: int, wanted: Sequence[str]) -> Answered:
    """A question asked in a way, with the lines of its answer wanted."""
    built, error = Built(), ""
    try:
        built = build(question.question, budget)
    except Exception as failure:  # a crash is a context without the answer, and the page counts it
        error = repr(failure)[:200]
        print(f"{question.corpus}, {way}, {budget}: {question.question}: {error}", file=sys.stderr)
    return Answered(
        corpus=question.corpus,
        question=question.question,
        way=way,
        budget=budget,
        whole=share_shown(wanted, without_question(built.text)) == 1,
        tokens=_COUNTER.count(built.text),
        error=error,
        is_late=built.is_late,
    )


def _ways(collection: Collection, folder: Path, place: Path) -> Iterator[tuple[str, Build]]:
    home = import_collection(collection, folder, place)
    with satchel.open(home, index_dir=str(place / "imported")) as client:
        yield "imported", partial(_build, client)
    with satchel.open(folder, index_dir=str(place / "files")) as client:
        yield "files", partial(_build, client)
    search = SectionSearch(folder, _COUNTER)
    yield "bm25", lambda question, budget: Built(search.build(question, budget))


def _build(client: Satchel, question: str, budget: int) -> Built:
    context = client.build(question, token_budget=budget)
    return Built(context.text, bool(context.statistics.collectors_failed))


def import_collection(collection: Collection, folder: Path, place: Path) -> Path:
    """Import notes into a new workspace, whose folder is returned; its index is `imported` in the given place."""
    home = place / "workspace"
    home.mkdir(parents=True)
    engine = satchel.open_engine(home, index_dir=str(place / "imported"))
    try:
        import_source(engine.workspace, folder, kind=collection.importer)
    finally:
        engine.close()
    return home


# The peer: what anyone can build in an afternoon


class NoteSection(NamedTuple):
    """A section of a note: the path of the note, its heading and the headings around it, its lines."""

    note: str
    trail: tuple[str, ...]
    text: str


_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")


def sections_of(note: str, text: str) -> Iterator[NoteSection]:
    """The sections of a Markdown text, each up to the next heading."""
    trail: list[str] = []
    body: list[str] = []
    fence = ""
    for line in text.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence and line.strip().startswith(fence) else fence or mark[1]
        heading = None if fence else _HEADING.match(line)
        if heading:
            if any(part.strip() for part in body):
                yield NoteSection(note, tuple(trail), "\n".join(body))
            trail[len(heading[1]) - 1 :] = [heading[2]]
            body = []
        body.append(line)
    if any(part.strip() for part in body):
        yield NoteSection(note, tuple(trail), "\n".join(body))


class SectionSearch:
    """Sections by BM25, best first; the last one is cut at a line to fit."""

    def __init__(self, folder: Path, counter: TokenCounter) -> None:
        self._counter = counter
        self._sections = [section for path in _notes_below(folder) for section in _sections_in(path, folder)]
        self._scores: Any = bm25s.BM25()
        texts = [f"{section.note} {' '.join(section.trail)} {section.text}" for section in self._sections]
        self._scores.index(_words(texts), show_progress=False)

    def build(self, question: str, budget: int) -> str:
        """As much of the best sections as fits the budget."""
        wanted = min(_MOST_SECTIONS, len(self._sections))
        (found,), _ = self._scores.retrieve(_words([question]), k=wanted, show_progress=False)
        text = ""
        for number in found:
            section = self._sections[number]
            written = f"## {section.note}\n{section.text.strip()}\n\n"
            if not self._counter.fits(text + written, budget):
                return self._cut(text, written.splitlines(), budget)
            text += written
        return text

    def _cut(self, text: str, lines: Sequence[str], budget: int) -> str:
        fitting, more = 0, len(lines)
        while fitting < more:
            middle = (fitting + more + 1) // 2
            if self._counter.fits(text + "\n".join(lines[:middle]), budget):
                fitting = middle
            else:
                more = middle - 1
        return text + "\n".join(lines[:fitting])


def _words(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def _notes_below(folder: Path) -> list[Path]:
    notes = sorted(folder.rglob("*.md"))
    return [path for path in notes if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _sections_in(path: Path, folder: Path) -> Iterator[NoteSection]:
    note = path.relative_to(folder).with_suffix("").as_posix()
    return sections_of(note, path.read_text(encoding="utf-8", errors="replace"))


# The collections


def write_collections(folder: Path) -> None:
    """Write the notes of each collection that is not there yet, from a mirror or a clone of its repository."""
    repositories = Repositories(mirror=nearest_mirror(ROOT), clones=WORK / "repositories")
    for collection in collections():
        target = folder / collection.name
        if target.is_dir():
            print(f"{target} is already there")
            continue
        with tempfile.TemporaryDirectory(prefix="satchel-notes-") as place:
            exported = Path(place) / "exported"
            tree = Tree(slug=collection.slug, commit=collection.commit, root=collection.root)
            repositories.export(tree, exported)
            chosen = Path(place) / "chosen"
            copy_notes(exported / collection.root, chosen, collection.without)
            _set_dates(chosen, repositories.date(tree))
            shutil.copytree(chosen, target)
        print(f"{target}: {sum(path.is_file() for path in target.rglob('*'))} files")


def copy_notes(exported: Path, chosen: Path, without: tuple[str, ...]) -> None:
    """Copy the files of a collection: no images, no hidden files but a vault's settings, nothing `without` names."""
    for path in sorted(exported.rglob("*")):
        name = path.relative_to(exported).as_posix()
        is_hidden = name.startswith(".") and not name.startswith(".obsidian/")
        if path.is_file() and not is_hidden and not name.startswith(without) and path.suffix.lower() not in _IMAGES:
            write_below(chosen, name, path.read_bytes())


def _set_dates(folder: Path, seconds: int) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (seconds, seconds))


if __name__ == "__main__":
    if (named := notes_folder()) is None:
        sys.exit("set SATCHEL_NOTES to the folder that the notes are written to")
    write_collections(named)
