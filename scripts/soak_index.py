"""Index runs that are killed at random moments, hundreds of times, on a workspace that keeps changing.

    python scripts/soak_index.py --kills 200 --seed 1

After every kill: the index opens and finds nothing wrong with itself, every commit that was acknowledged is still
there with its content, a search answers while the segments are behind, and no parser is left running. Every few kills a
run is let through: then every file is there as it is now, and nothing is behind. Every twenty kills the answers are
compared with those of an index made from nothing. Another process searches all the while. Failures are printed with
what they were about; what is random comes from the seed, but the exact moment of a kill is the scheduler's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.files import FileState
from satchel.models.search import Filters
from satchel.service.engine import ContextEngine
from satchel.service.factory.opening import open_engine
from satchel.service.settings import Settings, index_folder
from satchel.storage.sqlite.store import EmbeddedStore

FILES = 120
COMMIT_AT = 20
"""So many files to a commit: a run then consists of several."""

KILLS_TO_A_REPORT = 20
KILLS_TO_A_WHOLE_RUN = 5
LONGEST_SEARCH = 1.0
LONGEST_RUN = 60.0
PATIENCE_WITH_CHILDREN = 3.0
TAG = "SATCHEL_SOAK_RUN"
EVERYTHING = Filters()

WORDS = """
    retry backoff socket header parser token budget commit segment vector reader writer folder cache query ranking
    session cookie password matrix invoice payment customer shipping discount calendar reminder message channel thread
