"""What runs in Ray's workers: batches of jobs in, prepared files out, both as bytes."""

from __future__ import annotations

import os
import socket
import sys
from hashlib import blake2b
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.child_process import decode, encode
from satchel.indexing.walk import can_read_documents, way_of_reading
from satchel.indexing.work import LocalWorkers, Tools, prepare_batch
from satchel.ports.workers import Job

if TYPE_CHECKING:
    from satchel.indexing.walk import DocumentPolicy
    from satchel.ports.embedder import Embedder

_SATCHEL: Final = Path(__file__).resolve().parents[2]
_DECISIVE: Final = ("indexing", "models", "text", "ports/workers.py")
"""Whatever of Satchel decides what a file becomes."""


class Kind(NamedTuple):
    """What decides what a file becomes: two of the same kind prepare it in the same way."""

    code: str
    """Satchel and Python, as a hash."""
    reading: str
    """How documents are read."""
    embedder: str
    """Who makes vectors, if somebody does."""


def kind_here(documents: DocumentPolicy, embedder: Embedder | None) -> Kind:
    """What this process is."""
    code = blake2b(f"{sys.version_info[:2]}".encode(), digest_size=16)
    for place in _DECISIVE:
        path = _SATCHEL / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            code.update(file.relative_to(_SATCHEL).as_posix().encode() + b"\0" + file.read_bytes())
    reading = way_of_reading(documents)
    if documents.extensions and not can_read_documents():
        reading = "not at all"
    made_by = f"{embedder.name}, {embedder.dimensions} dimensions" if embedder is not None else ""
    return Kind(code.hexdigest(), reading, made_by)


def what_differs(host: str, theirs: Kind, ours: Kind) -> str:
    """Why a worker may not prepare our files: it would not make of them what we do. Empty if it would."""
    if theirs.code != ours.code:
        return f"the worker on {host} runs another Satchel or Python than this one; install the same there"
    if theirs.reading != ours.reading:
        return (
            f"the worker on {host} reads documents otherwise ({theirs.reading}) than this machine ({ours.reading}); "
            "install the same extras and programs there"
        )
    if theirs.embedder != ours.embedder:
        return f"the worker on {host} has the embedder {theirs.embedder}, and this machine {ours.embedder}"
    return ""


class Preparer:
    """One worker: it has one process of its own for parsing and one for documents."""

    def __init__(self, tools: bytes) -> None:
        self._tools = tools
        self._workers: LocalWorkers | None = None
        self._embedder: Embedder | None = None

    def hello(self) -> tuple[str, int, tuple[str, ...]]:
        """Get ready; where this is, which process, and of what kind."""
        tools = decode(self._tools, Tools)
        self._workers = LocalWorkers(1, documents=tools.documents)
        make_embedder = resolve_name(tools.embedder_maker) if tools.embedder_maker else None
        self._embedder = make_embedder(tools.embedder_name) if make_embedder is not None else None
        return socket.gethostname(), os.getpid(), tuple(kind_here(tools.documents, self._embedder))

    def prepare(self, batch: bytes) -> bytes:
        """The files of a batch of jobs."""
        assert self._workers is not None
        return encode(prepare_batch(self._workers, decode(batch, list[Job]), self._embedder))
