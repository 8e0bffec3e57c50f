"""The commands on a workspace as a user runs them: real processes, real folders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.command_line import satchel
from tests.support.oracle import true_count
from tests.support.packages import install_python
from tests.support.sample_project import CLIENT, GUIDE, RETRY, TEST
from tests.support.waiting import HANG_SECONDS, killed_at_the_end, wait_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    files = {"src/retry.py": RETRY, "src/client.py": CLIENT, "tests/test_client.py": TEST, "docs/guide.md": GUIDE}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_build_indexes_first_then_answers_within_the_budget(folder: Path) -> None:
    first = satchel("build", "how long is the backoff delay", "-b", "300", folder=folder)
    assert first.returncode == 0, first.stderr
    assert "indexed in" in first.stderr
    assert "### [1] src/retry.py" in first.stdout
    assert true_count(first.stdout.rstrip("\n"), "o200k_base") <= 300
    again = satchel("build", "how long is the backoff delay", "-b", "300", folder=folder)
    assert "indexed in" not in again.stderr
    assert again.stdout == first.stdout


def test_build_as_json_xml_to_a_file_and_quiet(folder: Path, tmp_path: Path) -> None:
    done = satchel("build", "Backoff", "--json", "-q", folder=folder)
    result = json.loads(done.stdout)
    assert done.stderr == ""
    assert result["sources"][0]["path"] == "src/retry.py"
    assert result["ledger"][0]["collector"] == "semantic"
    assert satchel("build", "backoff", "-f", "xml", "-q", folder=folder).stdout.startswith("<")
    done = satchel("build", "backoff", "-o", tmp_path / "out.md", "-q", folder=folder)
    assert done.stdout == ""
    assert "src/retry.py" in (tmp_path / "out.md").read_text()


def test_filters_leave_only_what_was_asked_for(folder: Path) -> None:
    def files(*flags: str) -> set[str]:
        done = satchel("search", "backoff", "--json", "-q", *flags, folder=folder)
        return {hit["path"] for hit in json.loads(done.stdout)["hits"]}

    assert files("--lang", "markdown") == {"docs/guide.md"}
    assert files("--include", "src/**") == {"src/retry.py", "src/client.py"}
    assert "tests/test_client.py" not in files("--exclude", "tests/")
    assert files("--block-type", "section") == {"docs/guide.md"}
    assert files("--until", "2001-01-01") == set()
    assert "src/retry.py" in files("--since", "2001-01-01")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("build", "x", "nowhere"), 2, "the folder does not exist"),
        (("build", "  "), 2, "must not be empty"),
        (("build", "x", "--model", "nope-9"), 2, "no tokenizer or model"),
        (("build", "x", "--expand", "wide"), 2, "number of lines, or symbol"),
        (("build", "x", "--embedder", "magic"), 1, "unknown; use static"),
        (("build", "x", "--format", "docx"), 2, "Invalid value"),
        (("search", "x", "--block-type", "A Poem"), 1, "must be a known block type"),
        (("search", "x", "--since", "yesterday"), 2, "must be a date"),
        (("expand", "nope.py"), 3, "no file or block in this index"),
        (("search", "x", "--lang", "cobol"), 3, ""),
        (("status", "--index-dir", "elsewhere"), 3, ""),
        (("clear", "--index-dir", "elsewhere"), 3, "there is no index"),
    ],
)
def test_wrong_usage_and_empty_answers_have_their_exit_codes(
    folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = satchel(*arguments, folder=folder)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_search_lists_places_names_and_relevances(folder: Path) -> None:
    done = satchel("search", "Backoff.delay", "-k", "2", folder=folder)
    first, second = done.stdout.strip().split("\n")
    relevance, place, name = first.split()
    assert float(relevance) > float(second.split()[0])
    assert place.startswith("src/retry.py:")
    assert name == "Backoff"
    assert "def delay" in satchel("search", "Backoff.delay", "-k", "1", "--content", folder=folder).stdout


def test_explain_says_what_spoke_for_each_piece(folder: Path) -> None:
    done = satchel("explain", "backoff delay", "-b", "200", folder=folder)
    assert " why" in done.stdout.splitlines()[0]
    assert "it has the question's words +" in " ".join(done.stdout.split())
    assert "kept" in done.stdout
    ledger = json.loads(satchel("explain", "backoff delay", "--json", "-q", folder=folder).stdout)
    assert all(entry["signals"] for entry in ledger)


def test_index_status_expand_and_clear(folder: Path) -> None:
    assert satchel("status", folder=folder).returncode == 3
    with (folder / "big.py").open("wb") as sparse:
        sparse.truncate(60_000_000)
    report = json.loads(satchel("index", "--json", "-q", folder=folder).stdout)
    assert report["read"] == 4
    assert report["skipped_paths"] == [["big.py", "too-large"]]
    assert "too-large\tbig.py" in satchel("index", "--list-skipped", folder=folder).stdout
    assert "up to date" in satchel("status", folder=folder).stdout
    (folder / "src/new.py").write_text("def fresh():\n    return 1\n")
    status = json.loads(satchel("status", "--json", folder=folder).stdout)
    assert (status["files"], status["changed"]) == (4, 1)
    assert satchel("expand", "src/new.py#fresh", folder=folder).stdout == "def fresh():\n    return 1\n"
    told = json.loads(satchel("expand", "src/retry.py:11-12", "-C", "1", "--json", folder=folder).stdout)
    assert (told["start_line"], told["end_line"], told["stale"]) == (10, 12, False)
    done = satchel("clear", folder=folder)
    assert "removed" in done.stderr
    assert not list((folder.parent / "index").glob("*/truth.sqlite*"))
    assert (folder / "src/retry.py").read_text() == RETRY


def test_status_shows_the_shared_prepared_files_and_clear_shared_removes_only_them(folder: Path) -> None:
    satchel("index", "-q", folder=folder)
    assert "MB of prepared files" in satchel("status", folder=folder).stdout
    assert json.loads(satchel("status", "--json", folder=folder).stdout)["shared_bytes"] > 0
    assert satchel("clear", "--shared", folder=folder).returncode == 0
    assert not (folder.parent / "index" / "shared").exists()
    assert satchel("clear", "--shared", folder=folder).returncode == 3
    assert "prepared files" not in satchel("status", folder=folder).stdout


def test_clear_all_removes_indexes_and_nothing_else(folder: Path) -> None:
    satchel("index", "-q", folder=folder)
    other = folder.parent / "index" / "mine"
    other.mkdir()
    (other / "keep.txt").write_text("x")
    assert satchel("clear", "--all", folder=folder).returncode == 0
    assert [path.name for path in (folder.parent / "index").iterdir()] == ["mine"]


@pytest.mark.slow
def test_doctor_finds_nothing_wrong_and_says_what_is(folder: Path) -> None:
    done = satchel("doctor", folder=folder)
    assert done.returncode == 0, done.stdout
    assert "20 grammars" in done.stdout
    done = satchel("doctor", "--json", "--embedder", "magic", folder=folder)
    assert done.returncode == 1
    assert [one["subject"] for one in json.loads(done.stdout) if not one["ok"]] == ["embedder"]


def test_settings_come_from_files_and_the_environment(folder: Path) -> None:
    (folder / "satchel.toml").write_text("exclude = ['src/']\ntop_k = 1\n")
    done = satchel("search", "backoff", folder=folder)
    assert done.stdout.count("\n") == 1
    assert "src/" not in done.stdout
    done = satchel("search", "backoff", folder=folder, env={"SATCHEL_TOP_K": "2"})
    assert done.stdout.count("\n") == 2
    (folder / "satchel.toml").write_text("index_dir = '/tmp/elsewhere'\n")
    done = satchel("search", "backoff", folder=folder)
    assert done.returncode == 2
    assert "a project may not set this" in done.stderr


def test_quick_answers_from_what_is_there_and_says_so(folder: Path) -> None:
    satchel("index", "-q", folder=folder)
    (folder / "src/new.py").write_text("def backoff_new():\n    return 1\n")
    done = satchel("build", "backoff_new", "--quick", folder=folder)
    assert "as it is (--quick)" in done.stderr
    assert "src/new.py" not in done.stdout
    assert "src/new.py" in satchel("build", "backoff_new", folder=folder).stdout


def test_nothing_indexed_reaches_the_terminal_with_an_escape_byte(folder: Path) -> None:
    (folder / "evil\x1b[31m.py").write_text("def backoff_evil():\n    return '\x1b[2J\u202e'\n")
    for command in (
        ("build", "backoff_evil"), ("search", "backoff_evil", "--content"), ("explain", "backoff_evil"),
        ("index", "--list-skipped"), ("expand", "evil\x1b[31m.py#backoff_evil"),
    ):  # fmt: skip
        done = satchel(*command, folder=folder)
        assert "\x1b" not in done.stdout + done.stderr, command
        assert "\u202e" not in done.stdout


def watched_by(pid: int) -> str:
    """What the kernel tells of the inotify watches of a process."""
    watches = []
    for descriptor in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            watches.append(descriptor.read_text())
    return "".join(watches)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process watches")
def test_watch_follows_changes_until_it_is_interrupted(folder: Path) -> None:
    with killed_at_the_end(
        [sys.executable, "-m", "satchel", "index", "--watch"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "SATCHEL_INDEX_DIR": str(folder.parent / "index")},
    ) as process:
        assert process.stderr is not None
        while "watching" not in process.stderr.readline():
            assert process.poll() is None
        source = f"ino:{(folder / 'src').stat().st_ino:x} "
        wait_for(lambda: source in watched_by(process.pid), "the folder to be watched")
        (folder / "src/new.py").write_text("def appeared():\n    return 1\n")
        assert "1 of 5 files read" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 130
        assert "Traceback" not in process.stderr.read()
    assert "src/new.py" in satchel("search", "appeared", "--quick", folder=folder).stdout


def test_the_tokenizer_child_ends_with_us_and_holds_no_pipe(folder: Path) -> None:
    satchel("index", "-q", folder=folder)
    script = f"{sys.executable} -m satchel build backoff -q | head -c 10 >/dev/null; echo done"
    environ = {**os.environ, "SATCHEL_INDEX_DIR": str(folder.parent / "index")}
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert done.stdout == "done\n"


def test_expand_finds_lines_that_moved_after_they_were_cited(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("".join(f"def func{i}():\n    return {i}\n\n\n" for i in range(9)))
    assert "func5" in satchel("expand", "a.py:21-22", folder=root).stdout
    (root / "a.py").write_text("# 1\n# 2\n# 3\n# 4\n" + (root / "a.py").read_text())
    assert "func5" in satchel("expand", "a.py:21-22", folder=root).stdout


def test_first_searches_at_the_same_time_all_answer(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for i in range(40):
        (root / f"m{i}.py").write_text(f"def alpha_{i}():\n    return {i}\n")
    command = [sys.executable, "-m", "satchel", "search", "alpha_7", str(root), "-q"]
    environ = {**os.environ, "SATCHEL_INDEX_DIR": str(tmp_path / "index")}
    running = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    answers = [process.communicate(timeout=60)[0] for process in running]
    assert all("m7.py" in answer for answer in answers)


@pytest.mark.parametrize(
    ("arguments", "env", "code"),
    [
        (("build", "x"), {"SATCHEL_FORMAT": "yaml"}, 2),
        (("search", "x", "--until", "9999-12-31"), {}, 2),
        (("search", "x"), {"SATCHEL_MIN_RELEVANCE": "7"}, 2),
        (("search", "x"), {"SATCHEL_TOKEN_BUDGET": "inf"}, 2),
    ],
)
def test_impossible_values_are_refused_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], env: dict[str, str], code: int
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    done = satchel(*arguments, folder=root, env=env)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


def test_a_broken_project_file_prevents_neither_status_nor_clear(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    satchel("index", folder=root)
    (root / "satchel.toml").write_text("nonsense = = 1\n")
    assert satchel("search", "x", folder=root).returncode == 2
    assert satchel("status", folder=root).returncode == 0
    assert satchel("clear", folder=root).returncode == 0


def test_skipped_files_are_listed_every_time(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "data").write_bytes(b"\0\1\2" * 100)
    first = satchel("index", "--list-skipped", folder=root).stdout
    assert "binary\tdata" in first
    assert satchel("index", "--list-skipped", folder=root).stdout == first


def test_a_context_that_does_not_answer_says_so_and_exits_with_3_only_if_asked(folder: Path) -> None:
    question = "why does the Django queryset delay its joins"
    doubt = "this probably does not answer the question"
    plain = satchel("build", question, folder=folder)
    assert plain.returncode == 0
    assert doubt in plain.stderr
    assert "*django*" in plain.stderr
    strict = satchel("build", question, "--min-sufficiency", "0.5", folder=folder)
    assert strict.returncode == 3
    assert strict.stdout.startswith("Note: nothing here seems to answer this question.")
    assert satchel("explain", question, "--min-sufficiency", "0.5", folder=folder).returncode == 3
    answered = satchel("build", "how long is the backoff delay", "--min-sufficiency", "0.3", folder=folder)
    assert answered.returncode == 0
    assert doubt not in answered.stderr


@pytest.fixture
def library(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    (root / "tea.py").write_text("def boil(degrees):\n    return degrees >= 100\n")
    return root


def test_several_folders_are_asked_at_once(folder: Path, library: Path) -> None:
    question = "how long is the backoff delay until the degrees boil"
    built = satchel("build", question, ".", "../library", "./src", folder=folder)
    assert "] work/src/retry.py" in built.stdout
    assert "library/tea.py" in built.stdout
    assert "work: indexed in" in built.stderr
    assert "library: indexed in" in built.stderr
    assert "./src is searched as part of ." in built.stderr
    explained = satchel("explain", question, ".", library, folder=folder)
    assert "library/tea.py:1-2" in explained.stdout
    found = satchel("search", "boil", ".", library, folder=folder)
    assert found.stdout.split()[1] == "library/tea.py:1-2"
    assert "degrees >= 100" in satchel("expand", "library/tea.py:2", ".", library, folder=folder).stdout
    unknown = satchel("expand", "tea.py", ".", library, folder=folder)
    assert unknown.returncode == 3
    assert "did you mean library/tea.py" in unknown.stderr


def test_an_installed_package_is_asked_too(folder: Path) -> None:
    install_python(folder / ".venv", "tiny", "1.2", {"tiny.py": "def boil(degrees):\n    return degrees >= 100\n"})
    found = satchel("search", "boil", "--with", "tiny", folder=folder)
    assert found.stdout.split()[1] == "tiny@1.2/tiny.py:1-2"
    asked = satchel("ask", "boil degrees", "--with", "tiny", folder=folder)
    assert "tiny@1.2/tiny.py" in asked.stdout
    absent = satchel("search", "boil", "--with", "absent", folder=folder)
    assert absent.returncode == 2
    assert "with='absent': is not installed in" in absent.stderr


def test_folders_that_cannot_be_asked_together_are_refused(folder: Path) -> None:
    for other in ("http://127.0.0.1:1", "postgresql://u:secret@h/db"):
        done = satchel("search", "boil", ".", other, folder=folder)
        assert done.returncode == 2
        assert "only folders can be asked together" in done.stderr
        assert "secret" not in done.stderr
    assert satchel("search", "boil", ".", "nowhere", folder=folder).returncode == 2


def test_a_question_may_come_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("def moor(ship):\n    return ship.rope\n")
    command = [
        sys.executable,
        "-m",
        "satchel",
        "search",
        "-",
        str(tmp_path / "work"),
        "--index-dir",
        str(tmp_path / "i"),
    ]
    asked = subprocess.run(command, input="moor the ship\n", capture_output=True, text=True, timeout=60, check=False)
    assert "a.py" in asked.stdout, asked.stderr
