"""`satchel doctor` names what is wrong with a set-up that is really broken, says what to do, and changes nothing."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import apsw
import pytest

from satchel import open_engine
from satchel.cli.packages import Requirement
from satchel.doctor import model_checks, workspace_checks
from satchel.doctor.checkup import Checkup
from satchel.doctor.finding import Finding, State
from satchel.doctor.installation_checks import check_agents
from satchel.service.settings import Settings, configure, index_folder
from tests.support.waiting import HANG_SECONDS, wait_for


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder, with an index, a home and settings of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("def alpha():\n    return 1\n")
    (folder / "b.md").write_text("# Zebras\n\nThey are counted in March.\n")
    for name in [name for name in os.environ if name.startswith("SATCHEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SATCHEL_INDEX_DIR", str(tmp_path / "index"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return folder


@pytest.fixture
def indexed(root: Path) -> Path:
    with open_engine(root) as engine:
        engine.index()
    return root


def place_of(root: Path) -> Path:
    return index_folder(root, configure(root).settings)


def doctor(*arguments: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.run(
        [sys.executable, "-m", "satchel", "doctor", *map(str, arguments)], capture_output=True, text=True,
        timeout=HANG_SECONDS, check=False, cwd=cwd, env={**os.environ, "PATH": path, **environ},
    )  # fmt: skip


def health(root: Path, **changed: Any) -> list[Finding]:
    chosen = configure(root, changed).settings
    return [
        *workspace_checks.check_index_folder(place_of(root)),
        *workspace_checks.check_health(str(root), place_of(root), chosen),
    ]


def problems(findings: Any) -> list[Finding]:
    found = [one for one in findings if one.state is State.PROBLEM]
    assert all(one.remedy for one in found), "a problem says what to do"
    return found


def only_problem(findings: Any) -> Finding:
    (found,) = problems(findings)
    return found


def print_of(*folders: Path) -> str:
    """Everything in some folders: names, times of the files, and bytes."""
    seen = blake2b()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            seen.update(repr((str(path), path.stat().st_mtime_ns if path.is_file() else 0)).encode())
            seen.update(path.read_bytes() if path.is_file() else b"")
    return seen.hexdigest()


# -- the whole


@pytest.mark.slow
def test_nothing_is_wrong_and_nothing_is_changed(indexed: Path, tmp_path: Path) -> None:
    before = print_of(indexed, tmp_path / "index")
    done = doctor("--json", cwd=indexed)
    findings = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert all(one["ok"] and one["state"] in ("ok", "note") for one in findings)
    assert {"python", "satchel", "packages", "grammars", "settings", "embedder", "index", "git"} <= {
        one["subject"] for one in findings
    }
    assert print_of(indexed, tmp_path / "index") == before
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_a_folder_that_was_never_indexed_has_no_index_afterwards(root: Path, tmp_path: Path) -> None:
    assert doctor(cwd=root).returncode == 0
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
def test_several_problems_are_all_named_each_with_what_to_do(indexed: Path) -> None:
    (place_of(indexed) / "truth.sqlite").write_bytes(os.urandom(20_000))
    done = doctor(cwd=indexed, SATCHEL_LANGUAGE_MODEL="ollama:none", SATCHEL_LANGUAGE_MODEL_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    wrong = [i for i, line in enumerate(lines) if line.startswith("problem")]
    assert len(wrong) == 2
    assert all(lines[i + 1].strip().startswith("→ ") for i in wrong)
    assert "2 problems found" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_look_that_hangs_or_fails_does_not_keep_the_others() -> None:
    checkup = Checkup(".", {})
    hangs = threading.Event()

    def waits() -> list[Finding]:
        hangs.wait()
        return []

    late = checkup.run("slow", waits, late="wait", seconds=0.05)
    hangs.set()
    assert late == [Finding("slow", State.PROBLEM, "the check did not finish within 0 seconds", "wait")]
    assert checkup.is_stuck

    def fails() -> list[Finding]:
        raise MemoryError("no more")

    assert "MemoryError: no more" in only_problem(checkup.run("bad", fails)).detail


@pytest.mark.slow
@pytest.mark.parametrize(("path", "said"), [("nowhere", "the folder does not exist"), ("a.py", "is a file")])
def test_a_folder_that_is_none(root: Path, path: str, said: str) -> None:
    done = doctor(path, cwd=root)
    assert done.returncode == 1
    assert said in done.stdout
    assert done.stdout.count("\nproblem") == 1


# -- the installation


def metadata(folder: Path, name: str, version: str, more: str = "", scripts: str = "") -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}")
    (info / "entry_points.txt").write_text(scripts)


OURS = "[console_scripts]\nsatchel = satchel.cli.entry:main\n"


@pytest.mark.slow
def test_packages_that_are_missing_too_old_broken_or_crash_are_named(root: Path, tmp_path: Path) -> None:
    shadow = tmp_path / "shadow"
    needs = "".join(
        f"Requires-Dist: {one}\n" for one in ("no-such-package>=1", "regex>=2024.4", "watchfiles>=1", "pygit2")
    )
    metadata(shadow, "satchel", "0.1.0", needs, OURS)
    metadata(shadow, "regex", "2020.1.1")
    (shadow / "watchfiles.py").write_text("raise ImportError('libfoo.so.1 is missing')\n")
    (shadow / "pygit2.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    done = doctor(cwd=root, PYTHONPATH=str(shadow))
    assert done.returncode == 1
    assert "no-such-package is not installed" in done.stdout
    assert "regex 2020.1.1 is installed; >=2024.4 is needed" in done.stdout
    assert "pip install 'regex>=2024.4'" in done.stdout
    assert "watchfiles is installed but cannot be imported: ImportError: libfoo.so.1 is missing" in done.stdout
    assert "pygit2 is installed but cannot be imported: crashes (signal 11)" in done.stdout
    assert "agents:" in done.stdout, "the looks after the one that crashed were had"


@pytest.mark.slow
def test_another_project_of_the_same_name_is_noticed(root: Path, tmp_path: Path) -> None:
    metadata(tmp_path / "shadow", "satchel", "9.9")
    done = doctor(cwd=root, PYTHONPATH=str(tmp_path / "shadow"))
    assert done.returncode == 1
    assert "(9.9) is another project of the same name" in done.stdout
    assert "pip uninstall -y satchel" in done.stdout


@pytest.mark.slow
def test_another_program_of_the_name_on_the_path_is_noticed(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "bin" / "satchel"
    other.parent.mkdir()
    other.write_text("#!/elsewhere/bin/python\n")
    other.chmod(0o755)
    path = f"{other.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = doctor(cwd=root, PATH=path)
    assert done.returncode == 1
    assert f"another `satchel` first: {other} (of /elsewhere/bin/python)" in done.stdout
    assert "→ export PATH=" in done.stdout


@pytest.mark.slow
def test_a_program_that_is_not_on_the_path_and_a_file_in_the_way_are_notes(root: Path) -> None:
    (root / "satchel.py").write_text("")
    done = doctor(cwd=root, PATH="/nowhere", PYTHONSAFEPATH="1")
    assert done.returncode == 0, done.stdout
    assert "note     program: the shell finds no `satchel`" in done.stdout
    assert f"imports {root / 'satchel.py'} instead of Satchel" in done.stdout


@pytest.mark.parametrize(
    ("versions", "found", "suits"),
    [
        (">=0.22,<0.23", "0.22.5", True), (">=0.22,<0.23", "0.23.0", False), (">=2", "2", True), (">=2.1", "2", False),
        ("==2.13.0", "2.13", True), ("==2.13.0", "2.14", False), ("~=1.4", "1.9", True), ("~=1.4", "2.0", False),
        ("!=1.0", "1.0", False), ("", "whatever", True), (">=3.51.3", "3.54.1.0", True), (">2024.4", "2024.11.6", True),
    ],
)  # fmt: skip
def test_versions_are_compared_as_numbers(versions: str, found: str, suits: bool) -> None:
    assert Requirement(name="x", versions=versions).accepts(found) is suits


@pytest.mark.slow
def test_a_terminal_that_cannot_write_everything(root: Path) -> None:
    done = doctor(cwd=root, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 1
    assert "problem  terminal: output is encoded as ascii" in done.stdout
    assert "export PYTHONUTF8=1" in done.stdout


@pytest.mark.slow
def test_what_a_killed_run_left_is_a_note_and_what_is_new_or_of_others_is_not(root: Path, tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in ("satchel-eval-abcdefgh", "satchel-zyxwvuts", "satchel-pg-abcdefgh"))
    for folder in (old, new, other):
        folder.mkdir()
    for folder in (old, other):
        os.utime(folder, (time.time() - 7200,) * 2)
    shown = doctor("--json", cwd=root).stdout
    told = next(one for one in json.loads(shown) if one["subject"] == "leftovers")
    assert told["state"] == "note"
    assert str(old) in told["remedy"]
    assert str(new) not in told["remedy"]
    assert str(other) not in told["remedy"]


# -- settings


@pytest.mark.parametrize(
    ("user", "project", "environ", "said"),
    [
        ('embeder = "x"', "", {}, "did you mean embedder?"),
        ("token_budget = ", "", {}, "is not valid TOML"),
        ("", 'index_dir = "/tmp/x"', {}, "a project may not set this"),
        ("", "top_k = 0", {}, "must be at least 1"),
        ("", "", {"SATCHEL_TOKEN_BUDGET": "many"}, "token_budget='many': must be a whole number"),
        ("", "", {"SATCHEL_TOKEN_BUGDET": "9"}, "is not a setting of Satchel; did you mean SATCHEL_TOKEN_BUDGET?"),
        ("", "", {"SATCHEL_CONFIG": "/nowhere/c.toml"}, "/nowhere/c.toml, which does not exist"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_named_with_where_they_are(
    root: Path, monkeypatch: pytest.MonkeyPatch, user: str, project: str, environ: dict[str, str], said: str
) -> None:
    from satchel.service.settings import user_file

    user_file().parent.mkdir(parents=True)
    user_file().write_text(user)
    if project:
        (root / "satchel.toml").write_text(project)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert said in only_problem(workspace_checks.check_settings(str(root))).detail


def test_every_wrong_setting_is_told_at_once_and_no_password(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "satchel.toml").write_text(
        'store = "postgresql://u:hush@h/x"\nstor = "postgresql://u:hush@h/x"\ntop_k = "x"\n'
    )
    monkeypatch.setenv("SATCHEL_FORMAT", "docx")
    found = problems(workspace_checks.check_settings(str(root)))
    assert [one.detail.partition(":")[0].partition("=")[0] for one in found] == ["store", "stor", "top_k", "format"]
    assert "hush" not in "".join(f"{one.detail}{one.remedy}" for one in found)


def test_settings_that_are_right_are_told_with_their_origin(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "satchel.toml").write_text("top_k = 5\n")
    monkeypatch.setenv("SATCHEL_ANYTHING_ELSE", "1")
    told = list(workspace_checks.check_settings(str(root)))
    assert f"top_k ({root / 'satchel.toml'})" in told[0].detail
    assert [one.state for one in told] == [State.OK, State.NOTE]


@pytest.mark.slow
def test_wrong_settings_keep_the_index_from_being_looked_at(root: Path) -> None:
    (root / "satchel.toml").write_text("nope = 1\n")
    done = doctor(cwd=root)
    assert done.returncode == 1
    assert "there is no such setting" in done.stdout
    assert "index: not looked at" in done.stdout


# -- models


class _Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        key_is_wrong = server.key and self.headers.get("Authorization") not in (None, f"Bearer {server.key}")
        body = b"" if key_is_wrong else json.dumps({"data": [{"id": "qwen3:latest"}, {"id": "tiny"}]}).encode()
        self.send_response(401 if key_is_wrong else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def endpoint(key: str = "") -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Models)
    server.asked, server.key = [], key
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_embedder_whose_endpoint_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    get = model_checks._get_models

    def counted(base: str, key: str) -> tuple[int, bytes]:
        asked.append(base)
        return get(base, key)

    monkeypatch.setattr(model_checks, "_get_models", counted)
    monkeypatch.setattr(
        "satchel.service.factory.adapters.make_embedder", pytest.fail
    )  # which would try again and again
    found = only_problem(
        model_checks.check_embedder(Settings(embedder="openai:x", embedder_url="http://127.0.0.1:9/v1"))
    )
    assert "no answer from http://127.0.0.1:9/v1" in found.detail
    assert asked == ["http://127.0.0.1:9/v1"]


@pytest.mark.parametrize(
    ("name", "said", "how"),
    [("magic", "unknown; use static", "--embedder static"), ("openai:x", "must begin with http", "--embedder static")],
)
def test_an_embedder_that_is_none(name: str, said: str, how: str) -> None:
    found = only_problem(model_checks.check_embedder(Settings(embedder=name, embedder_url="nonsense")))
    assert said in found.detail
    assert how in found.remedy


def test_a_language_model_that_is_there_is_asked_for_its_name_only() -> None:
    with endpoint() as server:
        for model in ("qwen3", "tiny"):
            chosen = Settings(language_model=f"ollama:{model}", language_model_url=server.url)
            assert [one.state for one in model_checks.check_language_model(chosen)] == [State.OK]
    assert {(method, path) for method, path, _ in server.asked} == {("GET", "/v1/models")}


def test_a_language_model_that_is_not_there_unknown_or_unreachable() -> None:
    with endpoint() as server:
        found = only_problem(
            model_checks.check_language_model(Settings(language_model="ollama:gone", language_model_url=server.url))
        )
        assert ("no such model" in found.detail, found.remedy) == (True, "ollama pull gone")
        found = only_problem(
            model_checks.check_language_model(Settings(language_model="vllm:gone", language_model_url=server.url))
        )
        assert "qwen3:latest, tiny" in found.remedy
    found = only_problem(
        model_checks.check_language_model(Settings(language_model="ollama:x", language_model_url=server.url))
    )
    assert ("no answer" in found.detail, found.remedy) == (True, "ollama serve")
    assert "unknown" in only_problem(model_checks.check_language_model(Settings(language_model="magic:x"))).detail


def test_a_key_that_is_refused_is_told_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL_KEY", "hush-hush")
    with endpoint(key="right") as server:
        found = only_problem(
            model_checks.check_language_model(Settings(language_model="openai:tiny", language_model_url=server.url))
        )
    assert "refuses the key" in found.detail
    assert "hush" not in found.detail + found.remedy


def test_a_tokenizer_that_is_not_there(tmp_path: Path) -> None:
    assert (
        "tokenizer"
        in only_problem(model_checks.check_counting(Settings(model=str(tmp_path / "tokenizer.json")))).detail
    )
    assert [one.detail for one in model_checks.check_counting(Settings())] == ["exact for gpt-4o"]


def test_languages_of_scans_that_are_not_there() -> None:
    if not shutil.which("tesseract"):
        pytest.skip("tesseract is not installed")
    found = only_problem(model_checks.check_scans(Settings(ocr_languages="eng+tlh")))
    assert "lacks the languages tlh" in found.detail
    assert "apt install tesseract-ocr-tlh" in found.remedy


# -- the index


@pytest.mark.parametrize("kept", [20_000, 100, 5])
def test_a_database_that_was_cut_short(indexed: Path, tmp_path: Path, kept: int) -> None:
    file = place_of(indexed) / "truth.sqlite"
    file.write_bytes(file.read_bytes()[:kept])
    before = print_of(tmp_path / "index")
    found = only_problem(health(indexed))
    assert "is damaged" in found.detail
    assert f"satchel clear {indexed} && satchel index {indexed}" in found.remedy
    assert print_of(tmp_path / "index") == before


def test_a_database_of_random_bytes_or_with_a_page_overwritten(indexed: Path) -> None:
    file = place_of(indexed) / "truth.sqlite"
    whole = file.read_bytes()
    file.write_bytes(os.urandom(50_000))
    assert "is damaged" in only_problem(health(indexed)).detail
    middle = len(whole) // 2 // 4096 * 4096
    file.write_bytes(whole[:middle] + b"\xff" * 8192 + whole[middle + 8192 :])
    assert "is damaged" in only_problem(health(indexed)).detail


def test_a_database_that_is_lost_or_older_than_the_search_arrays(indexed: Path, tmp_path: Path) -> None:
    file = place_of(indexed) / "truth.sqlite"
    shutil.copy(file, tmp_path / "older")
    (indexed / "new.py").write_text("def okapi():\n    return 1\n")
    with open_engine(indexed, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
    shutil.copy(tmp_path / "older", file)
    assert "older than the search arrays" in only_problem(health(indexed)).detail
    file.unlink()
    found = only_problem(health(indexed))
    assert "missing or empty" in found.detail
    assert f"satchel clear {indexed} && satchel index {indexed}" in found.remedy


def set_version(root: Path, version: int) -> None:
    connection = apsw.Connection(str(place_of(root) / "truth.sqlite"))
    connection.pragma("user_version", version)
    connection.close()


def test_an_index_of_a_newer_version_and_one_of_an_older(indexed: Path) -> None:
    set_version(indexed, 99)
    found = only_problem(health(indexed))
    assert "made by a newer Satchel (version 99" in found.detail
    assert "update Satchel" in found.remedy
    set_version(indexed, 2)
    told = health(indexed)
    assert problems(told) == []
    assert "the next run upgrades it" in told[-1].detail
    connection = apsw.Connection(str(place_of(indexed) / "truth.sqlite"))
    assert connection.pragma("user_version") == 2, "it is left as it is"
    connection.close()


def test_an_index_of_another_embedder(indexed: Path) -> None:
    found = only_problem(health(indexed, embedder="fastembed:x"))
    assert "vectors of satchel-static-2, but the embedder is fastembed:x" in found.detail


def test_search_arrays_that_are_missing_or_damaged(indexed: Path) -> None:
    (segment,) = (place_of(indexed) / "derived").glob("*.segment")
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])
    found = only_problem(health(indexed))
    assert ("damaged" in found.detail, found.remedy) == (True, f"satchel index {indexed}")
    shutil.rmtree(segment.parent)
    assert "the files are missing" in only_problem(health(indexed)).detail


def test_a_move_that_has_not_come_to_its_end(indexed: Path) -> None:
    connection = apsw.Connection(str(place_of(indexed) / "truth.sqlite"))
    connection.execute("INSERT INTO fact (name, value, workspace) VALUES ('moving', 'embedded:/old', 1)")
    connection.close()
    found = only_problem(health(indexed))
    assert "the move from embedded:/old" in found.detail
    assert "satchel migrate embedded:/old" in found.remedy


def test_who_writes_now_and_who_was_killed_is_a_note(indexed: Path) -> None:
    lock = place_of(indexed) / "write.lock"
    with lock.open("r+") as file:
        file.write("pid 999999")
        file.flush()
        assert any("999999 was killed while writing" in one.detail for one in health(indexed))
        fcntl.flock(file, fcntl.LOCK_EX)
        told = [one for one in health(indexed) if one.subject == "writer"]
    assert [(one.state, one.remedy) for one in told] == [(State.NOTE, f"wait for it, or: kill {os.getpid()}")]


def test_a_writer_is_not_kept_from_writing_by_a_look(indexed: Path) -> None:
    with open_engine(indexed) as engine, engine.store.lock():
        assert problems(health(indexed)) == []
        (indexed / "c.py").write_text("def gamma(): ...\n")
        assert engine.index().read == 1
        assert any("3 files" in one.detail for one in health(indexed)), "also what is still in SQLite's log"


def test_how_much_has_changed_since(indexed: Path) -> None:
    def told() -> Finding:
        (found,) = workspace_checks.check_age(indexed, place_of(indexed), configure(indexed).settings)
        return found

    def up_to_date() -> bool:
        with open_engine(indexed) as engine:
            engine.index()
        return told().detail == "up to date"

    wait_for(up_to_date, "an index run that is later than the last change of a file")
    (indexed / "new.py").write_text("def fresh(): ...\n")
    (indexed / "a.py").unlink()
    assert told().state is State.NOTE
    assert "1 file new or changed, 1 deleted" in told().detail


def test_an_index_folder_that_is_a_file_or_no_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, said in ((root / "a.py", "is a file"), (Path("/proc/satchel"), "proc")):
        monkeypatch.setenv("SATCHEL_INDEX_DIR", str(place))
        found = only_problem(health(root))
        assert said in found.detail
        assert "SATCHEL_INDEX_DIR=" in found.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may write anywhere")
def test_an_index_folder_that_may_not_be_written(root: Path, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir(mode=0o500)
    assert "cannot be written" in only_problem(health(root)).detail


def test_an_index_on_a_network_file_system(root: Path, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    found = only_problem(workspace_checks.check_index_folder(place_of(root), mounts))
    assert "network file system (nfs4)" in found.detail
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path}-other nfs4 rw 0 0\n")
    assert problems(workspace_checks.check_index_folder(place_of(root), mounts)) == []


# -- the machine


def test_more_folders_than_may_be_watched(root: Path, tmp_path: Path) -> None:
    (root / "one" / "two").mkdir(parents=True)
    (tmp_path / "max_user_watches").write_text("2\n")
    found = only_problem(workspace_checks.check_watching(root, tmp_path))
    assert "3 folders, and this user may watch 2" in found.detail
    assert found.remedy == "sudo sysctl fs.inotify.max_user_watches=524288"


def test_a_repository_that_cannot_be_read(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert [one.detail for one in workspace_checks.check_git(root)] == ["a repository without commits"]
    (root / ".git" / "HEAD").write_bytes(b"\xff\xfe nonsense")
    found = only_problem(workspace_checks.check_git(root))
    assert "history cannot be read" in found.detail
    assert found.remedy == f"git -C {root} fsck"


def test_agents_that_start_what_is_no_longer_there(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    settings = home / ".cursor" / "mcp.json"
    settings.parent.mkdir(parents=True)
    entry = {"command": str(tmp_path / "gone" / "satchel"), "args": ["mcp", str(root)]}
    settings.write_text(json.dumps({"mcpServers": {"other": {"command": "x"}, "satchel": entry}}))
    found = only_problem(check_agents(str(root)))
    assert found.subject == "agent cursor"
    assert f"starts {tmp_path / 'gone' / 'satchel'}, which does not exist" in found.detail
    assert found.remedy == "satchel install cursor --name satchel"
    entry = {"command": sys.executable, "args": ["-m", "satchel", "mcp", str(tmp_path / "moved")]}
    settings.write_text(json.dumps({"mcpServers": {"mine": entry}}))
    found = only_problem(check_agents(str(root)))
    assert "moved, which does not exist" in found.detail
    assert found.remedy.endswith("--name mine --path FOLDER")
    settings.write_text('{"mcpServers": {"satchel": ')
    assert "cannot be read" in only_problem(check_agents(str(root))).detail
    entry = {"command": sys.executable, "args": ["-m", "satchel", "mcp", str(root)]}
    settings.write_text(json.dumps({"mcpServers": {"satchel": entry}}))
    assert [one.state for one in check_agents(str(root))] == [State.OK]
    monkeypatch.setitem(sys.modules, "mcp", None)
    found = only_problem(check_agents(str(root)))
    assert "needs packages that are not installed" in found.detail
    assert "[mcp]" in found.remedy


# -- a database


@pytest.fixture
def database(postgres: str) -> Iterator[Any]:
    """A database of one's own on the server, and a way to become its administrator."""
    import psycopg

    name = f"doctor_{os.getpid()}_{uuid4().hex[:8]}"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        admin.execute(f"CREATE ROLE {name}_login LOGIN PASSWORD 'hush'".encode())
        parts = urlsplit(postgres)
        yield (
            lambda user="": urlunsplit(
                parts._replace(
                    path=f"/{name}", netloc=f"{user}:hush@{parts.netloc.rpartition('@')[2]}" if user else parts.netloc
                )
            ),
            f"{name}_login",
        )
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        admin.execute(f"DROP ROLE {name}_login".encode())


