"""Catalog of known agents: settings files, keys and entry format of the MCP servers each agent starts.

docs/agents.md links to each agent's documentation of the settings.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from satchel.errors import InvalidOption


class System(StrEnum):
    """Operating systems with different settings folders."""

    LINUX = "linux"
    MACOS = "macos"
    WINDOWS = "windows"


class Scope(StrEnum):
    """Scope of an entry: everything a user opens, or a single project."""

    USER = "user"
    PROJECT = "project"


class Syntax(StrEnum):
    """Syntax of a settings file. JSON may have comments and trailing commas."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


# A variable with which the user moves an agent's folder, and where the folder is otherwise.
_MOVABLE: Final = {
    "claude": ("CLAUDE_CONFIG_DIR", "{home}"),
    "claude_settings": ("CLAUDE_CONFIG_DIR", "{home}/.claude"),
    "cline": ("CLINE_DIR", "{home}/.cline"),
    "codex": ("CODEX_HOME", "{home}/.codex"),
    "copilot": ("COPILOT_HOME", "{home}/.copilot"),
    "crush": ("CRUSH_GLOBAL_CONFIG", "{config}/crush"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Operating system, home folder and environment: these determine where settings are."""

    system: System
    home: Path
    environment: Mapping[str, str]

    def folder(self, name: str) -> Path:
        """A folder named in templates: `home`, `config`, `support` (of desktop programs), or an agent's own."""
        match name, self.system:
            case "home", _:
                return self.home
            case "support", System.MACOS:
                return self.home / "Library" / "Application Support"
            case "support", System.WINDOWS:
                return self._moved("APPDATA", self.home / "AppData" / "Roaming")
            case "config" | "support", _:
                return self._moved("XDG_CONFIG_HOME", self.home / ".config")
        variable, usual = _MOVABLE[name]
        return self._moved(variable, self.place(usual))

    def place(self, template: str) -> Path:
        """The path for a template like `{home}/.cursor/mcp.json`."""
        name, _, rest = template.removeprefix("{").partition("}")
        return self.folder(name).joinpath(*filter(None, rest.split("/")))

    def _moved(self, variable: str, usual: Path) -> Path:
        folder = Path(self.environment.get(variable, ""))
        return folder if folder.is_absolute() else usual


def this_machine() -> Machine:
    """The machine of this process."""
    system = {"darwin": System.MACOS, "win32": System.WINDOWS}.get(sys.platform, System.LINUX)
    return Machine(system=system, home=Path.home(), environment=dict(os.environ))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program (absolute path) and arguments."""

    program: str
    args: tuple[str, ...]


def server_command(folder: Path | None, allowed: Sequence[str] = ()) -> Command:
    """Command for the MCP server of this environment's Satchel, for a folder or for the agent's working folder.

    Tools may name any folder in an `allowed` one.
    """
    folders = [option for each in allowed for option in ("--allow", each)] + ([str(folder)] if folder else [])
    return own_command("mcp", *folders)


def own_command(*arguments: str) -> Command:
    """A command of this environment's Satchel."""
    script = _script()
    # A virtual environment's Python is a link; resolved, it would lose the environment.
    program = str(script) if script else os.path.abspath(sys.executable)
    args = (*(() if script else ("-m", "satchel")), *arguments)
    for value in (program, *args):
        if "$" in value:
            # Half of the agents put the environment's values where a file says $NAME.
            raise InvalidOption("path", value, "contains a $, which agents expand as a variable; use a path without $")
        if not value.isprintable():
            raise InvalidOption(
                "path", value, "contains characters that a settings file cannot contain; use another path"
            )
    return Command(program=program, args=args)


def _script() -> Path | None:
    """The `satchel` script of this environment, if installed."""
    name = "satchel.exe" if sys.platform == "win32" else "satchel"
    places = (os.path.dirname(os.path.abspath(sys.executable)), sysconfig.get_path("scripts"))
    scripts = (Path(place, name) for place in places)
    return next((script for script in scripts if script.is_file() and os.access(script, os.X_OK)), None)


Entry = dict[str, Any]
Shape = Callable[[Command, str], Entry]


def _plain(command: Command, _name: str) -> Entry:
    return {"command": command.program, "args": list(command.args)}


def _stdio(command: Command, name: str) -> Entry:
    return {"type": "stdio", **_plain(command, name)}


def _copilot(command: Command, name: str) -> Entry:
    return {"type": "local", **_plain(command, name), "tools": ["*"]}


def _opencode(command: Command, _name: str) -> Entry:
    return {"type": "local", "command": [command.program, *command.args]}


def _crush(command: Command, name: str) -> Entry:
    # Crush reads these values as a shell would, and a shell drops backslashes.
    slashed = (part.replace("\\", "/") for part in (command.program, *command.args))
    return _stdio(Command(program=next(slashed), args=tuple(slashed)), name)


def _goose(command: Command, name: str) -> Entry:
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": "Searches this folder and packs the relevant pieces into a context",
        "cmd": command.program,
        "args": list(command.args),
        "timeout": 300,
    }


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and the agent's settings. Files are templates: the first existing file is used, else the first."""

    key: str
    title: str
    user: tuple[str, ...]
    project: tuple[str, ...] = ()
    _: KW_ONLY
    user_on_macos: tuple[str, ...] = ()
    user_on_windows: tuple[str, ...] = ()
    folders: tuple[str, ...] | None = None
    """An existing folder of these means the agent is in use; None: the folder of the first file."""
    syntax: Syntax = Syntax.JSON
    lists: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    """Keys of the list of servers; all but the last are used only if the file has the keys."""
    shape: Shape = _plain
    project_shape: Shape | None = None
    needs_folder: bool = False
    """True if servers from the user's settings are not known to start in the project's folder: there the server asks
    the client for its roots, or tools name the folder."""

    def files(self, scope: Scope, machine: Machine, project: Path, name: str) -> tuple[Path, ...]:
        """Candidate files for the entry, preferred file first; () if the agent does not support the scope."""
        if scope is Scope.PROJECT:
            return tuple(project.joinpath(*template.format(name=name).split("/")) for template in self.project)
        by_system = {System.MACOS: self.user_on_macos, System.WINDOWS: self.user_on_windows}
        templates = by_system.get(machine.system) or self.user
        return tuple(machine.place(template.replace("{name}", name)) for template in templates)

    def in_use(self, scope: Scope, machine: Machine, project: Path, name: str) -> bool:
        """True if the agent's settings or an agent folder exist."""
        folders = (self.user[0].rpartition("/")[0],) if self.folders is None else self.folders
        # A project's files show what is in use in the project only, not on this machine.
        files = {file for where in (Scope.USER, scope) for file in self.files(where, machine, project, name)}
        return any(path.exists() for path in (*map(machine.place, folders), *files))

    def entry(self, scope: Scope, command: Command, name: str) -> Entry:
        """The value written under the server's name."""
        shape = (self.project_shape if scope is Scope.PROJECT else None) or self.shape
        return shape(command, name)


_CODE: Final = "{support}/Code/User"
_CLINE: Final = f"{_CODE}/globalStorage/saoudrizwan.claude-dev"
_ROO: Final = f"{_CODE}/globalStorage/rooveterinaryinc.roo-cline"

AGENTS: Final = (
    Agent(
        "amazon-q", "Amazon Q Developer", ("{home}/.aws/amazonq/mcp.json",), (".amazonq/mcp.json",), needs_folder=True
    ),
    Agent(
        "amp",
        "Amp",
        ("{home}/.config/amp/settings.json", "{home}/.config/amp/settings.jsonc"),
        (".amp/settings.json", ".amp/settings.jsonc"),
        lists=(("amp.mcpServers",),),
    ),
    Agent(
        "claude-code",
        "Claude Code",
        ("{claude}/.claude.json",),
        (".mcp.json",),
        folders=("{home}/.claude",),
        shape=_stdio,
    ),
    Agent("claude-desktop", "Claude Desktop", ("{support}/Claude/claude_desktop_config.json",), needs_folder=True),
    Agent(
        "cline",
        "Cline",
        ("{cline}/data/settings/cline_mcp_settings.json", f"{_CLINE}/settings/cline_mcp_settings.json"),
        folders=("{cline}", _CLINE),
        needs_folder=True,
    ),
    Agent(
        "codex",
        "Codex CLI",
        ("{codex}/config.toml",),
        (".codex/config.toml",),
        syntax=Syntax.TOML,
        lists=(("mcp_servers",),),
    ),
    Agent(
        "continue",
        "Continue",
        ("{home}/.continue/mcpServers/{name}.json",),
        (".continue/mcpServers/{name}.json",),
        folders=("{home}/.continue",),
    ),
    # Claude Code reads the same file of a project: both must want the same.
    Agent(
        "copilot-cli",
        "GitHub Copilot CLI",
        ("{copilot}/mcp-config.json",),
        (".mcp.json",),
        shape=_copilot,
        project_shape=_stdio,
    ),
    Agent("crush", "Crush", ("{crush}/crush.json",), (".crush.json", "crush.json"), lists=(("mcp",),), shape=_crush),
    Agent("cursor", "Cursor", ("{home}/.cursor/mcp.json",), (".cursor/mcp.json",), needs_folder=True),
    # The folder alone says nothing: other programs keep things in it.
    Agent("gemini", "Gemini CLI", ("{home}/.gemini/settings.json",), (".gemini/settings.json",), folders=()),
    Agent(
        "goose",
        "Goose",
        ("{config}/goose/config.yaml",),
        user_on_windows=("{support}/Block/goose/config/config.yaml",),
        folders=("{config}/goose", "{support}/Block/goose"),
        syntax=Syntax.YAML,
        lists=(("extensions",),),
        shape=_goose,
    ),
    Agent(
        "junie",
        "JetBrains Junie",
        ("{home}/.junie/mcp/mcp.json",),
        (".junie/mcp/mcp.json",),
        folders=("{home}/.junie",),
        needs_folder=True,
    ),
    Agent(
        "kiro",
        "Kiro",
        ("{home}/.kiro/settings/mcp.json",),
        (".kiro/settings/mcp.json",),
        folders=("{home}/.kiro",),
        needs_folder=True,
    ),
    # Version 2 lists servers one level deeper, and still reads where version 1 did.
    Agent(
        "opencode",
        "OpenCode",
        ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
        ("opencode.json", "opencode.jsonc"),
        lists=(("mcp", "servers"), ("mcp",)),
        shape=_opencode,
    ),
    Agent("qwen", "Qwen Code", ("{home}/.qwen/settings.json",), (".qwen/settings.json",)),
    Agent("roo", "Roo Code", (f"{_ROO}/settings/mcp_settings.json",), (".roo/mcp.json",), folders=(_ROO,)),
    Agent(
        "vscode",
        "VS Code (GitHub Copilot)",
        (f"{_CODE}/mcp.json",),
        (".vscode/mcp.json",),
        lists=(("servers",),),
        shape=_stdio,
        needs_folder=True,
    ),
    Agent("windsurf", "Windsurf", ("{home}/.codeium/windsurf/mcp_config.json",), needs_folder=True),
    Agent(
        "zed",
        "Zed",
        ("{config}/zed/settings.json",),
        (".zed/settings.json",),
        user_on_macos=("{home}/.config/zed/settings.json",),
        user_on_windows=("{support}/Zed/settings.json",),
        folders=("{config}/zed", "{support}/Zed"),
        lists=(("context_servers",),),
    ),
)
"""By key, in alphabetical order."""
