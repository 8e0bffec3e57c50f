"""The command line. Data goes to stdout and nothing else does; what there is to say goes to stderr.

Exit codes: 0 done, 1 an error, 2 wrong usage, 3 nothing found, 4 the budget cannot be met, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from satchel import __version__
from satchel.errors import SatchelError
from satchel.surfaces.cli.exits import Exit, exit_code_of

# Where each command lives: only the one that is asked for is loaded.
_COMMANDS = {
    "ask": "ask:ask_command",
    "assemble": "assemble:assemble_command",
    "build": "build:build_command",
    "clear": "workspace:clear_command",
    "doctor": "workspace:doctor_command",
    "expand": "workspace:expand_command",
    "explain": "build:explain_command",
    "index": "workspace:index_command",
    "install": "install:install_command",
    "mcp": "mcp:mcp_command",
    "migrate": "migrate:migrate_command",
    "page": "research:page_command",
    "research": "research:research_command",
    "search": "workspace:search_command",
    "serve": "serve:serve_command",
    "postgres": "postgres:postgres_command",
    "status": "workspace:status_command",
    "token": "serve:token_command",
    "tokens": "tokens:tokens_command",
    "uninstall": "install:uninstall_command",
    "verify": "verify:verify_command",
    "workspace": "blocks:workspace_group",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module, _, name = _COMMANDS.get(cmd_name, "").partition(":")
        if not module:
            return None
        command: click.Command = getattr(import_module(f"satchel.surfaces.cli.{module}"), name)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 error, 2 usage, 3 nothing found, 4 the budget cannot be met.",
)
@click.version_option(__version__, prog_name="satchel")
def cli() -> None:
    """Packs what matters into a model's context window: budgeted, cited, always parsing."""


def main(served: object = None) -> None:
    """Run the command line and leave with its exit code; `served` is a tokenizer that is being loaded elsewhere."""
    try:
        cli(standalone_mode=False, obj=served)
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
