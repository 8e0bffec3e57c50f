"""The command line. Data goes to stdout and nothing else does; what there is to say goes to stderr.

Exit codes: 0 done, 1 an error, 2 wrong usage, 3 nothing found, 4 the budget cannot be met, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys

import click

from satchel import __version__
from satchel.errors import SatchelError
from satchel.surfaces.cli.assemble import assemble_command
from satchel.surfaces.cli.exits import Exit, exit_code_of
from satchel.surfaces.cli.tokens import tokens_command


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 nothing found, 4 the budget cannot be met.",
)
@click.version_option(__version__, prog_name="satchel")
def cli() -> None:
    """Packs what matters into a model's context window: budgeted, cited, always parsing."""


cli.add_command(assemble_command)
cli.add_command(tokens_command)


def main() -> None:
    """Run the command line and leave with its exit code."""
    if hasattr(signal, "SIGPIPE"):
        # When the reader goes (`| head`), go as other Unix programs do: at once and silently.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE if isinstance(error, click.UsageError) else Exit.ERROR)
    except SatchelError as error:
        click.echo(f"satchel: {error} [{error.code}]", err=True)
        sys.exit(exit_code_of(error))
    except (KeyboardInterrupt, click.Abort):
        click.echo("satchel: interrupted", err=True)
        sys.exit(Exit.INTERRUPTED)
    except OSError as error:
        click.echo(f"satchel: {error.filename or 'cannot go on'}: {error.strerror or error}", err=True)
        sys.exit(Exit.ERROR)
