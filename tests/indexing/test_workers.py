"""Who prepares files: whether on this machine or on Ray, and whatever happens to them, the index is the same."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from satchel import open_engine
from satchel.errors import ExtraMissing, InvalidOption, ServerUnavailable
from satchel.indexing import indexer
from satchel.indexing.changes import IndexReport
from satchel.indexing.indexer import IndexStep
from satchel.indexing.walk import NO_DOCUMENTS, Reading, policy_for
from satchel.indexing.work import LocalWorkers, Tools, prepare_batch
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.integrations.ray import ray_workers
from satchel.integrations.ray.driver import kind_here, what_differs
from satchel.integrations.ray.ray_workers import BATCH_FILES, BATCHES_AHEAD, RayWorkers
from satchel.models.outline import text_hash
from satchel.models.search import Filters
from satchel.ports.workers import Job, Load, Prepared, Workers
from satchel.service.engine import ContextEngine
from satchel.storage.sqlite.store import EmbeddedStore
from tests.support.documents import pdf_of_lines
from tests.support.effort import no_blow_up
from tests.support.measuring import unmeasured
from tests.support.places import ROOT
from tests.support.poisonous import DEADLY, FAULTY, Stranger
from tests.support.waiting import HANG_SECONDS, wait_for

WORDS = "zebra stripe giraffe neck okapi harbour crane quay ledger frost valley bridge arch stone river".split()
QUESTIONS = ("the neck of the giraffe", "stone bridge over the river", "count_7", "tickets for lions", "harbour crane")
POLICY = policy_for(Reading.AUTO, is_source=False, max_bytes=10**7, ocr=False)
EVERYTHING = Filters()


def source(number: int, chooser: random.Random) -> str:
    parts = [f'"""Module {number}: {" ".join(chooser.choices(WORDS, k=8))}."""\n']
    for i in range(chooser.randint(5, 12)):
        said = " ".join(chooser.choices(WORDS, k=12))
        parts.append(
            f'\ndef count_{number}_{i}({chooser.choice(WORDS)}):\n    """{said}."""\n    return {number} * {i}\n'
        )
    return "".join(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with more than is done without Ray: sources, prose, documents, a copy, a broken one, an empty file."""
    root = tmp_path_factory.mktemp("workers") / "work"
    chooser = random.Random(7)
    files = {f"src/m{i}.py": source(i, chooser) for i in range(500)}
    files |= {f"docs/d{i}.md": f"# Part {i}\n\n{' '.join(chooser.choices(WORDS, k=300))}\n" for i in range(20)}
    files |= {"empty.txt": "", "long.txt": "river and stone\n" * 20_000}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    paper = pdf_of_lines([["The garden opens in May."], ["Tickets for lions cost 12 euros."]])
    (root / "garden.pdf").write_bytes(paper)
    (root / "the copy of it.pdf").write_bytes(paper)
    (root / "broken.pdf").write_bytes(b"%PDF-1.4\n" + b"nothing that anybody could read\n" * 20)
    for i in range(3):
        (root / f"report {i}.pdf").write_bytes(pdf_of_lines([[f"Report {i}, page {page}."] for page in range(4)]))
    return root


def engine_for(
    root: Path,
    index: Path,
    workers: Callable[[Load], AbstractContextManager[Workers]] | None,
    kind: type[EmbeddedStore] = EmbeddedStore,
) -> ContextEngine:
    return ContextEngine(
        root, kind(index), StaticEmbedder(), max_file_bytes=10**6, documents=POLICY, workers=workers
    )  # fmt: skip


def content(engine: ContextEngine) -> dict[str, Any]:
    """Whatever of an index can be told from outside: files, notes, texts, pieces, and how questions are answered."""
    store = engine.store
    paths = sorted(store.files())
    pieces = {
        path: [
            (p.block, p.block_type, p.title, p.summary, p.first_line, p.last_line, p.text, p.page)
            for p in store.pieces_of(path, EVERYTHING)
        ]
        for path in paths
    }
    answers = {
        question: [(hit.id, hit.relevance, hit.signals) for hit in engine.search(question, top_k=30).hits]
        for question in QUESTIONS
    }
    return {
        "files": {path: state[:3] for path, state in store.files().items()},
        "notes": store.notes(),
        "texts": {path: store.text_of(path, EVERYTHING) for path in paths},
        "pieces": pieces,
        "answers": answers,
        "vectors": with_vectors(store, pieces),
    }


