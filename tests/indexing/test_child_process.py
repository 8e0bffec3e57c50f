"""Child processes that read files: they run nothing of the folder, and whatever they answer does no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from satchel.indexing.child_process import ChildProcess
from satchel.indexing.parse import Parsers, SourceFile
from tests.indexing.test_reading_code import PYTHON
from tests.support.waiting import HANG_SECONDS


def test_nothing_in_the_folder_is_executed_by_indexing_it(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "satchel").mkdir(parents=True)
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    for name in ("pickle.py", "selectors.py", "sitecustomize.py", "tree_sitter.py", "satchel/__init__.py"):
        (root / name).write_text(trap)
    for i in range(60):
        (root / f"m{i}.py").write_text(f"def f{i}():\n    return '{'x' * 12_000}'\n")
    console = Path(sys.executable).with_name("satchel")
    done = subprocess.run(
        [console, "index", ".", "--index-dir", tmp_path / "index"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "65 of 65 files read" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_files_are_still_parsed_after_a_parser_is_killed() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sources = [SourceFile(f"{i}.py", PYTHON) for i in range(8)]
    with Parsers(1) as parsers:
        first, *others = [parsers.submit(source) for source in sources]
        first.result()
        for child in parsers.children:
            assert child._process is not None
            child._process.kill()
        assert len([future.result() for future in others]) == 7


def test_a_parser_that_stops_in_the_middle_of_its_answer_has_a_deadline() -> None:
    from satchel.indexing.child_process import Ready, encode, frame

    code = f"import os, time; os.write(1, {frame(encode(Ready(True))) + frame(b'12345678')[:-1]!r}); time.sleep(60)"
    with Parsers(1, deadline=0.2) as parsers:
        parsers._make_child = lambda: ChildProcess(code)
        outline = parsers.submit(SourceFile("a.py", PYTHON)).result()
    assert "split by lines" in outline.note


def test_an_answer_that_is_no_outline_is_refused_and_never_executed(tmp_path: Path) -> None:
    """What a child answers is taken as an outline or not at all."""
    import io
    import pickle

    from satchel.indexing.child_process import Garbled, encode, frame, receive
    from satchel.indexing.parse import OutlineAnswer
    from satchel.models.outline import Outline

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {tmp_path}/owned",)

    def received(payload: bytes) -> OutlineAnswer:
        return receive(io.BytesIO(frame(payload)), OutlineAnswer, 10_000)

    whole = encode(OutlineAnswer(Outline("python")))
    assert received(whole) == OutlineAnswer(Outline("python"))
    forged = [
        pickle.dumps(Evil()),
        whole + b"x",
        whole[:-1],
        b"",
        b"\2" + whole[1:],
        encode((7,)),
        encode("x" * 10_000),
    ]
    for payload in [
        *forged,
        encode([["python", [[1, 2]]]]),
        b"\0" + b"\x91" * 5000,
        b"\0\x91\x92\xa1p\xdd\xff\xff\xff\xff",
    ]:
        with pytest.raises(Garbled):
            received(payload)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("text", ["plain", "\udcff\udc80", "\ud800", "é\udce9\x00", "\U0010ffff", ""])
def test_every_text_crosses_process_borders_unchanged(text: str) -> None:
    from satchel.indexing.child_process import decode, encode
    from satchel.models.outline import Outline, OutlineBlock
    from satchel.ports.workers import Job, Prepared, Vectors

    block = OutlineBlock("function", text, text, -1, 1, 2, doc=text)
    prepared = [Prepared(text, Outline(None, (block,)), text, vectors=Vectors((b"\xff",), b"\0\0"))]
    assert decode(encode(prepared), list[Prepared]) == prepared
    job = Job(text, text, data=b"\xff\x00")
    assert decode(encode(job), Job) == job


DECODING_AT_ONCE = """
import gc, sys, threading
from typing import NamedTuple
from satchel.indexing.child_process import decode, encode

gc.set_threshold(1)
sys.setswitchinterval(1e-6)
for number in range(40):
    class Inner(NamedTuple):
        text: str
        numbers: "list[int]"
    Outer = NamedTuple("Outer", [(f"field_{i}", "tuple[Inner, ...]") for i in range(12)])
    Outer.__module__ = Inner.__module__ = "__main__"
    data, start = encode(((),) * 12), threading.Barrier(4)
    def read(outer=Outer, data=data, start=start):
        start.wait()
        decode(data, outer)
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_decode_the_first_message_of_a_type_at_once() -> None:
    """Two threads that make a msgspec decoder of one type crash the process; it is started apart for that reason."""
    done = subprocess.run(
        [sys.executable, "-c", DECODING_AT_ONCE], capture_output=True, timeout=HANG_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
