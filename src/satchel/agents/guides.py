"""What agents read beside their list of servers: instructions, a skill, an explorer sub-agent, and a session hook.

docs/agents.md lists the files; each was checked with the agent's own program or taken from its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from satchel.agents.catalog import Command, Machine, Scope


class Part(StrEnum):
    """A part of what `satchel install` writes."""

    SERVER = "server"
    """The entry that makes the agent start the MCP server."""
    INSTRUCTIONS = "instructions"
    """A few lines that say when to ask Satchel and when to grep."""
    SKILL = "skill"
    """An Agent Skill, which an agent loads when its description fits."""
    EXPLORER = "explorer"
    """A read-only sub-agent that searches with Satchel."""
    HOOK = "hook"
    """A command that tells the instructions at the start of a session."""


USUAL_PARTS: Final = (Part.SERVER, Part.INSTRUCTIONS, Part.SKILL, Part.EXPLORER)
"""Without the hook, which runs a command in every session."""

WRITTEN_BY: Final = "Written by `satchel install`; `satchel uninstall` removes it."
"""Stands in every file and block that is ours."""

DESCRIPTION: Final = (
    "Finds code, documents and notes in this workspace by meaning and by name, and packs the relevant pieces into a "
    "token budget. Use it before grepping around or reading whole files, when you do not know where something is or "
    "how it works."
)
EXPLORER_DESCRIPTION: Final = (
    "Read-only explorer that finds where and how something works in this workspace with Satchel, and reports the "
    "places. Use it for questions that need several searches."
)
TOOLS: Final = ("build_context", "search", "expand", "status")

# Files that people and other programs write too: of these only a marked block is ours.
_SHARED: Final = frozenset({"AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", "global_rules.md", ".goosehints"})


@dataclass(frozen=True, slots=True)
class Guide:
    """A file of an agent in which a part stands; templates as in the catalogue, "" where the agent has none."""

    part: Part
    user: str
    project: str
    _: KW_ONLY
    head: str = ""
    """Front matter; `{name}` is the server's name."""
    is_toml: bool = False
    keys: tuple[str, ...] = ()
    """Keys of the value in a JSON file, for a hook."""

    def file(self, scope: Scope, machine: Machine, project: Path, name: str) -> Path | None:
        """The file in a scope; None if the agent has none there."""
        if scope is Scope.PROJECT:
            return project.joinpath(*self.project.format(name=name).split("/")) if self.project else None
        return machine.place(self.user.replace("{name}", name)) if self.user else None

    def text(self, name: str) -> str:
        """The content of an own file, or of the block in a shared one."""
        head, body = self.head.replace("{name}", name), text_of(self.part)
        if self.is_toml:
            return f"# {WRITTEN_BY}\n{head}developer_instructions = '''\n{body}'''\n"
        return f"{head}<!-- {WRITTEN_BY} -->\n{body}"


def is_shared(file: Path) -> bool:
    """True for a file in which only a block is ours."""
    return file.name in _SHARED


@cache
def text_of(part: Part) -> str:
    """The text of a part, which is the same for all agents."""
    return resources.files("satchel.agents").joinpath("texts", f"{part}.md").read_text("utf-8")


def hook_value(command: Command) -> list[dict[str, Any]]:
    """The list of hooks for the start of a session, as Claude Code and Codex read it."""
    program = " ".join(f'"{part}"' if " " in part else part for part in (command.program, *command.args))
    hook = {"type": "command", "command": program, "timeout": 10}
    return [{"matcher": "startup|resume|clear|compact", "hooks": [hook]}]


def skill_head(name: str) -> str:
    """The front matter of the skill."""
    return f"---\nname: {name}\ndescription: {DESCRIPTION}\n---\n"


def claude_explorer_head(*prefixes: str) -> str:
    """The front matter of Claude Code's sub-agent; Cursor reads it too, and needs `readonly`."""
    tools = ", ".join(f"{prefix}{tool}" for prefix in prefixes for tool in TOOLS)
    return (
        f"---\nname: {{name}}-explorer\ndescription: {EXPLORER_DESCRIPTION}\n"
        f"tools: Read, Grep, Glob, {tools}\nmodel: inherit\nreadonly: true\n---\n"
    )


def gemini_explorer_head() -> str:
    """The front matter of Gemini's sub-agent: an unknown key or tool makes Gemini drop the file."""
    own = ("read_file", "grep_search", "glob", "list_directory")
    tools = "".join(f"  - {tool}\n" for tool in (*own, *(f"mcp_{{name}}_{tool}" for tool in TOOLS)))
    return f"---\nname: {{name}}-explorer\ndescription: {EXPLORER_DESCRIPTION}\nkind: local\ntools:\n{tools}---\n"


def _opencode_explorer_head() -> str:
    allowed = "".join(
        f"  {tool}: allow\n" for tool in ("read", "grep", "glob", *(f"{{name}}_{tool}" for tool in TOOLS))
    )
    return f'---\ndescription: {EXPLORER_DESCRIPTION}\nmode: subagent\npermission:\n  "*": deny\n{allowed}---\n'


_SKILL_HEAD: Final = skill_head("{name}")
_CODEX_EXPLORER_HEAD: Final = (
    f'name = "{{name}}-explorer"\ndescription = "{EXPLORER_DESCRIPTION}"\nsandbox_mode = "read-only"\n'
)
_CURSOR_EXPLORER_HEAD: Final = (
    f"---\nname: {{name}}-explorer\ndescription: {EXPLORER_DESCRIPTION}\nmodel: inherit\nreadonly: true\n---\n"
)
_VSCODE_EXPLORER_HEAD: Final = (
    f"---\nname: {{name}}-explorer\ndescription: {EXPLORER_DESCRIPTION}\ntools: ['search', 'read', '{{name}}/*']\n---\n"
)
_ALWAYS: Final = "---\ndescription: When to ask Satchel and when to grep\nalwaysApply: true\n---\n"


def _instructions(user: str, project: str, head: str = "") -> Guide:
    return Guide(Part.INSTRUCTIONS, user, project, head=head)


def _skill(user: str = "{home}/.agents/skills", project: str = ".agents/skills") -> Guide:
    return Guide(Part.SKILL, f"{user}/{{name}}/SKILL.md", f"{project}/{{name}}/SKILL.md", head=_SKILL_HEAD)


def _explorer(user: str, project: str, head: str, *, is_toml: bool = False) -> Guide:
    return Guide(Part.EXPLORER, user, project, head=head, is_toml=is_toml)


def _hook(user: str, project: str) -> Guide:
    return Guide(Part.HOOK, user, project, keys=("hooks", "SessionStart"))


_CLAUDE: Final = "{claude_settings}"

GUIDES: Final[dict[str, tuple[Guide, ...]]] = {
    "amazon-q": (_instructions("", ".amazonq/rules/{name}.md"),),
    "amp": (_instructions("{home}/.config/amp/AGENTS.md", "AGENTS.md"), _skill()),
    # Claude Code reads neither AGENTS.md nor .agents/skills.
    "claude-code": (
        _instructions(f"{_CLAUDE}/CLAUDE.md", ".claude/rules/{name}.md"),
        _skill(f"{_CLAUDE}/skills", ".claude/skills"),
        _explorer(
            f"{_CLAUDE}/agents/{{name}}-explorer.md",
            ".claude/agents/{name}-explorer.md",
            claude_explorer_head("mcp__{name}__"),
        ),
        _hook(f"{_CLAUDE}/settings.json", ".claude/settings.json"),
    ),
    "cline": (_instructions("", ".clinerules/{name}.md"), _skill("{home}/.cline/skills", ".cline/skills")),
    "codex": (
        _instructions("{codex}/AGENTS.md", "AGENTS.md"),
        _skill(),
        _explorer(
            "{codex}/agents/{name}-explorer.toml",
            ".codex/agents/{name}-explorer.toml",
            _CODEX_EXPLORER_HEAD,
            is_toml=True,
        ),
        _hook("{codex}/hooks.json", ".codex/hooks.json"),
    ),
    "continue": (_instructions("{home}/.continue/rules/{name}.md", ".continue/rules/{name}.md", _ALWAYS),),
    "copilot-cli": (_instructions("{copilot}/instructions/{name}.instructions.md", "AGENTS.md"), _skill()),
    "crush": (_instructions("", "AGENTS.md"),),
    "cursor": (
        _instructions("", ".cursor/rules/{name}.mdc", _ALWAYS),
        _skill(),
        _explorer(
            "{home}/.cursor/agents/{name}-explorer.md", ".cursor/agents/{name}-explorer.md", _CURSOR_EXPLORER_HEAD
        ),
    ),
    "gemini": (
        _instructions("{home}/.gemini/GEMINI.md", "GEMINI.md"),
        _skill(),
        _explorer(
            "{home}/.gemini/agents/{name}-explorer.md", ".gemini/agents/{name}-explorer.md", gemini_explorer_head()
        ),
    ),
    "goose": (_instructions("{config}/goose/.goosehints", ".goosehints"),),
    "junie": (_instructions("", ".junie/AGENTS.md"), _skill("{home}/.junie/skills", ".junie/skills")),
    "kiro": (
        _instructions("{home}/.kiro/steering/{name}.md", ".kiro/steering/{name}.md", "---\ninclusion: always\n---\n"),
        _skill("{home}/.kiro/skills", ".kiro/skills"),
    ),
    "opencode": (
        _instructions("{config}/opencode/AGENTS.md", "AGENTS.md"),
        _skill(),
        _explorer(
            "{config}/opencode/agents/{name}-explorer.md",
            ".opencode/agents/{name}-explorer.md",
            _opencode_explorer_head(),
        ),
    ),
    "qwen": (_instructions("{home}/.qwen/QWEN.md", "QWEN.md"),),
    "roo": (_instructions("{home}/.roo/rules/{name}.md", ".roo/rules/{name}.md"),),
    "vscode": (
        _instructions(
            "{copilot}/instructions/{name}.instructions.md",
            ".github/instructions/{name}.instructions.md",
            '---\napplyTo: "**"\n---\n',
        ),
        _skill(),
        _explorer(
            "{copilot}/agents/{name}-explorer.agent.md",
            ".github/agents/{name}-explorer.agent.md",
            _VSCODE_EXPLORER_HEAD,
        ),
    ),
    "windsurf": (
        _instructions(
            "{home}/.codeium/windsurf/memories/global_rules.md",
            ".windsurf/rules/{name}.md",
            "---\ntrigger: always_on\n---\n",
        ),
        _skill(),
    ),
    "zed": (_instructions("{config}/zed/AGENTS.md", "AGENTS.md"), _skill()),
}
"""By the agents' keys; agents without an entry (Claude Desktop) read nothing of the kind."""


def guides_of(key: str, parts: tuple[Part, ...]) -> Iterator[Guide]:
    """The files of an agent in which the parts stand."""
    return (guide for guide in GUIDES.get(key, ()) if guide.part in parts)
