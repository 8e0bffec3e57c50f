"""`satchel secrets`: where secrets are in a folder, without showing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from satchel.cli.flags import QUIET
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from satchel.service.secret_listing import ListedSecret


@click.command("secrets", short_help="List where secrets are in files.")
@click.argument("path", type=click.Path(path_type=Path), default=".", metavar="[FOLDER or FILE]")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@QUIET
def secrets_command(path: Path, *, as_json: bool, quiet: bool) -> None:
    """List the places of passwords, keys and tokens in files, to clean them up. The secrets are not shown.

    No answer contains them: the index has a mark such as [redacted: aws-access-key] in their place, and files whose
    names say that they hold secrets are not indexed.
    """
    from satchel.service.secret_listing import secrets_below

    found = list(secrets_below(path))
    if as_json:
        rows = [
            {"path": make_visible_line(one.path).text, "line": one.line, "kind": one.kind, "indexed": one.is_indexed}
            for one in found
        ]
        click.echo(json.dumps({"secrets": rows}, ensure_ascii=False, indent=2))
        return
    for one in found:
        name = make_visible_line(one.path).text
        place = f"{name}:{one.line}" if one.line else f"{name} (its name)"
        click.echo(f"{place}  {one.kind}" if one.is_indexed else f"{place}  {one.kind}  (file is not indexed)")
    if not quiet:
        click.echo(_summary(found) if found else f"no secrets found in {path}", err=True)


def _summary(found: list[ListedSecret]) -> str:
    files = len({one.path for one in found})
    secrets = "1 secret" if len(found) == 1 else f"{len(found):,} secrets"
    return f"{secrets} in {files:,} {'file' if files == 1 else 'files'}"
