"""The scoreboard's workers and the client that runs them, with real processes; peers are not installed for this."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks.scoreboard import environments
from benchmarks.scoreboard.contestant import ContestantFailed, ContestantGone, Running
from benchmarks.scoreboard.contestants import (
    CONTESTANTS,
    REQUIREMENTS,
    SEMBLE_MODEL,
    WORKERS,
    Contestant,
    contestant,
    pinned,
)
from benchmarks.scoreboard.environments import ROOT, PeerMissing
from benchmarks.scoreboard.workers.static_model import UNKNOWN, tokenizer_of
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from tests.support.waiting import HANG_SECONDS, wait_for

Start = Callable[..., Running]

_HEAD = """
import os, signal, sys
from benchmarks.scoreboard.workers.hosting import Tool, packed, passage, ranked, serve
"""


@pytest.fixture
def variables() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


@pytest.fixture
def start(tmp_path: Path, variables: dict[str, str]) -> Iterator[Start]:
    """Start a worker that is made of a few lines of Python."""
    started: list[Running] = []

    def started_with(body: str, *, head: str = _HEAD, to_start: float = 60.0) -> Running:
        script = tmp_path / "small.py"
        script.write_text(head + body)
        started.append(Running([sys.executable, "-P", str(script)], variables=variables, to_start=to_start))
        return started[-1]

    yield started_with
    for running in started:
        running.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "net").mkdir(parents=True)
    (source / "net" / "retry.py").write_text(
        "def backoff(attempt: int) -> float:\n"
        '    """How long to wait before the next attempt."""\n'
        "    return min(60.0, 2.0**attempt)\n"
    )
    (source / "colours.py").write_text("RED = '#f00'\nGREEN = '#0f0'\n")
    (source / "picture.bin").write_bytes(b"\0backoff attempt wait")
    return source


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_for_end(process: int) -> None:
    wait_for(lambda: not _alive(process), "the end of the process")


_RANKING = """
class Small(Tool):
    version = "7.1"
    def index(self, folder, kind):
        print("a library prints", flush=True)
        os.write(1, b"and writes to the descriptor\\n")
        self.kind = kind
    def ask(self, question, budgets):
        if question == "bad":
            raise ValueError("not this one")
        return ranked([passage("a.py", i, i, self.kind + question) for i in range(1, 500)])
    def close(self):
        open(os.environ["LEFT"], "w").write("tidy")
serve(Small)
"""


def test_a_worker_answers_and_what_libraries_print_does_not_get_in_between(
    start: Start, variables: dict[str, str], tmp_path: Path
) -> None:
    variables["LEFT"] = str(tmp_path / "left")
    with start(_RANKING) as running:
        assert running.version == "7.1"
        assert running.started.wall > 0
        assert running.index(tmp_path, kind="prose").packed is None
        answer = running.ask("ü\u2028?", [1000])
        assert answer.contexts is None
        assert answer.passages is not None
        assert len(answer.passages) == 100
        assert (answer.passages[0].path, answer.passages[0].first, answer.passages[0].text) == (
            "a.py",
            1,
            "proseü\u2028?",
        )
        assert running.count(["a", "b"]) == [None, None]
    assert (tmp_path / "left").read_text() == "tidy"


def test_an_error_is_told_and_the_worker_can_be_asked_again(
    start: Start, variables: dict[str, str], tmp_path: Path
) -> None:
    variables["LEFT"] = str(tmp_path / "left")
    running = start(_RANKING)
    running.index(tmp_path)
    with pytest.raises(ContestantFailed, match="small, ask: ValueError: not this one") as raised:
        running.ask("bad", [1000])
    assert not isinstance(raised.value, ContestantGone)
    assert running.ask("good", [1000]).passages


def test_what_was_packed_comes_with_the_index_and_questions_change_nothing(start: Start, tmp_path: Path) -> None:
    running = start("""
class Packer(Tool):
    def index(self, folder, kind):
        return packed("all of it\\n" * 300_000, 12)
serve(Packer)
""")
    packed = running.index(tmp_path).packed
    assert packed is not None
    assert (len(packed.text), packed.claimed) == (3_000_000, 12)
    answer = running.ask("anything", [1000])
    assert answer.passages is None
    assert answer.contexts is None


def test_a_worker_that_cannot_start_says_why(start: Start) -> None:
    with pytest.raises(ContestantGone, match="could not start: RuntimeError: no model here"):
        start("def make():\n    raise RuntimeError('no model here')\nserve(make)\n")


def test_a_worker_that_dies_is_told_with_its_code_and_last_words(start: Start, tmp_path: Path) -> None:
    running = start("""
class Dying(Tool):
    def index(self, folder, kind):
        print("out of memory, say", file=sys.stderr, flush=True)
        os._exit(7)
