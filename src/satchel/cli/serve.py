"""`satchel serve` and `satchel token`: a workspace for others, over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.shared import PATH, workspace_flags, workspace_settings

if TYPE_CHECKING:
    from satchel.cli.serving import Serving


# fmt: off
@click.command("serve", short_help="Serve a folder over HTTP: API, MCP and the inspector page.")
@PATH
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8420, show_default=True, help="0: any that is free.")
@click.option("--keys", type=click.Path(dir_okay=False, path_type=Path),
              help="Tokens and whose they are (TOML; `satchel token` makes entries). Needed to listen elsewhere.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME[:PORT]",
              help="Another name under which it is reached, behind a proxy; may be repeated.")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL",
              help="A page that may call it; may be repeated.")
@click.option("--language-model", metavar="KIND:MODEL", help="Who answers /api/research/ask, as for `satchel ask`.")
@click.option("--language-model-url", metavar="URL", help="Where it listens.")
@click.option("--mcp/--no-mcp", default=True, help="Serve MCP at /mcp.  [default: mcp]")
@click.option("--open", "opens", is_flag=True, help="Open the inspector in the browser.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="warning",
              show_default=True, help="JSON lines on stderr; info writes one for each request.")
@workspace_flags
def serve_command(path: str, **flags: Any) -> None:
    """Serve the folder at PATH until Ctrl-C: the API below /v1, MCP at /mcp, and the inspector at /.

    It listens on this machine only, and wants a token. The link that is printed opens the inspector once; programs
    send the token as `Authorization: Bearer …` (SATCHEL_TOKEN sets it, or else one is made).
    """
    from satchel.cli.serving import Address, serve
    from satchel.service.factory.locations import database_place, is_database
    from satchel.service.local_client import LOOKS_EVERY_S, PATIENCE_S, open_local

    address = Address(
        host=flags["host"], port=flags["port"], keys=flags["keys"], token=_own_token(),
        allowed_hosts=flags["hosts"], allowed_origins=flags["origins"],
    )
    shown = database_place(path).shown if is_database(path) else str(Path(path).resolve())
    settings = workspace_settings(flags, "language_model", "language_model_url")
    bag = open_local(path, every=LOOKS_EVERY_S, patience=PATIENCE_S, **settings)
    try:
        is_done = serve(bag, address, ready=lambda up: _told(up, shown, flags), log_level=flags["log_level"],
                        mcp=flags["mcp"])
    finally:
        bag.close()
    if not flags["quiet"]:
        click.echo("satchel: stopped", err=True)
    if not is_done:
        # A thread that waits for somebody else would keep the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
# fmt: on


def _own_token() -> str | None:
    """The token that the user has set, if it is one."""
    from satchel.errors import InvalidOption
    from satchel.http.guard.credentials import check_token

    token = os.environ.get("SATCHEL_TOKEN") or None
    if token is not None:
        try:
            check_token(token)
        except InvalidOption as error:
            raise InvalidOption("SATCHEL_TOKEN", "(hidden)", error.problem) from None
    return token


def _told(up: Serving, place: str, flags: dict[str, Any]) -> None:
    from satchel.text.visible import make_visible_line

    if not flags["quiet"]:
        where = make_visible_line(place).text
        click.echo(f"satchel: serving {where} at {up.url} (Ctrl-C stops it)", err=True)
        if up.link:
            click.echo(f"satchel: inspector  {up.link}  (opens once, within 10 minutes)", err=True)
        if up.mcp:
            click.echo(f"satchel: MCP        {up.mcp}", err=True)
        if up.token:
            click.echo(f"satchel: token      {up.token}", err=True)
        for note in up.notes:
            click.echo(f"satchel: {note}", err=True)
    if flags["opens"] and up.link:
        click.launch(up.link)


@click.command("token", short_help="Make a token for a user of `satchel serve --keys`.")
@click.argument("user", default="")
@click.option("--group", "groups", multiple=True, help="A group that the user is in; may be repeated.")
@click.option("--owner", is_flag=True, help="May change the workspace, and ask on behalf of others.")
@click.option("--keys", type=click.Path(dir_okay=False, path_type=Path), help="Add the entry to this file.")
def token_command(user: str, groups: tuple[str, ...], owner: bool, keys: Path | None) -> None:
    """Make a token for USER and print it; the entry for the file of keys holds only its hash.

    Without --keys the entry goes to stderr, to be put into the file by hand.
    """
    from satchel.errors import InvalidOption
    from satchel.http.guard.credentials import Keyring, entry_for, new_token

    if not user and not owner:
        raise InvalidOption("user", user, "name the user, or make it an owner's token with --owner")
    token = new_token()
    entry = entry_for(token, user, groups, owner)
    if keys is None:
        click.echo(entry, err=True)
    else:
        if keys.exists():
            Keyring.from_file(keys)  # what is broken is not added to
        handle = os.open(keys, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(f"{entry.strip()}\n\n" if not file.tell() else f"\n{entry.strip()}\n")
        click.echo(f"satchel: added to {keys}; restart the server to let it in", err=True)
    click.echo(token)
