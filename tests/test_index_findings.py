"""What a reviewer broke in the index, each as a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from satchel import open_engine
from satchel.errors import InvalidOption
from satchel.indexing.child_process import ChildProcess
from satchel.indexing.parse import Parsers, SourceFile, read_outline
from satchel.models.search import Filters
from satchel.retrieval.query import understand
from satchel.service.settings import configure
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.testing.store_suite import file_of
from tests.effort import no_blow_up
from tests.test_cli_workspace import satchel
from tests.test_embedded_store import TestEmbeddedStore as Contract
from tests.test_reading_code import PYTHON, whole


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


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "# x" + " " * 500_000 + "y"),
        ("a.md", "# a\n" * 100_000),
        ("a.h", "\n" * 300_000),
        ("a.yaml", "a" + " " * 800_000 + "x"),
        ("a.json", "{\n" + "".join(f'  "k{i}": 1,\n' for i in range(60_000)) + '  "z": 1\n}\n'),
        ("a.go", "//\n" * 60_000),
        ("a.go", "// " + " " * 800_000 + "x\nfunc f() {}\n"),
        ("a.py", "x" * 900_000),
    ],
    ids=range(8),
)
def test_no_small_file_takes_long(path: str, text: str) -> None:
    with no_blow_up("the outline"):
        outline = read_outline(path, text)
    whole(outline, text)


@pytest.mark.parametrize(
    "question", ["a" * 500_000, "a-" * 200_000, "a." * 200_000, "a/" * 200_000, " " * 900_000 + "x"]
)
def test_no_question_takes_long(question: str) -> None:
    with no_blow_up("a question"):
        understand(question)


def test_a_project_neither_counts_with_its_own_tokenizer_nor_lifts_our_limits(tmp_path: Path) -> None:
    (tmp_path / "satchel.toml").write_text("model = 'tok.json'\n")
    with pytest.raises(InvalidOption, match="may only name a model"):
        configure(tmp_path, environ={})
    (tmp_path / "satchel.toml").write_text("max_file_bytes = 10000000000\n")
    assert configure(tmp_path, environ={}).settings.max_file_bytes == 1_000_000
    (tmp_path / "satchel.toml").write_text("max_file_bytes = 1000\n")
    assert configure(tmp_path, environ={}).settings.max_file_bytes == 1000


def test_a_private_file_that_changes_stays_private(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "priv.py").write_text("def secret():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        with engine.store.write() as writer:
            writer.settle_embedder("satchel-static-1", 256)
            writer.put(file_of("priv.py", ["secret"], readers=("alice",)))
        engine.index()
        assert engine.search("secret", filters=Filters(readers=frozenset({"bob"}))).hits == ()
        assert engine.search("secret", filters=Filters(readers=frozenset({"alice"}))).hits[0].path == "priv.py"


def test_an_answer_from_before_catching_up_is_not_kept(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def alpha():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert isinstance(engine.store, EmbeddedStore)
        (root / "b.py").write_text("def beta():\n    return 2\n")
        outline = read_outline("b.py", "def beta():\n    return 2\n")
        with engine.store.write() as writer:
            writer.put(file_of("b.py", ["beta"])._replace(outline=outline, text="def beta():\n    return 2\n"))
        assert engine.search("beta").hits == ()
        engine.store.catch_up()
        assert engine.search("beta").hits[0].path == "b.py"


def test_a_parser_that_is_killed_does_not_take_us_with_it() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sources = [SourceFile(f"{i}.py", PYTHON) for i in range(8)]
    with Parsers(1) as parsers:
        first, *others = [parsers.submit(source) for source in sources]
        first.result()
        for child in parsers.children:
            assert child._process is not None
            child._process.kill()
        assert len([future.result() for future in others]) == 7


def test_lines_that_were_given_out_are_found_again_by_expand(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("".join(f"def func{i}():\n    return {i}\n\n\n" for i in range(9)))
    assert "func5" in satchel("expand", "a.py:21-22", folder=root).stdout
    (root / "a.py").write_text("# 1\n# 2\n# 3\n# 4\n" + (root / "a.py").read_text())
    assert "func5" in satchel("expand", "a.py:21-22", folder=root).stdout


@pytest.mark.slow
def test_a_lost_or_damaged_segment_is_noticed_and_made_again(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def alpha():\n    return 1\n")
    satchel("index", folder=root)
    (segment,) = (tmp_path / "index").glob("*/derived/*.segment")
    whole_ = segment.read_bytes()
    segment.unlink()
    assert "damaged" in satchel("doctor", folder=root).stdout
    assert "a.py" in satchel("search", "alpha", folder=root).stdout
    (segment,) = (tmp_path / "index").glob("*/derived/*.segment")
    segment.write_bytes(whole_[: len(whole_) // 2] + b"\xff" * (len(whole_) - len(whole_) // 2))
    first = satchel("search", "alpha", folder=root)
    assert "Traceback" not in first.stderr
    assert "a.py" in satchel("search", "alpha", folder=root).stdout


def test_many_threads_search_while_one_indexes(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for i in range(30):
        (root / f"m{i}.py").write_text(f"def alpha_{i}():\n    return {i}\n")
    troubles: list[BaseException] = []
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        done = threading.Event()

        def ask(number: int) -> None:
            try:
                while not done.is_set():
                    assert engine.search(f"alpha {number}").hits
            except BaseException as error:
                troubles.append(error)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for i in range(15):
            (root / "m0.py").write_text(f"def alpha_0():\n    return {i} * 100\n")
            engine.index()
        done.set()
        for thread in threads:
            thread.join()
    assert troubles == []


def test_first_runs_at_the_same_time_all_answer(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for i in range(40):
        (root / f"m{i}.py").write_text(f"def alpha_{i}():\n    return {i}\n")
    command = [sys.executable, "-m", "satchel", "search", "alpha_7", str(root), "-q"]
    environ = {**os.environ, "SATCHEL_INDEX_DIR": str(tmp_path / "index")}
    running = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    answers = [process.communicate(timeout=60)[0] for process in running]
    assert all("m7.py" in answer for answer in answers)


def test_a_commit_that_lies_about_itself_does_not_stop_the_run(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def alpha():\n    return 1\n")

    def git(*arguments: str, given: str | None = None, when: str = "1700000000 +0000") -> str:
        identity = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        done = subprocess.run(
            ["git", *arguments], cwd=root, input=given, text=True, capture_output=True, check=True,
            env={**os.environ, **identity, **dates},
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    tree = git("write-tree")
    person = "A <a@b> 99999999999999 +0000"
    raw = f"tree {tree}\nauthor {person}\ncommitter {person}\nencoding x-evil\n\nhi\n"
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", given=raw)
    git("update-ref", "HEAD", commit)
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert engine.search("alpha").hits


def test_paths_with_the_sign_of_ids_can_be_expanded(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "c#").mkdir(parents=True)
    (root / "c#/b.py").write_text("def alpha():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        hit = engine.search("alpha").hits[0]
        for name in (hit.id, hit.path, hit.block_id, "c#/b.py#alpha"):
            assert "def alpha" in engine.expand(name).text


def test_the_index_is_for_its_owner_only(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path / "place").close()
    assert (tmp_path / "place").stat().st_mode & 0o077 == 0


def test_hidden_files_show_neither_in_scores_nor_through_limits(tmp_path: Path) -> None:
    contract = Contract()
    bob = Filters(readers=frozenset({"bob"}))
    mine = file_of("z.py", ["helper", "common"], readers=("bob",))
    caller = file_of("y.py", ["work"], calls=["helper"], readers=("bob",))

    def relevance(folder: Path, hidden: list[str]) -> list[dict[str, float]]:
        others = [file_of(f"h{i}.py", hidden, readers=("ann",)) for i in range(220)]
        with contract.filled(folder, mine, caller, *others) as store:
            from satchel.ports.file_index import StoreQuery

            links = store.links_from("y.py#work", bob)
            assert [link.target for link in links] == ["z.py#helper"]
            query = StoreQuery(terms={"common": 1.0, "rare": 1.0}, names=("helper",))
            found = store.search(query, bob, top_k=5)
            assert any(one.signals["defines"] for one in found)
            return [{**one.signals, **one.of_file} for one in found]

    assert relevance(tmp_path / "a", ["helper", "rare"]) == relevance(tmp_path / "b", ["helper", "other"])


def test_pieces_that_became_one_are_shown_once(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    methods = "".join(f"    def alpha_{i}(self):\n        return '{'x' * 300}'\n\n" for i in range(16))
    (root / "a.py").write_text(f"class Alpha:\n{methods}")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        (root / "a.py").write_text("class Alpha:\n    def alpha_1(self):\n        return 2\n")
        hits = engine.search("Alpha alpha").hits
        assert len({hit.id for hit in hits}) == len(hits)


def test_annotated_members_on_one_line_are_not_each_others_comments() -> None:
    text = (
        "public class Std {\n    @Override public int one() { return 1; }\n"
        "    @Override public int two() { return 2; }\n"
        "    /** @internal */ int three() { return 3; }\n    int four() { return 4; }\n}\n"
    )
    lines = {block.name: (block.first_line, block.last_line) for block in read_outline("Std.java", text).blocks}
    assert (lines["one"], lines["two"], lines["three"], lines["four"]) == ((2, 2), (3, 3), (4, 4), (5, 5))


def test_headers_of_cpp_are_cpp(tmp_path: Path) -> None:
    assert read_outline("a.h", "namespace x {\nclass A {};\n}\n").language == "cpp"


@pytest.mark.parametrize(
    ("arguments", "env", "code"),
    [
        (("build", "x"), {"SATCHEL_FORMAT": "yaml"}, 2),
        (("search", "x", "--until", "9999-12-31"), {}, 2),
        (("search", "x"), {"SATCHEL_MIN_RELEVANCE": "7"}, 2),
        (("search", "x"), {"SATCHEL_TOKEN_BUDGET": "inf"}, 2),
    ],
)
def test_impossible_values_are_refused_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], env: dict[str, str], code: int
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    done = satchel(*arguments, folder=root, env=env)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


def test_a_broken_project_file_keeps_nobody_from_clearing(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    satchel("index", folder=root)
    (root / "satchel.toml").write_text("nonsense = = 1\n")
    assert satchel("search", "x", folder=root).returncode == 2
    assert satchel("status", folder=root).returncode == 0
    assert satchel("clear", folder=root).returncode == 0


def test_what_was_passed_over_is_listed_every_time(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "data").write_bytes(b"\0\1\2" * 100)
    first = satchel("index", "--list-skipped", folder=root).stdout
    assert "binary\tdata" in first
    assert satchel("index", "--list-skipped", folder=root).stdout == first


def test_an_index_inside_the_workspace_is_not_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def alpha():\n    return 1\n")
    with open_engine(tmp_path, index_dir=str(tmp_path / ".idx")) as engine:
        assert engine.index().read == 1
        assert set(engine.store.files()) == {"a.py"}


def test_a_word_that_is_a_name_finds_its_definition(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "termui.py").write_text("def echo_via_pager(text):\n    return echo(text)\n" * 3)
    (root / "testing.py").write_text("class EchoingStdin:\n    def echo_all(self):\n        return self.echo\n" * 3)
    (root / "utils.py").write_text("def other():\n    pass\n\n\ndef echo(message):\n    print(message)\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert engine.search("echo").hits[0].path == "utils.py"


def test_a_day_ends_at_midnight_and_not_a_moment_later(tmp_path: Path) -> None:
    contract = Contract()
    midnight = int(datetime(2026, 10, 26, tzinfo=UTC).timestamp())
    with contract.filled(tmp_path, file_of("a.py", ["retry"], modified_ns=midnight * 10**9)) as store:
        assert contract.found(store, "retri", Filters(modified_before=datetime.fromtimestamp(midnight, UTC))) == []
        assert contract.found(store, "retri", Filters(modified_after=datetime.fromtimestamp(midnight, UTC))) == ["a.py"]


def test_a_parser_that_was_taken_over_cannot_make_us_do_anything(tmp_path: Path) -> None:
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


def test_a_parser_that_stops_in_the_middle_of_its_answer_has_a_deadline_too() -> None:
    from satchel.indexing.child_process import Ready, encode, frame

    code = f"import os, time; os.write(1, {frame(encode(Ready(True))) + frame(b'12345678')[:-1]!r}); time.sleep(60)"
    with Parsers(1, deadline=0.2) as parsers:
        parsers._make_child = lambda: ChildProcess(code)
        outline = parsers.submit(SourceFile("a.py", PYTHON)).result()
    assert "split by lines" in outline.note


@pytest.mark.parametrize("text", ["plain", "\udcff\udc80", "\ud800", "é\udce9\x00", "\U0010ffff", ""])
def test_every_text_crosses_process_borders_as_it_is(text: str) -> None:
    from satchel.indexing.child_process import decode, encode
    from satchel.models.outline import Outline, OutlineBlock
    from satchel.ports.workers import Job, Prepared, Vectors

    block = OutlineBlock("function", text, text, -1, 1, 2, doc=text)
    prepared = [Prepared(text, Outline(None, (block,)), text, vectors=Vectors((b"\xff",), b"\0\0"))]
    assert decode(encode(prepared), list[Prepared]) == prepared
    job = Job(text, text, data=b"\xff\x00")
    assert decode(encode(job), Job) == job
