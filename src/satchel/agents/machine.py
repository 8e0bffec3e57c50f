"""Where programs keep their settings on Linux, macOS and Windows."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final


class System(StrEnum):
    """Systems that differ in where settings are."""

    LINUX = "linux"
    MACOS = "macos"
    WINDOWS = "windows"


# A variable with which the user moves an agent's folder, and where the folder is otherwise.
_MOVABLE: Final = {
    "claude": ("CLAUDE_CONFIG_DIR", "{home}"),
    "cline": ("CLINE_DIR", "{home}/.cline"),
    "codex": ("CODEX_HOME", "{home}/.codex"),
    "copilot": ("COPILOT_HOME", "{home}/.copilot"),
    "crush": ("CRUSH_GLOBAL_CONFIG", "{config}/crush"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What decides where settings are: the system, the home folder and the environment."""

    system: System
    home: Path
    environment: Mapping[str, str]

    def folder(self, name: str) -> Path:
        """A folder that templates name: `home`, `config`, `support`, or an agent's own."""
        if name == "home":
            return self.home
        if name == "config":
            return self._moved("XDG_CONFIG_HOME", self.home / ".config")
        if name == "support":
            return self._support()
        variable, usual = _MOVABLE[name]
        return self._moved(variable, self.place(usual))

    def place(self, template: str) -> Path:
        """The path that a template like `{home}/.cursor/mcp.json` stands for."""
        name, _, rest = template.removeprefix("{").partition("}")
        return self.folder(name).joinpath(*filter(None, rest.split("/")))

    def _support(self) -> Path:
        """Where desktop programs keep their settings."""
        if self.system is System.MACOS:
            return self.home / "Library" / "Application Support"
        if self.system is System.WINDOWS:
            return self._moved("APPDATA", self.home / "AppData" / "Roaming")
        return self.folder("config")

    def _moved(self, variable: str, usual: Path) -> Path:
        folder = Path(self.environment.get(variable, ""))
        return folder if folder.is_absolute() else usual


def this_machine() -> Machine:
    """The machine that this process runs on."""
    system = {"darwin": System.MACOS, "win32": System.WINDOWS}.get(sys.platform, System.LINUX)
    return Machine(system=system, home=Path.home(), environment=dict(os.environ))
