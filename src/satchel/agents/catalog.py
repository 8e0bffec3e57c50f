"""The agents that Satchel knows: where each lists the MCP servers it starts, and under which keys.

docs/agents.md links to where each agent documents this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from satchel.agents.command import Command
from satchel.agents.machine import Machine, System

Entry = dict[str, Any]
Shape = Callable[[Command, str], Entry]


class Scope(StrEnum):
    """For whom an entry is: for everything a user opens, or for one project."""

    USER = "user"
    PROJECT = "project"


class Syntax(StrEnum):
    """How a settings file is written. JSON may have comments and trailing commas."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


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
        "description": "Searches this folder and packs what matters into a context",
        "cmd": command.program,
        "args": list(command.args),
        "timeout": 300,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent and its settings. Files are templates; of several, the one that exists is used, else the first."""

    key: str
    title: str
    user: tuple[str, ...]
    user_on_macos: tuple[str, ...] = ()
    user_on_windows: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    """Folders and files that show that the agent is in use, beside its settings."""
    syntax: Syntax = Syntax.JSON
    lists: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    """The keys under which servers are listed; all but the last only where a file has them."""
    shape: Shape = _plain
    project_shape: Shape | None = None
    needs_folder: bool = False
    """True if servers from the user's settings are not known to start in the project's folder."""

    def files(self, scope: Scope, machine: Machine, project: Path, name: str) -> tuple[Path, ...]:
        """The files that may hold the entry, the preferred one first; () if the agent has no such scope."""
        if scope is Scope.PROJECT:
            return tuple(project.joinpath(*template.format(name=name).split("/")) for template in self.project)
        by_system = {System.MACOS: self.user_on_macos, System.WINDOWS: self.user_on_windows}
        templates = by_system.get(machine.system) or self.user
        return tuple(machine.place(template.replace("{name}", name)) for template in templates)

    def in_use(self, scope: Scope, machine: Machine, project: Path, name: str) -> bool:
        """True if its settings, or a folder of its own, exist."""
        signs = [machine.place(sign) for sign in self.signs]
        # A project's files show what is in use in the project only, not on this machine.
        files = {file for where in (Scope.USER, scope) for file in self.files(where, machine, project, name)}
        return any(path.exists() for path in (*signs, *files))

    def entry(self, scope: Scope, command: Command, name: str) -> Entry:
        """The value that is written under the server's name."""
        shape = (self.project_shape if scope is Scope.PROJECT else None) or self.shape
        return shape(command, name)


