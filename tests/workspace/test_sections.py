"""Sections of notes: shown with the sections beside them, from pages that are read once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from satchel.models.block import Block
from satchel.models.options import RequestType, TokenBudget
from satchel.models.request import ContextRequest, User
from satchel.models.search import Filters
from satchel.service.engine import ContextEngine
from satchel.service.importing import import_source
from satchel.workspace.page_cache import PageCache

STEPS = """# Installing the boiler

## Step 1: Drain

Open the valve under the boiler and wait.

## Step 2: Mount

Hang the frame on both bolts.

## Step 3: Connect

Screw the copper pipe onto the flange.
"""


@pytest.fixture
def house(empty: ContextEngine, tmp_path: Path) -> ContextEngine:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "Boiler.md").write_text(STEPS, encoding="utf-8")
    for number in range(8):
        text = "\n\n".join(f"## Day {day}\n\nWe painted wall {day} of room {number}." for day in range(40))
        (notes / f"Diary {number}.md").write_text(f"# Diary {number}\n\n{text}\n", encoding="utf-8")
    import_source(empty.workspace, notes, kind="vault")
    return empty


def ask(engine: ContextEngine, query: str, total: int = 2000) -> str:
    budget = TokenBudget(total=total, system=0)
    asked = ContextRequest(query=query, user=User(id="ann"), type=RequestType.SEARCH, token_budget=budget)
    return engine.build(asked).serialized


def test_a_procedure_under_several_headings_is_shown_whole_and_once(house: ContextEngine) -> None:
    text = ask(house, "How do I install the boiler?")
    for step in ("Open the valve", "Hang the frame", "Screw the copper pipe"):
        assert text.count(step) == 1


def test_a_step_is_found_by_the_title_of_its_page(house: ContextEngine) -> None:
    assert "Hang the frame" in ask(house, "which bolts when installing the boiler", total=400)


def test_a_long_page_is_not_shown_whole_for_one_of_its_sections(house: ContextEngine) -> None:
    text = ask(house, "When did we paint wall 17 of room 3?", total=800)
    assert "wall 17 of room 3" in text
    assert text.count("of room 3.") < 40


def test_an_edited_page_is_read_again(house: ContextEngine) -> None:
    assert "Open the valve" in ask(house, "How do I install the boiler?")
    block = next(hit.block_id for hit in house.search("Open the valve").hits)
    (known,) = house.store.blocks([block], Filters()).values()
    with house.workspace.edit() as edit:
        edit.put(replace(known, content="Call the plumber about the boiler."))
    text = ask(house, "How do I install the boiler?")
    assert "Call the plumber" in text
    assert "Open the valve" not in text


def test_a_page_read_for_one_user_is_not_shown_to_another(empty: ContextEngine) -> None:
    with empty.workspace.edit() as edit:
        edit.put(Block(id="page", type="page", title="Boiler"))
        edit.put(Block(id="open", type="text", content="The boiler is green.", parent="page", position=1))
        edit.put(Block(id="secret", type="text", content="The boiler code is 4711.", parent="page", position=2))
        edit.grant("page", "*")
        edit.set_inherits("secret", inherits=False)
        edit.grant("secret", "user:ann")
    cache = PageCache()
    seen = {
        name: cache.trees(["page"], empty.store, empty.filters_for(User(id=name)))["page"].blocks.keys()
        for name in ("ann", "bob", "ann")
    }
    assert "secret" in seen["ann"]
    assert "secret" not in seen["bob"]


def test_a_heading_above_nothing_but_an_elision_line_comes_after_what_has_a_text(house: ContextEngine) -> None:
    shown = ask(house, "What is in Diary 3?", total=1200).split("\n[")
    has_text = ["We painted" in piece for piece in shown if "```" in piece]
    assert any(has_text)
    assert has_text == sorted(has_text, reverse=True)
