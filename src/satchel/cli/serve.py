"""`satchel serve`, `satchel token` and `satchel mcp`: serve a workspace over HTTP, and to agents over MCP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from satchel.cli.flags import USER, WorkspaceFlags, with_roots
from satchel.mcp.result_pages import LEAST_CHARS, MOST_CHARS

if TYPE_CHECKING:
    from satchel.cli.serving import Serving


@click.command("serve", short_help="Serve a folder over HTTP: API, MCP and the inspector page.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8420,
    show_default=True,
    help="Port; 0 for any free port.",
)
@click.option(
    "--keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with tokens and their users (TOML; `satchel token` makes entries). Required unless --host is a "
    "loopback address.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME[:PORT]",
    help="Additional host name of the server, e.g. behind a proxy; may be repeated.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Origin of a page that may call the server; may be repeated.",
)
@click.option(
    "--language-model", metavar="KIND:MODEL", help="Language model for /api/research/ask, as for `satchel ask`."
)
@click.option("--language-model-url", metavar="URL", help="Base URL of the language model's endpoint.")
@click.option("--mcp/--no-mcp", "serves_mcp", default=True, help="Serve MCP at /mcp.  [default: mcp]")
@click.option("--open", "opens", is_flag=True, help="Open the inspector in the browser.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="Level of the log (JSON lines on stderr); info logs every request.",
)
@with_roots
def serve_command(
    *,
    workspace: WorkspaceFlags,
    host: str,
    port: int,
    keys: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    language_model: str | None,
    language_model_url: str | None,
    serves_mcp: bool,
    opens: bool,
    log_level: str,
) -> None:
    """Serve the folder at PATH until Ctrl-C: the API below /v1, MCP at /mcp, and the inspector at /.

    It listens on this machine only, and wants a token. The link that is printed opens the inspector once; programs
    send the token as `Authorization: Bearer …` (SATCHEL_TOKEN sets it, or else one is made).
    """
    from satchel.cli.serving import ServerOptions, serve
    from satchel.service.factory.opening import database_place, is_database
    from satchel.service.local_client import LOOKS_EVERY_S, PATIENCE_S
    from satchel.service.open_roots import open_roots

    options = ServerOptions(
        host=host, port=port, keys=keys, token=_own_token(), allowed_hosts=hosts, allowed_origins=origins
    )
    places = [
        database_place(path).shown if is_database(path) else str(Path(path).resolve()) for path in workspace.paths
    ]
    place = ", ".join([*places, *workspace.with_packages])
    models = {"language_model": language_model, "language_model_url": language_model_url}
    settings = workspace.settings | {name: value for name, value in models.items() if value}
    with open_roots(workspace.paths, every=LOOKS_EVERY_S, patience=PATIENCE_S, **settings) as client:
        is_done = serve(
            client,
            options,
            ready=lambda up: _print_address(up, place, workspace, opens),
            log_level=log_level,
            mcp=serves_mcp,
        )
    workspace.say("stopped")
    if not is_done:
        # A thread still waiting for an external answer would keep the process alive.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _own_token() -> str | None:
    """The token in SATCHEL_TOKEN, or None; raise InvalidOption for an invalid token."""
    from satchel.errors import InvalidOption
    from satchel.http.guard.credentials import check_token

    token = os.environ.get("SATCHEL_TOKEN") or None
    if token is not None:
        try:
            check_token(token)
        except InvalidOption as error:
            raise InvalidOption("SATCHEL_TOKEN", "(hidden)", error.problem) from None
    return token


def _print_address(up: Serving, place: str, workspace: WorkspaceFlags, opens: bool) -> None:
    workspace.say(f"serving {place} at {up.url} (Ctrl-C to stop)")
    if up.link:
        workspace.say(f"inspector  {up.link}  (opens once, within 10 minutes)")
    if up.mcp:
        workspace.say(f"MCP        {up.mcp}")
    if up.token:
        workspace.say(f"token      {up.token}")
    for note in up.notes:
        workspace.say(note)
    if opens and up.link:
        click.launch(up.link)


@click.command("token", short_help="Make a token for a user of `satchel serve --keys`.")
@click.argument("user", default="")
@click.option("--group", "groups", multiple=True, help="Group of the user; may be repeated.")
@click.option("--owner", is_flag=True, help="Allow changing the workspace and asking on behalf of other users.")
@click.option("--keys", type=click.Path(dir_okay=False, path_type=Path), help="Add the entry to this file.")
def token_command(user: str, groups: tuple[str, ...], owner: bool, keys: Path | None) -> None:
    """Make a token for USER and print it; the entry for the file of keys holds only its hash.

    Without --keys the entry goes to stderr, to be put into the file by hand.
    """
    from satchel.errors import InvalidOption
    from satchel.http.guard.credentials import Keyring, entry_for, new_token

    if not user and not owner:
        raise InvalidOption("user", user, "give a user, or make an owner's token with --owner")
    token = new_token()
    entry = entry_for(token, user, groups, owner)
    if keys is None:
        click.echo(entry, err=True)
    else:
        if keys.exists():
            Keyring.from_file(keys)  # raises an error for an invalid file: no entry is added to it
        handle = os.open(keys, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(f"{entry.strip()}\n\n" if not file.tell() else f"\n{entry.strip()}\n")
        click.echo(f"satchel: added to {keys}; restart the server to load it", err=True)
    click.echo(token)


@click.command("mcp", short_help="Serve an agent over MCP on stdin and stdout.")
@USER
@click.option(
    "--max-result-chars",
    type=click.IntRange(LEAST_CHARS, 1_000_000),
    default=MOST_CHARS,
    show_default=True,
    help="Maximum size of a result; longer texts are sent in pages.",
)
@click.option("--allow-home", is_flag=True, help="Index PATH even if it is the home directory or contains it.")
@click.option(
    "--allow",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(file_okay=False),
    help="Let tools search any folder in FOLDER; may be repeated.",
)
@with_roots
def mcp_command(
    *, workspace: WorkspaceFlags, user: str | None, max_result_chars: int, allow_home: bool, allow: tuple[str, ...]
) -> None:
    """Serve the folder at PATH to an agent over the Model Context Protocol.

    Agents start this command themselves; `satchel install` tells them to. Without PATH, the folders that the agent has
    open are searched (its roots), else the one in which it starts the command. A folder is indexed when a tool is
    first called for it.
    """
    from satchel.mcp.folders import ServedFolders
    from satchel.mcp.transports import serve
    from satchel.models.request import User
    from satchel.service.client import OWNER, Caller

    if sys.stdin.isatty():
        workspace.say("this command speaks MCP on stdin and stdout and is started by agents (see `satchel install`)")
    caller = Caller(user=User(id=user)) if user else OWNER
    folders = ServedFolders(
        workspace.paths, allowed=allow, caller=caller, allow_home=allow_home, settings=workspace.settings
    )
    serve(folders, max_result_chars=max_result_chars, quiet=workspace.quiet)
