"""The store in PostgreSQL when things go wrong: real servers, processes and signals; nothing is lost, half or stale."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from queue import Queue
from random import Random
from tempfile import TemporaryFile
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import psycopg
import pytest

from satchel import Block, ContextEngine, ContextRequest, Link, LinkKind, User
from satchel.errors import (
    IndexBusy,
    IndexProblem,
    IndexTooNew,
    InvalidInput,
    InvalidOption,
    SatchelError,
    StoreUnavailable,
)
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.ports.store import Store
from satchel.storage.postgres import administration, connections
from satchel.storage.postgres.address import address_of
from satchel.storage.postgres.administration import VERSION
from satchel.storage.postgres.connections import WRITER
from satchel.storage.postgres.store import PostgresStore
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.testing.store_suite import file_of, put
from satchel.workspace.blocks import Edit, Workspace
from tests.support.effort import no_blow_up
from tests.support.places import ROOT
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.postgres_actors import EVERYTHING, SOCKET, Four, commit_pair, half_seen_at_one_moment
from tests.support.threads import together
from tests.support.waiting import HANG_SECONDS, wait_for

_NAMES = count()


# -- a server of our own, and processes beside ours


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that keeps what it was told to keep, and that we may kill."""
    with running_postgres(durable=True) as found:
        with psycopg.connect(found.url, autocommit=True) as connection:
            administration.migrate(connection, address_of(found.url))
        yield found


class Place:
    """A workspace of a test's own, whose connections go by a name of their own."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server = server
        self.name = f"faults-{next(_NAMES)}"
        self.folder = folder
        # The server trusts whoever comes through its socket: the password is there to be kept secret.
        self.url = server.url.replace("postgres:@", "postgres:hush@") + f"&workspace={self.name}"
        self.url += f"&application_name={self.name}"
        self.hasty = f"{self.url}&options=-csynchronous_commit%3Doff"

    def pids(self) -> list[int]:
        """Its connections, as the server sees them."""
        return [row[0] for row in self.ask("SELECT pid FROM pg_stat_activity WHERE application_name = %s", self.name)]

    def end(self, pids: list[int]) -> None:
        """End these connections, as an administrator can."""
        self.ask("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int4[]) AS pid", pids)

    def locks(self) -> int:
        """How many locks of ours are held by anybody."""
        return int(self.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")[0][0])

    def ask(self, statement: str, *values: object) -> list[Any]:
        """As the server's administrator."""
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def root(self) -> Path:
        """A folder for engines."""
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        return root

    @contextmanager
    def store(self, **options: Any) -> Iterator[PostgresStore]:
        """The store in this process; what it commits is of use only as long as the server runs."""
        with closing(PostgresStore(self.hasty, **options)) as store:
            yield store

    def engine(self, store: Store) -> ContextEngine:
        """An engine on it."""
        return ContextEngine(self.root(), store, Four(), max_file_bytes=1_000_000)


@pytest.fixture
def place(server: PostgresServer, tmp_path: Path) -> Place:
    return Place(server, tmp_path)


