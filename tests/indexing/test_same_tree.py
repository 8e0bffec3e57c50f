"""The same tree, the same index: what is indexed and how it ranks depends on content alone."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pygit2
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel import ContextEngine, open_engine
from satchel.integrations.embedders.static_embedder import StaticEmbedder

QUESTIONS = ("retry backoff", "parse_header", "where is the discount of a customer computed", "guide to recent changes")
NAMES = ("a.py", "b.py", "guide.md", "lib/a.py", "lib/retry.py", "lib/deep/customer.js", "notes/guide.md", "LICENSE")
WORDS = ("retry", "backoff", "header", "parse_header", "discount", "customer", "guide", "recent")
TEXTS = (
    "def {0}_{1}({2}):\n    '''The {0} of a {1}.'''\n    return {2}({0})\n",
    "# {0} {1}\n\nThe {1} is in `{2}`.\n\n## {2}\n\nA {0} has no {2}.\n",
    "{0} = {1}\n\n\nclass {2}:\n    def {1}(self):\n        return {0}\n",
    "",
)
ANN = ("Ann", "ann@example.org")

text = st.builds(
    lambda shape, *words: shape.format(*words) if shape else "",
    st.sampled_from(TEXTS),
    *[st.sampled_from(WORDS)] * 3,
)
edit = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), text),
    st.tuples(st.just("append"), st.sampled_from(NAMES), text),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


@cache
def model() -> StaticEmbedder:
    """Loaded once: it takes longer than an index run."""
    return StaticEmbedder()


class Tree:
    """A folder that changes, as a repository or not."""

    def __init__(self, root: Path, *, is_repository: bool) -> None:
        self.root = root
        root.mkdir()
        self._repository = pygit2.init_repository(str(root)) if is_repository else None
        self._commits = 0

    def change(self, what: str, name: str, more: str) -> None:
        """Write, append to, delete or move a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if what == "write":
            path.write_text(more)
        elif what == "append":
            path.write_text((path.read_text() if path.exists() else "") + more)
        elif what == "delete":
            path.unlink(missing_ok=True)
        elif path.exists():
            (self.root / more).parent.mkdir(parents=True, exist_ok=True)
            path.rename(self.root / more)

    def commit(self) -> None:
        """Commit all files, if this is a repository; two commits each have the same time."""
        repository = self._repository
        if repository is None:
            return
        repository.index.add_all()
        repository.index.write()
        self._commits += 1
        signature = pygit2.Signature(*ANN, 1_700_000_000 + self._commits // 2 * 1000, 0)
        parents = [] if repository.head_is_unborn else [repository.head.target]
        message = f"Change number {self._commits}"
        repository.create_commit("HEAD", signature, signature, message, repository.index.write_tree(), parents)


def answers(engine: ContextEngine) -> list[Any]:
    """The answers of an engine, without the numbers of its index."""
    found = [engine.search(question).hits for question in QUESTIONS]
    return [found, [engine.build(question).context for question in QUESTIONS]]


@settings(max_examples=25)  # each makes up to five indexes, and reads a history in a child for each
@given(runs=st.lists(st.lists(edit, min_size=1, max_size=6), min_size=1, max_size=4), is_repository=st.booleans())
def test_law_an_index_made_in_steps_answers_like_one_made_at_once(
    runs: list[list[tuple[str, str, str]]], is_repository: bool
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="satchel-test-"))
    try:
        tree = Tree(folder / "work", is_repository=is_repository)
        with open_engine(tree.root, index_dir=str(folder / "steps"), embedder=model()) as engine:
            for edits in runs:
                for change in edits:
                    tree.change(*change)
                tree.commit()
                engine.index()
            stepwise = answers(engine)
        with open_engine(tree.root, index_dir=str(folder / "once"), embedder=model()) as engine:
            engine.index()
            assert stepwise == answers(engine)
    finally:
        shutil.rmtree(folder)
