"""Satchel for strangers: other installers, the container and its database, completions, the manual, other systems."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from urllib.request import urlopen
from zipfile import Path as ZipPath

import psycopg
import pytest
import yaml  # type: ignore[import-untyped]

from satchel.cli.main import SECTIONS, cli
from satchel.errors import PlatformUnsupported
from tests.support.places import ROOT
from tests.support.postgres import PostgresServer
from tests.support.programs import run
from tests.support.waiting import HANG_SECONDS, wait_for

BIN = Path(sys.executable).parent
SITE = next(path for path in sys.path if path.endswith("site-packages"))


# -- other installers


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def without_packages(wheel: Path, tmp_path: Path) -> Path:
    """A file for uv that leaves out what the wheel needs: the packages are those of this environment."""
    (info,) = (entry for entry in ZipPath(wheel).iterdir() if entry.name.endswith(".dist-info"))
    metadata: Distribution = PathDistribution(info)
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in metadata.requires or ()}
    overrides = tmp_path / "overrides.txt"
    overrides.write_text("".join(f"{name} ; python_version < '3'\n" for name in sorted(names - {"satchel"})))
    return overrides


def answers(program: Path | str, *before: str, cwd: Path) -> None:
    """The program, wherever it was installed, indexes a folder and answers."""
    notes = cwd / "notes"
    notes.mkdir(exist_ok=True)
    (notes / "retry.md").write_text("# Retries\n\nThe delay doubles with each attempt.\n")
    environ = {"PYTHONPATH": SITE, "SATCHEL_INDEX_DIR": str(cwd / "index")}
    assert "The delay doubles" in run(program, *before, "build", "how does the delay grow?", notes, cwd=cwd, **environ)


def test_pipx_installs_the_program(wheel: Path, tmp_path: Path) -> None:
    environ = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    arguments = ("install", wheel, "--python", sys.executable, f"--pip-args=--quiet -c {ROOT / 'constraints.txt'}")
    run(sys.executable, "-m", "pipx", *arguments, cwd=tmp_path, **environ)
    answers(tmp_path / "bin" / "satchel", cwd=tmp_path)


def test_uv_installs_and_runs_the_program(wheel: Path, without_packages: Path, tmp_path: Path) -> None:
    environ = {name: str(tmp_path / name.lower()) for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR")}
    how = ("--offline", "--no-config", "--python", sys.executable, "--overrides", without_packages)
    run(BIN / "uv", "tool", "install", *how, wheel, cwd=tmp_path, **environ)
    answers(tmp_path / "uv_tool_bin_dir" / "satchel", cwd=tmp_path)
    said = run(BIN / "uvx", *how, "--from", wheel, "satchel", "--version", cwd=tmp_path, PYTHONPATH=SITE, **environ)
    assert said.startswith("satchel, version")


# -- the shell


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("satchel bui", {"build"}),
        ("satchel build --format j", {"json"}),
        ("satchel build --dif", {"--diff"}),
        ("satchel workspace gra", {"grant"}),
        ("satchel completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes_what_is_typed(typed: str, offered: set[str], tmp_path: Path) -> None:
    script = run(BIN / "satchel", "completion", "bash", cwd=tmp_path)
    words = typed.split(" ")
    line = f'{script}\nCOMP_WORDS=({" ".join(words)!s} ""); COMP_WORDS=({" ".join(f"{word!r}" for word in words)})\n'
    line += f"COMP_CWORD={len(words) - 1}\n_satchel_completion satchel\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    assert set(run("bash", "-c", line, cwd=tmp_path, PATH=path).split()) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_ask_the_same_program(shell: str, tmp_path: Path) -> None:
    assert f"_SATCHEL_COMPLETE={shell}_complete" in run(BIN / "satchel", "completion", shell, cwd=tmp_path)


def test_the_manual_is_that_of_the_commands() -> None:
    from scripts.man_page import PAGE, manual

    page = PAGE.read_text(encoding="utf-8")
    assert page == manual(), "run python scripts/man_page.py"
    assert all(f".SS satchel {name.replace('-', chr(92) + '-')}" in page for name in cli.list_commands(None))  # type: ignore[arg-type]
    assert {name for names in SECTIONS.values() for name in names} == set(cli.list_commands(None))  # type: ignore[arg-type]
    if shutil.which("groff"):
        assert run("groff", "-man", "-ww", "-z", PAGE, cwd=ROOT) == ""


# -- the container


def test_the_container_files_pass_their_linters() -> None:
    run(BIN / "hadolint", "Dockerfile", cwd=ROOT)
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml", cwd=ROOT)


def test_the_image_copies_what_the_build_needs_and_nothing_secret() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--)(.*) \S+$", dockerfile, re.MULTILINE) for word in line.split()]
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert set(copied) <= set(allowed)
    assert all((ROOT / name).exists() for name in copied)
    assert "USER 10001" in dockerfile
    assert not re.search(r"(?i)^(?:ENV|ARG).*(?:password|token|secret|key)=", dockerfile, re.MULTILINE)
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("setup", "satchel"):
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
    assert [port for service in services.values() for port in service.get("ports", ())] == ["127.0.0.1:8420:8420"]


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "data")
    yield server
    server.stop()


def test_the_services_start_as_compose_starts_them(own_postgres: PostgresServer, tmp_path: Path) -> None:
    """The login, the set-up, the server and the health check, with this machine's addresses in place of theirs."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    script = (ROOT / "scripts" / "deploy" / "create-login.sh").read_text(encoding="utf-8")
    (statement,) = re.findall(r"<<'SQL'\n(.*)\nSQL", script, re.DOTALL)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "retry.md").write_text("# Retries\n\nThe delay doubles with each attempt.\n")
    with psycopg.connect(own_postgres.url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE satchel")
        admin.execute(statement.replace(":'password'", "'a password'").encode())
    where = own_postgres.url.partition("?")[2]
    here = {
        "postgresql://postgres@database/satchel": f"postgresql://postgres@/satchel?{where}",
        "--store=postgresql://satchel@database/satchel?": f"--store=postgresql://satchel@/satchel?{where}&",
        "/work": str(folder),
        "--host=0.0.0.0": "--host=127.0.0.1",
        "--keys=/run/secrets/satchel-keys": f"--keys={tmp_path / 'keys.toml'}",
        "--allow-host=${SATCHEL_HOST:-127.0.0.1:8420}": "--port=0",
    }

    def command_of(service: str) -> list[str]:
        words = [str(word) for word in services[service]["command"]]
        for theirs, ours in here.items():
            words = [word.replace(theirs, ours) if word.startswith(theirs) else word for word in words]
        return [sys.executable, "-m", "satchel", *words]

    environ = {"SATCHEL_INDEX_DIR": str(tmp_path / "index"), "PGPASSWORD": "a password"}
    run(*command_of("setup"), cwd=tmp_path, **environ)
    run(sys.executable, "-m", "satchel", "token", "--owner", "--keys", tmp_path / "keys.toml", cwd=tmp_path)
    log = tmp_path / "log"
    with log.open("w") as stream:
        server = subprocess.Popen(command_of("satchel"), cwd=tmp_path, env={**os.environ, **environ}, stderr=stream)
    try:
        found = wait_for(lambda: re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text()), "the server's address")
        (check,) = re.findall(r"HEALTHCHECK[^\[]*(\[[^\n]*\])", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
        _, *script_of = json.loads(check)
        run(sys.executable, *(part.replace("8420", found[1]) for part in script_of), cwd=tmp_path)
        assert json.loads(urlopen(f"http://127.0.0.1:{found[1]}/health").read())["status"]
    finally:
        server.terminate()
        server.wait(HANG_SECONDS)


# -- other systems

_ELSEWHERE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "resource", "pwd", "grp", "termios"):
            raise ModuleNotFoundError(name)
import os, select, signal, subprocess
from importlib import util
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules.pop(name, None)
for name in ("fork", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "getuid", "killpg"):
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGPIPE", "SIGALRM", "setitimer"):
    delattr(signal, name)
sys.meta_path.insert(0, Missing())
find_spec = util.find_spec
util.find_spec = lambda name, package=None: None if name == "fcntl" else find_spec(name, package)
import satchel
for name in satchel.__all__:
    getattr(satchel, name)
hit = satchel.KnowledgeChunk("def delay(n): return 2 ** n", file_path="a.py", start_line=1, end_line=1, relevance=0.9)
print(satchel.assemble([hit]).text)
try:
    satchel.open(".")
except satchel.SatchelError as error:
    print(error.code, error)
"""


def test_a_system_without_file_locks_is_told_what_works_there(tmp_path: Path) -> None:
    """As on Windows: what this module and its kin have not, is not there."""
    said = run(sys.executable, "-c", _ELSEWHERE, cwd=tmp_path)
    assert "def delay(n)" in said
    assert f"{PlatformUnsupported.code} folders can be indexed on Linux and macOS only" in said