def looked_at(url: str, root: Path | None = None) -> list[Finding]:
    from satchel.service.factory.opening import database_place

    return list(workspace_checks.check_database(database_place(url, "team"), root, Settings()))


def test_a_database_that_is_not_there() -> None:
    found = only_problem(looked_at("postgresql://ann:hush@127.0.0.1:9/x"))
    assert "the database cannot be used" in found.detail
    assert "pg_isready" in found.remedy
    assert "hush" not in found.detail + found.remedy


def test_a_database_that_is_not_set_up_stays_so(database: Any) -> None:
    import psycopg

    url, _ = database
    found = problems(looked_at(url()))
    assert any("not set up for Satchel" in one.detail or "pgvector" in one.detail for one in found)
    assert all("satchel postgres setup" in one.remedy for one in found)
    with psycopg.connect(url()) as connection:
        assert connection.execute("SELECT to_regnamespace('satchel')").fetchone() == (None,)


def test_logins_versions_and_workspaces_of_a_database(database: Any, indexed: Path) -> None:
    import psycopg

    from satchel.service.factory.opening import administration, database_place

    url, login = database
    administration().set_up(database_place(url()).address)
    told = looked_at(url())
    assert problems(told) == []
    assert "no index yet" in told[-1].detail
    with psycopg.connect(url()) as connection:
        assert connection.execute("SELECT count(*) FROM satchel.workspace").fetchone() == (0,), "none was made"
    found = only_problem(looked_at(url(login)))
    assert "has no access" in found.detail
    assert f"--login {login}" in found.remedy
    administration().set_up(database_place(url()).address, (login,), reading_only=True)
    assert any("has read access only" in one.detail for one in looked_at(url(login)))
    with open_engine(indexed, store=f"{url()}{'&' if '?' in url() else '?'}workspace=team") as engine:
        engine.index()
    (indexed / "late.py").write_text("def late(): ...\n")
    told = looked_at(url(), indexed)
    assert problems(told) == []
    assert any(one.detail.startswith("2 files, ") for one in told)
    assert "new or changed" in told[-1].detail
    with psycopg.connect(url(), autocommit=True) as connection:
        connection.execute("UPDATE satchel.schema_version SET version = 99")
        assert "set up by a newer Satchel (version 99" in only_problem(looked_at(url())).detail
        connection.execute("UPDATE satchel.schema_version SET version = 1")
        assert "set up by an older Satchel" in only_problem(looked_at(url())).detail


