"""Checks of the installation: Python, the program on PATH, packages, extras, grammars, and agents' entries."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel.cli.packages import Requirement, installed_satchel, pip_install, requirements
from satchel.doctor.finding import Finding, State, note, ok, problem

if TYPE_CHECKING:
    from satchel.agents.plan import Target


_OLDEST_PYTHON: Final = (3, 11)
_NEWEST_TESTED_PYTHON: Final = (3, 13)
_ENTRY_POINT: Final = "satchel.cli.entry:main"
# Less than a check's time, so that the check can say which package hangs.
_CHILD_SECONDS: Final = 25.0
# What a package is called when it is imported, where that is not its own name.
_MODULES: Final = {
    "google-re2": "re2",
    "markdown-it-py": "markdown_it",
    "pystemmer": "Stemmer",
    "pyyaml": "yaml",
    "splintr-rs": "splintr",
    "toktok-rs": "toktok",
}
# What each extra is for.
_EXTRAS: Final = {
    "documents": "reads PDF, office files, e-books and web pages",
    "ocr": "reads scans without tesseract",
    "serve": "`satchel serve`: HTTP API, MCP and the inspector page",
    "mcp": "`satchel mcp`, for coding agents",
    "postgres": "stores indexes in PostgreSQL",
    "chroma": "research over Chroma",
    "fastembed": "another embedder, without torch",
    "sentence-transformers": "another embedder, and cross-encoders; large (torch)",
    "visual": "finds pages by their appearance; large (torch)",
    "ray": "indexes large folders on many machines",
}
_TRY_EACH: Final = """
import sys
for name in sys.argv[2:]:
    print(f"? {name}", flush=True)
    try:
        exec(sys.argv[1], {"name": name})
    except BaseException as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"! {reason[:300]}", flush=True)
"""


def check_python() -> Iterator[Finding]:
    """Check if Satchel supports this Python and this operating system."""
    python = f"{platform.python_version()} ({sys.executable}) on {platform.system()} {platform.machine()}"
    if sys.version_info < _OLDEST_PYTHON:
        how = "python3.11 -m venv .venv && . .venv/bin/activate"
        yield problem("python", f"{python}; 3.11 or newer is needed", how)
    elif sys.platform == "win32":
        yield problem("python", f"{python}; Windows is not supported", "use Linux, macOS, or WSL: wsl --install")
    elif sys.version_info[:2] > _NEWEST_TESTED_PYTHON:
        yield note("python", f"{python}; tested up to {'.'.join(map(str, _NEWEST_TESTED_PYTHON))}")
    else:
        yield ok("python", python)


def check_program() -> Iterator[Finding]:
    """Check if the installed, the running and the shell's `satchel` are the same program."""
    import satchel

    code, installed = Path(satchel.__file__).resolve().parent, installed_satchel()
    running = f"{satchel.__version__} runs from {code}"
    if installed is None:
        yield problem("satchel", f"{running}, but it was not installed", pip_install())
    elif not any(point.value == _ENTRY_POINT for point in installed.entry_points if point.group == "console_scripts"):
        detail = f"the installed package `satchel` ({installed.version}) is another project of the same name"
        yield problem("satchel", detail, f"{sys.executable} -m pip uninstall -y satchel, then {pip_install()}")
    elif installed.version != satchel.__version__:
        yield problem("satchel", f"{running}, but {installed.version} is installed", pip_install())
    else:
        yield ok("satchel", f"{satchel.__version__} ({code})")
    yield from _check_path()
    yield from _check_current_folder(code)


def _check_path() -> Iterator[Finding]:
    """Check which `satchel` the shell runs."""
    on_path = shutil.which("satchel")
    places = {os.path.dirname(os.path.abspath(sys.executable)), sysconfig.get_path("scripts")}
    scripts = [os.path.join(place, "satchel") for place in sorted(places)]
    script = next((path for path in scripts if os.access(path, os.X_OK)), "")
    if on_path is None:
        how = f'export PATH="{os.path.dirname(script)}:$PATH"' if script else f"{sys.executable} -m satchel --help"
        yield note("program", "the shell finds no `satchel`: its folder is not on PATH", how)
    elif script and os.path.realpath(on_path) == os.path.realpath(script):
        yield ok("program", on_path)
    else:
        how = f'export PATH="{os.path.dirname(script) or "/path/to/.venv/bin"}:$PATH"; hash -r'
        yield problem("program", f"the shell finds another `satchel` first: {on_path}{_interpreter(on_path)}", how)