def with_vectors(store: Any, pieces: dict[str, list[Any]]) -> int:
    """How many pieces have a vector: every one."""
    rows = store._db.execute("SELECT count(*), count(vector.hash) FROM piece LEFT JOIN vector USING (hash)").fetchall()
    assert rows[0][0] == rows[0][1] == sum(map(len, pieces.values()))
    return int(rows[0][1])


def indexed(
    root: Path, index: Path, workers: Callable[[Load], AbstractContextManager[Workers]] | None
) -> tuple[dict[str, Any], IndexReport]:
    with engine_for(root, index, workers) as engine:
        report = engine.index()
        return content(engine), report


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return indexed(folder, tmp_path_factory.mktemp("expected"), None)[0]


@pytest.fixture(scope="module")
def two() -> Iterator[RayWorkers]:
    """Two workers on a Ray of this machine, which several tests use one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with RayWorkers(
            "ray", Tools(POLICY, "tests.support.poisonous:impatient"), StaticEmbedder(), count=2
        ) as workers:
            list(workers.prepare([Job("first.txt", "first\n")]))
            yield workers


def alive(two: RayWorkers) -> list[int]:
    """The workers' processes that are still there."""
    return [pid for _, pid in two.workers if Path(f"/proc/{pid}").exists()]


# -- the same result


@pytest.mark.parametrize("count", [1, 2])
def test_one_process_or_two_make_the_same_index(
    folder: Path, tmp_path: Path, expected: dict[str, Any], count: int
) -> None:
    made, report = indexed(folder, tmp_path, lambda load: LocalWorkers(count, documents=POLICY, load=load))
    assert made == expected
    assert report.embedded == len(set(vector_keys(tmp_path)))


def vector_keys(index: Path) -> list[bytes]:
    store = EmbeddedStore(index)
    try:
        return [row[0] for row in store._db.execute("SELECT hash FROM vector")]
    finally:
        store.close()


def test_two_workers_on_ray_make_the_same_index(
    folder: Path, tmp_path: Path, expected: dict[str, Any], two: RayWorkers
) -> None:
    seen: list[IndexStep] = []
    with engine_for(folder, tmp_path, lambda _: nullcontext(two)) as engine:
        report = engine.index(seen.append)
        assert content(engine) == expected
        assert engine.index().read == 0
    assert report.embedded == len(set(vector_keys(tmp_path)))
    assert not report.notes
    assert [step.done for step in seen if step.doing == "reading"] == list(range(1, report.found + 1))
    assert len(alive(two)) == 2


@pytest.mark.slow
def test_a_file_that_moved_keeps_its_vectors(tmp_path: Path, two: RayWorkers) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text(source(1, random.Random(1)))
    with engine_for(root, tmp_path / "index", lambda _: nullcontext(two)) as engine:
        assert engine.index().embedded > 0
        (root / "a.py").rename(root / "b.py")
        (root / "c.py").write_text(source(2, random.Random(2)))
        report = engine.index()
        assert (report.read, report.dropped) == (2, 1)
        assert report.embedded == len(engine.store.pieces_of("c.py", EVERYTHING))


# -- what goes wrong


