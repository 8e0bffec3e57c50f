"""Checks of the coding agents that start Satchel: whether what they start is still there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem

if TYPE_CHECKING:
    from satchel.agents.plan import Target


def check_agents(path: str) -> Iterator[Finding]:
    """Every entry that starts Satchel, in the user's settings and in the project's."""
    from satchel.agents.catalog import AGENTS, Scope
    from satchel.agents.machine import this_machine
    from satchel.agents.plan import target_for

    machine, project = this_machine(), Path(path).absolute()
    targets = (target_for(agent, scope, machine, project, "satchel") for agent in AGENTS for scope in Scope)
    findings = [finding for target in targets if target and target.file.exists() for finding in _check_file(target)]
    yield from findings or [ok("agents", "none was told to start Satchel (`satchel install` does)")]


def _check_file(target: Target) -> Iterator[Finding]:
    from satchel.agents.edits import entry_in
    from satchel.agents.files import read_settings
    from satchel.agents.refusal import CannotEdit

    agent, subject = target.agent, f"agent {target.agent.key}"
    try:
        data = read_settings(target.file) or b""
        if b"satchel" not in data:
            return
        text = data.decode("utf-8")
        lists = [entry_in(text, agent.syntax, keys) for keys in agent.lists]
    except (CannotEdit, UnicodeDecodeError) as error:
        yield problem(subject, f"{target.file} cannot be read: {error}", "correct the file; then: satchel install")
        return
    project_flag = "" if target.scope == "user" else " --project"
    for name, entry in (
        (name, entry) for servers in lists if isinstance(servers, dict) for name, entry in servers.items()
    ):
        command = _command(entry)
        if command and (name == "satchel" or _starts_satchel(command)):
            yield _check_command(target, command, f"satchel install {agent.key}{project_flag} --name {name}")


def _command(entry: Any) -> list[str]:
    """The program and its arguments, under whatever keys an agent has for them; [] if there is none."""
    if not isinstance(entry, dict):
        return []
    program = entry.get("command", entry.get("cmd", ""))
    words = [*(program if isinstance(program, list) else [program]), *(entry.get("args") or [])]
    return [word for word in words if isinstance(word, str)] if words[0] else []


def _starts_satchel(command: list[str]) -> bool:
    return os.path.basename(command[0]).startswith("satchel") or command[1:3] == ["-m", "satchel"]


def _check_command(target: Target, command: list[str], reinstall: str) -> Finding:
    """What is wrong with the command of an entry; `reinstall` is the command that writes the entry again."""
    program, file, subject = command[0], target.file, f"agent {target.agent.key}"
    if shutil.which(program) is None:
        return problem(subject, f"{file} starts {program}, which is not there", reinstall)
    folder = next(iter(command[command.index("mcp") + 1 :] if "mcp" in command else ()), "-")
    if not folder.startswith("-") and "://" not in folder and not Path(folder).is_dir():
        return problem(subject, f"{file} serves {folder}, which is not there", f"{reinstall} --path FOLDER")
    if find_spec("mcp") is None and Path(program).parent == Path(sys.executable).parent:
        detail = f"{file} starts `satchel mcp`, which needs packages that are not installed"
        return problem(subject, detail, pip_install("mcp"))
    if not os.path.isabs(program):
        return note(subject, f"{file} starts whichever `{program}` is found first on PATH", reinstall)
    return ok(subject, f"{file} starts {program}")
