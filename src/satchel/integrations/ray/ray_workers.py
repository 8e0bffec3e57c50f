"""File preparation on Ray: on this machine, or on a cluster (docs/ray.md).

Only a separate process (`driver`) connects to Ray; this module sends jobs in batches and yields results in order.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from satchel.errors import ExtraMissing, ServerUnavailable
from satchel.indexing.child_process import Garbled, decode, encode, receive, send
from satchel.indexing.work import LocalWorkers, Tools, longest_seconds
from satchel.integrations.ray.driver import Batch, DriverReport, Order, end_session, kind_here
from satchel.ports.workers import Job, Prepared

if TYPE_CHECKING:
    from satchel.ports.embedder import Embedder

BATCH_FILES: Final = 64
"""Per batch: fewer files cost more messages, more files are repeated together when a worker dies."""
BATCHES_AHEAD: Final = 4
"""For each worker: two batches at the worker, and two that wait for it or for their turn in the output."""
_BATCH_CHARS: Final = 256_000  # about a quarter of a megabyte of sources in a message (docs/ray.md)
# Starting Ray takes seconds (docs/ray.md); the rest is slack for a busy machine or cluster.
_START_SECONDS: Final = 120.0
# The driver reports at least every few seconds (`driver._TICK_SECONDS`); a silent one hangs.
_SILENCE_SECONDS: Final = 60.0
_END_SECONDS: Final = 15.0  # the driver needs up to `driver._END_SECONDS`; after this it is killed
# A document of 30 million characters with the vectors of its pieces takes half of this.
_MAX_REPORT_BYTES: Final = 1 << 30
_IMPORT_FOLDER: Final = str(Path(__file__).resolve().parents[3])
_RAY_VARIABLES: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_CLUSTER_VARIABLES: Final = (
    "RAY_ADDRESS",
    "RAY_JOB_CONFIG_JSON_ENV_VAR",
    "RAY_RUNTIME_ENV_HOOK",
    "RAY_AUTH_TOKEN_PATH",
)


def require_ray() -> None:
    """Raise ExtraMissing if Ray is not installed."""
    if find_spec("ray") is None:
        raise ExtraMissing("indexing on Ray", "ray")


class RayWorkers:
    """Workers on Ray; started at the first job, released at the end of the context."""

    def __init__(
        self,
        where: str,
        tools: Tools,
        embedder: Embedder,
        *,
        count: int | None = None,
        patience: float = _START_SECONDS,
    ) -> None:
        self._where = where
        self._tools = tools
        self._embedder = embedder
        self._count = count or 0
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._is_started = False
        self._folder = ""
        self._reports: SimpleQueue[DriverReport] = SimpleQueue()
        self._here: LocalWorkers | None = None
        self._sent = 0
        self._lost = 0
        self._done_here = 0
        self.workers: list[tuple[str, int]] = []
        """Host name and process id of each worker."""

    @property
    def count(self) -> int:
        """The number of workers, running or requested."""
        return self._count or os.cpu_count() or 1

    @property
    def notes(self) -> Sequence[str]:
        """Notes about lost workers and about files prepared on this machine instead."""
        notes = []
        if self._lost:
            died = "a worker on Ray died" if self._lost == 1 else f"{self._lost} workers on Ray died"
            notes.append(f"{died}; the lost work was repeated")
        if self._done_here:
            notes.append(f"{self._done_here} files were read on this machine, because Ray's workers failed on them")
        return notes

    def __enter__(self) -> RayWorkers:
        require_ray()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        if self._here is not None:
            self._here.__exit__()

    def prepare(self, jobs: Iterable[Job]) -> Iterator[Prepared]:
        """The prepared files in the order of the jobs; jobs are read only far enough ahead to keep the workers busy."""
        batches = _batches(jobs)
        pending: dict[int, list[Job]] = {}
        done: dict[int, list[Prepared]] = {}
        while True:
            while len(pending) < BATCHES_AHEAD * self.count and (batch := next(batches, None)) is not None:
                self._start()
                pending[self._send(batch)] = batch
            if not pending:
                return
            number = next(iter(pending))
            while number not in done:
                self._process_report(pending, done)
            del pending[number]
            yield from done.pop(number)

    def _send(self, batch: Sequence[Job]) -> int:
        self._sent += 1
        self._send_message(Batch(self._sent, longest_seconds(batch), encode(batch)))
        return self._sent

    def _send_message(self, message: Order | Batch) -> None:
        """Send the driver an order or a batch."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, message)
        except OSError:
            while True:  # the driver is gone: its last report says why
                self._next(_SILENCE_SECONDS)

    def _process_report(self, pending: dict[int, list[Job]], done: dict[int, list[Prepared]]) -> None:
        """Process the driver's next report."""
        report = self._next(_SILENCE_SECONDS)
        if report.event == "worker":
            self.workers.append((report.text, report.number))
        elif report.event == "lost":
            self._lost += 1
        elif report.event in ("done", "undone") and report.number in pending:
            batch = pending[report.number]
            prepared = _decoded_batch(report.data, batch) if report.event == "done" else None
            done[report.number] = prepared if prepared is not None else self._prepare_locally(batch)

    def _prepare_locally(self, batch: Sequence[Job]) -> list[Prepared]:
        """Prepare a batch locally after Ray's workers failed, in equally confined child processes."""
        self._done_here += len(batch)
        if self._here is None:
            self._here = LocalWorkers(1, documents=self._tools.documents)
        return list(self._here.prepare(batch))

    def _start(self) -> None:
        if self._process is not None:
            return
        # Socket paths must be short: not below a folder with a long path chosen by the user.
        self._folder = tempfile.mkdtemp(prefix="satchel-", dir="/tmp" if os.access("/tmp", os.W_OK) else None)  # noqa: S108
        with open(os.path.join(self._folder, "driver.log"), "wb") as log:
            self._process = subprocess.Popen(
                # -P: import nothing from the current folder, which may be untrusted.
                [sys.executable, "-P", "-c", "from satchel.integrations.ray.driver import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C is ours to deal with
                env=_ray_environment(self._where),
            )
        self._listener = threading.Thread(target=_listen, args=(self._process, self._reports), daemon=True)
        self._listener.start()
        kind = kind_here(self._tools.documents, self._embedder if self._tools.embedder_maker else None)
        self._send_message(
            Order(address=self._where, workers=self._count, folder=self._folder, tools=encode(self._tools), kind=kind)
        )
        report = self._next(self._patience)
        assert report.event == "started"
        self._count = report.number
        self._is_started = True

    def _next(self, seconds: float) -> DriverReport:
        try:
            report = self._reports.get(timeout=seconds)
        except Empty:
            raise ServerUnavailable(self._where, f"no message from Ray for {seconds:.0f} s; {_ADVICE}") from None
        if report.event == "failed":
            raise ServerUnavailable(self._where, f"{report.text}; {_ADVICE}")
        if report.event == "gone":
            code = self._process.wait(5) if self._process is not None else 0
            problem = f"the process that talks to Ray ended (exit code {code}); {_ADVICE}"
            raise ServerUnavailable(self._where, problem)
        return report

    def _end(self) -> None:
        """Release Ray, and end all processes started for this session."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        try:
            with suppress(OSError):
                process.stdin.close()  # the driver's sign to end
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS if self._is_started else 0)
        finally:
            process.kill()  # first, because it starts further processes
            end_session(process.pid)
            process.wait()
            if self._listener is not None:
                self._listener.join()
            shutil.rmtree(self._folder, ignore_errors=True)


_ADVICE: Final = "committed data is safe. See docs/ray.md, or index without --on"


def _ray_environment(where: str) -> dict[str, str]:
    """Environment variables for Ray: quiet and, for a Ray of our own, loopback only with a secret token."""
    paths = [_IMPORT_FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, **_RAY_VARIABLES, "PYTHONPATH": os.pathsep.join(paths)}
    if where == "ray":
        for name in _CLUSTER_VARIABLES:
            environ.pop(name, None)
        environ["RAY_AUTH_MODE"] = "token"
        environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # a local Ray: binds to loopback
    return environ


def _listen(process: subprocess.Popen[bytes], reports: SimpleQueue[DriverReport]) -> None:
    assert process.stdout is not None
    with suppress(EOFError, OSError, Garbled), process.stdout as pipe:
        while True:
            reports.put(receive(pipe, DriverReport, _MAX_REPORT_BYTES))
    reports.put(DriverReport("gone"))


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Source files in batches, and every document alone: a document may take as long as a whole batch."""
    batch: list[Job] = []
    size = 0
    for job in jobs:
        if job.data is None:
            batch.append(job)
            size += len(job.text)
        if batch and (job.data is not None or len(batch) >= BATCH_FILES or size >= _BATCH_CHARS):
            yield batch
            batch, size = [], 0
        if job.data is not None:
            yield [job]
    if batch:
        yield batch


def _decoded_batch(data: bytes, batch: Sequence[Job]) -> list[Prepared] | None:
    """The prepared files, or None if garbled or not the files of the batch."""
    try:
        prepared = decode(data, list[Prepared])
    except Garbled:
        return None
    return prepared if [file.path for file in prepared] == [job.path for job in batch] else None
