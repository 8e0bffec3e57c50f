"""Which folders are trees of source code, where pictures are not recognized and web pages are source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from satchel.indexing import source_tree
from satchel.indexing.source_tree import is_source_tree
from satchel.service.factory.adapters import make_document_policy
from satchel.service.settings import Settings

SOURCES = [f"src/m{i}.py" for i in range(6)]
PICTURES = [f"img/p{i}.png" for i in range(30)]


def make(root: Path, paths: Sequence[str]) -> str:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x\n")
    return os.fspath(root.resolve())


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param([".git/HEAD", "report.pdf"], id="a repository"),
        *(
            pytest.param([name, "report.pdf", "notes.md", *PICTURES], id=name)
            for name in ("pyproject.toml", "package.json", "Cargo.toml", "go.mod", "CMakeLists.txt", "Shop.sln")
        ),
        pytest.param([*SOURCES, "README.md", "docs/index.html", *PICTURES], id="mostly source"),
        pytest.param([f"unpacked-main/{path}" for path in [*SOURCES, *PICTURES]], id="source further down"),
        pytest.param([*SOURCES, *(f"node_modules/p/r{i}.md" for i in range(50))], id="installed packages do not count"),
    ],
)
def test_a_tree_of_source_code_is_recognized(paths: list[str], tmp_path: Path) -> None:
    assert is_source_tree(make(tmp_path, paths))


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param([], id="nothing"),
        pytest.param(["a.pdf", "b.docx", *PICTURES], id="documents"),
        pytest.param([*SOURCES[:4], *PICTURES], id="a few scripts beside pictures"),
        pytest.param([*SOURCES, *(f"scan{i}.png" for i in range(100))], id="hundreds of pictures"),
        pytest.param([*SOURCES, *(f"report{i}.pdf" for i in range(6))], id="as many documents as scripts"),
        pytest.param(["page.html", *(f"page_files/{i}.js" for i in range(9))], id="a saved web page"),
        pytest.param([*(f"note{i}.md" for i in range(9)), *SOURCES], id="notes"),
        pytest.param(["old/package.json", "a.pdf", "b.pdf"], id="a project among documents"),
    ],
)
def test_a_folder_of_documents_is_no_source_tree(paths: list[str], tmp_path: Path) -> None:
    assert not is_source_tree(make(tmp_path, paths))


def test_links_and_missing_folders_decide_nothing(tmp_path: Path) -> None:
    make(tmp_path / "source", SOURCES)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "linked").symlink_to(tmp_path / "source")
    assert not is_source_tree(str(tmp_path / "work"))
    assert not is_source_tree(str(tmp_path / "missing"))


def test_only_the_files_nearest_to_the_top_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path, [*(f"a{i}.pdf" for i in range(7)), *(f"deep/m{i}.py" for i in range(20))])
    assert is_source_tree(folder)
    monkeypatch.setattr(source_tree, "_MAX_LOOKED_AT_ENTRIES", 10)
    assert not is_source_tree(folder)


def test_pictures_of_a_source_tree_are_read_only_where_all_documents_are(tmp_path: Path) -> None:
    make(tmp_path, ["pyproject.toml", "logo.png"])
    assert not make_document_policy(tmp_path, Settings()).takes("logo.png")
    assert make_document_policy(tmp_path, Settings(documents="all")).takes("logo.png")
    (tmp_path / "pyproject.toml").unlink()
    assert make_document_policy(tmp_path, Settings()).takes("logo.png")
