"""What agents read beside their list of servers: instructions, skill, explorer and session hook."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from satchel.agents.catalog import AGENTS, Scope
from satchel.agents.guides import DESCRIPTION, GUIDES, Part, is_shared, text_of
from satchel.agents.settings_file import CannotEdit
from satchel.agents.text_edit import holds_block, with_block, without_block
from satchel.cli.exits import Exit
from satchel.mcp.tools import INSTRUCTIONS, TOOLS
from tests.agents.test_install import Place

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def front_matter(text: str) -> dict[str, Any]:
    head = text.split("---\n")[1]
    read: dict[str, Any] = yaml.safe_load(head)
    return read


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("key", sorted(GUIDES))
def test_everything_is_written_and_taken_out_to_the_byte(place: Place, key: str, scope: Scope) -> None:
    if not next(agent for agent in AGENTS if agent.key == key).project and scope is Scope.PROJECT:
        return
    for file in (place.project / "AGENTS.md", place.home / ".gemini" / "GEMINI.md"):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes("# Ours – keep\r\n\r\nrules".encode())
    before = place.holds()
    parts = [option for part in Part for option in ("--part", part)]
    told = place.told("install", key, f"--{scope}", *parts, "-y")
    assert {one["action"] for one in told} == {"installed"}
    assert len({one["part"] for one in told}) == len(told)
    assert {one["action"] for one in place.told("install", key, f"--{scope}", *parts, "-y")} == {"unchanged"}
    assert {one["action"] for one in place.told("uninstall", key, f"--{scope}", "-y")} == {"removed"}
    assert place.holds() == before


def test_the_files_are_as_their_agents_demand(place: Place) -> None:
    place.run("install", "claude-code", "codex", "gemini", "opencode", "cursor", "vscode", "--project", "-y")
    read = {path: (place.project / path).read_text() for path in (
        ".claude/skills/satchel/SKILL.md", ".agents/skills/satchel/SKILL.md", ".claude/agents/satchel-explorer.md",
        ".gemini/agents/satchel-explorer.md", ".opencode/agents/satchel-explorer.md", ".cursor/rules/satchel.mdc",
        ".github/agents/satchel-explorer.agent.md", ".codex/agents/satchel-explorer.toml", "AGENTS.md", "GEMINI.md",
    )}  # fmt: skip
    skill = front_matter(read[".agents/skills/satchel/SKILL.md"])
    assert skill == {"name": "satchel", "description": DESCRIPTION}
    assert len(DESCRIPTION) <= 1024
    claude = front_matter(read[".claude/agents/satchel-explorer.md"])
    assert "mcp__satchel__build_context" in claude["tools"].split(", ")
    assert not {"Edit", "Write", "Bash"} & set(claude["tools"].split(", "))
    gemini = front_matter(read[".gemini/agents/satchel-explorer.md"])
    assert set(gemini) == {"name", "description", "kind", "tools"}
    assert "mcp_satchel_build_context" in gemini["tools"]
    opencode = front_matter(read[".opencode/agents/satchel-explorer.md"])
    assert (opencode["permission"]["*"], opencode["permission"]["satchel_build_context"]) == ("deny", "allow")
    codex = tomllib.loads(read[".codex/agents/satchel-explorer.toml"])
    assert set(codex) == {"name", "description", "sandbox_mode", "developer_instructions"}
    assert front_matter(read[".cursor/rules/satchel.mdc"])["alwaysApply"] is True
    assert read["AGENTS.md"] == read["GEMINI.md"]
    assert text_of(Part.INSTRUCTIONS).rstrip() in read["AGENTS.md"]


def test_instructions_are_short_and_name_the_tools() -> None:
    assert len(text_of(Part.INSTRUCTIONS).split()) < 150
    for part in (Part.INSTRUCTIONS, Part.SKILL, Part.EXPLORER):
        assert "build_context" in text_of(part)
    assert len(INSTRUCTIONS) < 2_000
    assert INSTRUCTIONS.startswith("Ask build_context before grepping")
    assert all(len(tool.says) < 2_000 for tool in TOOLS)


def test_a_file_of_somebody_else_is_not_overwritten(place: Place) -> None:
    own = place.project / ".claude" / "rules" / "satchel.md"
    own.parent.mkdir(parents=True)
    own.write_text("my rule\n")
    told = place.told("install", "claude-code", "--project", "--part", "instructions", "-y", code=Exit.ERROR)
    assert "was not written by `satchel install`" in told[0]["problem"]
    place.run("uninstall", "claude-code", "--project", "-y", code=Exit.NOTHING_FOUND)
    assert own.read_text() == "my rule\n"


def test_a_hook_of_somebody_else_is_kept(place: Place) -> None:
    settings = place.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": {"SessionStart": [{"hooks": []}]}}')
    told = place.told("install", "claude-code", "--project", "--part", "hook", "-y", code=Exit.ERROR)
    assert "satchel session-note" in told[0]["problem"]
    assert settings.read_text() == '{"hooks": {"SessionStart": [{"hooks": []}]}}'


def test_the_hook_runs_a_command_that_tells_the_instructions(place: Place) -> None:
    place.run("install", "claude-code", "--project", "--part", "hook", "-y")
    settings = json.loads((place.project / ".claude" / "settings.json").read_text())
    command = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    said = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, env=place.environment)
    output = json.loads(said.stdout)["hookSpecificOutput"]
    assert output == {"hookEventName": "SessionStart", "additionalContext": text_of(Part.INSTRUCTIONS)}


TEXTS = st.text(st.sampled_from("a#\n\r -"), max_size=30).map(lambda text: text.replace("\r", "")) | st.just(
    "a\r\nb\r\n"
)


@given(TEXTS)
def test_law_a_block_is_taken_out_as_it_was_put_in(text: str) -> None:
    put = with_block(text, "satchel", "one\ntwo\n")
    assert holds_block(put, "satchel")
    assert with_block(put, "satchel", "one\ntwo\n") == put
    assert (without_block(put, "satchel") or "").strip() == text.strip()
    if text.strip():
        assert without_block(put, "satchel") == text


def test_marks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CannotEdit, match="incomplete or doubled"):
        with_block("<!-- satchel:begin satchel -->\n", "satchel", "x")
    assert not holds_block("<!-- satchel:begin other -->", "satchel")


def test_only_shared_files_get_a_block() -> None:
    assert is_shared(Path("x/AGENTS.md"))
    assert not is_shared(Path(".claude/rules/satchel.md"))


def test_the_plug_ins_are_made_from_the_same_texts() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/make_plugins.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def test_the_entry_of_the_registry_has_what_its_schema_requires() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/make_plugins.py", "--registry", "ann"], cwd=ROOT, capture_output=True, check=True
    )
    entry = json.loads(done.stdout)
    assert entry["name"] == "io.github.ann/satchel"
    assert len(entry["description"]) <= 100
    assert {"registryType", "identifier", "transport", "version"} <= set(entry["packages"][0])