@pytest.mark.slow
def test_the_extra_for_databases_that_is_missing(root: Path, tmp_path: Path) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "psycopg.py").write_text("raise ImportError('gone')\n")
    done = doctor("--store", "postgresql://u@127.0.0.1:9/x", cwd=root, PYTHONPATH=str(shadow))
    assert done.returncode == 1
    assert "problem  database: a store in PostgreSQL needs packages" in done.stdout
    assert "[postgres]" in done.stdout


@pytest.mark.slow
def test_the_command_for_a_damaged_index_leads_to_that_very_index(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other place"
    with open_engine(root, index_dir=str(other)) as engine:
        engine.index()
    (file,) = other.glob("*/truth.sqlite")
    file.write_bytes(b"nonsense" * 1000)
    done = doctor("--index-dir", other, "--json", cwd=root)
    (found,) = [one for one in json.loads(done.stdout) if not one["ok"]]
    command = f"satchel clear . --index-dir '{other}' && satchel index . --index-dir '{other}'"
    assert found["remedy"].startswith(command)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-c", command], check=True, cwd=root, env={**os.environ, "PATH": path}, capture_output=True)
    assert doctor("--index-dir", other, cwd=root).returncode == 0, "what it said to do has helped"


def test_python_files_of_the_current_folder_are_not_run(tmp_path: Path) -> None:
    for name in ("yaml", "numpy", "copy", "click"):
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w')\nraise SystemExit(3)\n")
    command = [
        str(Path(sys.executable).parent / "satchel"),
        "doctor",
        ".",
        "--json",
        "--index-dir",
        str(tmp_path / "index"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout), done.stderr
    assert not list(tmp_path.glob("ran-*"))
    assert "cannot be imported" not in done.stdout


@pytest.mark.slow
def test_secrets_in_addresses_are_not_printed(tmp_path: Path) -> None:
    told = {
        "SATCHEL_STORE": "postgres:/joe:s3cretpw@h/db",
        "SATCHEL_LANGUAGE_MODEL": "openai:some",
        "SATCHEL_LANGUAGE_MODEL_URL": "http://127.0.0.1:1/v1?key=s3cretkey",
    }
    done = subprocess.run(
        [sys.executable, "-m", "satchel", "doctor", str(tmp_path)],
        env={**os.environ, **told}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr
