"""The installation: Python, the program that the shell finds, the packages and the grammars."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from satchel.cli.packages import Wanted, ours, pip_install, wanted
from satchel.doctor.children import what_fails
from satchel.doctor.finding import Finding, note, ok, problem

_LEAST: Final = (3, 11)
_TESTED: Final = (3, 13)
_ENTRY: Final = "satchel.cli.entry:main"

# What a package is called when it is imported, where that is not its own name.
_MODULES: Final = {"markdown-it-py": "markdown_it", "pystemmer": "Stemmer", "pyyaml": "yaml", "splintr-rs": "splintr",
                   "toktok-rs": "toktok"}  # fmt: skip


def python() -> Iterator[Finding]:
    """Whether this Python and this system are ones that Satchel runs on."""
    told = f"{platform.python_version()} ({sys.executable}) on {platform.system()} {platform.machine()}"
    if sys.version_info < _LEAST:
        yield problem("python", f"{told}; 3.11 or newer is needed", "python3.11 -m venv .venv && . .venv/bin/activate")
    elif sys.platform == "win32":
        yield problem("python", f"{told}; Windows is not supported", "use Linux, macOS, or WSL: wsl --install")
    elif sys.version_info[:2] > _TESTED:
        yield note("python", f"{told}; tested up to {'.'.join(map(str, _TESTED))}")
    else:
        yield ok("python", told)


def program() -> Iterator[Finding]:
    """Whether what is installed, what runs and what the shell finds are one and the same."""
    import satchel

    code, mine = Path(satchel.__file__).resolve().parent, ours()
    if mine is None:
        yield problem("satchel", f"{satchel.__version__} runs from {code}, but it was not installed", pip_install())
    elif not any(point.value == _ENTRY for point in mine.entry_points if point.group == "console_scripts"):
        yield problem(
            "satchel",
            f"the installed package `satchel` ({mine.version}) is another project of the same name",
            f"{sys.executable} -m pip uninstall -y satchel, then {pip_install()}",
        )
    elif mine.version != satchel.__version__:
        yield problem(
            "satchel", f"{satchel.__version__} runs from {code}, but {mine.version} is installed", pip_install()
        )
    else:
        yield ok("satchel", f"{satchel.__version__} ({code})")
    yield from _on_path()
    yield from _in_the_way(code)


def _on_path() -> Iterator[Finding]:
    found = shutil.which("satchel")
    places = {os.path.dirname(os.path.abspath(sys.executable)), sysconfig.get_path("scripts")}
    scripts = [os.path.join(place, "satchel") for place in sorted(places)]
    mine = next((script for script in scripts if os.access(script, os.X_OK)), "")
    if found is None:
        how = f'export PATH="{os.path.dirname(mine)}:$PATH"' if mine else f"{sys.executable} -m satchel --help"
        yield note("program", "the shell finds no `satchel`: its folder is not on PATH", how)
    elif mine and os.path.realpath(found) == os.path.realpath(mine):
        yield ok("program", found)
    else:
        yield problem(
            "program",
            f"the shell finds another `satchel` first: {found}{_interpreter(found)}",
            f'export PATH="{os.path.dirname(mine) or "/path/to/.venv/bin"}:$PATH"; hash -r',
        )


def _interpreter(script: str) -> str:
    """Which Python a script is for."""
    try:
        with open(script, "rb") as file:
            first = file.readline(300)
    except OSError:
        return ""
    return f" (of {first[2:].strip().decode('utf-8', 'replace')})" if first.startswith(b"#!") else ""


def _in_the_way(code: Path) -> Iterator[Finding]:
    """A file or folder here that Python would import in Satchel's place."""
    for name in ("satchel.py", "satchel/__init__.py"):
        here = Path(name).resolve()
        if here.is_file() and here.parent != code:
            yield note(
                "import",
                f"a program started in this folder imports {here} in Satchel's place",
                f"rename {name.partition('/')[0]}, or start your program in another folder",
            )


def packages() -> Iterator[Finding]:
    """Whether each package that Satchel always needs is there, in a version that it was made for, and loads."""
    needed = [one for one in wanted() if not one.extra]
    if not needed:
        yield problem("packages", "what Satchel needs is not known: it was not installed by pip", pip_install())
        return
    wrong = list(_not_as_wanted(needed))
    there = [one for one in needed if one.there()]
    modules = {_MODULES.get(one.name.lower(), one.name.lower().replace("-", "_")): one.name for one in there}
    fails = what_fails("import importlib; importlib.import_module(name)", list(modules))
    for module, reason in fails.items():
        how = f"{sys.executable} -m pip install --force-reinstall {modules[module]}"
        wrong.append(problem("packages", f"{modules[module]} is installed and does not load: {reason}", how))
        # What crashes a child would crash us, too: whoever needs it here is told that it is not there.
        sys.modules[module] = None  # type: ignore[assignment]
    yield from wrong
    if not wrong:
        yield ok("packages", f"all {len(needed)} that are always needed are there, and load")


def _not_as_wanted(needed: list[Wanted]) -> Iterator[Finding]:
    for one in needed:
        found = one.there()
        how = f"{sys.executable} -m pip install '{one.text}'"
        if not found:
            yield problem("packages", f"{one.name} is not installed", how)
        elif not one.suits(found):
            yield problem("packages", f"{one.name} {found} is installed; {one.versions} is needed", how)


def grammars() -> Iterator[Finding]:
    """Whether every grammar can be loaded: a child tries, for one that is broken crashes."""
    from satchel.indexing.code.grammars import GRAMMARS

    fails = what_fails("from satchel.indexing.code.grammars import load_grammar; load_grammar(name)", GRAMMARS)
    for name, reason in fails.items():
        how = f"{sys.executable} -m pip install --force-reinstall tree-sitter-{name.replace('_', '-')}"
        yield problem("grammars", f"{name}: {reason}", f"{how}, or {pip_install()}")
    if not fails:
        yield ok("grammars", f"{len(GRAMMARS)} grammars")
