"""The process with the connection to Ray, controlled by a parent process over stdin and stdout.

Ray's driver takes over signals, prints, lets workers import from the folder it was started in, and listens. So it
runs in a separate process, in no particular folder, which ends with its parent process. Batches of jobs arrive on its
stdin as bytes and go to actors; the prepared files go out on its stdout. A batch whose actor died is given to another
actor, a bounded number of times.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from satchel.indexing.child_process import decode, encode, receive, send
from satchel.indexing.walk import can_read_documents, way_of_reading
from satchel.indexing.work import LocalWorkers, Tools, prepare_batch
from satchel.ports.workers import Job

if TYPE_CHECKING:
    from satchel.indexing.walk import DocumentPolicy
    from satchel.ports.embedder import Embedder


_SATCHEL: Final = Path(__file__).resolve().parents[2]
# The parts of Satchel that determine how a file is prepared.
_PREPARING_CODE: Final = ("indexing", "models", "text", "ports/workers.py")


class WorkerFingerprint(NamedTuple):
    """Fingerprint of code, document reader and embedder: workers with an equal fingerprint prepare files equally."""

    code: str
    """Hash of Satchel's code and the Python version."""
    reading: str
    """How documents are read."""
    embedder: str
    """Name and dimensions of the embedder; empty without an embedder."""


def kind_here(documents: DocumentPolicy, embedder: Embedder | None) -> WorkerFingerprint:
    """The fingerprint of this process."""
    code = blake2b(f"{sys.version_info[:2]}".encode(), digest_size=16)
    for place in _PREPARING_CODE:
        path = _SATCHEL / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            code.update(file.relative_to(_SATCHEL).as_posix().encode() + b"\0" + file.read_bytes())
    cannot_read = documents.extensions and not can_read_documents()
    reading = "not at all" if cannot_read else way_of_reading(documents)
    made_by = f"{embedder.name}, {embedder.dimensions} dimensions" if embedder is not None else ""
    return WorkerFingerprint(code.hexdigest(), reading, made_by)


def what_differs(host: str, there: WorkerFingerprint, here: WorkerFingerprint) -> str:
    """The reason why a worker would prepare files differently from this machine; empty if there is none."""
    if there.code != here.code:
        return f"the worker on {host} runs another Satchel or Python than this one; install the same there"
    if there.reading != here.reading:
        return (
            f"the worker on {host} reads documents in another way ({there.reading}) than this machine "
            f"({here.reading}); install the same extras and programs there"
        )
    if there.embedder != here.embedder:
        return f"the worker on {host} uses the embedder {there.embedder}, but this machine uses {here.embedder}"
    return ""


class Preparer:
    """A Ray worker (actor) with a process for parsing and a process for documents."""

    def __init__(self, tools: bytes) -> None:
        self._tools = tools
        self._workers: LocalWorkers | None = None
        self._embedder: Embedder | None = None

    def hello(self) -> tuple[str, int, tuple[str, ...]]:
        """Start the worker; returns host name, process id and fingerprint."""
        tools = decode(self._tools, Tools)
        self._workers = LocalWorkers(1, documents=tools.documents)
        make_embedder = resolve_name(tools.embedder_maker) if tools.embedder_maker else None
        self._embedder = make_embedder(tools.embedder_name) if make_embedder is not None else None
        return socket.gethostname(), os.getpid(), tuple(kind_here(tools.documents, self._embedder))

    def prepare(self, batch: bytes) -> bytes:
        """The prepared files of a batch of jobs, encoded."""
        assert self._workers is not None
        return encode(prepare_batch(self._workers, decode(batch, list[Job]), self._embedder))


_MAX_BATCH_TRIES: Final = 3  # on different workers; then the parent process prepares the batch itself (decision 0038)
_MAX_ACTOR_BATCHES: Final = 2  # a running and a waiting batch keep an actor busy; more would be repeated if it dies
_CONNECT_TIMEOUT_SECONDS: Final = 5.0  # tested before `ray.init`, to report an unreachable cluster quickly
_READY_TIMEOUT_SECONDS: Final = 60.0  # a cluster without a free CPU is an error and no endless wait (docs/ray.md)
_TICK_SECONDS: Final = 5.0  # several times in the parent's limit for silence (`workers._SILENCE_SECONDS`)
_END_SECONDS: Final = 8.0  # less than the parent waits (`workers._END_SECONDS`) before it kills the driver
_POLL_SECONDS: Final = 0.01  # between looks for processes that are still alive: shorter pauses only use CPU
# Ray's default is a share of the machine's memory; a batch is about 0.25 MB or a document.
_OBJECT_STORE_BYTES: Final = 512 << 20
_MAX_WORKERS: Final = 64  # if the user names no number: a run does not take a whole cluster (docs/ray.md)
_MAX_ORDER_BYTES: Final = 1 << 32  # orders come from the trusted parent process; a larger size means a garbled stream


class Order(NamedTuple):
    """The first message to the driver: address, workers, folder and tools."""

    address: str
    """`ray` for this machine, `ray://HOST:PORT` for a cluster."""
    workers: int
    """Number of workers; 0 for as many as there are CPUs."""
    folder: str
    """Folder for the files of a Ray of our own."""
    tools: bytes
    kind: WorkerFingerprint
    """The fingerprint every worker must have."""

    @property
    def is_for_us_alone(self) -> bool:
        """True if this Ray is started and ended by the driver."""
        return self.address == "ray"


class Batch(NamedTuple):
    """Encoded jobs for a worker, and their time limit in seconds."""

    number: int
    seconds: float
    jobs: bytes


class DriverReport(NamedTuple):
    """A message from the driver: `event` names the type, `number` the batch, process or count of workers."""

    event: str
    number: int = 0
    text: str = ""
    data: bytes = b""


@dataclass(slots=True, eq=False)
class _Task:
    batch: Batch
    tries: int = 0


@dataclass(slots=True, eq=False)
class _Actor:
    handle: Any
    is_ready: bool = False
    tasks: deque[_Task] = field(default_factory=deque)
    since: float = 0.0


class _Failed(Exception):
    """The driver cannot continue; the text is the reason."""


def serve() -> None:
    """Main function of the driver: read an order, then batches, until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles interrupts
    # Keep Ray's output and input apart from the messages on our stdin and stdout.
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    order = receive(orders, Order, _MAX_ORDER_BYTES)
    events: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    threading.Thread(target=_listen, args=(orders, events, order), daemon=True).start()
    ray: Any = import_module("ray")
    with suppress(BrokenPipeError):
        try:
            _connect(ray, order)
            _Pool(ray, order, events, answers).run()
        except _Failed as failure:
            send(answers, DriverReport("failed", text=str(failure)))
        except Exception as error:
            send(answers, DriverReport("failed", text=f"Ray failed ({_error_line(error)})"))
    if not (order.is_for_us_alone and Path("/proc/self/stat").exists()):  # else `_exit_driver` kills all of Ray faster
        with suppress(Exception):
            ray.shutdown()
    _exit_driver(order.folder)


def _listen(orders: IO[bytes], events: SimpleQueue[tuple[Any, ...]], order: Order) -> None:
    """Queue batches until stdin ends; stdin ends with the parent process, for any reason."""
    with suppress(EOFError, OSError):
        while True:
            events.put(("batch", receive(orders, Batch, _MAX_ORDER_BYTES)))
    events.put(("over",))
    if not order.is_for_us_alone:
        time.sleep(_END_SECONDS)  # time for `ray.shutdown` to leave the cluster cleanly
    _exit_driver(order.folder)


def _exit_driver(folder: str) -> None:
    """Exit, and kill all processes started by Ray in this session."""
    shutil.rmtree(folder, ignore_errors=True)
    end_session(os.getpid())
    os._exit(0)


def end_session(session: int) -> None:
    """Kill the remaining processes of a session except the leader, including processes started meanwhile."""
    until = time.monotonic() + _END_SECONDS
    while (left := _session(session)) and time.monotonic() < until:
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _session(leader: int) -> list[int]:
    """The running processes of a session, without the leader."""
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            state, _, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and int(place.name) != leader and state not in "ZX":
                processes.append(int(place.name))
    return processes


def _connect(ray: Any, order: Order) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    if order.is_for_us_alone:
        ray.init(
            "local",
            num_cpus=order.workers or os.cpu_count() or 1,
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            _temp_dir=order.folder,
            **quiet,
        )
        return
    host, _, port = order.address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _Failed(f"no answer ({error})") from None
    try:
        ray.init(order.address, **quiet)
    except Exception as error:
        raise _Failed(f"no compatible Ray cluster answers ({_error_line(error)})") from None


class _Pool:
    """Ray actors, and their current batches."""

    def __init__(self, ray: Any, order: Order, events: SimpleQueue[tuple[Any, ...]], answers: IO[bytes]) -> None:
        self._ray = ray
        self._order = order
        self._answers = answers
        cpus = int(ray.cluster_resources().get("CPU", 1))
        self._count = max(1, order.workers or min(cpus, _MAX_WORKERS))
        self._class = ray.remote(Preparer)
        self._events = events
        self._actors: list[_Actor] = []
        self._waiting: deque[_Task] = deque()
        self._starts_left = 3 * self._count + 3
        self._last_report = time.monotonic()

    def run(self) -> None:
        """Process events until no more batches can come."""
        for _ in range(self._count):
            self._start_actor()
        self._send_report(DriverReport("started", number=self._count))
        ready_by = time.monotonic() + _READY_TIMEOUT_SECONDS
        while True:
            try:
                event, *facts = self._events.get(timeout=1.0)
            except Empty:
                event, facts = "", []
            if event == "over":
                return
            if event == "batch":
                self._waiting.append(_Task(*facts))
            elif event == "hello":
                self._add_ready_worker(*facts)
            elif event == "done":
                self._done(*facts)
            self._assign_batches()
            self._end_stuck_actors()
            if any(actor.is_ready for actor in self._actors):
                ready_by = time.monotonic() + _READY_TIMEOUT_SECONDS
            elif time.monotonic() > ready_by:
                raise _Failed(f"no worker was ready within {_READY_TIMEOUT_SECONDS:.0f} s; {self._resources()}")
            if time.monotonic() - self._last_report > _TICK_SECONDS:
                self._send_report(DriverReport("tick"))

    def _send_report(self, report: DriverReport) -> None:
        send(self._answers, report)
        self._last_report = time.monotonic()

    def _start_actor(self) -> None:
        if not self._starts_left:
            if not self._actors:
                raise _Failed("all workers and their replacements died")
            return
        self._starts_left -= 1
        spread = {} if self._order.is_for_us_alone else {"scheduling_strategy": "SPREAD"}
        handle = self._class.options(num_cpus=1, max_restarts=0, max_task_retries=0, **spread).remote(self._order.tools)
        actor = _Actor(handle)
        self._actors.append(actor)
        self._when_done(handle.hello.remote(), "hello", actor)

    def _when_done(self, reference: Any, event: str, *facts: object) -> None:
        def tell(future: Any) -> None:
            try:
                self._events.put((event, *facts, future.result(), None))
            except BaseException as error:  # Ray's errors as well as errors of our code
                self._events.put((event, *facts, None, error))

        reference.future().add_done_callback(tell)

    def _add_ready_worker(self, actor: _Actor, hello: Any, error: BaseException | None) -> None:
        if error is not None:
            if not self._is_loss(error) or "ModuleNotFoundError" in str(error):
                raise _Failed(f"a worker cannot start: {_error_line(error)}")
            self._lose(actor)
            return
        host, pid, kind = hello
        if difference := what_differs(host, WorkerFingerprint(*kind), self._order.kind):
            raise _Failed(difference)
        actor.is_ready = True
        self._send_report(DriverReport("worker", number=pid, text=host))

    def _assign_batches(self) -> None:
        """Assign at most two batches to each actor: a running batch, and a queued batch to avoid idle time."""
        while self._waiting:
            free = [actor for actor in self._actors if actor.is_ready and len(actor.tasks) < _MAX_ACTOR_BATCHES]
            if not free:
                return
            actor = min(free, key=lambda actor: len(actor.tasks))
            task = self._waiting.popleft()
            task.tries += 1
            if not actor.tasks:
                actor.since = time.monotonic()
            actor.tasks.append(task)
            self._when_done(actor.handle.prepare.remote(task.batch.jobs), "done", actor, task)

    def _done(self, actor: _Actor, task: _Task, prepared: Any, error: BaseException | None) -> None:
        if task not in actor.tasks:
            return  # the batch was reassigned meanwhile
        if error is not None and self._is_loss(error):
            self._lose(actor)
            return
        actor.tasks.remove(task)
        actor.since = time.monotonic()
        if error is None:
            self._send_report(DriverReport("done", number=task.batch.number, data=prepared))
        else:
            self._retry_or_give_up(task, _error_line(error))

    def _is_loss(self, error: BaseException) -> bool:
        """True if the actor is gone, False if only a task failed."""
        return not isinstance(error, self._ray.exceptions.RayTaskError)

    def _lose(self, actor: _Actor) -> None:
        if actor not in self._actors:
            return
        self._actors.remove(actor)
        with suppress(Exception):
            self._ray.kill(actor.handle)
        self._send_report(DriverReport("lost", number=len(actor.tasks)))
        for task in reversed(actor.tasks):
            self._retry_or_give_up(task, "its workers died")
        actor.tasks.clear()
        self._start_actor()

    def _retry_or_give_up(self, task: _Task, reason: str) -> None:
        if task.tries >= _MAX_BATCH_TRIES:
            self._send_report(DriverReport("undone", number=task.batch.number, text=reason))
        else:
            self._waiting.appendleft(task)

    def _end_stuck_actors(self) -> None:
        now = time.monotonic()
        for actor in list(self._actors):
            if actor.tasks and now - actor.since > actor.tasks[0].batch.seconds:
                self._lose(actor)

    def _resources(self) -> str:
        free = self._ray.available_resources().get("CPU", 0)
        return f"{free:g} of {self._ray.cluster_resources().get('CPU', 0):g} CPUs are free"


def _error_line(error: BaseException) -> str:
    """The informative line of an error: the last or first line of Ray's long messages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return (lines[-1] if "Error: " in lines[-1] else f"{type(error).__name__}: {lines[0]}")[:300]