def _interpreter(script: str) -> str:
    """Interpreter in the first line of a script, in parentheses, or ''."""
    try:
        with open(script, "rb") as file:
            first = file.readline(300)
    except OSError:
        return ""
    return f" (of {first[2:].strip().decode('utf-8', 'replace')})" if first.startswith(b"#!") else ""


def _check_current_folder(code: Path) -> Iterator[Finding]:
    """Report a `satchel` module or package in the current folder: Python imports the copy instead of Satchel."""
    for name in ("satchel.py", "satchel/__init__.py"):
        here = Path(name).resolve()
        if here.is_file() and here.parent != code:
            how = f"rename {name.partition('/')[0]}, or start your program in another folder"
            yield note("import", f"a program started in this folder imports {here} instead of Satchel", how)


def check_packages() -> Iterator[Finding]:
    """Check if all required packages are installed in a supported version and can be imported."""
    required = [requirement for requirement in requirements() if not requirement.extra]
    if not required:
        yield problem("packages", "the required packages are unknown: Satchel was not installed by pip", pip_install())
        return
    problems = list(_missing_or_unfit(required))
    present = [requirement.name for requirement in required if requirement.installed_version()]
    modules = {_MODULES.get(name.lower(), name.lower().replace("-", "_")): name for name in present}
    for module, reason in failures_in_child("import importlib; importlib.import_module(name)", list(modules)).items():
        how = f"{sys.executable} -m pip install --force-reinstall {modules[module]}"
        problems.append(problem("packages", f"{modules[module]} is installed but cannot be imported: {reason}", how))
        # What crashes a child would crash us, too: from here on, importing it is an ImportError.
        sys.modules[module] = None  # type: ignore[assignment]
    yield from problems
    if not problems:
        yield ok("packages", f"all {len(required)} required packages are installed and can be imported")


def _missing_or_unfit(required: list[Requirement]) -> Iterator[Finding]:
    for requirement in required:
        version = requirement.installed_version()
        how = f"{sys.executable} -m pip install '{requirement.text}'"
        if not version:
            yield problem("packages", f"{requirement.name} is not installed", how)
        elif not requirement.accepts(version):
            detail = f"{requirement.name} {version} is installed; {requirement.versions} is needed"
            yield problem("packages", detail, how)


def check_extras() -> Iterator[Finding]:
    """Report the purpose of each extra, and whether the extra is installed."""
    all_requirements = list(requirements())
    known = {requirement.extra for requirement in all_requirements}
    findings = [_check_extra(extra, _packages_of(extra, all_requirements)) for extra in _EXTRAS if extra in known]
    yield from findings
    if unknown := ", ".join(extra for extra in _EXTRAS if extra not in known):
        yield note("extras", f"the installation is older than the source and lacks {unknown}", pip_install())
    if missing := sum(finding.state is State.NOTE for finding in findings):
        how = f"to install an extra, replace NAME: {pip_install('NAME')}"
        yield note("extras", f"{missing} are not installed" if missing > 1 else "1 is not installed", how)


def _packages_of(extra: str, all_requirements: list[Requirement]) -> Iterator[Requirement]:
    """The packages of an extra, including packages of required extras."""
    for requirement in all_requirements:
        if requirement.extra == extra and requirement.name.lower() == "satchel":
            for other in requirement.of_extras:
                yield from _packages_of(other, all_requirements)
        elif requirement.extra == extra:
            yield requirement


def _check_extra(extra: str, packages: Iterator[Requirement]) -> Finding:
    subject = f"extra {extra}"
    versions = {package: package.installed_version() for package in packages}
    if not all(versions.values()):
        return note(subject, f"not installed; {_EXTRAS[extra]}")
    unfit = [
        f"{package.name} {version} is installed, {package.versions} is needed"
        for package, version in versions.items()
        if not package.accepts(version)
    ]
    return problem(subject, "; ".join(unfit), pip_install(extra)) if unfit else ok(subject, _EXTRAS[extra])


def check_grammars() -> Iterator[Finding]:
    """Check if every grammar can be loaded."""
    from satchel.indexing.code.read_code import GRAMMARS

    load = "from satchel.indexing.code.read_code import load_grammar; load_grammar(name)"
    failures = failures_in_child(load, list(GRAMMARS))
    for name, reason in failures.items():
        how = f"{sys.executable} -m pip install --force-reinstall tree-sitter-{name.replace('_', '-')}"
        yield problem("grammars", f"{name}: {reason}", f"{how}, or {pip_install()}")
    if not failures:
        yield ok("grammars", f"{len(GRAMMARS)} grammars")


