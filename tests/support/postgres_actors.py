"""What the processes do that the tests of faults start beside their own.

Each opens one workspace, and then reads a line of JSON, does as it is told, and answers with lines of JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satchel import Block, ContextEngine, User
from satchel.errors import IndexProblem
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.ports.store import StoreWriter
from satchel.storage.postgres import connections
from satchel.storage.postgres.store import PostgresStore
from satchel.testing.store_suite import file_of, put, vector_of
from satchel.workspace.blocks import outline_of
from tests.support.waiting import HANG_SECONDS

EVERYTHING: Final = Filters()
SIDES: Final = ("left", "right")
SHARED: Final = "shared"
SOCKET: Final = StoreQuery(terms={"socket": 1.0})
_MOST_SHOWN: Final = 400
_PAUSE_S: Final = 0.2
"""Readers leave some of the machine to the writers."""


class Four:
    """An embedder that takes no time: vectors of four numbers."""

    name = "four"
    dimensions = 4

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector for each."""
        return np.array([vector_of(text) for text in texts], np.float32).reshape(-1, 4)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same for a question."""
        return np.array(vector_of(text), np.float32)


# -- pairs: two files and two blocks that carry one number, and are never seen apart


def put_pair(writer: StoreWriter, name: str, number: int) -> None:
    """Both files and both blocks of a pair."""
    for side in SIDES:
        put(writer, file_of(f"{name}/{side}.py", [f"socket_{number}", f"twin_{number}"]))
        block = Block(id=f"{side}-{name}", type="text", content=f"socket {number}")
        writer.blocks.put(block, outline_of(block))


def commit_pair(store: PostgresStore, name: str, number: int) -> int:
    """One commit: a pair of one's own, the one that all writers share, and a file that stays; the generation made."""
    with store.write() as writer:
        writer.settle_embedder("four", 4)
        put_pair(writer, name, number)
        put_pair(writer, SHARED, number)
        put(writer, file_of(f"kept/{name}/{number}.py", [f"kept_{number}"]))
        return store.generation + 1


def numbers_of(texts: Sequence[str]) -> set[int]:
    """The numbers that texts carry."""
    return {int(one) for text in texts for one in re.findall(r"(?:socket|twin)[_ ](\d+)", text)}


def half_seen(store: PostgresStore, names: Sequence[str]) -> str:
    """What is seen of a pair that is not of the whole; each look is one call, or several of one moment."""
    files = store.files()
    for name in (*names, SHARED):
        states = {files[f"{name}/{side}.py"].content_hash for side in SIDES}
        if len(states) > 1:
            return f"files: {name} {states}"
    blocks = store.blocks([f"{side}-{name}" for name in (*names, SHARED) for side in SIDES], EVERYTHING)
    for name in (*names, SHARED):
        contents = {blocks[f"{side}-{name}"].content for side in SIDES}
        if len(contents) > 1:
            return f"blocks: {name} {contents}"
    found = {one.file for one in store.search(SOCKET, EVERYTHING, top_k=50)}
    if len(found) != 4 * (len(names) + 1):
        return f"search: {len(found)} files and blocks"
    return ""


def half_seen_at_one_moment(store: PostgresStore, names: Sequence[str]) -> str:
    """The same, where all reads have to agree with each other."""
    with store.snapshot():
        problem = half_seen(store, names)
        if problem:
            return problem
        files = store.files()
        searched = store.search(SOCKET, EVERYTHING, top_k=50)
        pieces = store.pieces([one.piece for one in searched], EVERYTHING)
        if len(pieces) != len(searched):
            return f"pieces: {len(pieces)} of {len(searched)}"
        for name in (*names, SHARED):
            texts = [piece.text for side in SIDES for piece in store.pieces_of(f"{name}/{side}.py", EVERYTHING)]
            wanted = numbers_of(texts)
            if len(texts) != 4 or len(wanted) != 1:
                return f"pieces_of: {name} {texts}"
            ours = {f"{name}/{side}.py" for side in SIDES} | {f"{side}-{name}" for side in SIDES}
            if numbers_of([piece.text for piece in pieces if piece.path in ours or piece.block in ours]) != wanted:
                return f"search: {name} is not {wanted}"
            kept = sum(path.startswith(f"kept/{name}/") for path in files)
            if name != SHARED and kept != wanted.pop() + 1:
                return f"kept: {kept} files of {name}"
    return ""


