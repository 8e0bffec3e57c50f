"""Writes the manual page of the command line, docs/satchel.1, from the commands themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from satchel import __version__
from satchel.cli.main import SECTIONS, cli

PAGE = Path(__file__).parent.parent / "docs" / "satchel.1"


def manual() -> str:
    """The page in the language of man."""
    lines = [
        f'.TH SATCHEL 1 "" "Satchel {__version__}" "User Commands"',
        ".SH NAME",
        "satchel \\- pack what matters into a model's context window",
        ".SH SYNOPSIS",
        ".B satchel",
        "COMMAND [ARGUMENT]... [FLAG]...",
        ".SH DESCRIPTION",
        _text(cli.help or ""),
        ".PP",
        _text("Only data goes to standard output; messages go to standard error."),
    ]
    context = click.Context(cli, info_name="satchel")
    for title, names in SECTIONS.items():
        lines.append(f".SH {_text(title.upper())}")
        for name in names:
            command = cli.get_command(context, name)
            assert command is not None
            lines += _command(command, click.Context(command, info_name=name, parent=context))
    lines += [
        ".SH EXIT STATUS",
        *(line for code, meaning in _EXITS.items() for line in (".TP", f".B {code}", meaning)),
        ".SH ENVIRONMENT",
        ".TP",
        ".B SATCHEL_*",
        _text("Every setting, e.g. SATCHEL_INDEX_DIR for the folder of the indexes; SATCHEL_TOKEN for the server."),
        ".SH SEE ALSO",
        _text("satchel COMMAND --help explains a command; satchel doctor finds what is wrong with an installation."),
    ]
    return "\n".join(lines) + "\n"


_EXITS = {
    0: "done",
    1: "an error",
    2: "wrong usage",
    3: "nothing found",
    4: "the budget is too small",
    130: "interrupted",
}


def _command(command: click.Command, context: click.Context) -> list[str]:
    pieces = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS {_text(context.command_path)} {_text(pieces)}"]
    paragraphs = (command.help or "").replace("\b", "").split("\n\n")
    lines += [line for text in paragraphs if text.strip() for line in (".PP", _text(" ".join(text.split())))]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in parameter.opts:
            lines += [".TP", f".B {_text(record[0])}", _text(" ".join(record[1].split()))]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            lines += _command(part, click.Context(part, info_name=name, parent=context))
    return lines


def _text(text: str) -> str:
    """Text that man shows as it is: no escape, and no request at the beginning of a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    escaped = "".join(char if ord(char) < 128 else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    PAGE.write_text(manual(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
