"""Make the recorded terminal sessions of the documentation: docs/pictures/session-*.svg.

    python scripts/terminal_pictures.py [NAME ...]

Each session runs its commands for real, in a folder of its own that holds the examples, and is drawn by rich. The
pictures name no font and load nothing, so that they look alike offline.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).parent.parent
PICTURES: Final = ROOT / "docs" / "pictures"
WIDTH_CHARS: Final = 118


class Session(NamedTuple):
    """What is typed, and how many lines of what each command prints are shown."""

    title: str
    commands: tuple[str, ...]
    lines: int = 24
    before: tuple[str, ...] = ()


SESSIONS: Final = {
    "build": Session(
        "a context for a question about code",
        ('satchel build "how are chunks ranked by BM25?" examples -b 200',),
    ),
    "agent": Session("Satchel for a coding agent", ("satchel install claude-code --project --dry-run",)),
    "pdfs": Session(
        "pages that answer a question",
        ('satchel build "what was total revenue in 2025?" papers -b 200',),
        before=(f"{shlex.quote(sys.executable)} examples/documents/make.py papers",),
    ),
    "notes": Session(
        "an Obsidian vault",
        (
            "satchel workspace import examples/vault -w team",
            'satchel build "what did we decide about offline check-in?" team -b 400 -q',
        ),
        lines=26,
        before=("mkdir team",),
    ),
    "server": Session(
        "a server for a team",
        (
            "satchel workspace import examples/vault -w team",
            "satchel workspace grant Projects/Projects group:staff -w team",
            "satchel workspace group staff ann -w team",
            "satchel token ann --keys keys.toml > ann.token",
            'satchel search "offline check-in" team --user ann -k 4',
            'satchel search "salaries" team --user ann -k 4',
        ),
        before=("mkdir team",),
    ),
}


def run(command: str, folder: Path) -> str:
    """What a command prints on stdout and stderr."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")},
        "HOME": str(folder),
        "SATCHEL_INDEX_DIR": str(folder / ".index"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(WIDTH_CHARS),
    }
    done = subprocess.run(command, shell=True, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    said = done.stderr.splitlines(keepends=True)
    first = [line for line in said if "indexed in" in line or "imported from" in line]
    printed = "".join(first) + done.stdout.rstrip("\n") + "\n" + "".join(line for line in said if line not in first)
    # Where a temporary folder lies, and where Satchel is installed, is nobody's business.
    text = printed.strip("\n").replace(str(folder), "~").replace(str(Path(sys.executable).parent) + "/", "")
    return re.sub(r"\n{3,}", "\n\n", text.rstrip("\n"))


def draw(session: Session, folder: Path) -> str:
    """The session as SVG."""
    console = Console(record=True, width=WIDTH_CHARS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for command in session.before:
        run(command, folder)
    for command in session.commands:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        lines = run(command, folder).split("\n")
        for line in lines[: session.lines]:
            console.print(Text(line, "dim" if line.startswith("satchel: ") else ""), soft_wrap=False)
        if len(lines) > session.lines:
            console.print(Text(f"… {len(lines) - session.lines} more lines", "dim italic"))
    svg = console.export_svg(title=session.title, theme=DIMMED_MONOKAI, unique_id="session")
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas").replace(" <!-- Generated with Rich", "<!-- Rich")
    return re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL).rstrip() + "\n"


def main(names: list[str]) -> None:
    """Draw the sessions of these names, or all of them."""
    for name in names or SESSIONS:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve() / "home"
            folder.mkdir()
            shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
            path = PICTURES / f"session-{name}.svg"
            path.write_text(draw(SESSIONS[name], folder), encoding="utf-8")
            print(path.relative_to(ROOT), path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
