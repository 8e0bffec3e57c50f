"""`satchel mcp`: the tools for agents, over stdin and stdout."""

from __future__ import annotations

import sys
from typing import Any

import click

from satchel.cli.shared import PATH, workspace_flags, workspace_settings
from satchel.mcp.fitting import LEAST_CHARS, MOST_CHARS


@click.command("mcp", short_help="Serve an agent over MCP on stdin and stdout.")
@PATH
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@click.option(
    "--max-result-chars",
    type=click.IntRange(LEAST_CHARS, 1_000_000),
    default=MOST_CHARS,
    show_default=True,
    help="Results are no longer than this as they are sent; longer texts come in pages.",
)
@click.option("--allow-home", is_flag=True, help="Index PATH even if it is the home directory, or holds it.")
@workspace_flags
def mcp_command(path: str, **flags: Any) -> None:
    """Serve the folder at PATH to an agent over the Model Context Protocol.

    Agents start this command themselves; `satchel install` tells them to. The folder is indexed when the first tool is
    called.
    """
    from satchel.mcp.folder import Folder
    from satchel.mcp.stdio import serve
    from satchel.models.request import User
    from satchel.service.identity import OWNER, Caller

    if sys.stdin.isatty() and not flags["quiet"]:
        click.echo("satchel: this speaks MCP on stdin and stdout; agents start it (see `satchel install`)", err=True)
    caller = Caller(user=User(id=flags["user"])) if flags["user"] else OWNER
    folder = Folder(path, caller=caller, allow_home=flags["allow_home"], settings=workspace_settings(flags))
    serve(folder, max_result_chars=flags["max_result_chars"], quiet=flags["quiet"])
