"""An index whose files are damaged at random: each answer is the right one, or an error that says what to do."""

from __future__ import annotations

import os
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from satchel.errors import SatchelError
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.block import Block, BlockType
from satchel.service.engine import ContextEngine
from satchel.service.factory.opening import open_engine
from satchel.service.settings import Settings, index_folder

QUESTIONS = ("how long is the backoff before a retry", "parse_header", "discount of a customer", "note about shipping")
KINDS = ("flip", "zero", "cut", "empty", "older", "remove")
LARGEST_HOLE_BYTES = 4096  # a page of SQLite and of usual file systems


@cache
def model() -> StaticEmbedder:
    """Loaded once: it takes longer than an answer."""
    return StaticEmbedder()


class Outcome(NamedTuple):
    """What was damaged, and how the answers were: `right`, `refused` with an error of ours, or what went wrong."""

    what: str
    quick: str
    """The answer from the index as it is."""
    refreshed: str
    """The answer after an index run."""

    @property
    def is_wrong(self) -> bool:
        """True for an answer that differs in silence, an error that is not ours, and derived data that do not heal."""
        return not {self.quick, self.refreshed} <= ({"right"} if " derived/" in self.what else {"right", "refused"})


class DamagedIndex:
    """A workspace and three states of its index: an older one, the latest, and one whose writer was killed."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "work"
        self._saved = folder / "saved"
        self._place = folder / "index"
        self._index = index_folder(self._root, Settings(index_dir=str(self._place)))
        self._write(0)
        with self._engine() as engine:
            engine.index()
        self._save("older")
        self._write(1)
        with self._engine() as engine:
            engine.index()
        self._save("latest")
        with self._engine() as engine:
            with engine.workspace.edit() as edit:
                edit.put(Block(id="n", type=BlockType.PAGE, title="Shipping", content="A note about shipping."))
            self._save("killed")
        (self._saved / "killed" / "write.lock").write_text("pid 1")
        self._right = {state: self._answers_of(state) for state in ("latest", "killed")}

    def _write(self, version: int) -> None:
        for i in range(8):
            place = self._root / f"shop/part{i}.py"
            place.parent.mkdir(parents=True, exist_ok=True)
            text = (
                f"def discount_{i}(customer):\n    '''The discount of a customer.'''\n    return {i} * customer.sum\n"
            )
            place.write_text(f"{text}\n\n" * (1 + version + i % 3))
        retry = "def backoff(retry):\n    '''How long to wait before a retry.'''\n    return 2 ** retry\n"
        (self._root / "retry.py").write_text(f"# version {version}\n\n\n{retry}")
        (self._root / "guide.md").write_text("# Headers\n\nUse `parse_header` to parse a header.\n\n" * (2 + version))
        (self._root / f"version{version}.py").write_text(
            f"def parse_header(line):\n    return line.split()[{version}]\n"
        )
        if version:
            (self._root / "version0.py").unlink()

    def _engine(self) -> ContextEngine:
        return open_engine(self._root, index_dir=str(self._place), embedder=model(), history_commits=0)

    def _save(self, state: str) -> None:
        shutil.copytree(self._index, self._saved / state)

    def _restore(self, state: str) -> None:
        shutil.rmtree(self._index, ignore_errors=True)
        shutil.copytree(self._saved / state, self._index)

    def _answers_of(self, state: str) -> list[Any]:
        self._restore(state)
        with self._engine() as engine:
            return answers(engine)

    def trial(self, chooser: random.Random) -> Outcome:
        """Damage a file of the index, ask, refresh, and ask again."""
        state = chooser.choice(("latest", "latest", "killed"))
        self._restore(state)
        if chooser.random() < 0.3:
            # A process that has the index open already. (SQLite maps the -shm file, which nobody else may cut then.)
            with self._engine() as engine:
                engine.search(QUESTIONS[0])
                what = f"under a reader, {self._damage(chooser, without='-shm')}"
                quick = self._ask(engine, state)
        else:
            what = self._damage(chooser)
            quick = self._open_and_ask(state)
        return Outcome(f"{state}: {what}", quick, self._open_and_ask(state, refresh=True))

    def _damage(self, chooser: random.Random, without: str = "\0") -> str:
        files = sorted(path for path in self._index.rglob("*") if path.is_file() and without not in path.name)
        path = chooser.choice([path for path in files if path.stat().st_size] or files)
        data, kind = path.read_bytes(), chooser.choice(KINDS)
        at = chooser.randrange(len(data))
        end = min(len(data), at + chooser.randint(1, LARGEST_HOLE_BYTES))
        if kind == "older":
            self._make_older(path)
        elif kind == "remove":
            path.unlink()
        elif kind == "flip":
            write(path, at, bytes([data[at] ^ 1 << chooser.randrange(8)]))
        elif kind == "zero":
            write(path, at, bytes(end - at))
        else:
            os.truncate(path, at if kind == "cut" else 0)
        return f"{kind} {path.relative_to(self._index)} at {at} to {end} of {len(data)}"

    def _make_older(self, path: Path) -> None:
        """Put the file's older version in its place; a segment's, whose name tells the version, under its name."""
        older = self._saved / "older" / path.relative_to(self._index)
        if path.suffix == ".segment":
            older = next((self._saved / "older" / "derived").glob("*.segment"))
        path.unlink()
        if older.exists():
            shutil.copyfile(older, path)

    def _open_and_ask(self, state: str, *, refresh: bool = False) -> str:
        try:
            with self._engine() as engine:
                if refresh:
                    engine.index()
                return self._ask(engine, state)
        except SatchelError:
            return "refused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _ask(self, engine: ContextEngine, state: str) -> str:
        try:
            return "right" if answers(engine) == self._right[state] else "different"
        except SatchelError:
            return "refused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def write(path: Path, at: int, data: bytes) -> None:
    """Write into a file in its place, as a failing disk would."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def answers(engine: ContextEngine) -> list[Any]:
    """The answers of an engine to the questions."""
    hits = [[(hit.id, hit.relevance, hit.content) for hit in engine.search(text).hits] for text in QUESTIONS]
    return [hits, [engine.build(text).context for text in QUESTIONS]]
