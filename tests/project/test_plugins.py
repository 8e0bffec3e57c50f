"""Plug-ins of other packages: installed apart, in use on the command line and over HTTP, and harmless when broken."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.api import client
from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS, wait_for

PLUGINS = ROOT / "examples" / "plugins"
MOST_CODE_LINES = 40

SCRIPT = '"""How the press is cleaned."""\n\nCLEANING_MINUTES = 20\n"""\n* no headline\n#+end_example\n"""\n'
RULES = "# House rules\n\nWear gloves at the press.\n\nLock the paper store at night.\n"
MINUTES = "MINUTES\nBoard of May\n* The okapi moves house.\n* Lions eat at noon.\n"
TODO = "(A) Order ink for the press due:2026-12-01\nx Call the printer\n"

BROKEN_GROUPS = ("collectors", "formats", "document_kinds", "importers", "embedders")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the example's distribution."""
    folder, source = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("source") / "plugins"
    shutil.copytree(PLUGINS, source, ignore=shutil.ignore_patterns("__pycache__"))  # a build writes into its folder
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "--target", folder, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a distribution whose module raises when it is imported."""
    folder = tmp_path_factory.mktemp("broken")
    metadata = folder / "cracked-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cracked\nVersion: 1.0\n")
    groups = "".join(f"[satchel.{group}]\ncrack = cracked_plugin:CRACK\n" for group in BROKEN_GROUPS)
    (metadata / "entry_points.txt").write_text(groups)
    (folder / "cracked_plugin.py").write_text("raise RuntimeError('cracked in two')\n")
    return folder


def make_workspace(folder: Path) -> Path:
    (folder / "shop").mkdir()
    (folder / "shop" / "press.py").write_text(SCRIPT)
    (folder / "shop" / "board.minutes").write_text(MINUTES)
    (folder / "notes").mkdir()
    (folder / "notes" / "House rules.md").write_text(RULES)
    (folder / "notes" / "Press.md").write_text("# Press\n\nThe press prints on both sides.\n")
    (folder / "todo.txt").write_text(TODO)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


def environment(plugins: Path, folder: Path) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
    own = {"SATCHEL_INDEX_DIR": str(folder / "index"), "SATCHEL_CONFIG": str(folder / "none.toml")}
    return usual | own | {"PYTHONPATH": str(plugins)}


def satchel(plugins: Path, folder: Path, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "satchel", *words],
        cwd=folder,
        env=environment(plugins, folder),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done


@contextmanager
def serve(plugins: Path, folder: Path, *flags: str) -> Iterator[httpx.Client]:
    """A client of `satchel serve`, which runs as long as the block does."""
    log = folder / "serve.log"
    command = [sys.executable, "-P", "-m", "satchel", "serve", str(folder / "shop"), "--port", "0", *flags]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env=environment(plugins, folder), stdout=output, stderr=output, start_new_session=True
        ) as server,
    ):
        try:
            pattern = re.compile(r"at (http://127\.0\.0\.1:\d+).*token +(satchel_\S+)", re.DOTALL)
            match = wait_for(lambda: pattern.search(log.read_text()), "the server's address")
            with client(match[1], match[2]) as owner:
                yield owner
        finally:
            server.kill()


def test_each_example_is_one_short_file() -> None:
    modules = [path for path in (PLUGINS / "satchel_example_plugins").glob("*.py") if path.name != "__init__.py"]
    declared = (PLUGINS / "pyproject.toml").read_text()
    assert len(modules) == declared.count("[project.entry-points.")
    for module in modules:
        assert f"satchel_example_plugins.{module.stem}:" in declared
        assert len([line for line in module.read_text().splitlines() if line.strip()]) < MOST_CODE_LINES


def test_they_work_on_the_command_line(installed: Path, folder: Path) -> None:
    built = satchel(installed, folder, "build", "how is the press cleaned", "shop", "-f", "org").stdout
    assert "** [1] press.py (lines 1-7)\n#+begin_example\n" in built
    assert "\n,* no headline\n,#+end_example\n" in built
    assert built.count("\n#+end_example") == built.count("\n#+begin_example") == built.count("** [")
    lions = satchel(installed, folder, "search", "lions at noon", "shop", "-q").stdout
    assert "board.minutes" in lions
    assert "section 2" in lions
    done = satchel(installed, folder, "workspace", "import", "todo.txt", "-w", "shop")
    assert "imported from todo_txt: 3 blocks" in done.stderr
    satchel(installed, folder, "workspace", "import", "notes", "-w", "shop")
    context = json.loads(satchel(installed, folder, "build", "what ink is to be ordered", "shop", "--json").stdout)
    sections = {section["name"]: section for section in context["sections"]}
    assert sections["house_rules"]["title"] == "House Rules"
    assert "Wear gloves at the press." in context["text"]
    assert "todo.txt#(A) Order ink for the press due:2026-12-01" in {entry["id"] for entry in context["ledger"]}
    assert "Order ink for the press" in context["text"]
    satchel(installed, folder, "index", "shop", "--embedder", "hashing:64", "--index-dir", "other")
    status = satchel(installed, folder, "status", "shop", "--embedder", "hashing:64", "--index-dir", "other")
    assert "hashing-64" in status.stdout + status.stderr


def test_they_work_over_http(installed: Path, folder: Path) -> None:
    settings = ("-w", "shop", "--embedder", "hashing")
    satchel(installed, folder, "workspace", "import", "todo.txt", *settings)
    satchel(installed, folder, "workspace", "import", "notes", *settings)
    with serve(installed, folder, "--embedder", "hashing") as owner:
        question = {"query": "what ink is to be ordered", "format": "org", "focus": "Press"}
        context = owner.post("/v1/context", json=question).raise_for_status().json()
        assert context["format"] == "org"
        assert "\nThe press prints on both sides.\n#+end_example" in context["text"]
        assert "house_rules" in {section["name"] for section in context["sections"]}
        assert owner.get("/v1/status").json()["embedder"] == "hashing-256"
        assert owner.post("/v1/context", json={"query": "ink", "format": "troff"}).status_code == 422
        lions = owner.post("/v1/search", json={"query": "lions at noon"}).raise_for_status().json()["hits"][0]
        assert (lions["path"], lions["page"]) == ("board.minutes", 2)
        (folder / "todo.txt").write_text(TODO + "Sell the zeppelin\n")

        def found() -> bool:
            hits = owner.post("/v1/search", json={"query": "zeppelin to sell"}).raise_for_status().json()["hits"]
            return any("Sell the zeppelin" in hit["id"] for hit in hits)

        assert wait_for(found, "the new task")


def test_a_source_whose_importer_is_gone_stays_as_it_is(installed: Path, folder: Path) -> None:
    satchel(installed, folder, "workspace", "import", "todo.txt", "-w", "shop")
    (folder / "todo.txt").write_text(TODO + "Sell the zeppelin\n")
    built = satchel(folder, folder, "build", "order ink for the press", "shop")
    assert "todo.txt has changed and was not imported again" in built.stderr
    assert "no importer has this name" in built.stderr
    assert "Order ink for the press" in built.stdout


def test_without_the_package_a_document_of_its_kind_is_text(folder: Path) -> None:
    assert "MINUTES" in satchel(folder, folder, "search", "okapi", "shop", "--content", "-q").stdout


def test_a_broken_one_costs_only_its_own_name(broken: Path, folder: Path) -> None:
    problem = "the plug-in 'crack' of cracked cannot be loaded (RuntimeError: cracked in two)"
    done = satchel(broken, folder, "workspace", "import", "notes", "-w", "shop")
    assert "imported from vault: " in done.stderr
    assert problem in done.stderr
    built = satchel(broken, folder, "build", "what do the press rules say", "shop", "--json")
    assert problem in built.stderr
    assert f"{problem}; its items are missing from the context" in json.loads(built.stdout)["notes"]
    for exit_code, words in (
        (2, ("build", "press", "shop", "-f", "crack")),
        (1, ("build", "press", "shop", "--embedder", "crack")),
        (2, ("workspace", "import", "todo.txt", "-w", "shop", "--kind", "crack")),
        (1, ("workspace", "import", "todo.txt", "-w", "shop")),
    ):
        assert problem in satchel(broken, folder, *words, expect=exit_code).stderr
