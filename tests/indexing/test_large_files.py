"""Text files over a megabyte: read in parts, found with the right lines, and bounded in time and memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.indexing import changes, split
from satchel.indexing.indexer import Indexer
from satchel.indexing.parse import read_outline
from satchel.indexing.split import PART_CHARS, read_sections
from satchel.indexing.walk import Skip, text_of
from satchel.models.outline import OutlinePiece
from satchel.models.search import Filters, SearchHit
from satchel.ports.store import Store
from satchel.service.engine import ContextEngine
from satchel.storage.postgres.store import PostgresStore
from satchel.storage.sqlite.store import EmbeddedStore
from tests.support.effort import no_blow_up
from tests.support.postgres import workspace_url
from tests.support.postgres_actors import Four

EngineMaker = Callable[[Path], ContextEngine]


@pytest.fixture(params=["sqlite", "postgres"])
def engine_for(request: pytest.FixtureRequest, tmp_path: Path) -> EngineMaker:
    def make(root: Path) -> ContextEngine:
        store: Store = EmbeddedStore(tmp_path / "index")
        if request.param == "postgres":
            store.close()
            store = PostgresStore(workspace_url(request.getfixturevalue("postgres"), tmp_path))
        return ContextEngine(root, store, Four(), max_file_bytes=50_000_000)

    return make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def log_of(lines: int) -> str:
    return "".join(
        f"2026-11-18 INFO request {i} served from the cache of region {i % 7}\n" for i in range(1, lines + 1)
    )


def best(engine: ContextEngine, question: str, path: str) -> SearchHit:
    return next(hit for hit in engine.search(question).hits if hit.path == path)


def is_what_the_file_says(hit: SearchHit, root: Path) -> bool:
    lines = (root / hit.path).read_text().split("\n")
    return hit.content == "\n".join(lines[hit.start_line - 1 : hit.end_line])


def test_a_line_in_the_middle_of_a_large_log_is_found_and_expanded(engine_for: EngineMaker, root: Path) -> None:
    lines = log_of(40_000).split("\n")
    lines[29_999] = "2026-11-18 ERROR the gateway refused the zebra voucher"
    (root / "app.log").write_text("\n".join(lines))
    assert (root / "app.log").stat().st_size > 2 * PART_CHARS
    with engine_for(root) as engine:
        report = engine.index()
        assert (report.read, report.notes, report.skipped) == (1, [], {})
        hit = best(engine, "which voucher did the gateway refuse", "app.log")
        assert hit.start_line <= 30_000 <= hit.end_line
        assert is_what_the_file_says(hit, root)
        assert engine.expand("app.log:30000").text == lines[29_999]
        assert engine.expand("app.log:30000", lines=1).text == "\n".join(lines[29_998:30_001])
        assert "zebra voucher" in engine.build("which voucher did the gateway refuse").text
        assert engine.index().read == 0


def test_old_line_numbers_are_not_applied_to_a_large_file_that_changed(engine_for: EngineMaker, root: Path) -> None:
    text = log_of(20_000)
    (root / "app.log").write_text(text + "ERROR the zebra voucher was refused\n")
    with engine_for(root) as engine:
        engine.index()
        (root / "app.log").write_text("a new first line\n" * 7 + text + "ERROR the zebra voucher was refused\n")
        hit = best(engine, "zebra voucher", "app.log")
        assert hit.reanchored
        assert is_what_the_file_says(hit, root)
        moved = engine.expand("app.log:20001")
        assert (moved.start_line, moved.text) == (20_008, "ERROR the zebra voucher was refused")
        (root / "app.log").write_text(text)
        assert all(is_what_the_file_says(hit, root) for hit in engine.search("zebra voucher").hits)
        report = engine.index()
        assert (report.read, report.embedded) == (1, 1), "only the last piece is new"


def test_large_code_is_split_by_lines_and_says_so(root: Path, tmp_path: Path) -> None:
    functions = (f"def handler_{i}(request):\n    return lookup({i})\n\n\n" for i in range(30_000))
    (root / "table.py").write_text("".join(functions))
    with ContextEngine(root, EmbeddedStore(tmp_path / "index"), Four(), max_file_bytes=50_000_000) as engine:
        report = engine.index()
        assert report.notes == ["table.py: is longer than 1,000,000 characters; split by lines, without symbols"]
        hit = best(engine, "handler_17000", "table.py")
        assert hit.language == "python"
        assert hit.start_line <= 17_000 * 4 + 1 <= hit.end_line
        assert hit.content.startswith("def ")


@given(
    lines=st.lists(st.sampled_from(["", "a", "  indented", "# Head", "## Sub", "```", "x: 1", "é🦓" * 9, "z" * 70])),
    part=st.integers(1, 60),
    language=st.sampled_from(["markdown", "yaml", None]),
)
@example(lines=["# Head", "```", "# code", "```", "## Sub"], part=8, language="markdown")
@example(lines=["z" * 70, "a"], part=10, language=None)
@example(lines=["", "", ""], part=1, language=None)
def test_law_parts_lose_no_line_and_keep_the_sections(lines: list[str], part: int, language: str | None) -> None:
    text = "\n".join(lines)
    whole = read_sections(text, language)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "PART_CHARS", part)
        in_parts = read_sections(text, language)
    own = [block._replace(doc="") for block in in_parts.blocks]
    assert own == [block._replace(doc="") for block in whole.blocks]
    rows = text.split("\n")
    for piece in in_parts.pieces:
        assert text[piece.start : piece.end] == "\n".join(rows[piece.first_line - 1 : piece.last_line])
    assert numbers(in_parts.pieces) >= {i for i, line in enumerate(rows, 1) if line.strip()}
    assert sum(piece.last_line - piece.first_line + 1 for piece in in_parts.pieces) == len(numbers(in_parts.pieces))


def numbers(pieces: tuple[OutlinePiece, ...]) -> set[int]:
    return {line for piece in pieces for line in range(piece.first_line, piece.last_line + 1)}


def test_very_long_lines_of_a_large_file_are_not_searched_and_this_is_noted() -> None:
    text = log_of(20_000) + "x" * 150_000 + "\n" + "the zebra after it\n" * 3
    outline = read_outline("app.log", text)
    assert outline.note == "1 line is longer than 100,000 characters and not searched"
    assert max(piece.end - piece.start for piece in outline.pieces) < 2000
    assert outline.pieces[-1].last_line == 20_004


@pytest.mark.parametrize("name", ["dump.sql", "data.txt", "app.log", "a.py"])
def test_a_large_file_of_endless_lines_is_generated(name: str) -> None:
    assert text_of(name, b"INSERT (1), " * 200_000) is Skip.GENERATED
    assert isinstance(text_of(name, b"INSERT (1), " * 50_000), str), "a file under a megabyte is read"
    assert isinstance(text_of(name, b"INSERT (1);\n" * 200_000), str)


def test_a_large_file_of_keys_has_no_section_for_each_key() -> None:
    outline = read_sections("key: 1\n" * 200_000, "yaml")
    assert outline.blocks == ()
    assert outline.pieces[-1].last_line == 200_000


def test_of_many_large_files_the_smallest_are_read(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_LARGE_FILES_BYTES", 3_000_000)
    sizes = {"a.log": 1_500_000, "b.log": 1_200_000, "c.log": 1_400_000, "small.log": 900_000}
    for name, size in sizes.items():
        (root / name).write_text(log_of(size // 60)[:size])
    indexer = Indexer(root, EmbeddedStore(tmp_path / "index"), Four(), max_file_bytes=2_000_000)
    report = indexer.run()
    assert dict(report.skipped_paths) == {"a.log": "too-many-large-files"}
    assert report.read == 3
    (root / "b.log").unlink()
    report = indexer.run()
    assert (report.read, report.dropped, dict(report.skipped_paths)) == (1, 1, {})
    assert indexer.store.text_of("a.log", Filters()) == (root / "a.log").read_text()
    indexer.store.close()


@pytest.mark.parametrize(
    ("line", "language"), [("\n", None), ("ab\n", None), ("# a\n", "markdown"), ("a:\n", "yaml"), ("=\n===\n", "rst")]
)
def test_megabytes_of_the_shortest_lines_are_split_in_time(line: str, language: str | None) -> None:
    with no_blow_up("the splitting"):
        read_sections(line * (4_000_000 // len(line)), language)


def test_equal_lines_of_a_large_changed_file_are_found_again_in_time(root: Path, tmp_path: Path) -> None:
    (root / "app.log").write_text("the same line of a zebra log, again and again\n" * 40_000)
    with ContextEngine(root, EmbeddedStore(tmp_path / "index"), Four(), max_file_bytes=50_000_000) as engine:
        engine.index()
        (root / "app.log").write_text("the same line of a zebra log, again and again\n" * 45_000)
        with no_blow_up("the search"):
            hits = engine.search("zebra log").hits
        assert hits
        assert all(hit.reanchored and is_what_the_file_says(hit, root) for hit in hits)
