"""`satchel install` and `satchel uninstall` as a user runs them: real processes, real files, a real terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from satchel.agents import json_edit
from satchel.agents.catalog import AGENTS
from satchel.cli.exits import Exit
from tests.support import measuring
from tests.support.waiting import HANG_SECONDS

PROGRAM = [sys.executable, "-m", "satchel"]
SERVER = str(Path(sys.executable).with_name("satchel"))


class Place:
    """A home and a project of their own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        for one in (self.home, self.project):
            one.mkdir()
        names = ("PATH", "LANG", "PYTHONPATH", measuring.VARIABLE)
        kept = {name: value for name, value in os.environ.items() if name in names}
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "APPDATA": str(self.home / "AppData" / "Roaming"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
        }

    def run(self, *arguments: str | Path, code: int = Exit.OK) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            cwd=self.project, env=self.environment, input="", capture_output=True, text=True,
            timeout=HANG_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    def told(self, *arguments: str | Path, code: int = Exit.OK) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def answer(self, answer: str, *arguments: str) -> tuple[int, str]:
        """Run it at a terminal, and answer what it asks."""
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [*PROGRAM, *arguments], cwd=self.project, env=self.environment, stdin=slave,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.close(slave)
        try:
            os.write(master, answer.encode())
            _, errors = process.communicate(timeout=HANG_SECONDS)
        finally:
            os.close(master)
        return process.returncode, errors

    def holds(self) -> dict[str, bytes]:
        """Every file that there is."""
        root = self.home.parent
        return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


CURSOR = b'{\n    // mine\n    "mcpServers": {\n        "other": {"command": "x"},\n    },\n}'


def with_cursor(place: Place) -> Path:
    file = place.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(CURSOR)
    return file


def test_agents_in_use_are_found_changed_and_changed_back(place: Place) -> None:
    (place.home / ".codex").mkdir()
    (place.home / ".codex" / "config.toml").write_text('model = "x"\n')
    (place.home / ".claude.json").write_text('{"numStartups": 3, "mcpServers": {}}')
    before = place.holds()
    told = place.told("install", "--yes")
    assert [(one["agent"], one["scope"], one["part"], one["action"], one["problem"]) for one in told] == [
        ("claude-code", "user", "server", "installed", ""),
        ("codex", "user", "server", "installed", ""),
        ("claude-code", "user", "instructions", "installed", ""),
        ("claude-code", "user", "skill", "installed", ""),
        ("claude-code", "user", "explorer", "installed", ""),
        ("codex", "user", "instructions", "installed", ""),
        ("codex", "user", "skill", "installed", ""),
        ("codex", "user", "explorer", "installed", ""),
    ]
    codex = tomllib.loads((place.home / ".codex" / "config.toml").read_text())
    assert codex == {"model": "x", "mcp_servers": {"satchel": {"command": SERVER, "args": ["mcp"]}}}
    claude = json.loads((place.home / ".claude.json").read_text())
    assert claude["mcpServers"] == {"satchel": {"type": "stdio", "command": SERVER, "args": ["mcp"]}}
    assert {one["action"] for one in place.told("install", "-y")} == {"unchanged"}
    assert {one["action"] for one in place.told("uninstall", "-y")} == {"removed"}
    assert place.holds() == before


OFTEN = ("claude-code", "codex", "cursor", "vscode", "zed")
"""Those whose whole way through the program is tried each time; the others' files are tried by test_agents.py."""


@pytest.mark.parametrize(
    "agent",
    [pytest.param(one, marks=() if one.key in OFTEN else pytest.mark.slow) for one in AGENTS],
    ids=lambda agent: agent.key,
)
def test_every_agent_by_name(place: Place, agent: Any) -> None:
    done = place.told("install", agent.key, "--path", place.project, "-y")[0]
    assert (done["agent"], done["action"]) == (agent.key, "installed")
    held = Path(done["file"]).read_text()
    assert str(place.project) in held
    assert SERVER in held
    assert place.told("install", agent.key, "--path", place.project, "-y")[0]["action"] == "unchanged"
    assert place.told("uninstall", agent.key, "-y")[0]["action"] == "removed"
    assert place.holds() == {}


