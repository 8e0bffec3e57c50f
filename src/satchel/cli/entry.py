"""Where the program starts: what takes longest is begun before anything else is loaded."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    encoding = None
    if sys.argv[1:2] in (["build"], ["explain"]) and not {"-h", "--help"} & set(sys.argv):
        from satchel.cli import tokenizer_child

        encoding = tokenizer_child.start()
    try:
        from satchel.cli.main import main as run
    except ModuleNotFoundError as error:
        # Not even the doctor can be had without it.
        sys.exit(
            f"satchel: the package {error.name!r} is missing; install Satchel again: pip install . in its checkout"
        )
    run(encoding)