""".split()

QUESTIONS = [
    "how long is the backoff before a retry",
    "where are the headers of a message parsed",
    "payment discount of a customer",
    "which segment does the reader open",
    "invoice shipping calendar",
    "session cookie password",
    "rank the vectors of a query",
    "budget_token",
    "writer commit cache",
    "documentation of the channel thread",
]

SHAPES = {
    "py": "def {name}({arg}):\n    '''{doc}.'''\n    {arg} = {call}({arg})\n    return {arg} + {number}\n\n\n",
    "js": "// {doc}.\nfunction {name}({arg}) {{\n  return {call}({arg}) + {number};\n}}\n\n",
    "ts": "/** {doc}. */\nexport function {name}({arg}: number): number {{\n  return {call}({arg}) + {number};\n}}\n\n",
    "go": "// {name} {doc}.\nfunc {name}({arg} int) int {{\n\treturn {call}({arg}) + {number}\n}}\n\n",
    "rs": "/// {doc}.\npub fn {name}({arg}: u32) -> u32 {{\n    {call}({arg}) + {number}\n}}\n\n",
    "java": "/** {doc}. */\nclass {name} {{\n  int run(int {arg}) {{ return {call}({arg}) + {number}; }}\n}}\n\n",
    "c": "/* {doc}. */\nint {name}(int {arg}) {{\n    return {call}({arg}) + {number};\n}}\n\n",
    "rb": "# {doc}.\ndef {name}({arg})\n  {call}({arg}) + {number}\nend\n\n",
    "md": "## {name}\n\n{doc}: `{call}` with {arg} and {number}.\n\n",
    "toml": "[{name}]\n# {doc}\n{arg} = {number}\n{call} = true\n\n",
}


class Workspace:
    """A folder of generated sources that changes at random."""

    def __init__(self, root: Path, chooser: random.Random) -> None:
        self.root = root
        self._chooser = chooser
        self._made = 0
        for _ in range(FILES):
            self._add()

    def files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file())

    def hashes(self) -> dict[str, bytes]:
        return {path.relative_to(self.root).as_posix(): digest(path.read_bytes()) for path in self.files()}

    def change(self, share: float) -> None:
        """Edit, add, delete and move some of the files."""
        chooser = self._chooser
        files = self.files()
        for path in chooser.sample(files, max(1, int(len(files) * share))):
            what = chooser.random()
            if what < 0.6:
                self._edit(path)
            elif what < 0.7:
                path.unlink()
                self._add()
            elif what < 0.8:
                self._add()
                path.unlink()
            else:
                path.rename(self._place(path.suffix[1:]))
        if chooser.random() < 0.3:
            folder = chooser.choice([path for path in self.root.iterdir() if path.is_dir()])
            folder.rename(self.root / f"{chooser.choice(WORDS)}{self._next()}")
        if chooser.random() < 0.3:
            # Brackets so deep that even a single file is given to a child process.
            deep = "[" * 300 + self._word() + "]" * 300
            (self.root / "deep.py").write_text(f"deep_{self._word()} = {deep}\n{self._text('py')}")

    def _edit(self, path: Path) -> None:
        text = path.read_text()
        if self._chooser.random() < 0.5:
            path.write_text(text + self._part(path.suffix[1:]))
        else:
            # Another word of the same length, and the time as it was: only the change time tells.
            info = path.stat()
            old = self._word()
            path.write_text(text.replace(old, old[::-1], 1) if old in text else text[::-1])
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def _add(self) -> None:
        kind = self._chooser.choice(list(SHAPES))
        path = self._place(kind)
        path.write_text(self._text(kind))

    def _place(self, kind: str) -> Path:
        folder = self.root / self._chooser.choice(WORDS[:8])
        folder.mkdir(exist_ok=True)
        return folder / f"{self._word()}_{self._word()}_{self._next()}.{kind}"

    def _text(self, kind: str) -> str:
        return "".join(self._part(kind) for _ in range(self._chooser.randint(5, 30)))

    def _part(self, kind: str) -> str:
        word = self._word
        return SHAPES[kind].format(
            name=f"{word()}_{word()}_{self._next()}",
            arg=word(),
            call=f"{word()}_{word()}",
            doc=" ".join(word() for _ in range(8)),
            number=self._chooser.randint(1, 999),
        )

    def _word(self) -> str:
        return self._chooser.choice(WORDS)

    def _next(self) -> int:
        self._made += 1
        return self._made


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def warm_model() -> StaticEmbedder:
    """What takes a while to load, loaded before any clock starts."""
    model = StaticEmbedder()
    model.embed_query("warm")
    return model


# -- the process that is killed


def victim() -> None:
    """Wait for a word, index, and say what was committed as soon as it was."""
    import satchel.indexing.indexer as module

    def tell(what: str, **more: Any) -> None:
        os.write(1, json.dumps({"what": what, **more}).encode() + b"\n")

    class Telling(module.Indexer):
        def _commit(self, batch: Any, *more: Any) -> None:
            super()._commit(batch, *more)
            held = {c.loaded.path: c.loaded.state.content_hash.hex() for c in batch.changes if c.loaded.state}
            tell("commit", held=held, gone=list(batch.missing), generation=self.store.generation)

    module.Indexer = Telling  # type: ignore[misc]
    module._COMMIT_AT_FILES = COMMIT_AT  # type: ignore[misc]
    model = warm_model()
    tell("ready")
    asked = json.loads(sys.stdin.readline())
    with open_engine(asked["root"], index_dir=asked["index"], embedder=model) as engine:
        engine.index(lambda step: tell("arranging") if step.doing == "arranging" else None)
    tell("done")


class Victim:
    """A process that indexes, from the outside."""

    def __init__(self, environ: dict[str, str]) -> None:
        command = [sys.executable, __file__, "--as", "victim"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, bufsize=0)
        self._rest = b""
        self.told: list[dict[str, Any]] = []

    def go(self, root: Path, index: Path) -> None:
        self.wait_for("ready")
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"root": str(root), "index": str(index)}).encode() + b"\n")

    def wait_for(self, what: str, seconds: float = LONGEST_RUN) -> bool:
        """Listen until it has said this; whether it has."""
        end = time.monotonic() + seconds
        while not any(line["what"] == what for line in self.told):
            if not self.listen(end - time.monotonic()):
                return False
        return True

    def listen(self, seconds: float) -> bool:
        """Take in what it says next; False when nothing came or it is gone."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, seconds))
        data = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.told += [json.loads(line) for line in lines]
        return bool(data)

    def listen_for(self, seconds: float) -> None:
        """Take in all that it says for so long, or until it ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.listen(end - time.monotonic()):
            pass

    def kill(self) -> bool:
        """Kill it; False when it was done already."""
        self._process.kill()
        self._process.wait()
        while self.listen(0.0):
            pass
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return self._process.returncode == -signal.SIGKILL and not self.has_ended

    @property
    def has_ended(self) -> bool:
        return any(line["what"] == "done" for line in self.told)

    @property
    def returncode(self) -> int | None:
        return self._process.poll()


# -- the process that reads all the while


def reader(root: str, index: str) -> None:
    """Ask one question after the other until stdin ends; say what went wrong and how it was."""
    searches, slowest = 0, 0.0
    model = warm_model()
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            clock = Clock()
            with open_engine(root, index_dir=index, embedder=model) as engine:
                for _ in range(10):
                    searches += 1
                    engine.status()
                    engine.search(f"{QUESTIONS[searches % len(QUESTIONS)]} {searches}")
                    took = clock.seconds()
                    slowest = max(slowest, took)
                    if took > LONGEST_SEARCH:
                        print(json.dumps({"failure": f"a search took {took:.2f} s"}), flush=True)
                    time.sleep(0.08)
                    clock = Clock()
        except Exception as error:
            print(json.dumps({"failure": f"{type(error).__name__}: {str(error)[:300]}"}), flush=True)
            time.sleep(0.1)
    print(json.dumps({"searches": searches, "slowest": slowest}), flush=True)


class Clock:
    """How long something takes, not counting the time for which no processor was free."""

    def __init__(self) -> None:
        self._begun, self._starved = time.monotonic(), self._waited()

    def seconds(self) -> float:
        return time.monotonic() - self._begun - (self._waited() - self._starved)

    @staticmethod
    def _waited() -> float:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


# -- the judge


@dataclass
class Soak:
    """One workspace, its index, and what was found wrong."""

    folder: Path
    chooser: random.Random
    workspace: Workspace
    environ: dict[str, str]
    kills: int = 0
    runs: int = 0
    behind: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    lengths: dict[str, float] = field(default_factory=dict)
    spare: Victim | None = None
    fresh_indexes: int = 0
    model: StaticEmbedder = field(default_factory=warm_model)

    @property
    def root(self) -> Path:
        return self.workspace.root

    @property
    def index(self) -> Path:
        return self.folder / "index"

    def fail(self, check: str, detail: str) -> None:
        self.failures.append(check)
        print(f"FAILED after {self.kills} kills: {check}: {detail}", flush=True)

    def next_victim(self) -> Victim:
        """The one that is waiting; another is started to wait in its place."""
        current = self.spare or Victim(self.environ)
        self.spare = Victim(self.environ)
        return current

    def new_index(self) -> Path:
        self.fresh_indexes += 1
        return self.folder / f"fresh{self.fresh_indexes}"

    # -- kills

    def measure(self) -> None:
        """How long the phases of an undisturbed run take."""
        for kind, index in (("from nothing", self.index), ("incremental", self.index)):
            one = self.next_victim()
            one.wait_for("ready")
            started = time.monotonic()
            one.go(self.root, index)
            one.wait_for("arranging")
            arranging = time.monotonic()
            if not one.wait_for("done"):
                self.fail("an undisturbed run ends", kind)
            done = time.monotonic()
            one.kill()
            self.lengths[kind] = done - started
            self.lengths["arranging"] = max(done - arranging, 0.01)
            self.workspace.change(0.1)
        started = time.monotonic()
        subprocess.run(self._command(self.new_index()), env=self.environ, check=True)
        self.lengths["command"] = time.monotonic() - started

    def kill_one(self) -> None:
        """One run that is killed at a random moment, and all that must hold then."""
        chooser = self.chooser
        kind = chooser.choices(
            ["from nothing", "incremental", "arranging", "commit", "command"], weights=[2, 6, 4, 4, 2]
        )[0]
        if kind == "from nothing":
            self._kill_a_beginning()
            return
        before = self._held(self.index)
        if kind == "command":
            acknowledged, seen, killed = self._kill_command(before)
        else:
            acknowledged, seen, killed = self._kill_victim(self.index, kind, before)
        if killed:
            self.kills += 1
            self.moments[kind] += 1
        self._look_after(self.index, seen, acknowledged, kind)

    def _kill_a_beginning(self) -> None:
        """A new index, killed once or twice before it is whole, is whole in the end and answers like any other."""
        index = self.new_index()
        for _ in range(self.chooser.randint(1, 2)):
            before = self._held(index) if index.exists() else {}
            acknowledged, seen, killed = self._kill_victim(index, "from nothing", before)
            if killed:
                self.kills += 1
                self.moments["from nothing"] += 1
            self._look_after(index, seen, acknowledged, "from nothing")
        self.let_through(index)
        if self.chooser.random() < 0.2:
            other = self.new_index()
            self.let_through(other)
            self._compare(index, other, "killed while it was made, and made at once")
            shutil.rmtree(other)
        shutil.rmtree(index)

    def _kill_victim(
        self, index: Path, kind: str, before: dict[str, FileState]
    ) -> tuple[dict[str, str | None], dict[str, FileState], bool]:
        one = self.next_victim()
        one.go(self.root, index)
        if kind == "arranging":
            one.wait_for("arranging")
            one.listen_for(self.chooser.uniform(0, self.lengths["arranging"]))
        elif kind == "commit":
            one.wait_for("commit", self.lengths["incremental"])
            one.listen_for(self.chooser.choice([0.0, 0.0, 0.005, 0.02, 0.05]))
        else:
            one.listen_for(self.chooser.uniform(0, self.lengths[kind]))
        seen = self._held(index) if index.exists() and self.chooser.random() < 0.5 else before
        killed = one.kill()
        if not killed and not one.has_ended:
            self.fail("a run that is not killed ends well", f"{kind}, exit code {one.returncode}")
        acknowledged: dict[str, str | None] = {}
        for line in one.told:
            if line["what"] == "commit":
                acknowledged |= line["held"]
                acknowledged |= dict.fromkeys(line["gone"])
        return acknowledged, seen, killed

    def _command(self, index: Path) -> list[str]:
        return [sys.executable, "-m", "satchel", "index", str(self.root), "--index-dir", str(index), "-q"]

    def _kill_command(self, before: dict[str, FileState]) -> tuple[dict[str, str | None], dict[str, FileState], bool]:
        """The command as a user starts it: what a reader saw right before the kill counts as acknowledged."""
        process = subprocess.Popen(self._command(self.index), env=self.environ)
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.chooser.uniform(0, self.lengths["command"]))
        seen = self._held(self.index) if self.chooser.random() < 0.8 else before
        process.kill()
        process.wait()
        killed = process.returncode == -signal.SIGKILL
        if not killed and process.returncode:
            self.fail("a run that is not killed ends well", f"command, exit code {process.returncode}")
        return {}, seen, killed

    # -- what must hold

    def _held(self, index: Path) -> dict[str, FileState]:
        with self._store(index) as store:
            return store.files()

    @contextmanager
    def _store(self, index: Path) -> Iterator[EmbeddedStore]:
        store = EmbeddedStore(index_folder(self.root, Settings(index_dir=str(index))))
        try:
            yield store
        finally:
            store.close()

    def _engine(self, index: Path) -> ContextEngine:
        return open_engine(self.root, index_dir=str(index), embedder=self.model)

    def _look_after(
        self, index: Path, seen: dict[str, FileState], acknowledged: dict[str, str | None], kind: str
    ) -> None:
        """Right after a kill."""
        try:
            with self._store(index) as store:
                problem = store.check()
                if problem:
                    self.fail("the index finds nothing wrong with itself", f"{kind}: {problem}")
                self._look_at_files(store, seen, acknowledged, kind)
                self.behind += store.facts().behind != 0
            with self._engine(index) as engine:
                for question in self.chooser.sample(QUESTIONS, 2):
                    clock = Clock()
                    self._look_at_hits(engine, question, kind)
                    took = clock.seconds()
                    if took > LONGEST_SEARCH:
                        self.fail("a search is quick after a kill", f"{kind}: {took:.2f} s")
        except Exception as error:
            self.fail("the index opens and answers after a kill", f"{kind}: {type(error).__name__}: {error}")
        self._look_for_children(kind)

    def _look_at_files(
        self, store: EmbeddedStore, seen: dict[str, FileState], acknowledged: dict[str, str | None], kind: str
    ) -> None:
        held = store.files()
        now = self.workspace.hashes()
        for path in {*held, *seen, *acknowledged}:
            found = held[path].content_hash if path in held else None
            if path in acknowledged:
                kept = acknowledged[path]
                allowed = {bytes.fromhex(kept) if kept is not None else None}
            else:
                # A commit of which we were not told may have come in between.
                allowed = {seen[path].content_hash if path in seen else None, now.get(path)}
            if found not in allowed:
                self.fail("what was acknowledged is still there", f"{kind}: {path} has {found!r} not {allowed}")
            text = store.text_of(path, EVERYTHING) if found is not None else None
            if found is not None and (text is None or digest(text.encode("utf-8", "surrogateescape")) != found):
                self.fail("a file that is held has its content", f"{kind}: {path}")

    def _look_at_hits(self, engine: ContextEngine, question: str, kind: str) -> None:
        for hit in engine.search(question).hits:
            lines = (self.root / hit.path).read_text().split("\n")
            if "\n".join(lines[hit.start_line - 1 : hit.end_line]) != hit.content:
                self.fail("what is shown is what the file says now", f"{kind}: {hit.id} for {question!r}")

    def _look_for_children(self, kind: str) -> None:
        end = time.monotonic() + PATIENCE_WITH_CHILDREN
        while left := self._parsers():
            if time.monotonic() > end:
                self.fail("no parser is left running", f"{kind}: {left}")
                for process in left:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                return
            time.sleep(0.02)

    def _parsers(self) -> list[int]:
        """The parser processes that were started by this soak and by nobody else."""
        mark = f"{TAG}={self.environ[TAG]}".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if b"indexing." in (place / "cmdline").read_bytes() and mark in (place / "environ").read_bytes():
                    found.append(int(place.name))
        return found

    def let_through(self, index: Path | None = None) -> None:
        """A run that nobody stops: then everything is as it should be."""
        index = index or self.index
        one = self.next_victim()
        one.go(self.root, index)
        if not one.wait_for("done"):
            self.fail("a run completes after kills", f"exit code {one.returncode}")
        one.kill()
        self.runs += 1
        now = self.workspace.hashes()
        with self._store(index) as store:
            held = {path: state.content_hash for path, state in store.files().items()}
            if held != now:
                wrong = sorted(path for path in {*held, *now} if held.get(path) != now.get(path))
                self.fail("every file is there as it is now", ", ".join(wrong[:5]))
            if store.facts().behind:
                self.fail("nothing is behind after a whole run", str(store.facts()))
            problem = store.check()
            if problem:
                self.fail("the index finds nothing wrong with itself", f"after a whole run: {problem}")
        with self._engine(index) as engine:
            self._look_at_hits(engine, self.chooser.choice(QUESTIONS), "after a whole run")

    def compare_with_nothing(self) -> None:
        """An index that was killed and went on many times answers like one that is made at once."""
        for _ in range(2):
            # Small changes leave dead files in the segments; large ones have them made anew.
            self.workspace.change(0.03)
            self.let_through()
        other = self.new_index()
        self.let_through(other)
        self._compare(self.index, other, "changed many times, and made at once")
        shutil.rmtree(other)

    def _compare(self, index: Path, other: Path, how: str) -> None:
        differing = []
        with self._engine(index) as mine, self._engine(other) as theirs:
            for question in QUESTIONS:
                first, second = ([hit.id for hit in engine.search(question).hits] for engine in (mine, theirs))
                if first != second:
                    alike = [one == two for one, two in zip(first, second, strict=False)]
                    differing.append(f"{question!r} from place {[*alike, False].index(False) + 1}")
        if differing:
            told = f"{len(differing)} of {len(QUESTIONS)} questions, {differing[0]}"
            self.fail(f"two indexes of one folder answer alike ({how})", told)


def listened(pipe: IO[str], soak: Soak) -> dict[str, Any]:
    """What the reader had to say in the end; what went wrong is a failure."""
    summary: dict[str, Any] = {}
    for line in pipe:
        told = json.loads(line)
        if "failure" in told:
            soak.fail("a reader is never kept waiting and never fails", told["failure"])
        else:
            summary = told
    return summary


def run(kills: int, seed: int, folder: Path) -> int:
    chooser = random.Random(seed)
    root = folder / "work"
    root.mkdir()
    environ = {**os.environ, TAG: f"{os.getpid()}-{seed}", "SATCHEL_CONFIG": str(folder / "none.toml")}
    soak = Soak(folder, chooser, Workspace(root, chooser), environ)
    started = time.monotonic()
    soak.measure()
    told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in soak.lengths.items())
    print(f"{FILES} files; an undisturbed run takes: {told}", flush=True)
    reading = subprocess.Popen(
        [sys.executable, __file__, "--as", "reader", str(root), str(soak.index)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    reported = since = 0
    try:
        while soak.kills < kills:
            before = soak.kills
            if chooser.random() < 0.6:
                soak.workspace.change(chooser.choice([0.02, 0.1, 0.3]))
            soak.kill_one()
            since += soak.kills - before
            if since >= KILLS_TO_A_WHOLE_RUN:
                soak.let_through()
                since = 0
            if soak.kills // KILLS_TO_A_REPORT > reported:
                reported = soak.kills // KILLS_TO_A_REPORT
                soak.compare_with_nothing()
                seconds = time.monotonic() - started
                print(f"{soak.kills} kills in {seconds:.0f} s, {len(soak.failures)} failures", flush=True)
        soak.compare_with_nothing()
    finally:
        if soak.spare is not None:
            soak.spare.kill()
        assert reading.stdin is not None
        assert reading.stdout is not None
        reading.stdin.close()
        read = listened(reading.stdout, soak)
        reading.wait(LONGEST_RUN)
    if not read:
        soak.fail("a reader is never kept waiting and never fails", f"it ended with {reading.returncode}")
    moments = ", ".join(f"{count} {name}" for name, count in sorted(soak.moments.items()))
    print(f"killed: {moments}; {soak.behind} times the segments were behind; {soak.runs} whole runs between")
    print(f"reader: {read.get('searches', 0):,} searches, the slowest {read.get('slowest', 0) * 1000:.0f} ms")
    for check, times in Counter(soak.failures).most_common():
        print(f"{times:>4} × {check}")
    print(f"{soak.kills} kills, {len(soak.failures)} failures in {time.monotonic() - started:.0f} s")
    return 1 if soak.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look at it")
    parser.add_argument("--as", dest="role", choices=["victim", "reader"], help=argparse.SUPPRESS)
    parser.add_argument("more", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "victim":
        victim()
        return 0
    if arguments.role == "reader":
        reader(*arguments.more)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="satchel-soak-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that what is started here ends
    try:
        return run(arguments.kills, arguments.seed, folder)
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