serve(Dying)
""")
    with pytest.raises(ContestantGone, match=r"ended with code 7; it said last:\nout of memory, say"):
        running.index(tmp_path)
    with pytest.raises(ContestantGone, match="cannot be asked any more: it ended with code 7"):
        running.ask("and now?", [1000])


def test_a_worker_that_died_between_two_questions_is_noticed(start: Start, tmp_path: Path) -> None:
    running = start("""
class Leaving(Tool):
    def index(self, folder, kind):
        import threading
        threading.Timer(0.05, lambda: os._exit(3)).start()
serve(Leaving)
""")
    running.index(tmp_path)
    assert running._process.wait(HANG_SECONDS) == 3
    with pytest.raises(ContestantGone, match="ended with code 3"):
        running.ask("x" * 200_000, [1000])


def test_a_worker_that_hangs_is_ended_with_its_children(start: Start, tmp_path: Path) -> None:
    running = start(f"""
import subprocess
class Hanging(Tool):
    def index(self, folder, kind):
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
    def ask(self, question, budgets):
        signal.pause()
serve(Hanging)
""")
    running.index(tmp_path)
    child = int((tmp_path / "child").read_text())
    assert _alive(child)
    with pytest.raises(ContestantGone, match=r"small: no answer within 0\.3 s"):
        running.ask("?", [1000], timeout=0.3)
    _wait_for_end(running._process.pid)
    _wait_for_end(child)


def test_a_worker_that_never_gets_ready_is_ended(start: Start) -> None:
    with pytest.raises(ContestantGone, match=r"no answer within 0\.5 s"):
        start("import signal\nsignal.pause()\n", head="", to_start=0.5)


@pytest.mark.parametrize("rubbish", ["Loading model…", "[1, 2]", ""], ids=["words", "another-type", "empty"])
def test_rubbish_instead_of_an_answer_is_shown(start: Start, rubbish: str) -> None:
    with pytest.raises(ContestantGone, match="something else than JSON"):
        start(f"print({rubbish!r}, flush=True)\ninput()\n", head="")


def test_leaving_the_block_by_an_exception_ends_the_worker(start: Start) -> None:
    with pytest.raises(ZeroDivisionError), start("serve(Tool)\n") as running:
        _ = 1 / 0
    _wait_for_end(running._process.pid)


def test_time_and_memory_of_children_count(start: Start, tmp_path: Path) -> None:
    running = start("""
import subprocess
BUSY = '''
import time
held = b"x" * 90_000_000
until = time.process_time() + 0.4
while time.process_time() < until: pass
'''
class Busy(Tool):
    def index(self, folder, kind):
        subprocess.run([sys.executable, "-c", BUSY], check=True)
