"""The command line. Only data goes to stdout; messages go to stderr.

Exit codes: 0 done, 1 an error, 2 wrong usage, 3 nothing found, 4 the budget cannot be met, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module
from io import TextIOWrapper

import click

from satchel import __version__
from satchel.cli.exits import Exit, exit_code_of
from satchel.errors import SatchelError

# Module and function of each command: only the module of the called command is imported.
_COMMANDS = {
    "ask": "satchel.cli.ask:ask_command",
    "assemble": "satchel.cli.assemble:assemble_command",
    "build": "satchel.cli.build:build_command",
    "completion": "satchel.cli.completion:completion_command",
    "clear": "satchel.cli.index:clear_command",
    "doctor": "satchel.doctor.checkup:doctor_command",
    "eval": "satchel.evaluation.command:eval_command",
    "expand": "satchel.cli.search:expand_command",
    "explain": "satchel.cli.build:explain_command",
    "find": "satchel.cli.search:find_command",
    "index": "satchel.cli.index:index_command",
    "install": "satchel.agents.install:install_command",
    "mcp": "satchel.cli.serve:mcp_command",
    "migrate": "satchel.cli.stores:migrate_command",
    "page": "satchel.cli.research:page_command",
    "research": "satchel.cli.research:research_command",
    "search": "satchel.cli.search:search_command",
    "secrets": "satchel.cli.secrets:secrets_command",
    "serve": "satchel.cli.serve:serve_command",
    "postgres": "satchel.cli.stores:postgres_command",
    "status": "satchel.cli.index:status_command",
    "token": "satchel.cli.serve:token_command",
    "tokens": "satchel.cli.tokens:tokens_command",
    "session-note": "satchel.agents.install:session_note_command",
    "uninstall": "satchel.agents.install:uninstall_command",
    "verify": "satchel.cli.verify:verify_command",
    "workspace": "satchel.cli.workspace:workspace_group",
}

SECTIONS = {
    "Ask a folder": ("build", "ask", "search", "find", "explain", "expand", "verify"),
    "Ask documents": ("research", "page"),
    "Manage the index": ("index", "status", "secrets", "doctor", "clear", "migrate"),
    "Serve agents and programs": ("install", "uninstall", "session-note", "mcp", "serve", "token"),
    "Manage blocks and access": ("workspace", "postgres"),
    "Use your own hits": ("assemble", "tokens"),
    "Measure": ("eval",),
    "Set up your shell": ("completion",),
}
"""Sections of the help, in order; commands without a section come last."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module, _, name = _COMMANDS.get(cmd_name, "").partition(":")
        if not module:
            return None
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command for the arguments; for an unknown command suggest similar commands."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in _COMMANDS:
            ctx.fail(f"No such command {name!r}.{_meant(name)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in sections by purpose, with the commands for beginners first."""
        listed = {name for names in SECTIONS.values() for name in names}
        sections = {**SECTIONS, "More": tuple(name for name in self.list_commands(ctx) if name not in listed)}
        for title, names in sections.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, command.get_short_help_str(80)) for name, command in commands if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=12)


def _meant(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, _COMMANDS, n=2)
    if near:
        return f" Did you mean {' or '.join(map(repr, near))}?"
    return f" To ask a question: satchel build {name!r}" if " " in name else ""


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Start with: satchel build "where is the retry backoff computed" path/to/folder\n\n'
    "If something does not work: satchel doctor\n\n"
    "Exit codes: 0 done, 1 error, 2 usage, 3 no results, 4 budget too small.",
)
@click.version_option(__version__, prog_name="satchel")
def cli() -> None:
    """Packs the relevant pieces of a folder into a model's context: within a token budget, cited, always valid."""


def _escape_unencodable_output() -> None:
    """Make stdout and stderr write escapes for characters outside the terminal's encoding: files hold any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def main(encoding: object = None) -> None:
    """Run the command line and exit with its exit code; `encoding` is the tokenizer of a child process."""
    _escape_unencodable_output()
    try:
        cli(standalone_mode=False, obj=encoding)
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
        click.echo(f"satchel: {error.filename or 'system error'}: {error.strerror or error}", err=True)
        sys.exit(Exit.ERROR)
