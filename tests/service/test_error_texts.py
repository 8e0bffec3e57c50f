"""No error says how the program is made: a law over the options of a question, the command line and the tools."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import SatchelError, shown
from satchel.mcp.tools import TOOLS, checked
from satchel.service.question import Question, ResearchQuestion, question_from
from tests.support.error_texts import internals_in
from tests.support.waiting import HANG_SECONDS

ODD: Any = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=5),
        st.sampled_from([object(), len, Path("/nowhere"), "HEAD~99", "-", "\x00", "x" * 300_000]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
NAMES = sorted({field.name for kind in (Question, ResearchQuestion) for field in fields(kind)} - {"query"})


@given(st.sampled_from([Question, ResearchQuestion]), st.sampled_from(NAMES), ODD)
def test_law_the_options_of_a_question_are_refused_in_words(kind: type[Any], name: str, value: Any) -> None:
    said = ""
    try:
        question_from(kind, "how?", {name: value})
    except SatchelError as error:
        said = str(error)
    assert not internals_in(said.replace(shown(value), ""))
    assert len(said) < 1_000


@given(st.sampled_from(TOOLS), st.dictionaries(st.sampled_from(["question", "id", "what", "path", "limit"]), ODD))
def test_law_the_arguments_of_a_tool_are_refused_in_words(tool: Any, arguments: dict[str, Any]) -> None:
    said = ""
    try:
        checked(tool.arguments, arguments)
    except SatchelError as error:
        said = str(error)
    for value in arguments.values():
        said = said.replace(shown(value), "")
    assert not internals_in(said)


@pytest.mark.parametrize(
    "command",
    [
        "build how -b x", "build how -b 0", "build how nowhere", "build how --format odd", "search how --since monday",
        "expand nowhere.py", "find ( . -K pattern", "build --diff HEAD~99 .", "build --trace nowhere.txt", "ask how .",
        "serve . --host 203.0.113.1", "workspace import nowhere -w .", "migrate . .", "index . --store mysql://x/y",
        "build how --embedder odd:x", "tokens nowhere", "verify nowhere", "assemble nowhere.json", "page x 0",
        "build how --hint odd", "eval nowhere.jsonl", "postgres setup mysql://x", "token ann --keys /proc/nowhere/k",
    ],
)  # fmt: skip
def test_the_command_line_refuses_in_words(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "satchel", *command.split()],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "SATCHEL_INDEX_DIR": str(tmp_path / "index"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (1, 2, 3), done.stderr
    assert done.stderr.strip()
    assert not internals_in(done.stderr), done.stderr
