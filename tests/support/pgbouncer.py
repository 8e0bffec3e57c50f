"""A real PgBouncer in transaction mode for the tests, on loopback, in front of a PostgreSQL of the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.support.waiting import wait_for

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
"""Debian puts it where only root's shells look."""

# Fewer connections to the server than clients: each transaction really is given another client's connection.
_SERVER_CONNECTIONS = 8

_CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
server_reset_query_always = 0
logfile = {folder}/log
pidfile = {folder}/pid
"""


@contextmanager
def pooled(url: str) -> Iterator[str]:
    """The address of the same database through a pooler, until the end."""
    assert PGBOUNCER is not None
    parts = urlsplit(url)
    host = parts.hostname or parse_qs(parts.query)["host"][0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="satchel-pgbouncer-"))
    user = parts.username or "postgres"
    text = _CONFIGURATION.format(
        host=host, port=parts.port or 5432, user=user, listen=listen, connections=_SERVER_CONNECTIONS, folder=folder
    )
    (folder / "pgbouncer.ini").write_text(text)
    # It refuses to run as root, and has to reach the server's socket: it runs as the server's user.
    owner = Path(host).stat() if host.startswith("/") else folder.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)
    command = [PGBOUNCER, "--quiet", str(folder / "pgbouncer.ini")]
    process = subprocess.Popen(command, user=owner.st_uid, group=owner.st_gid, stderr=subprocess.DEVNULL)
    found = f"postgresql://{user}@127.0.0.1:{listen}{parts.path}"
    try:
        wait_for(lambda: _answers(found), "PgBouncer")
        yield found
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