class Saboteur:
    """Workers of whom one is stopped with the first job and killed when it must have something to do."""

    def __init__(self, workers: RayWorkers, pid: int) -> None:
        self._workers = workers
        self._pid = pid
        self.count = workers.count

    @property
    def notes(self) -> Any:
        return self._workers.notes

    def prepare(self, jobs: Iterable[Job]) -> Iterator[Prepared]:
        def taken() -> Iterator[Job]:
            for i, job in enumerate(jobs):
                if i == 0:
                    os.kill(self._pid, signal.SIGSTOP)
                if i == 4 * BATCH_FILES:
                    os.kill(self._pid, signal.SIGKILL)
                yield job

        return self._workers.prepare(taken())


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(
    folder: Path, tmp_path: Path, expected: dict[str, Any], two: RayWorkers
) -> None:
    list(two.prepare([Job("warm.py", "x = 1\n")] * BATCH_FILES * 4))  # both are there
    victim = alive(two)[-1]
    with engine_for(folder, tmp_path, lambda _: nullcontext(Saboteur(two, victim))) as engine:
        report = engine.index()
        assert content(engine) == expected
    assert any("worker on Ray died" in note or "workers on Ray died" in note for note in report.notes)
    assert victim not in alive(two)


@pytest.mark.slow
def test_a_worker_that_hangs_is_given_up(two: RayWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers, "longest_seconds", lambda _: 1.0)
    jobs = [Job(f"{i}.txt", f"text {i}\n") for i in range(6 * BATCH_FILES)]
    list(two.prepare(jobs))  # both are there
    victim = alive(two)[-1]
    os.kill(victim, signal.SIGSTOP)
    try:
        before = two.notes
        assert [one.path for one in two.prepare(jobs)] == [job.path for job in jobs]
        assert two.notes != before
    finally:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)


@pytest.mark.slow
def test_what_kills_every_worker_is_done_here(two: RayWorkers) -> None:
    jobs = [Job(f"m{i}.py", f"def f_{i}():\n    return {i}\n") for i in range(6 * BATCH_FILES)]
    jobs[10] = Job("deadly.py", f'def deadly():\n    """{DEADLY}"""\n')
    jobs[100] = Job("faulty.py", f'def faulty():\n    """{FAULTY}"""\n')
    prepared = list(two.prepare(jobs))
    with LocalWorkers(1) as here:
        alone = list(here.prepare(jobs))
    assert [one._replace(vectors=None) for one in prepared] == alone
    unembedded = [i for i, one in enumerate(prepared) if one.vectors is None]
    assert unembedded == list(range(2 * BATCH_FILES)), "the two batches, and no other"
    assert any("read on this machine" in note for note in two.notes)


def test_a_source_that_is_too_much_for_its_parser_is_read_by_its_lines_anywhere(two: RayWorkers) -> None:
    jobs = [Job("a.py", "def a():\n    return 1\n"), Job("killer.py", "x = " + "[\n" * 200_000), Job("b.md", "# B\n")]
    prepared = list(two.prepare(jobs))
    assert [one.path for one in prepared] == ["a.py", "killer.py", "b.md"]
    assert [bool(one.outline.note) for one in prepared] == [False, True, False]
    assert prepared[1].outline.note == "the parser failed; the file was split by lines"


# -- how much at once


def test_no_more_jobs_are_taken_than_are_worked_at_here() -> None:
    with LocalWorkers(2) as workers:
        most_ahead(workers, 64)


@pytest.mark.slow
def test_no_more_jobs_are_taken_than_are_worked_at_on_ray(two: RayWorkers) -> None:
    most_ahead(two, BATCHES_AHEAD * 2 * BATCH_FILES)


def most_ahead(workers: Workers, bound: int) -> None:
    taken = 0

    def jobs() -> Iterator[Job]:
        nonlocal taken
        for i in range(3 * bound):
            taken += 1
            yield Job(f"{i}.txt", f"text {i}\n")

    ahead = []
    for done, prepared in enumerate(workers.prepare(jobs())):
        assert prepared.path == f"{done}.txt"
        ahead.append(taken - done)
    assert len(ahead) == 3 * bound
    assert bound // 2 < max(ahead) <= bound


def test_only_so_many_documents_are_held_at_once() -> None:
    paper = pdf_of_lines([["A page."]])
    taken = 0

    def jobs() -> Iterator[Job]:
        nonlocal taken
        for i in range(8):
            taken += 1
            yield Job(f"{i}.pdf", data=paper)

    with LocalWorkers(2, documents=POLICY) as workers:
        assert max(taken - done for done, _ in enumerate(workers.prepare(jobs()))) <= 3


