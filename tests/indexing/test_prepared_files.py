"""Prepared files of earlier runs: the key has all that matters, and an index made with them is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.indexing.parse import read_outline
from satchel.indexing.prepared_files import prepared_key, reader_version
from satchel.indexing.tree_sketch import likeness, sketch_of
from satchel.models.search import Filters
from satchel.service.engine import ContextEngine
from satchel.service.factory.opening import open_engine
from tests.support.documents import text_pdf

CODE = "def add(a, b):\n    return a + b\n\n\nclass Shop:\n    def sell(self):\n        return add(1, 2)\n"
NAMES = st.from_regex(r"[A-Za-z._-]{1,12}\.(py|PY|h|tsx|ts|md|txt|xyz)|\.tsx|Makefile|a/b\.c/d", fullmatch=True)


@given(one=NAMES, other=NAMES, text=st.sampled_from([CODE, "class A { int x; };\n", "# Head\n\ntext\n"]))
def test_law_files_of_one_key_are_read_alike(one: str, other: str, text: str) -> None:
    if prepared_key(one, b"same") == prepared_key(other, b"same"):
        assert read_outline(one, text) == read_outline(other, text)


def test_the_key_depends_on_content_ending_and_way_of_reading() -> None:
    keys = {
        prepared_key("a/x.py", b"1"),
        prepared_key("b/y.py", b"1"),
        prepared_key("x.py", b"2"),
        prepared_key("x.js", b"1"),
        prepared_key("x.pdf", b"1"),
        prepared_key("x.pdf", b"1", way="ocr"),
        prepared_key("Makefile", b"1"),
    }
    assert len(keys) == 6
    assert len(reader_version()) == 32


def contents(engine: ContextEngine) -> dict[str, object]:
    """What an index holds of each file, without numbers and times."""
    rows: dict[str, object] = {}
    for path in engine.store.files():
        pieces = engine.store.pieces_of(path, Filters())
        texts = [(piece.block, piece.first_line, piece.last_line, piece.text, piece.page) for piece in pieces]
        rows[path] = engine.store.outline_of(path, Filters()), texts
    return rows


def test_a_branch_switched_back_is_not_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.py").write_text(CODE)
    (root / "sub" / "b.md").write_text("# Shops\n\nWhere things are sold.\n")
    (root / "c.pdf").write_bytes(text_pdf(2))
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        first = contents(engine)
        (root / "a.py").write_text("x = 1\n")
        (root / "c.pdf").unlink()
        engine.index()
        assert contents(engine) != first
        (root / "a.py").write_text(CODE)
        (root / "c.pdf").write_bytes(text_pdf(2))
        monkeypatch.setattr("satchel.indexing.parse.read_outline", _nothing_is_read)
        monkeypatch.setattr("satchel.indexing.documents.readers.readers_for", _nothing_is_read)
        monkeypatch.setattr(type(engine.embedder), "embed_texts", _nothing_is_read)
        report = engine.index()
        assert report.read == 2
        assert contents(engine) == first


def _nothing_is_read(*_: object) -> None:
    raise AssertionError("the file was read anew")


def test_a_subfolder_of_an_indexed_folder_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.py").write_text(CODE)
    (root / "b.py").write_text("x = 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
    monkeypatch.setattr("satchel.indexing.parse.read_outline", _nothing_is_read)
    with open_engine(root / "sub", index_dir=str(tmp_path / "index")) as engine:
        assert engine.index().read == 1
        assert "add" in engine.search("add").hits[0].content


def test_an_unusable_cache_is_told_once_and_everything_is_read(tmp_path: Path) -> None:
    root, index = tmp_path / "root", tmp_path / "index"
    root.mkdir()
    index.mkdir()
    (index / "shared").write_text("a file in the way")
    (root / "a.py").write_text(CODE)
    with open_engine(root, index_dir=str(index)) as engine:
        report = engine.index()
        assert report.read == 1
        assert len([note for note in report.notes if "cannot be reused" in note]) == 1
        assert engine.search("Shop").hits


def test_a_file_with_a_note_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that failed once may succeed on a machine that is less busy."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text(CODE)
    with monkeypatch.context() as patched, open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        patched.setattr(
            "satchel.indexing.parse.read_outline", lambda *_: read_outline("a", CODE)._replace(note="failed")
        )
        assert engine.index().notes == ["a.py: failed"]
    (root / "b.py").write_text(CODE)
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert [block.name for block in engine.store.outline_of("b.py", Filters())][:1] == ["add"]


def test_sketches_of_copies_are_alike_and_of_other_folders_are_not(tmp_path: Path) -> None:
    for place, count in (("one", 300), ("two", 300), ("three", 280)):
        for number in range(count):
            folder = tmp_path / place / f"pack{number % 7}" / "deep"
            folder.mkdir(parents=True, exist_ok=True)
            (folder.parent / f"m{number}.py").write_text("x" * number)
            (folder / f"unseen{place}.py").write_text(place)
    (tmp_path / "one" / ".git").write_text("gitdir: elsewhere\n")
    one, two, three = (sketch_of(tmp_path / place) for place in ("one", "two", "three"))
    assert likeness(one, two) == 1
    assert 0.8 < likeness(one, three) < 1
    assert likeness(one, sketch_of(tmp_path / "missing")) == 0
    assert likeness((), ()) == 0
