"""Coding agents that were told to start Satchel: whether what they start is still there."""

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


def agents(path: str) -> Iterator[Finding]:
    """Every entry that starts Satchel, in the user's settings and in the project's."""
    from satchel.agents.catalog import AGENTS, Scope
    from satchel.agents.machine import this_machine
    from satchel.agents.plan import target_for

    machine, project = this_machine(), Path(path).absolute()
    seen = 0
    for agent in AGENTS:
        for scope in Scope:
            target = target_for(agent, scope, machine, project, "satchel")
            if target is None or not target.file.exists():
                continue
            for finding in _entries(target):
                seen += 1
                yield finding
    if not seen:
        yield ok("agents", "none was told to start Satchel (`satchel install` does)")


def _entries(target: Target) -> Iterator[Finding]:
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
    where = "" if target.scope == "user" else " --project"
    for name, entry in ((name, entry) for one in lists if isinstance(one, dict) for name, entry in one.items()):
        words = _command(entry)
        if words and (name == "satchel" or _is_ours(words)):
            yield _looked_at(subject, target, words, f"satchel install {agent.key}{where} --name {name}")


def _command(entry: Any) -> list[str]:
    """The program and its arguments, in whatever words an agent has for them."""
    if not isinstance(entry, dict):
        return []
    program = entry.get("command", entry.get("cmd", ""))
    words = [*(program if isinstance(program, list) else [program]), *(entry.get("args") or [])]
    return [one for one in words if isinstance(one, str)] if words[0] else []


def _is_ours(words: list[str]) -> bool:
    return os.path.basename(words[0]).startswith("satchel") or words[1:3] == ["-m", "satchel"]


def _looked_at(subject: str, target: Target, words: list[str], again: str) -> Finding:
    program = words[0]
    if shutil.which(program) is None:
        return problem(subject, f"{target.file} starts {program}, which is not there", again)
    served = words[words.index("mcp") + 1 :] if "mcp" in words else []
    if served and not served[0].startswith("-") and "://" not in served[0] and not Path(served[0]).is_dir():
        return problem(subject, f"{target.file} serves {served[0]}, which is not there", f"{again} --path FOLDER")
    if find_spec("mcp") is None and Path(program).parent == Path(sys.executable).parent:
        told = f"{target.file} starts `satchel mcp`, which needs packages that are not installed"
        return problem(subject, told, pip_install("mcp"))
    if not os.path.isabs(program):
        return note(subject, f"{target.file} starts whichever `{program}` is found first on PATH", again)
    return ok(subject, f"{target.file} starts {program}")