def test_vectors_are_made_for_those_who_want_them() -> None:
    embedder = StaticEmbedder()
    jobs = [Job("a.txt", "zebra\n"), Job("b.txt", "giraffe\n", embed=False), Job("c.txt", "zebra\n"), Job("d.txt", "")]
    with LocalWorkers(1) as workers:
        made = prepare_batch(workers, jobs, embedder)
    assert [one.vectors is None for one in made] == [False, True, False, False]
    assert made[0].vectors == made[2].vectors
    assert made[0].vectors is not None
    assert made[0].vectors.hashes == (text_hash("zebra"),)
    assert (made[0].vectors.as_array() == embedder.embed_texts(["zebra"])).all()
    assert made[3].vectors is not None
    assert made[3].vectors.as_array().shape[0] == 0


# -- the command line


def command(folder: Path, index: Path, *flags: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "satchel", "index", str(folder), "--index-dir", str(index), *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**unmeasured(), "SATCHEL_OCR": "off", "SATCHEL_HISTORY_COMMITS": "0", **environ}, cwd=folder,
    )  # fmt: skip


@pytest.mark.slow
def test_the_command_line_on_ray_says_what_it_always_says_and_leaves_nothing_behind(
    folder: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    (folder / "pickle.py").write_text("raise SystemExit('imported from the folder')\n")
    try:
        with command(folder, tmp_path, "--on", "ray", SATCHEL_WORKERS="1") as run:
            out, err = run.communicate(timeout=HANG_SECONDS)
        assert run.returncode == 0, err
        assert out == ""
        assert all(line.startswith("satchel: ") for line in err.splitlines()), err
        assert "indexed in" in err
    finally:
        (folder / "pickle.py").unlink()
    with open_engine(folder, index_dir=str(tmp_path), ocr="off", history_commits=0) as engine:
        engine.index()
        assert content(engine) == expected


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_whoever_stops_a_run_on_ray_leaves_no_processes(folder: Path, tmp_path: Path, how: signal.Signals) -> None:
    with command(folder, tmp_path, "--on", "ray") as run:
        driver = wait_for(
            lambda: next((pid for pid in children(run.pid) if "ray.driver" in command_line(pid)), 0), "the driver"
        )
        wait_for(lambda: any("raylet" in command_line(pid) for pid in session(driver)), "a node of Ray")
        os.killpg(run.pid, how)
        _, err = run.communicate(timeout=HANG_SECONDS)
    assert "Traceback" not in err
    assert run.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)
    wait_for(lambda: not session(driver), "the end of the processes of Ray")


def status(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return ["Z", "0", "0", "0"]


def command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def pids() -> list[int]:
    return [int(place.name) for place in Path("/proc").glob("[0-9]*")]


def children(parent: int) -> list[int]:
    return [pid for pid in pids() if status(pid)[1] == str(parent)]


def session(leader: int) -> list[int]:
    return [pid for pid in pids() if status(pid)[3] == str(leader) and status(pid)[0] != "Z"]


# -- who is not there


def test_a_cluster_that_is_not_there_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = rf"127\.0\.0\.1:{port}.*no answer.*without --on"
    with (
        RayWorkers(f"ray://127.0.0.1:{port}", Tools(NO_DOCUMENTS), StaticEmbedder()) as workers,
        pytest.raises(ServerUnavailable, match=said),
    ):
        list(workers.prepare([Job("a.txt", "a\n")]))


@pytest.mark.slow
def test_one_who_answers_nothing_is_waited_for_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"ray://127.0.0.1:{silent.getsockname()[1]}"
        with (
            RayWorkers(where, Tools(NO_DOCUMENTS), StaticEmbedder(), patience=2.0) as workers,
            no_blow_up("the wait"),
            pytest.raises(ServerUnavailable, match="no message from Ray for 2 s"),
        ):
            list(workers.prepare([Job("a.txt", "a\n")]))


def test_a_worker_that_would_make_something_else_of_a_file_is_refused() -> None:
    ours = kind_here(POLICY, StaticEmbedder())
    assert what_differs("node", kind_here(POLICY, StaticEmbedder()), ours) == ""
    assert "uses the embedder stranger/1" in what_differs("node", kind_here(POLICY, Stranger()), ours)
    assert "reads documents in another way (off)" in what_differs(
        "node", kind_here(NO_DOCUMENTS, StaticEmbedder()), ours
    )
    assert "another Satchel" in what_differs("node", ours._replace(code="0"), ours)


def test_without_ray_it_is_said_how_to_get_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        open_engine(folder, index_dir=str(tmp_path), ingest_on="ray") as engine,
        pytest.raises(ExtraMissing, match=r"pip install 'satchel\[ray\]'"),
    ):
        engine.index()


