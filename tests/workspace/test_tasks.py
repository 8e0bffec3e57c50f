"""Tasks are tasks wherever they stand: rows of a database, Logseq's states, org-mode's dates, cards and to-dos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satchel import ContextPayload, TokenBudget
from satchel.importers.notion import read_notion
from satchel.importers.vault import read_vault
from satchel.models.block import Block, BlockType, Record
from tests.importers.test_vault import blocks, make, read
from tests.support.workspaces import engine_in, request

TABLE = """Name,Status,Due,Assignee
Grease the winch,In progress,2026-11-02,Bob
Paint the hull,Done,2026-11-03,Bob
Order new ropes,Not started,2026-11-05,Ann
Hire a pilot,Not started,2027-01-09,Ann
"""
JOURNAL = """- TODO Check the anchor chain
  DEADLINE: <2026-11-04 Wed>
- DOING [#A] Sort the charts
  DEADLINE: <2026-11-06 Fri .+1w>
- DONE Buy oil
  DEADLINE: <2026-11-01 Sun>
- LATER Clean the galley
  SCHEDULED: <2026-12-24 Thu>
- TODOS are a word like any other
"""


def asked(folder: Path, records: list[Record], question: str, **more: Any) -> ContextPayload:
    with engine_in(folder) as engine:
        engine.workspace.load(records)
        return engine.build(request(question, **more))


def test_overdue_rows_of_a_database_are_overdue_tasks(tmp_path: Path) -> None:
    export = make(tmp_path / "export", {"Ship.md": "# Ship\n\nWork on the ship.\n", "Ship/Tasks.csv": TABLE})
    found = asked(tmp_path, list(read_notion(export)), "What tasks are overdue?")
    overdue = {item.content.split("\n")[0] for item in found.items if "overdue" in item.reasons}
    assert {"Grease the winch", "Order new ropes"} == {title.removeprefix("- [ ] ") for title in overdue}
    assert "Paint the hull" not in " ".join(overdue)


def test_the_states_of_logseq_are_to_dos(tmp_path: Path) -> None:
    found = {
        block.title: block
        for block in blocks(read(tmp_path, {"journals/2026_11_01.md": JOURNAL}))
        if block.type == "todo"
    }
    assert {title: block.metadata["status"] for title, block in found.items()} == {
        "Check the anchor chain": "open",
        "Sort the charts": "in_progress",
        "Buy oil": "done",
        "Clean the galley": "open",
    }
    assert found["Check the anchor chain"].metadata["due"] == "2026-11-04"
    assert found["Sort the charts"].metadata["due"] == "2026-11-06"
    assert found["Sort the charts"].metadata["priority"] == "high"
    assert found["Clean the galley"].metadata["scheduled"] == "2026-12-24"


def test_overdue_to_dos_of_logseq_are_found(tmp_path: Path) -> None:
    vault = make(tmp_path / "vault", {"journals/2026_11_01.md": JOURNAL})
    text = asked(tmp_path, list(read_vault(vault)), "Which tasks are overdue?").text
    assert text.index("Check the anchor chain") < text.index("Sort the charts")


@pytest.mark.parametrize(("budget", "is_told"), [(400, True), (8000, False)])
def test_a_list_of_tasks_is_complete_or_says_that_it_is_not(tmp_path: Path, budget: int, is_told: bool) -> None:
    tasks: list[Record] = [
        Block(
            id=f"t{number}",
            type=BlockType.TODO,
            content=f"Inspect cabin number {number} of the ship from the keel to the lamp on its ceiling",
            metadata={"due": "2026-11-01", "done": False},
        )
        for number in range(31)
    ]
    found = asked(tmp_path, tasks, "What tasks are overdue?", token_budget=TokenBudget(total=budget, system=0))
    shown = sum("overdue" in item.reasons for item in found.items)
    assert (f"{shown} of 31 tasks are shown" in " ".join(found.notes)) is is_told
    assert (shown == 31) is not is_told
