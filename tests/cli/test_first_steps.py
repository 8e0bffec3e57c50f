"""What somebody new trips over: misspelt words, odd terminals, empty folders, a set-up that cannot even start."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS


def satchel(*arguments: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "satchel", *map(str, arguments)], capture_output=True, text=True, timeout=HANG_SECONDS,
        check=False, cwd=cwd, env={**os.environ, "SATCHEL_INDEX_DIR": str(cwd.parent / "index"), **environ},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "prices.md").write_text("# Prices\n\nApples cost 3 € → 4 €.\n", encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("biuld", "Did you mean 'build'?"),
        ("reserch", "Did you mean 'research' or 'search'?"),
        ("how are routes made", "satchel build 'how are routes made'"),
        ("zzz", "No such command 'zzz'.\n"),
    ],
)
def test_a_command_that_is_none_leads_to_one_that_is(folder: Path, given: str, said: str) -> None:
    done = satchel(given, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_help_lists_every_command_once_and_where_to_begin(folder: Path) -> None:
    from satchel.cli.main import _COMMANDS

    lines = satchel("--help", cwd=folder).stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in _COMMANDS]
    assert sorted(listed) == sorted(_COMMANDS)
    assert listed[0] == "build"
    assert any("Start with: satchel build" in line for line in lines)


def test_flags_that_are_used_most_come_first_in_the_help(folder: Path) -> None:
    told = satchel("build", "--help", cwd=folder).stdout
    flags = ("-b, --token-budget", "-f, --format", "--focus ID", "--include GLOB", "--index-dir TEXT")
    places = [told.index(f"\n  {flag}") for flag in flags]
    assert places == sorted(places)


def test_an_encoding_that_cannot_write_everything_ends_nothing(folder: Path) -> None:
    done = satchel("search", "apples", "--content", cwd=folder, PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "3 \\u20ac \\u2192 4" in done.stdout


def test_an_empty_folder_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = satchel("build", "anything", cwd=tmp_path / "empty")
    assert done.returncode == 3
    assert "the folder has no files" in done.stderr


def test_a_url_is_no_folder_and_the_message_says_what_to_do(folder: Path) -> None:
    done = satchel("build", "anything", "https://example.org/a/repository", cwd=folder)
    assert done.returncode == 2
    assert "path='https://...': is not a folder" in done.stderr
    assert "clone it first" in done.stderr


def test_a_package_without_which_nothing_starts_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "click.py").write_text("raise ModuleNotFoundError('No module', name='click')\n")
    done = satchel("doctor", cwd=folder, PYTHONPATH=str(tmp_path / "shadow"))
    assert done.returncode == 1
    assert done.stderr.startswith("satchel: the package 'click' is missing")
    assert "Traceback" not in done.stderr


def test_what_spoke_for_a_piece_can_be_read_in_a_narrow_terminal(folder: Path) -> None:
    name = "a_folder_with_a_long_name/and_a_file_with_a_long_name_in_it.md"
    (folder / name).parent.mkdir()
    (folder / name).write_text("# Pears\n\nPears cost 5.\n")
    satchel("index", cwd=folder)
    terminal, end = pty.openpty()
    environ = {**os.environ, "SATCHEL_INDEX_DIR": str(folder.parent / "index"), "COLUMNS": "80", "TERM": "dumb"}
    with os.fdopen(terminal, "rb", buffering=0) as reader:
        done = subprocess.Popen(
            [sys.executable, "-m", "satchel", "explain", "what do pears cost", "-q"],
            cwd=folder,
            env=environ,
            stdout=end,
        )
        os.close(end)
        shown = b""
        try:
            while part := reader.read(4096):
                shown += part
        except OSError:
            pass  # the other end was closed
        assert done.wait(HANG_SECONDS) == 0
    lines = [line.rstrip() for line in shown.decode().splitlines()]
    assert max(map(len, lines)) <= 80
    assert "…" not in shown.decode()
    column = lines[0].index("hit")
    assert name in "".join(line[column:].strip() for line in lines), "its name is there, whole"


@pytest.mark.parametrize("name", ["http_client", "async_client", "mcp_client", "research", "ask_folder"])
def test_an_example_without_arguments_says_how_it_is_used(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert f"python examples/{name}.py " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_disk_that_is_really_full_is_not_taken_for_a_damaged_index(tmp_path: Path) -> None:
    root, disk = tmp_path / "work", tmp_path / "disk"
    root.mkdir()
    disk.mkdir()
    for i in range(100):
        (root / f"m{i}.py").write_text("".join(f"def name_{i}_{k}():\n    return {k}\n\n\n" for k in range(40)))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("nobody may mount a small disk here")
    try:
        done = satchel("index", "--index-dir", disk, cwd=root)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert done.returncode == 1
    assert "cannot be written (database or disk is full)" in done.stderr
    assert "satchel clear" not in done.stderr


@pytest.mark.parametrize("command", ["build", "explain"])
def test_filters_that_let_nothing_through_are_named(folder: Path, command: str) -> None:
    done = satchel(command, "apples", ".", "--lang", "pyhton", "--include", "src/**", cwd=folder)
    assert done.returncode == 3
    assert "no results (filters: --include src/** --lang pyhton)" in done.stderr


def test_one_of_something_is_one(folder: Path) -> None:
    assert "1 of 1 file read" in satchel("build", "apples", ".", cwd=folder).stderr
    told = satchel("status", ".", cwd=folder).stdout
    assert "content     1 file, " in told
    (folder / "picture.py").write_bytes(bytes(range(256)) * 8)
    satchel("index", ".", cwd=folder)
    assert "content     1 file, " in satchel("status", ".", cwd=folder).stdout, "what was not read is not held"


def test_lines_that_are_not_there_are_answered_with_those_that_are(folder: Path) -> None:
    satchel("index", ".", cwd=folder)
    done = satchel("expand", "prices.md:2-9", ".", cwd=folder)
    assert done.returncode == 3
    assert "did you mean prices.md:1-3?" in done.stderr


def test_agents_are_told_of_a_server_that_cannot_start(folder: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None\n")
    home = {"HOME": str(tmp_path / "home"), "PYTHONPATH": f"{ROOT / 'src'}:{hidden}"}
    done = satchel("install", "claude-code", "--project", "-y", cwd=folder, **home)
    assert done.returncode == 0
    assert "needs packages that are not installed: " in done.stderr
    assert "[mcp]" in done.stderr