def test_a_terminal_is_asked_and_shown_what_changes(place: Place) -> None:
    file = with_cursor(place)
    code, told = place.answer("n\n", "install", "cursor", "--path", ".", "--part", "server")
    assert code == Exit.OK
    assert '+        "satchel": {' in told
    assert '"other": {"command": "x"},' in told
    assert "Change this file?" in told
    assert "nothing was changed" in told
    assert file.read_bytes() == CURSOR
    code, told = place.answer("y\n", "install", "cursor", "--path", ".", "--part", "server")
    assert code == Exit.OK
    assert "Cursor: satchel installed in" in told
    assert b"// mine" in file.read_bytes()
    code, told = place.answer("y\n", "uninstall")
    assert '-        "satchel": {' in told
    assert file.read_bytes() == CURSOR


def test_without_a_terminal_nothing_is_written(place: Place) -> None:
    with_cursor(place)
    done = place.run("install", "cursor", "--path", ".", code=Exit.USAGE)
    assert "--yes" in done.stderr
    assert place.holds() == {"home/.cursor/mcp.json": CURSOR}


def test_dry_run_shows_and_writes_nothing(place: Place) -> None:
    file = with_cursor(place)
    done = place.run("install", "cursor", "--path", ".", "--dry-run", "--part", "server")
    assert done.stdout.startswith(f"--- {file}\n+++ {file}\n@@")
    assert '+        "satchel": {' in done.stdout
    assert "would be installed" in done.stderr
    told = place.told("install", "cursor", "--path", ".", "--dry-run", "--part", "server")
    assert [one["action"] for one in told] == ["installed"]
    assert place.holds() == {"home/.cursor/mcp.json": CURSOR}


def test_a_project_gets_its_folder(place: Place) -> None:
    other = place.project / "sub"
    other.mkdir()
    told = place.told(
        "install", "claude-code", "copilot-cli", "vscode", "--project", "--path", "sub", "-y", "--part", "server"
    )
    assert [Path(one["file"]).relative_to(other).as_posix() for one in told] == [
        ".mcp.json", ".mcp.json", ".vscode/mcp.json",
    ]  # fmt: skip
    assert {one["scope"] for one in told} == {"project"}
    entry = {"type": "stdio", "command": SERVER, "args": ["mcp", str(other)]}
    assert json.loads((other / ".mcp.json").read_text()) == {"mcpServers": {"satchel": entry}}
    assert json.loads((other / ".vscode" / "mcp.json").read_text()) == {"servers": {"satchel": entry}}
    assert {one["action"] for one in place.told("uninstall", "--project", "--path", "sub", "-y")} == {"removed"}
    assert not list(other.iterdir())


def test_agents_that_start_servers_elsewhere_are_installed_for_all_folders(place: Place) -> None:
    with_cursor(place)
    done = place.run("install", "cursor", "claude-desktop", "-y", "--part", "server")
    assert "Cursor, Claude Desktop may start servers outside the project: they search the folders" in done.stderr
    place.run("install", "cursor", "-y", "--part", "server", "--allow", place.project)
    settings = json_edit.read((place.home / ".cursor" / "mcp.json").read_text())
    assert settings["mcpServers"]["satchel"]["args"] == ["mcp", "--allow", str(place.project)]
    place.run("uninstall", "-y")
    assert place.holds() == {"home/.cursor/mcp.json": CURSOR}


def test_nothing_found_is_said(place: Place) -> None:
    assert "no supported agent found" in place.run("install", "-y", code=Exit.NOTHING_FOUND).stderr
    assert "satchel is not installed" in place.run("uninstall", "-y", code=Exit.NOTHING_FOUND).stderr
    assert place.told("uninstall", "cursor", "-y", code=Exit.NOTHING_FOUND)[0]["action"] == "absent"