AGENTS: Final = (
    Agent(
        key="amazon-q",
        title="Amazon Q Developer",
        user=("{home}/.aws/amazonq/mcp.json",),
        project=(".amazonq/mcp.json",),
        signs=("{home}/.aws/amazonq",),
        needs_folder=True,
    ),
    Agent(
        key="amp",
        title="Amp",
        user=("{home}/.config/amp/settings.json", "{home}/.config/amp/settings.jsonc"),
        project=(".amp/settings.json", ".amp/settings.jsonc"),
        signs=("{home}/.config/amp",),
        lists=(("amp.mcpServers",),),
    ),
    Agent(
        key="claude-code",
        title="Claude Code",
        user=("{claude}/.claude.json",),
        project=(".mcp.json",),
        signs=("{home}/.claude",),
        shape=_stdio,
    ),
    Agent(
        key="claude-desktop",
        title="Claude Desktop",
        user=("{support}/Claude/claude_desktop_config.json",),
        signs=("{support}/Claude",),
        needs_folder=True,
    ),
    Agent(
        key="cline",
        title="Cline",
        user=(
            "{cline}/data/settings/cline_mcp_settings.json",
            "{support}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        signs=("{cline}", "{support}/Code/User/globalStorage/saoudrizwan.claude-dev"),
        needs_folder=True,
    ),
    Agent(
        key="codex",
        title="Codex CLI",
        user=("{codex}/config.toml",),
        project=(".codex/config.toml",),
        signs=("{codex}",),
        syntax=Syntax.TOML,
        lists=(("mcp_servers",),),
    ),
    Agent(
        key="continue",
        title="Continue",
        user=("{home}/.continue/mcpServers/{name}.json",),
        project=(".continue/mcpServers/{name}.json",),
        signs=("{home}/.continue",),
    ),
    Agent(
        key="copilot-cli",
        title="GitHub Copilot CLI",
        user=("{copilot}/mcp-config.json",),
        project=(".mcp.json",),
        signs=("{copilot}",),
        shape=_copilot,
        # Claude Code reads the same file: both must want the same.
        project_shape=_stdio,
    ),
    Agent(
        key="crush",
        title="Crush",
        user=("{crush}/crush.json",),
        project=(".crush.json", "crush.json"),
        signs=("{crush}",),
        lists=(("mcp",),),
        shape=_crush,
    ),
    Agent(
        key="cursor",
        title="Cursor",
        user=("{home}/.cursor/mcp.json",),
        project=(".cursor/mcp.json",),
        signs=("{home}/.cursor",),
        needs_folder=True,
    ),
    Agent(
        key="gemini",
        title="Gemini CLI",
        # The folder alone says nothing: other programs keep things in it.
        user=("{home}/.gemini/settings.json",),
        project=(".gemini/settings.json",),
    ),
    Agent(
        key="goose",
        title="Goose",
        user=("{config}/goose/config.yaml",),
        user_on_windows=("{support}/Block/goose/config/config.yaml",),
        signs=("{config}/goose", "{support}/Block/goose"),
        syntax=Syntax.YAML,
        lists=(("extensions",),),
        shape=_goose,
    ),
    Agent(
        key="junie",
        title="JetBrains Junie",
        user=("{home}/.junie/mcp/mcp.json",),
        project=(".junie/mcp/mcp.json",),
        signs=("{home}/.junie",),
        needs_folder=True,
    ),
    Agent(
        key="kiro",
        title="Kiro",
        user=("{home}/.kiro/settings/mcp.json",),
        project=(".kiro/settings/mcp.json",),
        signs=("{home}/.kiro",),
        needs_folder=True,
    ),
    Agent(
        key="opencode",
        title="OpenCode",
        user=("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
        project=("opencode.json", "opencode.jsonc"),
        signs=("{config}/opencode",),
        # Version 2 lists servers one level deeper, and still reads where version 1 did.
        lists=(("mcp", "servers"), ("mcp",)),
        shape=_opencode,
    ),
    Agent(
        key="qwen",
        title="Qwen Code",
        user=("{home}/.qwen/settings.json",),
        project=(".qwen/settings.json",),
        signs=("{home}/.qwen",),
    ),
    Agent(
        key="roo",
        title="Roo Code",
        user=("{support}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",),
        project=(".roo/mcp.json",),
        signs=("{support}/Code/User/globalStorage/rooveterinaryinc.roo-cline",),
    ),
    Agent(
        key="vscode",
        title="VS Code (GitHub Copilot)",
        user=("{support}/Code/User/mcp.json",),
        project=(".vscode/mcp.json",),
        signs=("{support}/Code/User",),
        lists=(("servers",),),
        shape=_stdio,
        needs_folder=True,
    ),
    Agent(
        key="windsurf",
        title="Windsurf",
        user=("{home}/.codeium/windsurf/mcp_config.json",),
        signs=("{home}/.codeium/windsurf",),
        needs_folder=True,
    ),
    Agent(
        key="zed",
        title="Zed",
        user=("{config}/zed/settings.json",),
        user_on_macos=("{home}/.config/zed/settings.json",),
        user_on_windows=("{support}/Zed/settings.json",),
        project=(".zed/settings.json",),
        signs=("{config}/zed", "{support}/Zed"),
        lists=(("context_servers",),),
    ),
)
"""By key, in alphabetical order."""
