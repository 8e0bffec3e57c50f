"""Reading: what blocks, pieces and mentions come out of a text."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.indexing.code.read_code import GRAMMARS, grammar_name
from satchel.indexing.parse import Parsers, SourceFile, is_tame, read_outline
from satchel.indexing.split import MOST_CHARS
from satchel.models.outline import WHOLE_FILE, Outline
from tests.support.effort import no_blow_up
from tests.support.places import TESTS

SAMPLES = sorted((TESTS / "languages").glob("*/sample.*"))

PYTHON = '''"""A module."""

import os
from retry import Backoff


class Client(Backoff):
    """Talks to the server. And more."""

    limit = 3

    def send(self, data: bytes) -> int:
        """Send the data."""
        return os.write(1, data)

    @property
    def size(self):
        return 1

    @size.setter
    def size(self, value):
        self.grow(value)


# How long to wait.
# It grows.
def delay(attempt):
    return 2**attempt
'''


def whole(outline: Outline, text: str) -> None:
    """The laws of every outline: pieces are exact, in order, and cover every line that says anything."""
    lines = text.split("\n")
    covered: set[int] = set()
    for piece in outline.pieces:
        said = "\n".join(lines[piece.first_line - 1 : piece.last_line])
        assert text[piece.start : piece.end] == said
        rows = set(range(piece.first_line, piece.last_line + 1))
        assert not rows & covered
        covered |= rows
        assert piece.block == WHOLE_FILE or 0 <= piece.block < len(outline.blocks)
    assert {row for row, line in enumerate(lines, 1) if line.strip()} <= covered
    names = [block.qualified for block in outline.blocks]
    assert len(set(names)) == len(names)
    for i, block in enumerate(outline.blocks):
        assert 1 <= block.first_line <= block.last_line <= len(lines)
        assert block.parent < i


def test_python_gives_its_tree_with_signatures_docs_and_exact_lines() -> None:
    outline = read_outline("src/client.py", PYTHON)
    whole(outline, PYTHON)
    blocks = {block.qualified: block for block in outline.blocks}
    client, send, delay = blocks["Client"], blocks["Client.send"], blocks["delay"]
    assert (client.type, client.first_line, client.last_line) == ("class", 7, 22)
    assert client.doc == "Talks to the server."
    assert (send.type, send.first_line, send.last_line) == ("method", 12, 14)
    assert send.summary == "def send(self, data: bytes) -> int — Send the data."
    assert (delay.type, delay.first_line, delay.last_line) == ("function", 25, 28)
    assert delay.doc == "How long to wait. It grows."[: len(delay.doc)]
    assert outline.blocks[send.parent].qualified == "Client"
    assert {"Client.size", "Client.size~2"} <= set(blocks)
    mentioned = {(mention.kind, mention.name) for mention in outline.mentions}
    assert {("imports", "os"), ("imports", "retry"), ("inherits", "Backoff"), ("calls", "write")} <= mentioned


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.parent.name)
def test_every_language_gives_whole_outlines(sample: Path) -> None:
    text = sample.read_text()
    outline = read_outline(sample.name, text)
    whole(outline, text)
    assert len(outline.blocks) > 4
    assert any(block.doc for block in outline.blocks)
    assert outline.mentions


def test_every_grammar_has_a_sample() -> None:
    assert {path.parent.name for path in SAMPLES} == set(GRAMMARS)


def test_a_long_function_is_cut_at_statements_and_its_parts_know_where_they_belong() -> None:
    body = "".join(f"    if value == {i}:\n        call_{i}(value)\n        return {i}\n" for i in range(120))
    text = f"def long(value):\n{body}\n\ndef short():\n    return 1\n"
    outline = read_outline("a.py", text)
    whole(outline, text)
    assert all(piece.end - piece.start <= MOST_CHARS for piece in outline.pieces)
    lines = text.split("\n")
    assert all(lines[piece.first_line - 1].lstrip().startswith(("if ", "def ")) for piece in outline.pieces)
    assert {outline.blocks[piece.block].name for piece in outline.pieces} == {"long", "short"}


def test_what_follows_a_long_function_is_not_joined_with_its_rest() -> None:
    body = "".join(f"    step_{i}('{'x' * 30}')\n" for i in range(60))
    text = f"def long():\n{body}\n\ndef short():\n    return 1\n"
    outline = read_outline("a.py", text)
    assert outline.pieces[-1].first_line == 64


def test_markdown_sections_nest_and_code_in_fences_is_no_heading() -> None:
    text = (
        "# Guide\n\nIntro.\n\n## Install\n\n```sh\n# not a heading\n```\n\nUsage\n-----\n\nText.\n\n## Install\n\nNo.\n"
    )
    outline = read_outline("docs/guide.md", text)
    whole(outline, text)
    assert [block.qualified for block in outline.blocks] == [
        "Guide", "Guide/Install", "Guide/Usage", "Guide/Install~2",
    ]  # fmt: skip
    assert outline.blocks[1].last_line == 10
    assert outline.blocks[0].doc == "Intro."


@pytest.mark.parametrize("fence", ["---", "+++"])
def test_front_matter_is_no_heading(fence: str) -> None:
    text = f"{fence}\ntitle: Anki\nauthor: Lyz\n{fence}\n\n# Anki\n\nCards.\n"
    assert [block.qualified for block in read_outline("anki.md", text).blocks] == ["Anki"]


def test_a_rule_at_the_beginning_hides_no_heading() -> None:
    text = "---\nOne sentence begins here.\n\nUsage\n---\n\nText.\n\n# More\n\nText.\n"
    assert [block.name for block in read_outline("a.md", text).blocks] == ["Usage", "More"]


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.toml", "x = 1\n[tool.ruff]\ny = 2\n[[bin]]\nname = 'a'\n", ["tool.ruff", "bin"]),
        ("a.yaml", "name: x\non:\n  push:\n    branches: [main]\njobs:\n  a: 1\n", ["name", "on", "jobs"]),
        ("a.json", '{\n  "scripts": {\n    "test": "x"\n  },\n  "deps": {}\n}\n', ["scripts", "deps"]),
        ("a.rst", "Title\n=====\n\nText.\n\nPart\n----\n\nMore.\n", ["Title", "Part"]),
        ("a.ini", "[one]\na=1\n[two]\nb=2\n", ["one", "two"]),
    ],
)
def test_configuration_and_documents_become_sections(path: str, text: str, names: list[str]) -> None:
    outline = read_outline(path, text)
    whole(outline, text)
    assert [block.name for block in outline.blocks] == names
    assert {block.type for block in outline.blocks} == {"section"}


def test_c_headers_are_read_as_what_they_are() -> None:
    assert grammar_name("a.h", "int f(void);\n") == "c"
    assert grammar_name("a.h", "namespace x {\nclass A {};\n}\n") == "cpp"
    assert grammar_name("a.tsx", "") == "tsx"
    assert grammar_name("a.unknown", "") is None


ODD = string.ascii_letters + " \n\t(){}[]:#'\"=/*<>.,;é\u2028\r"


@given(st.text(alphabet=ODD, max_size=400), st.sampled_from(GRAMMARS))
@settings(deadline=None, max_examples=60)
def test_law_any_text_gives_a_whole_outline_in_any_language(text: str, grammar: str) -> None:
    extension = {"python": "py", "javascript": "js", "markdown": "md", "bash": "sh", "rust": "rs", "haskell": "hs"}
    path = f"a.{extension.get(grammar, grammar)}"
    whole(read_outline(path, text), text)


@given(st.lists(st.sampled_from(["", "# A", "## B", "text " * 20, "```", "- x", "    code"]), max_size=60))
@settings(deadline=None, max_examples=60)
def test_law_any_markdown_gives_a_whole_outline(lines: list[str]) -> None:
    text = "\n".join(lines)
    whole(read_outline("a.md", text), text)


def test_child_processes_read_the_same_as_this_one_and_in_order() -> None:
    chosen = random.Random(1).choices(SAMPLES, k=30)
    sources = [SourceFile(f"{i}/{path.name}", path.read_text()) for i, path in enumerate(chosen)]
    with Parsers(2) as parsers:
        outlines = [future.result() for future in [parsers.submit(source) for source in sources]]
    assert outlines == [read_outline(source.path, source.text) for source in sources]


def test_a_file_that_stalls_its_parser_is_read_by_its_lines_and_others_are_not_harmed() -> None:
    nested = SourceFile("deep.js", "[" * 60_000)
    assert not is_tame(nested.text)
    with Parsers(1, deadline=0.02) as parsers:
        stalled, after = (parsers.submit(source).result() for source in (nested, SourceFile("a.py", PYTHON)))
    assert "split by lines" in stalled.note
    with Parsers(1) as parsers:
        fine = parsers.submit(SourceFile("a.py", PYTHON)).result()
    assert fine.blocks
    assert after.language == "python"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "# x" + " " * 500_000 + "y"),
        ("a.md", "# a\n" * 100_000),
        ("a.h", "\n" * 300_000),
        ("a.yaml", "a" + " " * 800_000 + "x"),
        ("a.json", "{\n" + "".join(f'  "k{i}": 1,\n' for i in range(60_000)) + '  "z": 1\n}\n'),
        ("a.go", "//\n" * 60_000),
        ("a.go", "// " + " " * 800_000 + "x\nfunc f() {}\n"),
        ("a.py", "x" * 900_000),
    ],
    ids=range(8),
)
def test_no_file_takes_long_to_outline(path: str, text: str) -> None:
    with no_blow_up("the outline"):
        outline = read_outline(path, text)
    whole(outline, text)


def test_annotated_members_on_one_line_are_not_each_others_comments() -> None:
    text = (
        "public class Std {\n    @Override public int one() { return 1; }\n"
        "    @Override public int two() { return 2; }\n"
        "    /** @internal */ int three() { return 3; }\n    int four() { return 4; }\n}\n"
    )
    lines = {block.name: (block.first_line, block.last_line) for block in read_outline("Std.java", text).blocks}
    assert (lines["one"], lines["two"], lines["three"], lines["four"]) == ((2, 2), (3, 3), (4, 4), (5, 5))


def test_a_header_with_classes_is_read_as_cpp(tmp_path: Path) -> None:
    assert read_outline("a.h", "namespace x {\nclass A {};\n}\n").language == "cpp"