def test_a_file_that_cannot_be_edited_is_told_and_the_others_are_done(place: Place) -> None:
    (place.home / ".codex").mkdir()
    (place.home / ".codex" / "config.toml").write_text("model = \n")
    (place.home / ".qwen").mkdir()
    told = {one["agent"]: one for one in place.told("install", "-y", "--part", "server", code=Exit.ERROR)}
    assert told["codex"]["action"] == "failed"
    assert "line 1" in told["codex"]["problem"]
    assert told["qwen"]["action"] == "installed"
    assert (place.home / ".codex" / "config.toml").read_text() == "model = \n"
    done = place.run("install", "codex", "-y", code=Exit.ERROR)
    assert "config.toml was not changed: " in done.stderr


def test_an_entry_of_somebody_else_is_replaced_and_said(place: Place) -> None:
    file = place.home / ".qwen" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"satchel": {"url": "http://x"}}}')
    done = place.run("install", "qwen", "--dry-run")
    assert '-{"mcpServers": {"satchel": {"url": "http://x"}}}' in done.stdout
    assert "would replace another entry" in done.stderr
    assert place.told("install", "qwen", "-y")[0]["action"] == "replaced"


def test_a_name_of_ones_own(place: Place) -> None:
    place.run("install", "continue", "--name", "work", "-y")
    assert "build_context" in (place.home / ".continue" / "rules" / "work.md").read_text()
    file = place.home / ".continue" / "mcpServers" / "work.json"
    assert list(json.loads(file.read_text())["mcpServers"]) == ["work"]
    assert place.run("uninstall", "-y", code=Exit.NOTHING_FOUND)
    place.run("uninstall", "--name", "work", "-y")
    assert place.holds() == {}


def test_the_list_tells_files_and_states(place: Place) -> None:
    (place.home / ".qwen").mkdir()
    (place.home / ".zed").mkdir()
    place.run("install", "qwen", "-y")
    (place.project / ".mcp.json").write_text("nonsense")
    lines = place.run("install", "--list").stdout.splitlines()
    assert len(lines) == len(AGENTS) + sum(bool(agent.project) for agent in AGENTS)
    states = {tuple(line.split()[:2]): line.split(maxsplit=2)[2] for line in lines}
    assert states["qwen", "user"] == f"in use  installed   {place.home}/.qwen/settings.json"
    assert states["claude-code", "project"].split()[2] == "unreadable"
    listed = place.run("install", "--list", "qwen", "--part", "instructions").stdout.splitlines()
    assert listed[0].split()[2:6] == ["instructions", "in", "use", "installed"]
    told = place.told("install", "--list", "qwen")
    assert [(one["scope"], one["in_use"], one["installed"]) for one in told] == [
        ("user", True, True), ("project", True, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("install", "kursor"), "did you mean cursor"),
        (("install", "qwen", "--name", "a b"), "letters, digits"),
        (("install", "qwen", "--project", "--user"), "--user"),
        (("install", "windsurf", "--project"), "Windsurf has no project settings"),
        (("install", "qwen", "--path", "nowhere"), "does not exist"),
    ],
    ids=["agent", "name", "scopes", "no-project", "path"],
)
def test_wrong_usage_is_told_and_writes_nothing(place: Place, arguments: tuple[str, ...], problem: str) -> None:
    assert problem in place.run(*arguments, "-y", code=Exit.USAGE).stderr
    assert place.holds() == {}


def test_the_entry_can_be_started(place: Place) -> None:
    """What is written names a program that there is and that knows the command."""
    place.run("install", "qwen", "-y")
    entry = json.loads((place.home / ".qwen" / "settings.json").read_text())["mcpServers"]["satchel"]
    done = subprocess.run([entry["command"], "--version"], capture_output=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0
    assert entry["args"] == ["mcp"]