class Process:
    """A process with a store of its own, that does as it is told."""

    def __init__(self, url: str, root: Path, *, most_wait_ms: int = 0) -> None:
        self.errors = TemporaryFile()  # noqa: SIM115  closed with the process
        arguments = [url, str(root), str(most_wait_ms)]
        self.running = subprocess.Popen(
            [sys.executable, "-m", "tests.support.postgres_actors", *arguments], cwd=ROOT, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip
        self._lines: Queue[str] = Queue()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self.running.stdout is not None
        for line in self.running.stdout:
            self._lines.put(line)
        self._lines.put("")

    def tell(self, do: str, **more: object) -> None:
        """What it is to do."""
        assert self.running.stdin is not None
        self.running.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self.running.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """What it answers."""
        line = self._lines.get(timeout=HANG_SECONDS)
        if not line:
            self.errors.seek(0)
            raise AssertionError(f"the process ended: {self.errors.read()[-2000:]!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def opened(self) -> dict[str, Any]:
        """What it says when it has opened its store."""
        answer = self.hear()
        assert "opened" in answer, answer
        return answer

    def kill(self) -> None:
        """At once, with its children."""
        os.killpg(self.running.pid, signal.SIGKILL)
        self.running.wait()

    def close(self) -> None:
        """Let it end, or end it."""
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        try:
            self.running.stdin.close()
            self.running.wait(timeout=4)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.kill()
        self._thread.join()
        self.running.stdout.close()
        self.errors.close()


@contextmanager
def processes(*made: Process) -> Iterator[tuple[Process, ...]]:
    """Processes that have opened their stores; they end with the test."""
    with ExitStack() as stack:
        for one in made:
            stack.callback(one.close)
        for one in made:
            one.opened()
        yield made


def power_failure(server: PostgresServer) -> None:
    """All processes of the server at once: none is left to clean up after the others."""
    postmaster = int((server.folder / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGSTOP)
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for pid in (*map(int, children), postmaster):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (*children, postmaster)), "the end of the server")


def put_file(store: Store, path: str, *names: str) -> None:
    """One commit with one file."""
    with store.write() as writer:
        writer.settle_embedder("four", 4)
        put(writer, file_of(path, names or ("socket",)))


# -- many writers and readers


@pytest.mark.slow
def test_two_processes_write_while_ten_read_and_nothing_is_seen_half(place: Place) -> None:
    names, last = ["ann", "bob"], 5
    with place.store() as store:
        for name in names:
            commit_pair(store, name, 0)
        made = [Process(place.hasty, place.root()) for i in range(4)]
        with processes(*made) as (ann, bob, *readers):
            for reader in readers:
                reader.tell("read_pairs", names=names, last=last, threads=5)
            for writer, name in ((ann, "ann"), (bob, "bob")):
                writer.tell("write_pairs", name=name, last=last)
            written, read = [one.hear() for one in (ann, bob)], [one.hear() for one in readers]
        assert [one.get("problems") for one in read] == [[], []], read
        assert min(looks for one in read for looks in one["looks"]) >= 3
        # One after the other: each commit is a generation of its own, and there are no others.
        generations = [one for answer in written for one in answer["generations"]]
        assert len(set(generations)) == 2 * last
        assert store.generation == 2 + 2 * last + sum(answer["caught_up"] for answer in written)
        assert {f"kept/{name}/{i}.py" for name in names for i in range(last + 1)} <= set(store.files())
        assert half_seen_at_one_moment(store, names) == ""
        assert store.check() == ""


# -- a right that is taken back


class Change(NamedTuple):
    """A way in for Ann, how it is taken away again, and what brings all back to where it was."""

    what: str
    let_in: Callable[[Edit], object]
    keep_out: Callable[[Edit], object]
    undo: Callable[[Edit], object] | None = None


def _both(*changes: Callable[[Edit], None]) -> Callable[[Edit], None]:
    """One after the other."""

    def run(edit: Edit) -> None:
        for change in changes:
            change(edit)

    return run


CHANGES = (
    Change("a grant", lambda edit: edit.grant("pay", "ann"), lambda edit: edit.revoke("pay", "ann")),
    Change("a grant above", lambda edit: edit.grant("hall", "ann"), lambda edit: edit.revoke("hall", "ann")),
    Change("the default", lambda edit: edit.set_default("allow"), lambda edit: edit.set_default("deny")),
    Change(
        "a group",
        _both(lambda edit: edit.grant("pay", "group:staff"), lambda edit: edit.put_group("staff", ["ann"])),
        lambda edit: edit.put_group("staff", ["bob"]),
    ),
    Change(
        "a refusal",
        lambda edit: edit.grant("pay", "*"),
        lambda edit: edit.deny("pay", "ann"),
        _both(lambda edit: edit.revoke("pay", "*"), lambda edit: edit.revoke("pay", "ann")),
    ),
    Change(
        "a place below what is closed",
        lambda edit: edit.grant("hall", "*"),
        lambda edit: edit.move("pay", "closed"),
        _both(lambda edit: edit.move("pay", "hall"), lambda edit: edit.revoke("hall", "*")),
    ),
)


def test_what_was_revoked_is_gone_from_the_next_request_of_every_process(place: Place) -> None:
    ways = ["block", "candidates", "engine", "search", "trail"]
    made = [Process(place.hasty, place.root()) for _ in range(3)]
    with place.store() as store, processes(*made):
        workspace = Workspace(store, Four())
        with workspace.edit() as edit:
            for block in ("open", "closed", "hall"):
                title = "Salaries for all" if block == "open" else f"The {block}"
                edit.put(Block(id=block, type="page", title=title))
            edit.put(Block(id="pay", type="text", content="the salaries of the band", parent="hall"))
            edit.grant("open", "*")
            edit.set_inherits("closed", False)

        def asked() -> list[Any]:
            for one in made:
                one.tell("ask", question="what are the salaries", user="ann", block="pay")
            return [one.hear() for one in made]

        for turn in range(2 * len(CHANGES)):
            change = CHANGES[turn % len(CHANGES)]
            with workspace.edit() as edit:
                change.let_in(edit)
            answers = asked()
            if turn < len(CHANGES):
                answers = asked()
                assert all(one.get("cached") for one in answers), answers
            assert [one.get("seen") for one in answers] == [ways] * 3, (change.what, turn, answers)
            with workspace.edit() as edit:
                change.keep_out(edit)
            answers = asked()
            assert [one.get("seen") for one in answers] == [[]] * 3, (change.what, turn, answers)
            if change.undo is not None:
                with workspace.edit() as edit:
                    change.undo(edit)


# -- the server dies


@pytest.mark.slow
def test_a_server_that_is_killed_loses_nothing_that_was_committed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_READ_TIMEOUT_MS", 500)
    with place.store() as store:
        commit_pair(store, "ann", 0)  # kept with the first that comes after it
        together(5, lambda _: store.search(SOCKET, EVERYTHING, top_k=5))
        with processes(Process(place.url, place.root(), most_wait_ms=500)) as (writer,):
            writer.tell("acknowledge", name="ann", first=1)
            acknowledged = 0
            while acknowledged < 12:
                acknowledged = writer.hear()["committed"]
            power_failure(place.server)
            try:
                answer = writer.hear()
                while "committed" in answer:
                    acknowledged = answer["committed"]
                    answer = writer.hear()
                assert answer["failed"] == "StoreUnavailable", answer
                for read in (store.files, lambda: store.search(SOCKET, EVERYTHING, top_k=5)):
                    with no_blow_up("a read"), pytest.raises(StoreUnavailable) as unavailable:
                        read()
                    for said in (str(unavailable.value), answer["said"]):
                        assert "postgresql://postgres@" in said
                        assert "hush" not in said
            finally:
                place.server.start()
            wait_for(lambda: _answers(store), "an answer")
            assert half_seen_at_one_moment(store, ["ann"]) == ""
            kept = {path for path in store.files() if path.startswith("kept/")}
            # The one that was under way may have been kept, though nobody was told.
            assert {f"kept/ann/{i}.py" for i in range(acknowledged + 1)} <= kept
            assert len(kept) <= acknowledged + 2
            assert store.check() == ""
            generation = store.generation
            wait_for(lambda: _commits(writer, len(kept)), "a commit")
            assert store.generation > generation
            writer.kill()
        wait_for(lambda: _answers(store), "an answer")
        assert store.check() == ""


def _commits(writer: Process, number: int) -> bool:
    writer.tell("acknowledge", name="ann", first=number)
    return "committed" in writer.hear()


def _answers(store: PostgresStore) -> bool:
    try:
        store.search(SOCKET, EVERYTHING, top_k=5)
    except StoreUnavailable:
        return False
    return True


# -- connections are lost


@pytest.mark.parametrize("warm", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_idle_connections_that_were_ended_are_replaced_and_nobody_notices(place: Place, warm: int) -> None:
    with place.store() as store:
        put_file(store, "a.py")
        for read in (store.files, lambda: store.search(SOCKET, EVERYTHING, top_k=5)):
            _warm(store, warm)
            place.end(place.pids())
            assert read()
        _warm(store, warm)
        place.end(place.pids())
        put_file(store, "b.py")
        assert set(store.files()) == {"a.py", "b.py"}


def test_an_edit_on_an_idle_connection_that_was_ended_takes_another(place: Place) -> None:
    with place.store() as store:
        put_file(store, "a.py")
        place.end(place.pids())
        with Workspace(store, Four()).edit() as edit:
            edit.put(Block(id="a", type="text", content="socket"))
        assert store.block("a", EVERYTHING) is not None


def _warm(store: PostgresStore, connections: int) -> None:
    """Have so many connections open, and idle."""
    barrier = threading.Barrier(connections)

    def hold(_: int) -> None:
        with store.snapshot():
            barrier.wait(10)

    together(connections, hold)


@pytest.mark.parametrize("as_the_one_writer", [False, True], ids=["write", "edit"])
def test_a_connection_that_is_lost_in_a_commit_is_an_error_and_leaves_nothing(
    place: Place, as_the_one_writer: bool
) -> None:
    with place.store() as store:
        put_file(store, "a.py")
        before, locks = store.generation, place.locks()

        def commit(fails: bool) -> None:
            with ExitStack() as stack:
                if as_the_one_writer:
                    stack.enter_context(store.lock(wait=5))
                writer = stack.enter_context(store.write())
                put(writer, file_of("b.py", ["socket"]))
                if fails:
                    place.end([_pid_of(store)])
                put(writer, file_of("c.py", ["socket"]))

        with pytest.raises(StoreUnavailable):
            commit(fails=True)
        assert set(store.files()) == {"a.py"}
        assert store.generation == before
        assert place.locks() == locks
        commit(fails=False)
        assert set(store.files()) == {"a.py", "b.py", "c.py"}
        assert store.generation == before + 1
        assert store.check() == ""


def _pid_of(store: PostgresStore) -> int:
    """Who serves this thread's transaction."""
    visit = store._connections.visit
    assert visit is not None
    return visit.database.connection.info.backend_pid


def _fill(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        for i in range(30):
            parent = f"page-{i % 5}" if i >= 5 else None
            text = f"socket number {i} is retried {i * i} times by worker {i % 7}"
            edit.put(Block(id=f"page-{i}", type="page", title=f"Socket {i}", content=text, parent=parent))
        for i in range(29):
            edit.link(f"page-{i}", f"page-{i + 1}")


@contextmanager
def _ending_connections(place: Place, least: int) -> Iterator[threading.Event]:
    """Meanwhile connections of the place are ended, one here and one there; the event is set when these were enough.

    The pauses grow, so that on the slowest machine some work is done between two ends.
    """
    enough, over, chance = threading.Event(), threading.Event(), Random(4)

    def run() -> None:
        ended, longest = 0, 0.05
        with psycopg.connect(place.server.url, autocommit=True) as connection:
            while not over.is_set():
                ended += connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
                    " ORDER BY random() LIMIT 1",
                    (place.name,),
                ).rowcount
                if ended >= least:
                    enough.set()
                over.wait(chance.uniform(0.001, longest))
                longest *= 1.05

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield enough
    finally:
        over.set()
        thread.join()


def _builds(
    enough: threading.Event, hung: threading.Event, build: Callable[[int], str], right: list[str]
) -> Counter[str]:
    told: Counter[str] = Counter()
    while (not enough.is_set() or told["right"] < 2) and not hung.is_set():
        number = told.total() % len(right)
        try:
            told["right" if build(number) == right[number] else "wrong"] += 1
        except IndexProblem as error:
            told[type(error).__name__] += 1
        except Exception as error:
            told[f"raw {type(error).__module__}.{type(error).__name__}: {error}"[:200]] += 1
    return told


@pytest.mark.parametrize("kind", ["question", "request"])
def test_builds_while_connections_are_ended_are_right_or_refused(
    place: Place, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "psycopg")
    with place.store() as store:
        engine = place.engine(store)
        _fill(engine)

        def build(number: int) -> str:
            # What is known from before would need no connection.
            engine.searcher._answered.clear()
            question = f"which socket is retried by worker {number}?"
            if kind == "question":
                return engine.build(question).context
            return engine.build(ContextRequest(query=question, user=User(id="ann"))).serialized

        right = [build(number) for number in range(4)]
        hung = threading.Event()
        deadline = threading.Timer(HANG_SECONDS, hung.set)
        deadline.start()
        with _ending_connections(place, 30) as enough:
            told = sum(together(4, lambda _: _builds(enough, hung, build, right)), Counter[str]())
        deadline.cancel()
        assert set(told) <= {"right", "StoreUnavailable"}, told
        assert told["right"] >= 8, told
        assert [build(number) for number in range(4)] == right
        put_file(store, "after.py")
        wait_for(lambda: len(place.pids()) <= 17, "the end of connections")
        assert place.locks() == 0
        engine.close()
    wait_for(lambda: not place.pids(), "the end of all connections")


def test_a_connection_that_is_lost_in_a_collector_is_an_error_and_not_half_a_context(place: Place) -> None:
    with place.store() as store, ThreadPoolExecutor(1) as executor:
        engine = place.engine(store)
        _fill(engine)
        request = ContextRequest(query="which socket?", user=User(id="ann"))
        assert engine.build(request).statistics.collectors_failed == {}
        with psycopg.connect(place.server.url) as other:
            other.execute("LOCK TABLE satchel.deed IN ACCESS EXCLUSIVE MODE")
            building = executor.submit(engine.build, request)
            waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
            wait_for(lambda: place.ask(waiting, place.name), "a collector that waits")
            place.end([row[0] for row in place.ask(waiting, place.name)])
        with pytest.raises(StoreUnavailable):
            building.result()
        assert engine.build(request).statistics.collectors_failed == {}
        engine.close()


# -- a writer dies


@pytest.mark.parametrize(
    "how",
    [
        "between statements",
        pytest.param("in a statement"),
    ],
)
def test_when_a_writer_is_killed_in_its_commit_the_others_go_on_at_once(place: Place, how: str) -> None:
    # What the writer is at takes longer than the patience of the others: only the end of its transaction helps them.
    with place.store(patience=HANG_SECONDS) as store, processes(Process(place.hasty, place.root())) as (writer,):
        put_file(store, "a.py")
        writer.tell("hold", how=how)
        pid = writer.hear()["pid"]
        if how == "in a statement":
            busy = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND query ~ 'sleep'"
            wait_for(lambda: place.ask(busy, pid), "a statement that runs")
        writer.kill()
        try:
            put_file(store, "b.py")
        finally:
            place.end([pid])
        assert set(store.files()) == {"a.py", "b.py"}
        assert store.block("left-held", EVERYTHING) is None
        assert store.generation == 2
        assert store.check() == ""


# -- what takes too long


def test_whoever_waits_too_long_for_another_writer_is_told_so(place: Place) -> None:
    with place.store() as store, place.store(patience=0.3) as other, store.lock(), no_blow_up("the wait"):
        with pytest.raises(IndexBusy):
            put_file(other, "a.py")
        with pytest.raises(IndexBusy), other.lock(wait=0.3):
            pass
        put_file(store, "a.py")
        assert set(other.files()) == {"a.py"}


def test_commits_stay_in_a_row_when_the_connection_with_the_lock_is_lost(place: Place) -> None:
    with place.store() as store, place.store() as other:
        with store.lock():
            locked = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
            assert place.ask(locked) == [(True,)]
            put_file(store, "a.py")
            put_file(other, "b.py")
            put_file(store, "c.py")
        assert store.generation == 3
        with store.lock():
            put_file(store, "d.py")
        assert set(other.files()) == {"a.py", "b.py", "c.py", "d.py"}


def test_whoever_has_patience_waits_for_another_writer(place: Place) -> None:
    with place.store() as store, place.store(patience=HANG_SECONDS) as other, ThreadPoolExecutor(1) as executor:
        with store.lock():
            writing = executor.submit(put_file, other, "a.py")
            waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND wait_event = 'advisory'"
            wait_for(lambda: place.ask(waiting, place.name), "a writer that waits")
            assert not writing.done()
        writing.result(HANG_SECONDS)
        assert set(store.files()) == {"a.py"}


def test_a_statement_that_takes_too_long_is_stopped_and_said_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_READ_TIMEOUT_MS", 400)
    monkeypatch.setattr(connections, "_WRITE_TIMEOUT_MS", 400)
    with place.store() as store:
        put_file(store, "a.py")
        assert store.search(SOCKET, EVERYTHING, top_k=5)
        with psycopg.connect(place.server.url) as other:
            other.execute("LOCK TABLE satchel.file, satchel.posting IN ACCESS EXCLUSIVE MODE")
            for action in (
                store.files,
                lambda: store.search(SOCKET, EVERYTHING, top_k=5),
                lambda: store.pieces_of("a.py", EVERYTHING),
                lambda: put_file(store, "b.py"),
            ):
                with no_blow_up("a statement"), pytest.raises(StoreUnavailable, match="too long"):
                    action()
        assert set(store.files()) == {"a.py"}
        put_file(store, "b.py")
        assert len({one.file for one in store.search(SOCKET, EVERYTHING, top_k=5)}) == 2


def test_a_transaction_that_was_idle_for_too_long_is_over_with_a_clear_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_IDLE_TIMEOUT_MS", 200)
    with place.store() as store:
        put_file(store, "a.py")

        def commit() -> None:
            with store.write() as writer:
                put(writer, file_of("b.py", ["socket"]))
                pid = _pid_of(store)
                wait_for(lambda: pid not in place.pids(), "the end of the idle connection")
                put(writer, file_of("c.py", ["socket"]))

        with pytest.raises(StoreUnavailable):
            commit()
        assert set(store.files()) == {"a.py"}
        put_file(store, "b.py")


def test_a_time_limit_in_the_address_holds(place: Place) -> None:
    url = f"{place.url}&options=-cstatement_timeout%3D300"
    with closing(PostgresStore(url)) as store:
        put_file(store, "a.py")
        with store._connections.transaction(WRITER) as visit:
            assert visit.database.execute("SELECT current_setting('statement_timeout')").fetchall() == [("300ms",)]
        with psycopg.connect(place.server.url) as other:
            other.execute("LOCK TABLE satchel.file IN ACCESS EXCLUSIVE MODE")
            with no_blow_up("a statement"), pytest.raises(StoreUnavailable, match="too long"):
                store.files()


# -- what a caller catches


def test_a_commit_in_which_a_refusal_was_caught_is_whole_or_refused(place: Place) -> None:
    """What was said before the refusal must not be dropped without a word."""
    with place.store() as store:
        workspace = Workspace(store, Four())
        with workspace.edit() as edit:
            edit.put(Block(id="a", type="text", content="socket"))
        hostile = "".join(Random(1).choices("αβγδεζηθικλμνξοπρστυφχψω", k=2000))
        try:
            with store.write() as writer:
                writer.set_fact("told", "yes")
                with suppress(InvalidInput):
                    writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, target=hostile))
        except SatchelError:
            return
        assert store.fact("told") == "yes"


