"""The command with which an agent starts Satchel's MCP server."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from satchel.errors import InvalidOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program by its absolute path, and its arguments."""

    program: str
    args: tuple[str, ...]


def server_command(folder: Path | None) -> Command:
    """What starts the MCP server of this environment's Satchel, for a folder or for where the agent starts it."""
    script = _script()
    # A virtual environment's Python is a link; resolved, it would lose the environment.
    program = str(script) if script else os.path.abspath(sys.executable)
    args = (*(() if script else ("-m", "satchel")), "mcp", *((str(folder),) if folder else ()))
    for value in (program, *args):
        _refuse_unwritable(value)
    return Command(program=program, args=args)


def _script() -> Path | None:
    """The program `satchel` of this environment, if it was installed with one."""
    name = "satchel.exe" if sys.platform == "win32" else "satchel"
    for place in (os.path.dirname(os.path.abspath(sys.executable)), sysconfig.get_path("scripts")):
        script = Path(place, name)
        if script.is_file() and os.access(script, os.X_OK):
            return script
    return None


def _refuse_unwritable(value: str) -> None:
    if "$" in value:
        # Half of the agents put the environment's values where a file says $NAME.
        raise InvalidOption("path", value, "holds a $, which agents take for a variable; use a path without one")
    if not value.isprintable():
        raise InvalidOption("path", value, "holds characters that a settings file cannot hold; use another path")
