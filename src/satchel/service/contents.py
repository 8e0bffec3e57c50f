"""What there is to ask about: documents, notes, tasks and files, and questions that these suggest.

For the first page that a person sees, and for the completion of a focus. Nothing is ranked; everything is limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from satchel.models.block import BlockType
from satchel.models.files import kind_of
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.block import Block
    from satchel.models.outline import OutlineBlock
    from satchel.models.search import Filters
    from satchel.ports.store import Store

MAX_LISTED: Final = 500
"""Of each kind; a page shows no more, and the search finds the rest."""

_QUESTIONS: Final = 5  # as many as stand on a page without scrolling
_LOOKED_AT: Final = 24  # files whose definitions or headings may suggest a question
_LONGEST_NAME: Final = 60  # characters of a title in a question
_SHORTEST_NAME: Final = 5  # of a definition; shorter ones are everywhere
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][\w.:]*")
_GENERIC: Final = frozenset("main init setup test tests run get set args name value introduction contents".split())


@dataclass(frozen=True, slots=True)
class Named:
    """Something that can be opened, or focused on, by its id."""

    id: str
    title: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the reader may read, at most `MAX_LISTED` of each kind, and questions about it."""

    documents: tuple[Named, ...] = ()
    notes: tuple[Named, ...] = ()
    tasks: tuple[Named, ...] = ()
    files: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

    def under(self, shown: Callable[[str], str]) -> Contents:
        """The same with other paths and ids."""

        def named(each: Named) -> Named:
            return replace(each, id=shown(each.id))

        return replace(
            self,
            documents=tuple(map(named, self.documents)),
            notes=tuple(map(named, self.notes)),
            tasks=tuple(map(named, self.tasks)),
            files=tuple(map(shown, self.files)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The contents as a JSON-compatible dictionary."""
        return asdict(self)


def contents_of(store: Store, filters: Filters, now: datetime) -> Contents:
    """List what the readers of the filters may read."""
    with store.snapshot():
        documents = [Named(path, path.rpartition("/")[2], path) for path in sorted(store.documents(filters))]
        notes = [_named(page, _kind(page)) for page in store.pages(filters, limit=MAX_LISTED)]
        tasks = [_named(task, _due(task)) for task in store.tasks(filters, done=False, limit=MAX_LISTED)]
        files = sorted(store.files())
        if filters.readers is not None:
            files = list(islice((path for path in files if store.blocks_of(path, filters)), MAX_LISTED))
        questions = [*_about_tasks(store, filters, now), *_about_notes(notes), *_about_files(store, files, filters)]
    return Contents(
        documents=tuple(documents[:MAX_LISTED]),
        notes=tuple(notes),
        tasks=tuple(tasks),
        files=tuple(files[:MAX_LISTED]),
        questions=tuple(dict.fromkeys(questions))[:_QUESTIONS],
    )


def joined(parts: Sequence[Contents]) -> Contents:
    """The contents of several roots as one; each root's first questions first."""
    every = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Contents)}
    questions = [each for row in zip_longest(*every.pop("questions")) for each in row if each]
    listed = {name: tuple(chain.from_iterable(values))[:MAX_LISTED] for name, values in every.items()}
    return Contents(**listed, questions=tuple(dict.fromkeys(questions))[:_QUESTIONS])


def _named(block: Block, detail: str) -> Named:
    return Named(block.id, make_visible_line(block.title or block.id).text, detail)


def _kind(page: Block) -> str:
    return "" if page.type == BlockType.PAGE else page.type.replace("_", " ")


def _due(task: Block) -> str:
    return str(task.metadata.get("due") or "")[:10]


def _about_tasks(store: Store, filters: Filters, now: datetime) -> Iterator[str]:
    if store.tasks(filters, done=False, due_before=now, limit=1):
        yield "Which tasks are overdue?"
    elif store.tasks(filters, done=False, limit=1):
        yield "Which tasks are due next?"


def _about_notes(notes: Sequence[Named]) -> Iterator[str]:
    """Questions about two notes, a third and two thirds down the list: the first are often of dates."""
    titled = [note.title for note in notes if note.detail != BlockType.FILE.value and _is_telling(note.title)]
    for share in (1, 2):
        if titled:
            yield f"What do we know about {titled[len(titled) * share // 3]}?"


def _about_files(store: Store, files: Sequence[str], filters: Filters) -> Iterator[str]:
    """Questions about what files define or say, one for each of some files, those of code first."""
    kinds = {path: kind_of(path) for path in files}
    plain = [path for path, kind in kinds.items() if not (kind.test or kind.vendor or kind.example or kind.legacy)]
    code = [path for path in plain if not (kinds[path].prose or kinds[path].config or kinds[path].unknown)]
    prose = [path for path in plain if path not in set(code)]
    yield from _suggested(store, _spread(code), filters, "How does {} work?", is_code=True)
    yield from _suggested(store, _spread(prose), filters, "What is said about {}?", is_code=False)


def _spread(paths: Sequence[str]) -> list[str]:
    """Some of the files, from all over the folder."""
    return list(paths[:: max(1, len(paths) // _LOOKED_AT)][:_LOOKED_AT])


def _suggested(store: Store, paths: Sequence[str], filters: Filters, question: str, *, is_code: bool) -> Iterator[str]:
    outlines = [store.outline_of(path, filters) for path in paths]
    # A file with much in it is more central than one with little.
    for outline in sorted(outlines, key=len, reverse=True):
        if named := [block for block in outline if _suggests(block, is_code=is_code)]:
            # The longest says most, and is what the file is about.
            block = max(named, key=lambda block: block.last_line - block.first_line)
            yield question.format(block.qualified if is_code else f"“{block.name.strip()}”")


def _suggests(block: OutlineBlock, *, is_code: bool) -> bool:
    if is_code:
        is_compound = "_" in block.name.strip("_") or any(sign.isupper() for sign in block.name[1:])
        is_long = is_compound and len(block.name) >= _SHORTEST_NAME
        return bool(block.doc) and is_long and _PLAIN_NAME.fullmatch(block.qualified) is not None
    return block.type == BlockType.SECTION and block.parent >= 0 and _is_telling(block.name)


def _is_telling(title: str) -> bool:
    """True for a title of two words or more that is no date, and short enough for a question."""
    words = re.findall(r"[^\W\d_]{2,}", title)
    is_plain = make_visible_line(title).text == title and not set(title) & set("`[]<>|*#")
    return len(words) >= 2 and len(title) <= _LONGEST_NAME and is_plain and words[0].lower() not in _GENERIC