serve(Busy)
""")
    spent = running.index(tmp_path).spent
    assert spent.cpu >= 0.4
    assert spent.wall >= 0.4
    assert running.peak_memory > 90_000_000
    assert running.ask("?", [1000]).spent.cpu < spent.cpu


def test_bm25_finds_the_window_and_says_its_lines(folder: Path, variables: dict[str, str]) -> None:
    pytest.importorskip("bm25s")
    worker = WORKERS / "bm25_windows.py"
    with Running([sys.executable, "-P", str(worker), "2", "1"], variables=variables) as running:
        assert running.version == version("bm25s")
        running.index(folder)
        passages = running.ask("how long to wait before an attempt", [1000]).passages
        assert passages
        assert {passage.path for passage in passages} == {"net/retry.py"}
        for found in passages:
            assert found.first is not None
            assert found.last is not None
            lines = (folder / found.path).read_text().split("\n")
            assert "\n".join(lines[found.first - 1 : found.last]) == found.text
        assert running.answer("how long to wait before an attempt", 1000).passages == passages
        running.index(folder / "net")
        assert {passage.path for passage in running.ask("backoff red green", [1000]).passages or ()} == {"retry.py"}


def test_satchel_s_worker_gives_contexts_sources_and_a_ranking(folder: Path, variables: dict[str, str]) -> None:
    with Running([sys.executable, "-P", str(WORKERS / "satchel_engine.py")], variables=variables) as running:
        before = sorted(path.name for path in folder.rglob("*"))
        running.index(folder)
        assert sorted(path.name for path in folder.rglob("*")) == before
        answer = running.ask("how long to wait before the next attempt", [200, 1000])
        assert answer.passages
        assert answer.passages[0].path == "net/retry.py"
        assert answer.passages[0].relevance is not None
        assert answer.contexts is not None
        assert set(answer.contexts) == {200, 1000}
        for budget, context in answer.contexts.items():
            assert context.claimed is not None
            assert running.count([context.text]) == [context.claimed]
            assert context.claimed <= budget
            assert context.cited
            for number, source in enumerate(context.cited, 1):
                assert source.number == number
                assert source.text in context.text
                assert (folder / source.path).exists()
                assert source.first
        timed = running.answer("how long to wait before the next attempt", 1000)
        assert timed.passages is None, "who asks for a context does not pay for a ranking, too"
        assert timed.contexts == {1000: answer.contexts[1000]}


@pytest.mark.parametrize(
    "text",
    [
        "def parseHTTPHeader(raw_bytes): ...",
        "getUserByID2 XMLHttpRequest __init__ MAX_SIZE2x café Ünïcode",
        Path(environments.__file__).read_text(),
    ],
    ids=["camel", "mixed", "file"],
)
def test_the_converted_model_takes_text_apart_as_satchel_does(text: str) -> None:
    ours = StaticEmbedder()
    pieces = sorted(ours._vocabulary, key=ours._vocabulary.__getitem__)
    theirs = tokenizer_of([*pieces, UNKNOWN]).encode(text, add_special_tokens=False).ids
    assert [row for row in theirs if row < len(pieces)] == ours._rows_of(text)


def test_a_model_that_is_named_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    monkeypatch.setenv("SATCHEL_BENCH_SEMBLE_MODEL", str(model))
    named = Contestant(name="n", tool="n", what="It.", worker="semble_search.py", arguments=(SEMBLE_MODEL,))
    assert environments.ready(named, tmp_path / "work")[-1] == str(model)


def test_names_and_workers_are_there_and_no_two_are_alike() -> None:
    names = [one.name for one in CONTESTANTS]
    assert len(set(names)) == len(names)
    for one in CONTESTANTS:
        assert (WORKERS / one.worker).is_file()
        assert one.what.endswith(".")
        assert one.every >= 1
        assert one.takes_budget or one.ranks or not one.reads_question
        assert contestant(one.name) is one
    with pytest.raises(KeyError, match="no contestant 'nobody'"):
        contestant("nobody")


@pytest.mark.parametrize("file", sorted(path.name for path in REQUIREMENTS.iterdir()))
def test_requirements_are_pinned_used_and_name_no_hosts(file: str) -> None:
    users = [one for one in CONTESTANTS if one.requirements == file]
    assert users
    content = (REQUIREMENTS / file).read_text()
    assert "://" not in content
    assert "--" not in content
    versions = pinned(file)
    assert versions
    for name, pin in versions.items():
        assert pin, f"{name} in {file} is not pinned with =="
        assert not set(pin) & set("*<>~= ")
    assert all(one.tool in versions for one in users)


def _with_programs(*programs: str) -> Contestant:
    return Contestant(name="tool", tool="tool", what="It.", worker="ripgrep_files.py", programs=programs)


def test_a_missing_program_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerMissing, match="tool: rg is not installed; to measure it: apt-get install ripgrep"):
        environments.ready(_with_programs("rg"), tmp_path)


def test_a_node_that_is_too_old_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v12.22.0\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerMissing, match=r"node is v12\.22\.0, not 20 or newer"):
        environments.ready(_with_programs("node"), tmp_path)


def test_nothing_makes_tools_pass_over_the_corpora_and_variables_stay_out_of_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATCHEL_WORKSPACE", "elsewhere")
    work = tmp_path / "work"
    command = environments.ready(_with_programs(), work)
    assert command == [sys.executable, "-P", str(WORKERS / "ripgrep_files.py")]
    # Corpora are kept below it, and most tools heed a .gitignore above what they are shown.
    assert not list(work.rglob(".gitignore"))
    told_to_workers = environments.variables(work)
    assert told_to_workers["HOME"] == str(work / "home")
    assert told_to_workers["HF_HUB_OFFLINE"] == "1"
    assert "SATCHEL_WORKSPACE" not in told_to_workers


@pytest.mark.slow
def test_an_environment_is_made_once_for_its_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    (requirements / "none.txt").write_text("# nothing is needed\n")
    monkeypatch.setattr(environments, "REQUIREMENTS", requirements)
    plain = Contestant(name="plain", tool="plain", what="It.", worker="ripgrep_files.py", requirements="none.txt")
    python = Path(environments.ready(plain, tmp_path / "work")[0])
    assert python == tmp_path / "work" / "environments" / "none" / "bin" / "python"
    kept = python.parent / "kept"
    kept.touch()
    environments.ready(plain, tmp_path / "work")
    assert kept.exists()
    (requirements / "none.txt").write_text("# still nothing\n")
    environments.ready(plain, tmp_path / "work")
    assert not kept.exists()
    (requirements / "none.txt").write_text("no-such-package-as-this @ file:///nowhere/at-all.whl\n")
    with pytest.raises(PeerMissing, match="plain: its environment could not be made"):
        environments.ready(plain, tmp_path / "work")