# -- migrations


@contextmanager
def _database(server: PostgresServer) -> Iterator[str]:
    """An empty database, until the end."""
    name = f"faults_{next(_NAMES)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield server.url.replace("/postgres?", f"/{name}?")
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _version(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        return administration.version_of(connection)


def _at_version_1(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, psycopg.connect(url, autocommit=True) as connection:
        patch.setattr(administration, "VERSION", 1)
        administration.migrate(connection, address_of(url))
    assert _version(url) == 1


def _invalid_indexes(url: str) -> list[str]:
    statement = (
        "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE relnamespace = 'satchel'::regnamespace AND NOT (indisvalid AND indisready)"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        return [row[0] for row in connection.execute(statement)]


def test_ten_who_open_an_empty_database_at_once_all_get_in(server: PostgresServer, tmp_path: Path) -> None:
    with _database(server) as url:
        made = [Process(f"{url}&workspace=w{i % 2}", tmp_path) for i in range(4)]
        with ExitStack() as stack:
            for one in made:
                stack.callback(one.close)
            stores = together(6, lambda i: PostgresStore(f"{url}&workspace=w{i % 2}"))
            for one in stores:
                stack.callback(getattr(one, "close", lambda: None))
            assert [str(one) for one in stores if isinstance(one, Exception)] == []
            assert [one.hear() for one in made] == [{"opened": 0}] * 4
            for store in stores[:2]:
                put_file(store, "a.py")
                assert store.search(SOCKET, EVERYTHING, top_k=5)
        assert _version(url) == VERSION
        assert _invalid_indexes(url) == []


def test_a_database_is_brought_up_while_others_read_and_write(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _database(server) as url, ExitStack() as stack:
        _at_version_1(url, monkeypatch)
        with monkeypatch.context() as patch:
            patch.setattr(connections, "VERSION", 1)
            old = [stack.enter_context(closing(PostgresStore(url))) for _ in range(2)]
        put_file(old[0], "0.py")
        over = threading.Event()

        def write(_: int) -> int:
            number = 1
            while not over.is_set():
                put_file(old[0], f"{number}.py")
                number += 1
            return number

        def read(_: int) -> int:
            looks = 0
            while not over.is_set():
                files = len(old[1].files())
                assert len({one.file for one in old[1].search(SOCKET, EVERYTHING, top_k=500)}) >= files
                looks += 1
            return looks

        def bring_up(_: int) -> int:
            try:
                with closing(PostgresStore(url)) as store:
                    return store.generation
            finally:
                over.set()

        told = together(3, lambda i: (write, read, bring_up)[i](i))
        assert [one for one in told if isinstance(one, Exception)] == []
        assert _version(url) == VERSION
        assert _invalid_indexes(url) == []
        assert len(old[1].files()) == told[0]
        assert old[1].check() == ""


def test_an_index_whose_making_was_interrupted_is_made_again(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _database(server) as url:
        _at_version_1(url, monkeypatch)
        with psycopg.connect(url) as old:
            # Whoever still looks at the past is waited for.
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT count(*) FROM satchel.dense")
            with ThreadPoolExecutor(1) as executor:
                opening = executor.submit(PostgresStore, url)
                building = "SELECT pid FROM pg_stat_activity WHERE query ~ '^CREATE INDEX' AND wait_event_type = 'Lock'"
                with psycopg.connect(url, autocommit=True) as administrator:
                    wait_for(lambda: administrator.execute(building).fetchone() is not None, "an index that waits")
                    administrator.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM ({building}) AS b".encode())
                with pytest.raises(IndexProblem):
                    opening.result()
        assert _invalid_indexes(url)
        PostgresStore(url).close()
        assert _version(url) == VERSION
        assert _invalid_indexes(url) == []


def test_a_database_of_a_newer_version_is_refused(server: PostgresServer) -> None:
    with _database(server) as url:
        PostgresStore(url).close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE satchel.schema_version SET version = 999")
        with pytest.raises(IndexTooNew, match="999"):
            PostgresStore(url)
        with pytest.raises(IndexTooNew), psycopg.connect(url, autocommit=True) as connection:
            administration.migrate(connection, address_of(url))


def test_a_pgvector_that_is_missing_or_too_old_is_named(server: PostgresServer) -> None:
    with _database(server) as url:
        PostgresStore(url).close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
            with pytest.raises(StoreUnavailable, match=r"pgvector 0\.7\.4 is too old; 0\.8 or newer"):
                PostgresStore(url)
            connection.execute("DROP EXTENSION vector CASCADE")
        with pytest.raises(StoreUnavailable, match="pgvector is missing"):
            PostgresStore(url)


@contextmanager
def _login(server: PostgresServer, url: str) -> Iterator[tuple[str, str]]:
    """Somebody who may log in and do nothing else: the name, and the address."""
    name = f"login_{next(_NAMES)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            yield name, url.replace("postgres:@", f"{name}:hush@")
        finally:
            connection.execute(f"DROP ROLE {name}".encode())


def test_a_login_that_may_do_nothing_is_told_what_an_administrator_has_to_run(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _database(server) as url, _login(server, url) as (name, address):
        told = []
        for version in range(VERSION + 1):
            if version == 1:
                _at_version_1(url, monkeypatch)
            elif version:
                PostgresStore(url).close()
            with pytest.raises(IndexProblem) as refused:
                PostgresStore(address)
            told.append(str(refused.value))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE satchel.schema_version SET version = 1")
            administration.let_in(connection, name)
        with pytest.raises(IndexProblem) as refused:
            PostgresStore(address)
        told.append(str(refused.value))
        assert [one for one in told if "satchel postgres setup" not in one] == []
        assert not any("hush" in one for one in told)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"REVOKE satchel_reader, satchel_writer FROM {name}".encode())


def test_a_login_that_was_let_in_can_do_everything_but_change_the_tables(server: PostgresServer) -> None:
    with _database(server) as url, _login(server, url) as (name, address):
        with psycopg.connect(url, autocommit=True) as connection:
            administration.migrate(connection, address_of(url))
            administration.let_in(connection, name)
        with closing(PostgresStore(address)) as store:
            with Workspace(store, Four()).edit() as edit:
                edit.put(Block(id="a", type="text", content="socket"))
                edit.grant("a", "ann")
            put_file(store, "a.py")
            store.catch_up()
            store.tidy()
            assert store.search(SOCKET, Filters(readers=frozenset({"user:ann"})), top_k=5)
            assert store.facts().files == 1
            assert store.check() == ""
            assert len(list(store.records())) > 1
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in (
                "CREATE TABLE satchel.mine (a int)",
                "DROP TABLE satchel.file",
                "ALTER TABLE satchel.file DISABLE ROW LEVEL SECURITY",
                "DROP POLICY reader ON satchel.file",
                "UPDATE satchel.schema_version SET version = 1",
                "CREATE OR REPLACE FUNCTION satchel.here() RETURNS bigint LANGUAGE sql RETURN 1",
                "SET ROLE satchel_owner",
            ):
                for role in (name, "satchel_writer", "satchel_reader"):
                    connection.execute(f"SET ROLE {role}".encode())
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(statement.encode())
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"REVOKE satchel_reader, satchel_writer FROM {name}".encode())


# -- many threads, and children


def test_fifty_threads_that_ask_at_once_are_all_answered(place: Place) -> None:
    with place.store() as store:
        put_file(store, "a.py")
        found = together(50, lambda _: [len(store.search(SOCKET, EVERYTHING, top_k=5)) for _ in range(3)])
        assert found == [[1, 1, 1]] * 50
        assert len(place.pids()) <= 16


def test_a_store_that_is_closed_while_threads_ask_refuses_them_and_ends(place: Place) -> None:
    with place.store() as store:
        put_file(store, "a.py")
        begun = threading.Barrier(9)

        def ask(_: int) -> Exception | None:
            begun.wait()
            for _ in range(10_000):
                try:
                    assert store.search(SOCKET, EVERYTHING, top_k=5)
                    assert store.files()
                except Exception as error:
                    return error
            return None

        def close(_: int) -> None:
            begun.wait()
            store.close()

        *told, _ = together(9, lambda i: (close if i == 8 else ask)(i))
        assert {type(one) for one in told} == {StoreUnavailable}, told
        with pytest.raises(StoreUnavailable, match="closed"):
            store.files()
        wait_for(lambda: not place.pids(), "the end of all connections")


def test_a_child_of_a_process_does_not_get_in_the_way_of_its_connections(place: Place) -> None:
    with place.store() as store:
        put_file(store, "a.py")
        with processes(Process(place.hasty, place.root())) as (parent,):
            parent.tell("fork")
            told = parent.hear()
        assert told["before"] == ["a.py"]
        assert told["parent"] == [["a.py"]] * 25
        # Either it has connections of its own, or it is told that it has none.
        for one in told["child"]:
            assert one == ["a.py"] or str(one).startswith("StoreUnavailable")


# -- hostile values: what the embedded store does with them is done here too, or it is refused

NASTY = "a\0b%_?\\'\"{},;--$1:%s{0}\n"
LONE = "a\ud800b\udcffc"
LETTERS = "".join(Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=12_000))
SIGNS = "".join(map(chr, Random(7).choices(range(0x4E00, 0x9FA5), k=12_000)))
"""Three bytes each, and nothing in them that could be packed more tightly."""
HUGE = 2**70
ODD_NAMES = ("a,b", "{c}", 'd"', "e\\", "f'", "%s", "NULL")
AT = datetime(2026, 11, 16, tzinfo=UTC)
ANN = Filters(readers=frozenset({"user:ann", "*"}))


def _kept_blocks(*blocks: Block) -> Callable[[Store], Any]:
    def run(store: Store) -> Any:
        with Workspace(store, Four()).edit() as edit:
            for block in blocks:
                edit.put(block)
        ids = [block.id for block in blocks]
        found = store.blocks(ids, EVERYTHING)
        hits = {one.file for one in store.search(SOCKET, EVERYTHING, top_k=10)}
        return [found.get(one) for one in ids], store.trails(ids, EVERYTHING), len(hits), _children(store, ids)

    return run


def _children(store: Store, ids: list[str]) -> list[list[str]]:
    return [[child.id for child in store.children([one], EVERYTHING, limit=5).get(one, [])] for one in ids]


def _kept_file(path: str, **changes: Any) -> Callable[[Store], Any]:
    readers = changes.pop("readers", None)
    state = changes.pop("state", {})

    def run(store: Store) -> Any:
        file = file_of(path, ["socket"], calls=["other"])
        block = file.outline.blocks[0]._replace(**changes)
        outline = file.outline._replace(blocks=(block,))
        file = file._replace(outline=outline, readers=readers, state=file.state._replace(**state))
        with store.write() as writer:
            writer.settle_embedder("four", 4)
            put(writer, file)
        store.catch_up()
        filters = Filters(readers=frozenset(readers)) if readers else EVERYTHING
        found = store.search(StoreQuery(terms={"socket": 1.0}, names=(block.name,)), filters, top_k=5)
        return (
            store.paths([one.file for one in found], filters).values(), store.text_of(path, filters), store.files(),
            [(one.id, one.title, one.signature) for one in store.blocks_of(path, filters)],
            [piece.block for piece in store.pieces_of(path, filters)],
            [link.name for link in store.links_from([path], filters).get(path, [])],
        )  # fmt: skip

    return run


def _edited(change: Callable[[Edit], object], look: Callable[[Store], Any]) -> Callable[[Store], Any]:
    def run(store: Store) -> Any:
        with Workspace(store, Four()).edit() as edit:
            for name in ("one", "two"):
                edit.put(Block(id=name, type="text", title=name, content="socket"))
            change(edit)
        return look(store)

    return run


def _found(query: StoreQuery, filters: Filters = ANN) -> Callable[[Store], Any]:
    return lambda store: sorted(_names(store, query, filters))


def _names(store: Store, query: StoreQuery, filters: Filters) -> list[str]:
    files = [one.file for one in store.search(query, filters, top_k=5)]
    return [*store.paths(files, filters).values(), *store.titles(files, filters).values()]


def _as_reader(*names: str) -> Callable[[Store], Any]:
    filters = Filters(readers=frozenset(names))
    return lambda store: (sorted(_names(store, SOCKET, filters)), store.block("one", filters))


WRITTEN: dict[str, Callable[[Store], Any]] = {
    "text of a block": _kept_blocks(
        Block(id="a", type="text", title=NASTY, content=f"socket {NASTY}", summary=NASTY, source_path=NASTY),
        Block(id="b", type="text", title=LONE, content=f"socket {LONE}", summary=LONE, source_path=LONE),
        Block(id="c", type="text", title="", content=""),
    ),
    "ids": _kept_blocks(
        Block(id=NASTY, type="text", content="socket"),
        Block(id="b\udcff", type="text", content="socket", parent=NASTY),
        Block(id="%", type="text", content="socket", parent="b\udcff"),
    ),
    "a lone id": _kept_blocks(Block(id="\ud800", type="text")),
    "an empty id": _kept_blocks(Block(id="", type="text")),
    "a parent that is not there": _kept_blocks(Block(id="a", type="text", content="socket", parent=NASTY)),
    "long ids": _kept_blocks(
        Block(id=LETTERS[:2000], type="text", content="socket"),
        Block(id="b", type="text", content="socket", parent=LETTERS[:2000]),
    ),
    "an id too long": _kept_blocks(Block(id=LETTERS[:2001], type="text")),
    "a long id of signs": _kept_blocks(Block(id=SIGNS[:2000], type="text", content="socket")),
    "a long parent of signs": _kept_blocks(Block(id="a", type="text", content="socket", parent=SIGNS[:2000])),
    "long names": _kept_blocks(
        Block(id="a", type="text", title=SIGNS[:10_000], content="socket", summary=SIGNS, source_path=SIGNS)
    ),
    "metadata": _kept_blocks(
        Block(id="a", type="text", content="socket", metadata={NASTY: NASTY, LONE: LONE, "n": HUGE, "due": NASTY}),
    ),
    "far away": _kept_blocks(
        Block(id="a", type="text", content="socket", position=1e308, last_modified=datetime.max.replace(tzinfo=UTC)),
        Block(id="b", type="text", content="socket", position=-1e308, last_modified=datetime.min.replace(tzinfo=UTC)),
    ),
    "a huge position": _kept_blocks(Block(id="a", type="text", position=HUGE**9)),
    "a huge line": _kept_blocks(Block(id="a", type="text", start_line=HUGE)),
    "a hostile type": _kept_blocks(Block(id="a", type=NASTY, content="socket")),
    "a path": _kept_file(f"d/{NASTY}/\udcff.py".replace("\0", "")),
    "a path with NUL": _kept_file("d/a\0b.py"),
    "an empty path": _kept_file(""),
    "a long path": _kept_file("/".join(LETTERS[i : i + 200] for i in range(0, 4_000, 200))),
    "names in a file": _kept_file("a.py", name=NASTY, qualified=NASTY, signature=NASTY, doc=NASTY),
    "lone names in a file": _kept_file("a.py", name=LONE, qualified=LONE, signature=LONE, doc=LONE),
    "long names in a file": _kept_file("a.py", name=SIGNS, qualified=SIGNS, signature=SIGNS, doc=SIGNS),
    "a huge size": _kept_file("a.py", state={"size": HUGE}),
    "a negative time": _kept_file("a.py", state={"modified_ns": -(2**62)}),
    "readers of a file": _kept_file("a.py", readers=("a,b", "{c}", 'd"', "e\\", "f'", "%s", "", "NULL", "@")),
    "readers with NUL": _kept_file("a.py", readers=("a\0b",)),
    "lone readers": _kept_file("a.py", readers=("a\ud800",)),
    "no readers": _kept_file("a.py", readers=()),
    "long readers": _kept_file("a.py", readers=(SIGNS, LETTERS)),
    "a link": _edited(
        lambda edit: edit.link("one", "two", name=NASTY), lambda s: s.links_from(["one"], EVERYTHING).get("one", [])
    ),
    "a link to nothing": _edited(
        lambda edit: edit.link("one", NASTY),
        lambda s: (s.links_from(["one"], EVERYTHING).get("one", []), len(list(s.records()))),
    ),
    "a link to afar": _edited(lambda edit: edit.link("one", SIGNS[:2000]), lambda s: len(list(s.records()))),
    "a deed": _edited(
        _both(lambda edit: edit.record(NASTY, NASTY, "one", AT), lambda edit: edit.record(LONE, LONE, "one", AT)),
        lambda s: (s.recent(EVERYTHING), s.recent(EVERYTHING, actor=NASTY), s.recent(EVERYTHING, actions=[NASTY])),
    ),
    "a long deed": _edited(lambda edit: edit.record(SIGNS, SIGNS, "one", AT), lambda s: len(s.recent(EVERYTHING))),
    "a hostile grant": _edited(
        _both(*(partial(Edit.grant, block_id="one", principal=f"user:{name}") for name in ODD_NAMES)),
        lambda s: [_names(s, SOCKET, Filters(readers=frozenset({f"user:{name}"}))) for name in (*ODD_NAMES, "a")],
    ),
    "a grant with NUL": _edited(lambda edit: edit.grant("one", "user:a\0b"), lambda _: None),
    "a lone grant": _edited(lambda edit: edit.grant("one", "user:a\ud800"), lambda _: None),
    "a group": _edited(
        lambda edit: edit.put_group("{a},'\"\\%", ["x,y", '"', "%s"]),
        lambda s: [sorted(s.groups_of(one)) for one in ("x,y", '"', "%s", "x")],
    ),
    "a fact": _edited(lambda edit: edit.set_fact("it's\0", NASTY), lambda s: s.fact("it's\0")),
    "a lone fact": _edited(lambda edit: edit.set_fact("a", LONE), lambda s: s.fact("a")),
}

ASKED: dict[str, Callable[[Store], Any]] = {
    "words": _found(StoreQuery(terms={NASTY: 1.0, LONE: 2.0, "": 1.0, "socket": 1.0})),
    "names": _found(StoreQuery(names=(NASTY, LONE, "", ".", "::", "%", "socket", SIGNS))),
    "nothing": _found(StoreQuery()),
    "no vector": _found(StoreQuery(vector=np.zeros(4, np.float32))),
    "no number": _found(StoreQuery(vector=np.array([np.nan, np.inf, 0, 1], np.float32))),
    "another vector": _found(StoreQuery(vector=np.ones(7, np.float32))),
    "filters": _found(
        SOCKET, replace(ANN, languages=(NASTY,), types=(NASTY,), patterns=("%", "'", "\\", "[", "a?.py"))
    ),
    "lone filters": _found(SOCKET, replace(ANN, languages=(LONE,))),
    "lone types": _found(SOCKET, replace(ANN, types=(LONE,))),
    "the end of time": _found(SOCKET, replace(ANN, modified_before=datetime.max.replace(tzinfo=UTC))),
    "the beginning of time": _found(SOCKET, replace(ANN, modified_after=datetime.min.replace(tzinfo=UTC))),
    "readers": _as_reader("user:ann", "a,b", "{c}", 'd"', "e\\", "f'", "%s", "", "NULL", "\n"),
    "readers that are NUL": _as_reader("user:ann", "a\0b"),
    "readers that are lone": _as_reader("user:ann", "a\ud800"),
    "a reader of no name": _as_reader(""),
    "groups of NUL": (lambda store: store.groups_of("a\0b")),
    "groups of a lone one": (lambda store: store.groups_of("a\ud800")),
    "what is asked for": (
        lambda store: (
            store.blocks([NASTY, "", "%", "x" * 5000, "a.py#" + NASTY], ANN),
            store.text_of(NASTY, ANN),
            store.pieces_of("%", ANN),
            store.blocks_from(NASTY),
            store.fact(NASTY),
            store.paths([], ANN),
            store.links_to([NASTY], ANN).get(NASTY, []),
            store.recent(ANN, actor=NASTY, actions=[NASTY]),
            store.paths_of(b"", ANN),
            store.titles([], ANN),
            store.pieces([], ANN),
        )
    ),
    "lone things asked for": (lambda store: store.blocks(["\ud800", "\udcff", "a.py#\ud800"], ANN)),
    "a lone path": (lambda store: store.text_of("\ud800", ANN)),
    "a lone actor": (lambda store: store.recent(ANN, actor=LONE)),
    "huge numbers": (lambda store: (store.pieces([HUGE], ANN), store.paths([HUGE], ANN))),
    "huge limits": (lambda store: len(store.recent(ANN, limit=2**62))),
    "no limit": (lambda store: (store.recent(ANN, limit=0), store.children(["one"], ANN, limit=-1).get("one", []))),
    "nothing of a search": (lambda store: store.search(SOCKET, ANN, top_k=0)),
}


def _outcome(action: Callable[[Store], Any], store: Store) -> tuple[str, str]:
    try:
        given = action(store)
    except SatchelError as error:
        return "refused", type(error).__name__
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    # PostgreSQL's texts have no place for NUL: it becomes what stands for any such character.
    return "gave", repr(given).replace("\\x00", "\ufffd")


RAW = {
    "lone names in a file": "the embedded store takes such a question for damage, and forgets its arrays",
    "names": "the embedded store takes such a question for damage, and forgets its arrays",
    "no number": "NaN is cast to a number",
}


def _cases(names: Iterable[str]) -> list[Any]:
    return [pytest.param(one) if one in RAW else one for one in names]


def _as_in_the_embedded_store(action: Callable[[Store], Any], ours: Store, theirs: Store) -> None:
    here, there = _outcome(action, ours), _outcome(action, theirs)
    assert here[0] != "failed" or there[0] == "failed", here
    assert here == there or here == ("refused", "InvalidInput") or there[0] == "failed", (here, there)


@pytest.mark.parametrize("name", _cases(WRITTEN))
def test_hostile_values_are_kept_as_in_the_embedded_store(place: Place, name: str) -> None:
    with place.store() as store, closing(EmbeddedStore(place.folder / "index")) as embedded:
        _as_in_the_embedded_store(WRITTEN[name], store, embedded)
        # Whatever it was, it is over.
        put_file(store, "after.py", "afterwards")
        assert "after.py" in store.files()
        assert store.check() == ""


@pytest.fixture(scope="module")
def filled(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """The same in both stores."""
    place = Place(server, tmp_path_factory.mktemp("filled"))
    with place.store() as store, closing(EmbeddedStore(place.folder / "index")) as embedded:
        for one in (store, embedded):
            put_file(one, "a.py")
            with Workspace(one, Four()).edit() as edit:
                edit.set_default("allow")
                edit.put(Block(id="one", type="text", title="one", content="socket"))
                edit.put(Block(id="two", type="text", title="two", content="socket"))
                edit.set_inherits("one", False)
                edit.grant("one", "ann")
        yield store, embedded


@pytest.mark.parametrize("name", _cases(ASKED))
def test_hostile_questions_are_answered_as_in_the_embedded_store(filled: tuple[Store, Store], name: str) -> None:
    try:
        _as_in_the_embedded_store(ASKED[name], *filled)
    finally:
        filled[1].catch_up()  # it may have taken what was wrong with the question for something wrong with itself


def test_a_workspace_may_be_called_anything_that_can_be_printed(server: PostgresServer) -> None:
    names = ['it\'s "mine"; DROP TABLE x; --', "%s %(a)s {0}", "\\", "\U0001f600" * 200]
    for name in names:
        for text in ("a.py", "b.py"):
            with closing(PostgresStore(f"{server.url}&workspace={quote(name)}")) as store:
                put_file(store, text)
        with closing(PostgresStore(f"{server.url}&workspace={quote(name)}")) as store:
            assert set(store.files()) == {"a.py", "b.py"}
    for refused in ("", " ", "a\0b", "a\nb", "x" * 201):
        with pytest.raises(InvalidOption):
            PostgresStore(f"{server.url}&workspace={quote(refused)}")


@pytest.mark.parametrize("option", ["options=-c%20statement_timeout%3D60000", "application_name=a%2Bb%20c"])
def test_what_an_address_says_reaches_the_server_as_it_was_said(server: PostgresServer, option: str) -> None:
    with closing(PostgresStore(f"{server.url}&workspace=address&{option}")) as store:
        assert store.files() == {}
        with store._connections.checked_out() as connection:
            parameters = connection.info.get_parameters()
    name, _, value = option.partition("=")
    assert parameters[name] == unquote(value)


@pytest.mark.parametrize("wrong", ["postgresql://u:hu%20sh@h/x?nonsense=1", "postgresql://u:hu sh@h/x"])
def test_an_address_that_is_none_is_refused_without_its_password(wrong: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        PostgresStore(wrong)
    assert "hu" not in str(refused.value).replace("must be a URL", "")
