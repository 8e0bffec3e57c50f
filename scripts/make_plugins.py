"""Make the plug-in folder for Claude Code, Codex, Cursor and Gemini from what `satchel install` writes.

python scripts/make_plugins.py                  writes plugins/satchel and .claude-plugin/marketplace.json
python scripts/make_plugins.py --check          only says what would change (exit code 1)
python scripts/make_plugins.py --registry OWNER also prints server.json for the MCP registry, for a GitHub owner
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from satchel import __version__
from satchel.agents.guides import (
    DESCRIPTION,
    Part,
    claude_explorer_head,
    gemini_explorer_head,
    skill_head,
    text_of,
)

ROOT: Final = Path(__file__).parent.parent
NAME: Final = "satchel"
SERVER: Final = {"command": "satchel", "args": ["mcp"]}
REGISTRY_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
SHORT: Final = "Packs what answers a question into a token budget, from code, documents and notes"


def files() -> dict[str, str]:
    """The content of every file, by its path in the repository."""
    about = {"name": NAME, "version": __version__, "description": SHORT, "license": "Apache-2.0"}
    author = {"author": {"name": "The Satchel developers"}}
    explorer = "./claude-agents/satchel-explorer.md"
    market = {
        "name": NAME,
        "owner": {"name": "The Satchel developers"},
        "description": SHORT,
        "plugins": [{"name": NAME, "source": "./plugins/satchel", "description": SHORT}],
    }
    gemini = {key: about[key] for key in ("name", "version", "description")}
    inside = {
        ".claude-plugin/plugin.json": _json(about | author | {"agents": [explorer]}),
        ".codex-plugin/plugin.json": _json(about | {"skills": "./skills/", "mcpServers": "./.mcp.json"}),
        ".cursor-plugin/plugin.json": _json(about | author | {"agents": [explorer], "mcpServers": "./.mcp.json"}),
        ".mcp.json": _json({"mcpServers": {NAME: SERVER}}),
        "gemini-extension.json": _json(gemini | {"mcpServers": {NAME: SERVER}, "contextFileName": "GEMINI.md"}),
        "GEMINI.md": text_of(Part.INSTRUCTIONS),
        "skills/satchel/SKILL.md": skill_head(NAME) + text_of(Part.SKILL),
        # Gemini reads agents/ and drops a file with a key or a tool that it does not know.
        "agents/satchel-explorer.md": gemini_explorer_head().replace("{name}", NAME) + text_of(Part.EXPLORER),
        # A server of a plug-in has another prefix there: both are named.
        "claude-agents/satchel-explorer.md": claude_explorer_head(
            "mcp__satchel__", "mcp__plugin_satchel_satchel__"
        ).replace("{name}", NAME)
        + text_of(Part.EXPLORER),
        "README.md": README,
    }
    return {".claude-plugin/marketplace.json": _json(market)} | {
        f"plugins/satchel/{path}": text for path, text in inside.items()
    }


README: Final = f"""# Satchel as a plug-in

{DESCRIPTION}

The plug-in starts `satchel mcp`, which must be on the PATH, and brings the skill and the explorer sub-agent that
`satchel install` writes. `scripts/make_plugins.py` makes this folder; do not edit it.

| agent | |
|---|---|
| Claude Code | `claude plugin marketplace add PATH-OF-THE-REPOSITORY`, then `claude plugin install satchel@satchel` |
| Codex | `codex plugin marketplace add PATH-OF-THE-REPOSITORY`, then `codex plugin add satchel@satchel` |
| Gemini CLI | `gemini extensions install PATH-OF-THE-REPOSITORY/plugins/satchel` |
| Cursor | copy this folder to `~/.cursor/plugins/local/satchel` |
"""


def registry_entry(owner: str) -> dict[str, Any]:
    """server.json of the MCP registry; the README on PyPI must then contain `mcp-name: io.github.OWNER/satchel`."""
    package = {
        "registryType": "pypi",
        "registryBaseUrl": "https://pypi.org",
        "identifier": NAME,
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "mcp"}],
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": f"io.github.{owner}/{NAME}",
        "title": "Satchel",
        "description": SHORT,
        "version": __version__,
        "packages": [package],
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write the files, or say which differ."""
    if arguments[:1] == ["--registry"]:
        sys.stdout.write(_json(registry_entry(arguments[1])))
        return 0
    different = []
    for path, text in files().items():
        file = ROOT / path
        if not file.is_file() or file.read_text("utf-8") != text:
            different.append(path)
            if arguments != ["--check"]:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    for path in different:
        sys.stdout.write(f"{path}\n")
    return 1 if different and arguments == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