def failures_in_child(code: str, names: Sequence[str]) -> dict[str, str]:
    """Names with a failure of `code`, and the reasons. The code runs in a child process because the code may crash.

    The code reads each name as `name`. After a crash, a new child process continues with the remaining names.
    """
    failures: dict[str, str] = {}
    left = list(names)
    while left:
        output, crash = _try_each(code, left)
        tried = list[str]()
        for line in output.splitlines():
            if line.startswith("? "):
                tried.append(line[2:])
            elif line.startswith("! ") and tried:
                failures[tried[-1]] = line[2:]
        if not crash:
            break
        failures[tried[-1] if tried else left[0]] = crash
        left = left[len(tried) :] if tried else []
    return failures


def _try_each(code: str, names: Sequence[str]) -> tuple[str, str]:
    """Output of a child process, and a description of a crash or time-out ('' if none)."""
    try:
        # Not from the current folder (-P): what lies there is the user's, and not ours.
        child = subprocess.run(  # noqa: S603 - our own Python and our own code
            [sys.executable, "-P", "-c", _TRY_EACH, code, *names],
            capture_output=True,
            text=True,
            timeout=_CHILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode("utf-8", "replace"), f"took longer than {_CHILD_SECONDS:.0f} seconds"
    if child.returncode < 0:
        return child.stdout, f"crashes (signal {-child.returncode})"
    return child.stdout, f"ends Python (exit code {child.returncode})" if child.returncode else ""


def check_agents(path: str) -> Iterator[Finding]:
    """Check every agent entry for Satchel, in the user's and the project's settings."""
    from satchel.agents.catalog import AGENTS, Scope, this_machine
    from satchel.agents.plan import target_for

    machine, project = this_machine(), Path(path).absolute()
    targets = (target_for(agent, scope, machine, project, "satchel") for agent in AGENTS for scope in Scope)
    findings = [finding for target in targets if target and target.file.exists() for finding in _check_file(target)]
    yield from findings or [ok("agents", "Satchel is not installed in any agent (run `satchel install`)")]


def _check_file(target: Target) -> Iterator[Finding]:
    from satchel.agents.plan import entry_in
    from satchel.agents.settings_file import CannotEdit, read_settings

    agent, subject = target.agent, f"agent {target.agent.key}"
    try:
        data = read_settings(target.file) or b""
        if b"satchel" not in data:
            return
        text = data.decode("utf-8")
        lists = [entry_in(text, agent.syntax, keys) for keys in agent.lists]
    except (CannotEdit, UnicodeDecodeError) as error:
        yield problem(subject, f"{target.file} cannot be read: {error}", "correct the file; then: satchel install")
        return
    project_flag = "" if target.scope == "user" else " --project"
    for name, entry in (item for servers in lists if isinstance(servers, dict) for item in servers.items()):
        if (command := _command(entry)) and (name == "satchel" or _starts_satchel(command)):
            yield _check_command(target, command, f"satchel install {agent.key}{project_flag} --name {name}")


def _command(entry: Any) -> list[str]:
    """Program and arguments of an entry, under any key used by an agent; [] if there is none."""
    if not isinstance(entry, dict):
        return []
    program = entry.get("command", entry.get("cmd", ""))
    words = [*(program if isinstance(program, list) else [program]), *(entry.get("args") or [])]
    return [word for word in words if isinstance(word, str)] if words[0] else []


def _starts_satchel(command: list[str]) -> bool:
    return os.path.basename(command[0]).startswith("satchel") or command[1:3] == ["-m", "satchel"]


def _check_command(target: Target, command: list[str], reinstall: str) -> Finding:
    """Problem of the command of an entry; `reinstall` is the command to write the entry again."""
    program, file, subject = command[0], target.file, f"agent {target.agent.key}"
    if shutil.which(program) is None:
        return problem(subject, f"{file} starts {program}, which does not exist", reinstall)
    folder = next(iter(command[command.index("mcp") + 1 :] if "mcp" in command else ()), "-")
    if not folder.startswith("-") and "://" not in folder and not Path(folder).is_dir():
        return problem(subject, f"{file} serves {folder}, which does not exist", f"{reinstall} --path FOLDER")
    if find_spec("mcp") is None and Path(program).parent == Path(sys.executable).parent:
        detail = f"{file} starts `satchel mcp`, which needs packages that are not installed"
        return problem(subject, detail, pip_install("mcp"))
    if not os.path.isabs(program):
        return note(subject, f"{file} starts the first `{program}` on PATH", reinstall)
    return ok(subject, f"{file} starts {program}")
