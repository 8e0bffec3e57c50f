"""`satchel postgres`: what an administrator does with a database that keeps workspaces."""

from __future__ import annotations

import json

import click

from satchel.cli.output import write_output


@click.group("postgres", short_help="Set up a PostgreSQL database that keeps workspaces.")
def postgres_command() -> None:
    """Set up a PostgreSQL database that keeps workspaces, and see what is in it."""


@postgres_command.command("setup", short_help="Bring a database to this version of Satchel.")
@click.argument("url")
@click.option("--login", "logins", multiple=True, metavar="NAME", help="Let this login in; may be repeated.")
@click.option("--reading-only", is_flag=True, help="The logins may ask, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def setup_command(url: str, logins: tuple[str, ...], reading_only: bool, as_json: bool) -> None:
    """Bring the database at URL to this version of Satchel; to be run by an administrator of it.

    It may be run again, and while others are at work: nobody waits for it long.
    """
    from satchel.service.factory.locations import administration, database_place

    done = administration().set_up(database_place(url).address, logins, reading_only=reading_only)
    if as_json:
        write_output(json.dumps(done._asdict(), indent=2), None)
        return
    was = "was set up" if not done.before else "was up to date" if done.before == done.now else "was brought up"
    click.echo(f"satchel: the database {was} (version {done.now})", err=True)
    for login in logins:
        click.echo(f"satchel: {login} may {'ask' if reading_only else 'ask and write'}", err=True)


@postgres_command.command("workspaces")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def workspaces_command(url: str, as_json: bool) -> None:
    """List the workspaces in the database at URL."""
    from satchel.service.factory.locations import administration, database_place
    from satchel.text.visible import make_visible_line

    found = administration().workspaces(database_place(url).address)
    if as_json:
        write_output(json.dumps([one._asdict() for one in found], indent=2), None)
        return
    for one in found:
        name = make_visible_line(one.name).text
        click.echo(f"{name}  {one.files:,} files and blocks, {one.pieces:,} pieces, generation {one.generation}")
    if not found:
        click.echo("satchel: there are none yet", err=True)