def test_little_is_done_without_ray(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def a():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index"), ingest_on="ray://127.0.0.1:1") as engine:
        assert engine.index().read == 1


@pytest.mark.parametrize("where", ["ray:/x", "ray://host", "http://host:1", "ray://a b:1", "Ray"])
def test_only_ray_can_be_meant(tmp_path: Path, where: str) -> None:
    with pytest.raises(InvalidOption, match="ray://HOST:PORT"):
        open_engine(tmp_path, ingest_on=where)


def test_a_project_may_not_name_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "satchel.toml").write_text("ingest_on = 'ray://evil:1'\n")
    with pytest.raises(InvalidOption, match="may not set this"):
        open_engine(tmp_path)


# -- several writers


class Shared(EmbeddedStore):
    """A store in which several may write."""

    many_writers = True  # type: ignore[misc]


def test_two_who_index_at_once_end_with_the_same(
    folder: Path, tmp_path: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "_COMMIT_AT_FILES", 50)
    others: list[IndexReport] = []

    def in_between(step: IndexStep) -> None:
        if step.doing == "reading" and step.done == 120:
            with engine_for(folder, tmp_path, None, Shared) as other:
                others.append(other.index())

    with engine_for(folder, tmp_path, None, Shared) as engine:
        report = engine.index(in_between)
        assert content(engine) == expected
        assert engine.index().read == 0
    assert 0 < others[0].read < report.found
    assert report.read + others[0].read + 2 + 1 >= report.found


def test_what_another_read_later_is_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, index = tmp_path / "work", tmp_path / "index"
    root.mkdir()
    for i in range(40):
        (root / f"m{i:02}.py").write_text(f"def before_{i}():\n    return {i}\n")
    with engine_for(root, index, None, Shared) as engine:
        engine.index()
        for i in range(40):
            (root / f"m{i:02}.py").write_text(f"def after_{i}():\n    return {i}\n")
        (root / "m39.py").unlink()
        monkeypatch.setattr(indexer, "_COMMIT_AT_FILES", 10)

        def in_between(step: IndexStep) -> None:
            if step.doing == "reading" and step.done == 15:
                (root / "m14.py").write_text("def latest():\n    return 'read by the other'\n")
                (root / "m39.py").write_text("def back():\n    return 'is back'\n")
                with engine_for(root, index, None, Shared) as other:
                    other.index()

        engine.index(in_between)
        assert "latest" in (engine.store.text_of("m14.py", EVERYTHING) or "")
        assert "back" in (engine.store.text_of("m39.py", EVERYTHING) or "")
        assert "after_20" in (engine.store.text_of("m20.py", EVERYTHING) or "")
        assert engine.index().read == 0


def test_vectors_that_another_dropped_meanwhile_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, index = tmp_path / "work", tmp_path / "index"
    root.mkdir()
    (root / "a.txt").write_text("zebra\n")
    with engine_for(root, index, None, Shared) as engine:
        engine.index()
        (root / "a.txt").rename(root / "b.txt")
        asked = indexer.Indexer._embed

        def dropped_after(self: indexer.Indexer, batch: Any) -> None:
            asked(self, batch)
            with engine.store.write() as writer:
                writer.drop("a.txt")
            engine.store.tidy()

        monkeypatch.setattr(indexer.Indexer, "_embed", dropped_after)
        report = engine.index()
        assert report.embedded == 1
        assert with_vectors(engine.store, {"b.txt": engine.store.pieces_of("b.txt", EVERYTHING)}) == 1
