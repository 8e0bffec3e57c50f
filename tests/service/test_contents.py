"""What there is to ask about: only what a reader may read, and questions that it answers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import satchel
from satchel import Block, User
from satchel.service.client import Caller
from satchel.service.contents import MAX_LISTED, Contents
from satchel.service.local_client import LocalSatchel, open_local
from satchel.service.open_roots import open_roots

CODE = 'def tide_height(hour):\n    """The height of the tide."""\n    return hour\n\n\ndef go():\n    """Go."""\n'


@pytest.fixture
def client(tmp_path: Path) -> LocalSatchel:
    (tmp_path / "work" / "tests").mkdir(parents=True)
    (tmp_path / "work" / "tides.py").write_text(CODE)
    (tmp_path / "work" / "tests" / "test_tides.py").write_text('def test_tide_height():\n    """Test it."""\n')
    (tmp_path / "work" / "guide.md").write_text("# Guide\n\n## Mooring a ship\n\nWith four ropes.\n")
    opened = open_local(tmp_path / "work", index_dir=str(tmp_path / "index"))
    opened.index()
    with opened.workspace.edit() as edit:
        edit.put(Block(id="plan", type="page", title="Harbour plan", content="We plan the harbour."))
        edit.put(Block(id="pay", type="page", title="Salary talks", content="What people earn."))
        due = {"due": "2026-01-02"}
        edit.put(Block(id="rope", type="todo", title="Buy ropes", content="Buy ropes", parent="plan", metadata=due))
        edit.put(Block(id="day", type="page", title="2026-11-12", content="A day."))
    return opened


def test_each_kind_is_listed_and_questions_are_made_of_it(client: LocalSatchel) -> None:
    found = client.contents()
    assert [note.title for note in found.notes] == ["2026-11-12", "Harbour plan", "Salary talks"]
    assert [(task.id, task.detail) for task in found.tasks] == [("rope", "2026-01-02")]
    assert set(found.files) == {"guide.md", "tides.py", "tests/test_tides.py"}
    assert found.questions == (
        "Which tasks are overdue?", "What do we know about Harbour plan?", "What do we know about Salary talks?",
        "How does tide_height work?", "What is said about “Mooring a ship”?",
    )  # fmt: skip
    assert Contents(**client.contents().to_dict()).questions == found.questions
    client.close()


def test_every_question_is_answered_by_what_it_is_about(client: LocalSatchel) -> None:
    assert "return hour" in client.build("How does tide_height work?").text
    assert "four ropes" in client.build("What is said about “Mooring a ship”?").text
    client.close()


def test_a_reader_finds_nothing_of_others(client: LocalSatchel) -> None:
    with client.workspace.edit() as edit:
        edit.grant("plan", "ann")
        edit.grant("tides.py", "ann")
    found = client.seen_by(Caller(user=User(id="ann"))).contents()
    assert [note.title for note in found.notes] == ["Harbour plan"]
    assert found.files == ("tides.py",)
    assert "Salary" not in str(found)
    nobody = client.seen_by(Caller(user=User(id="eve"))).contents()
    assert nobody == Contents()
    client.close()


def test_several_folders_are_listed_under_their_labels(client: LocalSatchel, tmp_path: Path) -> None:
    client.close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ropes.py").write_text(CODE.replace("tide_height", "rope_length"))
    with open_roots([str(tmp_path / "work"), str(tmp_path / "other")], index_dir=str(tmp_path / "index2")) as both:
        both.refresh()
        found = both.contents()
        assert {"work/tides.py", "other/ropes.py"} <= set(found.files)
        assert {"How does tide_height work?", "How does rope_length work?"} <= set(found.questions)


def test_a_large_folder_is_listed_in_part(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for number in range(MAX_LISTED + 5):
        (tmp_path / "work" / f"a{number}.txt").write_text("x\n")
    with satchel.open(tmp_path / "work", index_dir=tmp_path / "index") as client:
        client.index()
        assert isinstance(client, LocalSatchel)
        assert len(client.contents().files) == MAX_LISTED
        assert client.engine.now() > datetime(2026, 1, 1, tzinfo=UTC)
