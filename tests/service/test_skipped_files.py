"""The note on files that are not in the index and may matter to a question."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel import User
from satchel.indexing import changes
from satchel.models.files import SKIPPED
from satchel.models.search import Filters
from satchel.service.client import Caller
from satchel.service.local_client import LocalSatchel, open_local

LISTS_ALL = "; `satchel index --list-skipped` lists all"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "data").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "retry.py").write_text("def retry_delay(attempt):\n    return 2**attempt\n")
    sparse(root / "data" / "customer_orders.csv", 62_000_000)
    return root


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@contextmanager
def opened(root: Path, **options: Any) -> Iterator[LocalSatchel]:
    with open_local(root, index_dir=str(root.parent / "index"), **options) as client:
        yield client


def test_a_question_about_a_skipped_file_says_that_the_file_is_not_indexed(root: Path) -> None:
    note = f"1 file is not indexed and may matter: data/customer_orders.csv (62 MB, over the limit of 50 MB){LISTS_ALL}"
    with opened(root) as client:
        for question in ("retry the orders of a customer", "what is in customer_orders.csv?"):
            assert client.build(question).notes == (note,)
            assert client.search(question).notes == (note,)


def test_a_question_about_other_things_has_no_note(root: Path) -> None:
    with opened(root) as client:
        for question in ("retry_delay", "how is the retry delay computed", "the delay of data"):
            assert client.build(question).notes == ()
            assert client.search(question).notes == ()


def test_where_nothing_is_found_all_skipped_files_are_counted(root: Path) -> None:
    for name in (".env", "server.pem", "id_rsa", "prod.key"):
        (root / name).write_text("secret\n")
    with opened(root) as client:
        *_, note = client.build("quagga", min_relevance=1.0).notes
        start = "5 files are not indexed: .env (may hold secrets), data/customer_orders.csv (62 MB, over"
        assert note.startswith(start)
        assert note.endswith(f"and 2 more{LISTS_ALL}")
        assert len(note) < 300, "MCP shows the whole note"


def test_a_document_that_could_not_be_read_is_named_with_the_reason(root: Path) -> None:
    (root / "annual report.pdf").write_bytes(b"%PDF-1.4\nnothing that anybody could read\n")
    with opened(root) as client:
        (note,) = client.build("what does the annual report say about the delay").notes
        assert note.startswith("1 file is not indexed and may matter: annual report.pdf (is a damaged PDF")


@pytest.mark.parametrize("settings", [{"documents": "off"}, {"max_document_bytes": 10}])
def test_documents_left_out_by_a_setting_are_named(root: Path, settings: dict[str, Any]) -> None:
    (root / "invoice.pdf").write_bytes(b"%PDF-1.4\n" + b"x" * 5_000)
    with opened(root, **settings) as client:
        (note,) = client.build("which invoice is due").notes
        reason = "the setting `documents` is off" if "documents" in settings else "5 kB, over the limit of 0 kB"
        assert f"invoice.pdf ({reason})" in note


def test_filters_apply_to_skipped_files_too(root: Path) -> None:
    with opened(root) as client:
        assert client.build("customer orders", include=("data/**",)).notes
        for filters in ({"include": ("src/**",)}, {"exclude": ("data/**",)}, {"languages": ("python",)}):
            assert client.build("customer orders", **filters).notes == ()  # type: ignore[arg-type]


def test_a_user_hears_only_of_files_that_they_may_read(root: Path) -> None:
    (root / "data" / "notes.txt").write_text("about data\n")
    (root / "orders.pdf").write_bytes(b"%PDF-1.4\nnothing that anybody could read\n")
    with opened(root) as client:
        client.index()
        with client.workspace.edit() as edit:
            edit.grant("data/", "user:ann")
            edit.grant("orders.pdf", "user:bob")
            edit.grant("retry.py", "user:eve")
        ann, bob, eve = (client.seen_by(Caller(user=User(id=name))) for name in ("ann", "bob", "eve"))
        asked = "customer orders"
        assert ann.build(asked).notes == (
            "1 file is not indexed and may matter: data/customer_orders.csv (62 MB, over the limit of 50 MB)",
        )
        (note,) = bob.build(asked).notes
        assert note.startswith("1 file is not indexed and may matter: orders.pdf (")
        assert eve.build(asked).notes == eve.search(asked).notes == ()
        assert not any("indexed" in note for note in eve.build("quagga", min_relevance=1.0).notes)


def test_a_workspace_context_has_the_note_too(root: Path) -> None:
    with opened(root) as client:
        with client.workspace.edit() as edit:
            edit.put(satchel.Block(id="plan", type="page", title="Plan", content="Ship customer orders in May."))
        built = client.build("customer orders")
        assert built.kind == "workspace"
        assert any("data/customer_orders.csv (62 MB" in note for note in built.notes)


def test_the_note_follows_the_folder_and_a_quick_question_uses_the_index(root: Path) -> None:
    with opened(root) as client:
        assert client.build("customer orders").notes
        (root / "data" / "customer_orders.csv").unlink()
        sparse(root / "invoices.csv", 70_000_000)
        quick = LocalSatchel(client.shared, quick=True)
        assert "customer_orders.csv" in quick.build("customer orders").notes[0]
        assert client.build("customer orders").notes == ()
        assert "invoices.csv (70 MB" in client.build("the invoices").notes[0]


def test_a_log_that_grows_above_the_limit_does_not_change_the_index(root: Path) -> None:
    sparse(root / "app.log", 80_100_000)
    with opened(root) as client:
        client.index()
        generation, stored = client.engine.store.generation, client.engine.store.fact(SKIPPED)
        sparse(root / "app.log", 80_400_000)
        assert client.engine.changes().are_skips_stored
        client.build("what does app.log say")
        assert (client.engine.store.generation, client.engine.store.fact(SKIPPED)) == (generation, stored)


def test_the_stored_list_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_MAX_STORED_SKIPS", 3)
    for i in range(6):
        (root / f"{i}.key").write_text("x")
    with opened(root) as client:
        client.index()
        assert [file.path for file in client.engine.store.skipped(Filters())] == ["0.key", "1.key", "2.key"]
