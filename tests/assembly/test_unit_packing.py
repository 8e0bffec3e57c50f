"""What is chosen for a question: depth in what is probable, each text once, and nothing that does not help."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import satchel
from satchel.assembly.assemble import _keep_beginning
from satchel.assembly.unit_packing import FileNeed, _best_first
from satchel.assembly.units import LineWorths, SourceText, elisions_in
from satchel.models.chunk import Candidate, CandidateKind
from satchel.models.context import Context, ContextSource, Reason
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.statements import LineRun
from satchel.tokens.registry import counter_for

LONG_METHOD = "\n".join(
    f"        self.values[{i}] = self.compute({i}, previous=self.values[{i - 1}])" for i in range(1, 40)
)
ENGINE = f'''"""The engine room."""

import os
import sys


class TideEngine:
    """Computes the tides of a harbor."""

    def __init__(self, harbor):
        self.harbor = harbor
        self.values = {{}}

    def compute_all(self):
        """Compute the tide of each hour."""
{LONG_METHOD}
        return self.values

    def compute(self, hour, previous):
        return previous + hour
'''
GUIDE = "# Guide\n\n" + "\n\n".join(f"TideEngine is mentioned here, too: {i}." for i in range(6)) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "docs").mkdir(parents=True)
    (root / "engine.py").write_text(ENGINE)
    for name in ("guide", "tour", "notes"):
        (root / "docs" / f"{name}.md").write_text(GUIDE.replace("Guide", name.title()))
    return root


def opened(root: Path) -> satchel.Satchel:
    return satchel.open(root, index_dir=str(root.parent / "index"))


def test_what_was_asked_for_by_name_is_shown_first_and_whole(folder: Path) -> None:
    with opened(folder) as client:
        context = client.build("TideEngine", token_budget=3000)
    assert context.text.startswith("### [1] engine.py · TideEngine (lines ")
    assert "return previous + hour" in context.text


def test_a_long_method_is_shown_with_its_class_and_marked_gaps(folder: Path) -> None:
    with opened(folder) as client:
        context = client.build("where is the tide of each hour computed", token_budget=400)
        source = source_in(context)
        lines = (folder / "engine.py").read_text().split("\n")
        for elision in elisions_in(source.text):
            expanded = client.expand(f"engine.py:{elision.first}-{elision.last}").text
            assert expanded.rstrip("\n") == "\n".join(lines[elision.first - 1 : elision.last]).rstrip("\n")
    assert "def compute_all(self):" in source.text
    assert source.elided == sum(elision.line_count for elision in elisions_in(source.text)) > 0
    assert f"{source.elided} not shown" in context.text


@pytest.mark.parametrize("format", ["markdown", "xml", "json", "plain"])
def test_elisions_are_found_again_in_every_format(folder: Path, format: str) -> None:
    with opened(folder) as client:
        context = client.build("where is the tide of each hour computed", token_budget=500, format=format)
    source = source_in(context)
    want = elisions_in(source.text)
    assert want
    assert want in [elisions_in(text) for text in texts_in(context.text, format)]


def source_in(context: Context) -> ContextSource:
    """The piece of engine.py."""
    return next(
        source for source in context.sources if isinstance(source, ContextSource) and source.file == "engine.py"
    )


def texts_in(text: str, format: str) -> list[str]:
    """The texts of the pieces, as a parser that is not ours sees them."""
    match format:
        case "markdown":
            return [token.content.rstrip("\n") for token in MarkdownIt().parse(text) if token.type == "fence"]
        case "xml":
            return [(element.text or "").strip("\n") for element in ET.fromstring(text).iter()]
        case "json":
            return [chunk["content"] for chunk in json.loads(text)["chunks"]]
        case _:
            return text.split("\n\n\n")


def test_copies_and_translations_are_shown_once(tmp_path: Path) -> None:
    root = tmp_path / "work"
    body = "\n".join(f"    harbor_{i} = open_harbor({i}, depth=depth_of({i}))" for i in range(12))
    for system in ("unix", "windows"):
        (root / system).mkdir(parents=True)
        (root / system / "pilot.py").write_text(f"def pilot_into_harbor():\n{body}\n    return {system!r}\n")
    with opened(root) as client:
        context = client.build("how does the pilot find the harbor", token_budget=2000)
    assert context.text.count("harbor_7 = open_harbor") == 1
    assert [entry.reason for entry in context.ledger].count(Reason.DUPLICATE) == 1
    assert sum(f"much the same in {system}/pilot.py" in context.text for system in ("unix", "windows")) == 1
    for language, line in {"de": "Der Lotse führt ins Pilot-Becken.", "en": "The pilot leads into the basin."}.items():
        (root / "docs" / language).mkdir(parents=True)
        (root / "docs" / language / "basin.md").write_text(f"# Pilot basin\n\n{line}\n")
    with opened(root) as client:
        context = client.build("pilot basin", token_budget=2000)
    assert "The pilot leads into the basin." in context.text
    assert "Der Lotse" not in context.text


def test_the_budget_is_used_for_what_is_useful_or_for_all_of_it(folder: Path) -> None:
    for i in range(40):
        (folder / f"other_{i}.py").write_text(f"def paint_boat_{i}(color):\n    return color + {i}  # hour\n" * 3)
    with opened(folder) as client:
        useful = client.build("where is the tide of each hour computed", token_budget=8000)
        everything = client.build("where is the tide of each hour computed", token_budget=8000, fill="all")
    assert useful.tokens < everything.tokens <= 8000
    assert "not-worth-its-tokens" in {entry.reason for entry in useful.ledger}
    assert "not-worth-its-tokens" not in {entry.reason for entry in everything.ledger}


def test_overloads_follow_the_definition_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    body = "\n".join(f"        self.log({i}, ship.name, ship.draught, self.berths[{i}])" for i in range(8))
    (tmp_path / "work" / "quay.py").write_text(
        "class Quay:\n    @overload\n    def moor(self, ship: Boat) -> None: ...\n\n"
        "    @overload\n    def moor(self, ship: Tanker, tugs: int) -> None: ...\n\n"
        f"    def moor(self, ship, tugs=0):\n{body}\n\n    def unmoor(self, ship):\n{body}\n"
    )
    with opened(tmp_path / "work") as client:
        context = client.build("moor", token_budget=1000)
    assert "def moor(self, ship: Tanker, tugs: int)" in context.text
    assert "self.berths[7]" in context.text


def test_a_unit_of_a_single_short_line_is_not_shown_beside_others(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "harbor").mkdir(parents=True)
    (root / "harbor" / "pilot_flag.py").write_text("PILOT = 1\n")
    (root / "harbor" / "pilot.py").write_text(
        "def pilot_ship(ship):\n    ship.follow(pilot_of(ship))\n    return ship\n"
    )
    with opened(root) as client:
        context = client.build("how does the pilot lead a ship into the harbor", token_budget=1000)
    assert [source.path for source in context.sources] == ["harbor/pilot.py"]


def test_a_unit_is_not_trimmed_to_its_elision_lines() -> None:
    text = "⋮ 40 lines (1-40): first(), second(), third(), fourth()\n    return 1\n" + "    value = 2\n" * 80
    unit = Candidate(0, "a.py:1-200", CandidateKind.CHUNK, path="a.py", text=text, elided=40)
    trim = _keep_beginning(counter_for("gpt-4o"), min_content_length=1)
    assert trim(unit, 24, lambda trimmed: counter_for("gpt-4o").count(trimmed.text)) is None
    trimmed = trim(unit, 80, lambda trimmed: counter_for("gpt-4o").count(trimmed.text))
    assert trimmed is not None
    assert "value = 2" in trimmed.candidate.text


@pytest.mark.parametrize(("score", "leading"), [(0.9, "b"), (0.5, "")])
def test_a_far_better_piece_stands_before_those_above_it_in_its_file(score: float, leading: str) -> None:
    first = Candidate(0, "a", CandidateKind.CHUNK, path="a.py", first_line=1, score=0.3)
    second = Candidate(1, "b", CandidateKind.CHUNK, path="a.py", first_line=9, score=score)
    other = Candidate(2, "c", CandidateKind.CHUNK, path="other.py", first_line=1, score=0.1)
    assert "".join(unit.id for unit in _best_first([first, second, other]) if unit.leads) == leading


def test_the_room_that_shared_headings_leave_is_used(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    methods = "\n".join(
        f"    def moor_{name}(self, ship):\n        harbor = self.harbor_{name}\n"
        "        tide = self.tide_of(harbor, ship)\n"
        "        return harbor.moor(ship, tide)\n"
        for name in "north south east west inner outer upper lower old new".split()
    )
    (tmp_path / "work" / "pilot.py").write_text(f"class Pilot:\n{methods}")
    with opened(tmp_path / "work") as client:
        context = client.build("how does the pilot moor a ship in the harbor", token_budget=500)
    assert context.text.count("def moor_") == 10  # headings of their own would leave room for eight


def test_imports_and_closing_brackets_are_no_answer(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    imports = "".join(f"import harbor_pilot_{i}\n" for i in range(30))
    (tmp_path / "work" / "a.py").write_text(f"{imports}\n\ndef moor(ship):\n    return harbor_pilot_3.moor(ship)\n")
    with opened(tmp_path / "work") as client:
        context = client.build("harbor pilot", token_budget=150)
    assert "def moor(ship):" in context.text
    assert "import harbor" not in context.text


@pytest.mark.parametrize(
    ("name", "opening", "imported", "function"),
    [
        ("a.php", "<?php\n\nnamespace Harbor\\Pilot;\n", "use Harbor\\Pilot\\Crew{};", "function moor($ship)\n{"),
        ("a.go", "package pilot\n\nimport (", '\tcrew{} "harbor/pilot"', ")\n\nfunc moor(ship Ship) {"),
        (
            "a.js",
            "'use strict';\n\n// Harbor pilot.",
            "const pilot{} = require('harbor/pilot');",
            "function moor(ship) {",
        ),
    ],
)
def test_imports_are_no_answer_in_other_languages(
    tmp_path: Path, name: str, opening: str, imported: str, function: str
) -> None:
    (tmp_path / "work").mkdir()
    imports = [imported.replace("{}", str(number)) for number in range(30)]
    body = [f"  step({number});" for number in range(12)]
    lines = [opening, *imports, "", function, "  harborPilot.moor(ship);", *body, "}"]
    (tmp_path / "work" / name).write_text("\n".join(lines) + "\n")
    with opened(tmp_path / "work") as client:
        context = client.build("harbor pilot", token_budget=150)
    assert "harborPilot.moor(ship)" in context.text
    assert imports[3].strip() not in context.text


def test_a_block_of_a_document_ends_with_its_page() -> None:
    lines = [
        "<!-- page 1 -->",
        "# Fees",
        "",
        "Mooring costs 5 a night for boats of up to twelve metres.",
        "<!-- page 2 -->",
        "At night it costs 7, and the harbor master comes to collect it.",
        "",
        "End.",
    ]
    spans = [OutlineBlock("section", "Fees", "Fees", WHOLE_FILE, 2, 8)]
    source = SourceText(lines, spans, is_prose=True)
    found = Candidate(0, "fees.pdf:4-6", CandidateKind.CHUNK, path="fees.pdf", text="", first_line=4, last_line=6)
    need = FileNeed(1.0, [found])
    blocks = need.blocks(source, LineWorths({"mooring": 1.0}), "")
    assert sorted(block.lines for block in blocks) == [LineRun(2, 4), LineRun(6, 8)]


def test_a_question_for_all_of_something_shows_every_place_in_few_lines(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for name in "abcdef":
        body = "\n".join(f"    register_handler({i}, '{name}', retries={i})" for i in range(60))
        head = f'def register_handler_{name}():\n    """Registers the {name} handlers of the server."""\n'
        (root / f"handler_{name}.py").write_text(f"{head}{body}\n")
    for name in "ghijklmnopq":
        (root / f"{name}.py").write_text(f"def {name}():\n    return '{name}'\n")
    with opened(root) as client:
        listed, explained = (
            client.build(question, token_budget=2500)
            for question in ("list all handlers of the server", "handlers of the server")
        )
    assert len({source.path for source in listed.sources}) == 6
    assert listed.tokens < 0.75 * explained.tokens


USED = '''"""Backing off."""


class Backoff:
    """Waits longer after each attempt."""

    def reset(self):
        """Forget all attempts, so that the next one is the first again."""
        self.attempts = 0
        self.longest_seen = max(self.longest_seen, self.waited)
        self.waited = 0

    def next_delay(self, attempt):
        """The seconds to wait before an attempt, doubled each time."""
        self.attempts = attempt
        return min(self.longest, 2**attempt) + self.jitter(attempt)
'''


def test_a_symbol_shows_its_definition_then_places_that_use_it(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "backoff.py").write_text(USED)
    for i in range(8):
        text = "\n".join(f"    log('step {i} {step}: nothing to see in this line of text')" for step in range(40))
        used = f"    wait(backoff.next_delay({i}))" if i in (3, 6) else "    wait(1)"
        (root / f"worker_{i}.py").write_text(f"def work_{i}(backoff):\n{text}\n{used}\n")
    with opened(root) as client:
        context = client.build("next_delay", token_budget=2000)
    assert context.sources[0].name == "Backoff.next_delay"
    assert {source.path for source in context.sources} == {"backoff.py", "worker_3.py", "worker_6.py"}
    assert context.text.count("next_delay(") == 3


RETRYING = '''"""Retrying requests."""


class Retrying:
    """Decides whether a failed request is sent again."""

    def send_with_retry(self, request):
        """Send a request, and retry the request as long as the policy allows."""
        while self.is_transient(request.answer) and request.retries < self.longest:
            request.retry()
        return request.answer

    def is_transient(self, answer):
        """Time-outs and overloads pass by themselves."""
        overloads = {429, 502, 503, 504}
        return answer.status in overloads or answer.timed_out
'''


def test_the_members_beside_the_best_are_shown_while_there_is_room(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    filler = "\n".join(f"    def other_{i}(self):\n        return self.values[{i}] * {i}\n" for i in range(60))
    (root / "retrying.py").write_text(f"{RETRYING}\n{filler}")
    for name in ("pool", "shell", "page"):
        (root / f"{name}.py").write_text(f"def {name}():\n    return '{name}'\n")
    with opened(root) as client:
        text = client.build("how does a request retry", token_budget=2000).text
    assert "overloads = {429, 502, 503, 504}" in text


@pytest.mark.parametrize("budget", [300, 500, 800, 1300])
def test_members_of_one_class_never_cost_more_than_the_room(folder: Path, budget: int) -> None:
    members = "\n".join(
        f"    def compute_tide_{i}(self):\n        '''The tide of harbor {i}.'''\n        return self.tide({i})\n"
        for i in range(30)
    )
    (folder / "tides.py").write_text(f"class Tides:\n    '''Computes the tides of harbors.'''\n\n{members}")
    with opened(folder) as client:
        context = client.build("compute the tide of a harbor", token_budget=budget)
    assert context.tokens <= budget
    assert "truncated" not in context.text
