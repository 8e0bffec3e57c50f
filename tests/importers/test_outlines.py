"""Outlines: Logseq graphs and org-mode files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.errors import InvalidInput
from satchel.importers import detect_importer, read_records, read_update
from satchel.importers.org import OrgReader
from satchel.models.block import Block, Link, Notice, Record

ORG = """#+TITLE: Garden
#+FILETAGS: :home:
#+TODO: NEXT | GIVENUP
* TODO [#A] Water the beds [1/2]  :daily:plants:
DEADLINE: <2026-11-20 Fri +1d> SCHEDULED: <2026-11-19 Thu>
:PROPERTIES:
:ID: 5f0e7c1a-0000-4000-8000-000000000002
:Effort: 0:10
:END:
:LOGBOOK:
- State "TODO" from "WAIT" [2026-11-01 Sun]
:END:
Use rain water, see [[https://rain.org][the guide]].
- [X] front
- [ ] back
  with the can
#+begin_src sh
  pump --on
  ,* not a headline
#+end_src
** GIVENUP Grow bananas
* Tools
| tool | place |
|------+-------|
| hose | shed  |
#+begin_quote
Dig deep.
#+end_quote
Care: [[id:5f0e7c1a-0000-4000-8000-000000000002]] and [[file:b.org::*Beds]] and [[*Tools]] and [[nowhere]].
"""


def read(path: Path) -> tuple[str, list[Block], list[Link], list[Notice]]:
    kind = detect_importer(path)
    records: list[Record] = list(read_records(kind, path))
    blocks = [record for record in records if isinstance(record, Block)]
    links = [record for record in records if isinstance(record, Link)]
    assert len({block.id for block in blocks}) == len(blocks)
    return kind, blocks, links, [record for record in records if isinstance(record, Notice)]


def test_an_org_file_is_a_page_with_tasks_lists_tables_and_code(tmp_path: Path) -> None:
    (tmp_path / "a.org").write_text(ORG, encoding="utf-8")
    (tmp_path / "b.org").write_text("* Beds\nsoil\n", encoding="utf-8")
    kind, blocks, links, notices = read(tmp_path)
    assert (kind, notices) == ("org", [])
    of_a = [block for block in blocks if block.source_path == "a.org"]
    page, water, use, front, back, code, bananas, tools, table, quote, care = of_a
    assert (page.type, page.title, page.metadata) == ("page", "Garden", {"tags": ["home"]})
    assert (water.type, water.title) == ("todo", "Water the beds [1/2]")
    facts = {"due": "2026-11-20", "scheduled": "2026-11-19", "repeat": "+1d", "priority": "high", "done": False}
    facts |= {"Effort": "0:10", "tags": ["daily", "plants"]}
    assert {name: water.metadata[name] for name in facts} == facts
    assert use.content == "Use rain water, see the guide (https://rain.org)."
    assert (front.metadata["done"], back.metadata["done"], back.content) == (True, False, "back\nwith the can")
    assert (code.language, code.content) == ("sh", "pump --on\n* not a headline")
    assert (bananas.parent, bananas.metadata["status"], bananas.metadata["done"]) == (water.id, "done", True)
    assert (tools.type, table.content.splitlines()[2]) == ("heading", "| hose | shed  |")
    assert (quote.type, quote.content) == ("quote", "Dig deep.")
    assert [link.target for link in links if link.source == care.id] == [water.id, "b#Beds", tools.id]


def test_an_org_file_with_two_hundred_levels_is_flattened_and_said(tmp_path: Path) -> None:
    text = "\n".join(f"{'*' * level} level {level}" for level in range(1, 201))
    (tmp_path / "deep.org").write_text(text, encoding="utf-8")
    _, blocks, _, (notice,) = read(tmp_path / "deep.org")
    assert len(blocks) == 201
    assert notice.problem == "140 headlines or items below 60 levels were put at that level"


# Without the lines that end a drawer: what stands in a drawer is not shown.
ORG_LINES = [line + "\n" for line in ORG.splitlines() if line != ":END:"]
ORG_LINES += ["#+begin_src\n", "  - x\n", "\t* y\n", "***** z\n", "\n"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(ORG_LINES), max_size=50))
def test_law_every_org_text_is_read_and_no_word_of_a_paragraph_is_lost(lines: list[str]) -> None:
    text = "".join(lines)
    pieces = OrgReader(text.split("\n")).read()
    shown: list[str] = []
    waiting = list(pieces)
    while waiting:
        piece = waiting.pop()
        shown.append(f"{piece.title} {piece.content}")
        waiting += piece.children
    if "Use rain water" in text:
        assert any("Use rain water" in each for each in shown)


def test_a_folder_without_a_readable_org_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"contains no \.org file"):
        list(read_records("org", tmp_path))


def graph(tmp_path: Path) -> Path:
    root = tmp_path / "graph"
    files = {
        "logseq/config.edn": "{}",
        "pages/work___plan.md": "tags:: a, [[b c]]\nalias:: The Plan\n\n- # Steps\n  - TODO Ship it\n"
        "    DEADLINE: <2026-11-21 Sat>\n    id:: 65ba1c2e-0000-4000-8000-000000000001\n    owner:: Ann\n"
        "    :LOGBOOK:\n    CLOCK: [x]\n    :END:\n",
        "pages/work.md": "- the whole\n",
        "journals/2026_11_19.md": "- DOING call [[work/plan]] about ((65ba1c2e-0000-4000-8000-000000000001))\n",
        "pages/Notes.md": "- on [[Nov 19th, 2026]] see [[The Plan]]\n  collapsed:: true\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_a_logseq_graph_has_namespaces_properties_tasks_and_block_links(tmp_path: Path) -> None:
    kind, blocks, links, notices = read(graph(tmp_path))
    assert (kind, [notice.problem for notice in notices]) == ("logseq", [])
    by_title = {block.title: block for block in blocks if block.type == "page"}
    assert set(by_title) == {"work/plan", "work", "2026-11-19", "Notes"}
    plan = by_title["work/plan"]
    assert plan.parent == by_title["work"].id
    assert (plan.metadata["tags"], plan.metadata["aliases"]) == (["a", "b c"], ["The Plan"])
    (task,) = [block for block in blocks if block.type == "todo" and block.title == "Ship it"]
    assert (task.metadata["due"], task.metadata["owner"], task.metadata["status"]) == ("2026-11-21", "Ann", "open")
    assert not {"id::", "LOGBOOK"} & set(task.content.split())
    assert next(block.title for block in blocks if block.id == task.parent) == "Steps"
    (call,) = [block for block in blocks if block.title.startswith("call")]
    assert call.metadata["status"] == "in_progress"
    assert {link.target for link in links if link.source == call.id} == {plan.id, task.id}
    (note,) = [block for block in blocks if block.content.startswith("on [[")]
    assert {link.target for link in links if link.source == note.id} == {by_title["2026-11-19"].id, plan.id}


def test_an_edited_page_of_a_graph_is_imported_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.models.files._CLOCK_TICK_NS", 0)
    root = graph(tmp_path)
    first = read_update("logseq", root)
    list(first.records)
    state = first.state()
    (root / "pages/work.md").write_text("- the whole, again\n", encoding="utf-8")
    second = read_update("logseq", root, "", state)
    changed = {record.id for record in second.records if isinstance(record, Block)}
    assert {block.partition("#")[0] for block in changed} == {"pages/work"}
