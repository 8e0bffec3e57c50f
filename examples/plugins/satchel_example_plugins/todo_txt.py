"""An importer: the tasks of a todo.txt file (`x 2026-11-02 (A) Call the printer due:2026-12-01`)."""

import re
from collections.abc import Iterator
from pathlib import Path

from satchel.importers import Importer
from satchel.models.block import Block, Record

_DUE = re.compile(r"\bdue:(\d{4}-\d\d-\d\d)\b")


def is_todo_txt(path: Path) -> bool:
    """True for a file of that name."""
    return path.name == "todo.txt" and path.is_file()


def read_todo_txt(path: Path) -> Iterator[Record]:
    """A page with a to-do for each line; what is in a line is its id, so that it survives changes of the others."""
    yield Block(id="todo.txt", type="page", title="To do", source_path=path.name)
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if line.strip():
            due = _DUE.search(line)
            yield Block(
                id=f"todo.txt#{line.removeprefix('x ').strip()[:80]}",
                type="todo",
                source_path=path.name,
                parent="todo.txt",
                position=number,
                start_line=number,
                end_line=number,
                content=line.removeprefix("x ").strip(),
                metadata={"done": line.startswith("x ")} | ({"due": due[1]} if due else {}),
            )


TODO_TXT = Importer(help="a todo.txt file", detect=is_todo_txt, read=read_todo_txt, replaces=("todo.txt",))