class Actor:
    """One process's store, and what can be done with it."""

    def __init__(self, url: str, root: str) -> None:
        self.store = PostgresStore(url)
        self.engine = ContextEngine(Path(root), self.store, Four(), max_file_bytes=1_000_000)

    def write_pairs(self, name: str, last: int) -> dict[str, Any]:
        """Commit pairs up to that number."""
        generations, caught_up = [], 0
        for number in range(1, last + 1):
            generations.append(commit_pair(self.store, name, number))
            if number % 2 == 0:
                caught_up += self.store.catch_up()
        return {"generations": generations, "caught_up": caught_up}

    def read_pairs(self, names: list[str], last: int, threads: int) -> dict[str, Any]:
        """Look at pairs in several threads, until those of all writers are there."""

        pause = threading.Event()

        def watch(number: int) -> tuple[int, set[str]]:
            looks, problems, newest, until = 0, set(), 0, time.monotonic() + HANG_SECONDS
            wanted = [f"left-{name}" for name in names]
            while any(one.content != f"socket {last}" for one in self.store.blocks(wanted, EVERYTHING).values()):
                look = half_seen if (looks + number) % 3 else half_seen_at_one_moment
                problems.add(look(self.store, names))
                generation = self.store.generation
                if generation < newest or time.monotonic() > until:
                    problems.add(f"generation {generation} after {newest}")
                    break
                newest = generation
                looks += 1
                pause.wait(_PAUSE_S)
            return looks, problems

        with ThreadPoolExecutor(threads) as executor:
            seen = list(executor.map(watch, range(threads)))
        return {"looks": [one for one, _ in seen], "problems": sorted({one for _, some in seen for one in some if one})}

    def acknowledge(self, name: str, first: int) -> Iterator[dict[str, Any]]:
        """Commit pairs, and say so after each, until something goes wrong."""
        number = first
        while True:
            try:
                commit_pair(self.store, name, number)
            except IndexProblem as error:
                yield {"failed": type(error).__name__, "said": str(error), "number": number}
                return
            yield {"committed": number}
            number += 1

    def ask(self, question: str, user: str, block: str) -> dict[str, Any]:
        """Whether a user gets to see a block, in whichever way."""
        filters = self.engine.filters_for(User(id=user))
        found = self.engine.search(question, filters=filters)
        texts = StoreQuery(terms={"salari": 1.0})
        pieces = [one.piece for one in self.store.search(texts, filters, top_k=20)]
        seen = {
            "engine": block in {hit.id for hit in found.hits},
            "search": block in {one.block for one in self.store.pieces(pieces, filters)},
            "candidates": len(pieces) > 1,
            "block": self.store.block(block, filters) is not None,
            "trail": block in self.store.trails([block], filters),
        }
        return {"seen": sorted(name for name, one in seen.items() if one), "cached": found.cached}

    def hold(self, how: str) -> Iterator[dict[str, Any]]:
        """Be in the middle of a commit, as the one writer, until somebody puts an end to it."""
        with self.store.lock(wait=HANG_SECONDS), self.store.write() as writer:
            put_pair(writer, "held", 1)
            visit = self.store._connections.visit
            assert visit is not None
            yield {"pid": visit.database.connection.info.backend_pid}
            if how == "in a statement":
                visit.database.connection.execute("SELECT pg_sleep(3600)")
            signal.pause()

    def fork(self) -> dict[str, Any]:
        """Use the store in a child, while the parent goes on with it."""
        paths = sorted(self.store.files())
        out, into = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(int(HANG_SECONDS))  # it ends, whatever it waits for
            told = [_outcome(lambda: sorted(self.store.files())) for _ in range(20)]
            os.write(into, json.dumps(told).encode() + b"\n")
            os._exit(0)
        os.close(into)
        mine = [_outcome(lambda: sorted(self.store.files())) for _ in range(20)]
        with os.fdopen(out) as pipe:
            line = pipe.readline()
        os.waitpid(child, 0)
        mine += [_outcome(lambda: sorted(self.store.files())) for _ in range(5)]
        return {"before": paths, "child": json.loads(line or '["nothing"]'), "parent": mine}


def _outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:_MOST_SHOWN]


def say(answer: object) -> None:
    """One line to whoever started us."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main(url: str, root: str, most_wait_ms: str) -> None:
    """Open the workspace, and do as we are told."""
    if int(most_wait_ms):
        connections._READ_TIMEOUT_MS = int(most_wait_ms)  # type: ignore[misc]
    try:
        actor = Actor(url, root)
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return
    say({"opened": actor.store.generation})
    for line in sys.stdin:
        told = json.loads(line)
        try:
            answer = getattr(actor, told.pop("do"))(**told)
            for one in [answer] if isinstance(answer, dict) else answer:
                say(one)
        except Exception as error:
            traceback.print_exc()
            say({"error": f"{type(error).__name__}: {error}"[:_MOST_SHOWN]})
    actor.engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
