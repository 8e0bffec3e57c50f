"""`satchel completion`: completion of commands and flags in a shell."""

from __future__ import annotations

from typing import Final

import click

_PLACES: Final = {
    "bash": "~/.bash_completion",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/satchel.fish",
}
"""A file that each shell reads at its start."""


@click.command("completion", short_help="Print the completion of commands and flags for a shell.")
@click.argument("shell", type=click.Choice(list(_PLACES)))
def completion_command(*, shell: str) -> None:
    """Print a script that completes the commands, flags and choices of satchel in SHELL.

    \b
    bash: satchel completion bash >> ~/.bash_completion
    zsh:  satchel completion zsh >> ~/.zshrc
    fish: satchel completion fish > ~/.config/fish/completions/satchel.fish

    Then open a new shell.
    """
    from click.shell_completion import get_completion_class

    from satchel.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "satchel", "_SATCHEL_COMPLETE").source())
