"""The embedded store: the contract, and what is its own."""

from __future__ import annotations

import json
import os
import signal
import zlib
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from satchel.errors import IndexDamaged, IndexTooNew
from satchel.models.access import DefaultAccess
from satchel.models.search import Filters
from satchel.ports.file_index import NewFile, StoreQuery
from satchel.ports.store import Store
from satchel.storage.sqlite.segments import DamagedArrays, open_arrays, write_arrays
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.testing.store_contract import StoreContract
from satchel.testing.store_suite import EVERYTHING, file_of, put, read_by
from tests.support.command_line import satchel
from tests.support.places import TESTS

WORDS = st.lists(st.sampled_from(["retry", "socket", "parse"]), min_size=1, max_size=3)
VECTOR = np.array([0.8, 0.6, 0.0, 0.0], np.float32)


class TestEmbeddedStore(StoreContract):
    def make_store(self, folder: Path) -> Store:
        return EmbeddedStore(folder)


@pytest.mark.requirement("S4.semantic.permission-filter")
def test_a_limit_counts_only_what_the_reader_may_see(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    hidden = [file_of(f"hidden/{i}.py", ["retry", "retry_more"], readers=("ann",)) for i in range(50)]
    with contract.filled(tmp_path, *hidden, file_of("zz.py", ["retry"], readers=("bob",))) as store:
        asked = StoreQuery(terms={"retri": 1.0})
        found = store.search(asked, Filters(readers=frozenset({"bob"})), top_k=1)
        assert list(store.paths([one.file for one in found], Filters()).values()) == ["zz.py"]


def test_what_is_asked_of_the_tables_is_the_same_text_for_every_reader(tmp_path: Path) -> None:
    names = [f"reader{i:02d}" for i in range(40)]
    hidden = [file_of(f"{name}.py", ["retry"], readers=tuple(names[i:])) for i, name in enumerate(names)]
    with TestEmbeddedStore().filled(tmp_path, *hidden) as store:
        assert isinstance(store, EmbeddedStore)
        told: dict[str, list[str]] = {}
        for name in (names[0], names[-1]):
            readers = Filters(readers=frozenset({name}))
            store.recent(readers)  # what the reader may see is worked out once
            statements = told[name] = []
            store._db.exec_trace = lambda _, text, __, kept=statements: not kept.append(text)
            store.recent(readers)
            store.links_to(["reader00.py"], readers)
            store.tasks(readers)
            store._db.exec_trace = None
        assert len(told[names[0]]) > 3
        # Prepared once for all: a text that lists what a reader may see is prepared again for each of them.
        assert set(told[names[0]]) == set(told[names[-1]])
        seen = [len(store.paths(range(1, 41), Filters(readers=frozenset({name})))) for name in names]
        assert seen == list(range(1, 41))


def test_a_workspace_of_many_users_denies_by_default(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    with contract.filled(tmp_path, file_of("open.py", ["retry"])) as store:
        assert isinstance(store, EmbeddedStore)
        assert contract.found(store, "retri") == ["open.py"]
        with store.write() as writer:
            writer.blocks.set_default(DefaultAccess.DENY)
        assert contract.found(store, "retri") == []
        assert contract.found(store, "retri", Filters(readers=frozenset({"ann"}))) == []


def test_a_question_builds_lost_arrays_again_from_the_database(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    with contract.filled(tmp_path, file_of("a.py", ["retry"]), file_of("b.py", ["socket"])) as store:
        before = contract.found(store, "retri socket")
    for path in (tmp_path / "derived").iterdir():
        path.unlink()
    with closing(EmbeddedStore(tmp_path)) as again:
        assert again.facts().behind > 0
        assert "missing" in again.check()
        assert contract.found(again, "retri socket") == before
        assert again.check() == ""
        assert again.facts().behind == 0
        assert not again.catch_up()


def test_many_small_commits_do_not_make_many_segments_and_find_the_same(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    files = [file_of(f"{i:02}.py", [f"retry_{i}", "socket"]) for i in range(30)]
    store = EmbeddedStore(tmp_path / "one")
    for file in files:
        contract.commit(store, file)
    contract.commit(store, file_of("03.py", ["changed"]))
    with store.write() as writer:
        writer.drop("05.py")
    store.catch_up()
    kept = json.loads((tmp_path / "one" / "derived" / "current.json").read_text())
    assert len(kept["segments"]) <= 9
    with contract.filled(tmp_path / "two", *(f for f in files if f.path not in ("03.py", "05.py"))) as fresh:
        contract.commit(fresh, file_of("03.py", ["changed"]))
        for question in ("retri", "socket", "chang"):
            assert set(contract.found(store, question)) == set(contract.found(fresh, question))
    store.close()


def test_a_reader_goes_on_while_a_segment_is_replaced_under_it(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    with contract.filled(tmp_path, file_of("a.py", ["retry"])) as store:
        reader = EmbeddedStore(tmp_path)
        assert contract.found(reader, "retri") == ["a.py"]
        for i in range(20):
            contract.commit(store, file_of("a.py", ["retry", f"more_{i}"]))
            assert contract.found(reader, "retri") == ["a.py"]
        reader.close()


def test_an_index_of_a_newer_satchel_is_left_alone(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "truth.sqlite"))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(IndexTooNew, match="version 99"):
        EmbeddedStore(tmp_path)


def test_an_index_of_version_3_is_migrated_with_everything_in_it(tmp_path: Path) -> None:
    """The dump was made by the last version whose tables had no workspace."""
    with closing(apsw.Connection(str(tmp_path / "truth.sqlite"))) as connection:
        connection.execute((TESTS / "data" / "index_version_3.sql").read_text())
        rows = {table: list(connection.execute(f"SELECT * FROM {table}")) for table in _TABLES}
        columns = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in _TABLES}
    with closing(EmbeddedStore(tmp_path)) as store:
        for table, before in rows.items():
            after = store._db.execute(f"SELECT {', '.join(columns[table])} FROM {table}")
            assert sorted(after, key=repr) == sorted(before, key=repr), table
            assert list(store._db.execute(f"SELECT DISTINCT workspace FROM {table}")) == [(1,)]
        store.catch_up()
        ann = read_by("ann", "staff")
        assert TestEmbeddedStore().found(store, "socket", ann) == ["sub/b.py"]
        assert [step.id for step in store.trails(["t"], ann)["t"]] == ["t", "p"]
        assert [one.block for one in store.recent(ann)] == ["t"]
        # The number of a dropped file is not given again.
        with store.write() as writer:
            put(writer, file_of("new.py", ["new"]))
        assert max(file.number for file in store.transfer.files(limit=99)) == 7


_TABLES = (
    *("fact", "access", "file", "content", "block", "piece", "page", "vector", "mention", "activity"),
    *("node", "bond", "deed", "permit", "member"),
)


def test_garbage_in_place_of_the_truth_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "truth.sqlite").write_bytes(b"this is no database" * 500)
    with pytest.raises(IndexDamaged, match="satchel clear"):
        EmbeddedStore(tmp_path)


def test_arrays_come_back_as_they_were_and_any_damage_is_noticed(tmp_path: Path) -> None:
    arrays: dict[str, NDArray[Any]] = {
        "a": np.arange(7, dtype=np.int64),
        "empty": np.empty(0, np.uint8),
        "m": np.ones((3, 4), np.int8),
    }
    path = tmp_path / write_arrays(tmp_path, "some", arrays)
    back, _ = open_arrays(path)
    assert all((back[name] == array).all() and back[name].dtype == array.dtype for name, array in arrays.items())
    assert list(tmp_path.iterdir()) == [path]
    whole = path.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] for at in range(len(whole))]
    for damaged in (whole[:-5], b"", whole[:20], whole + b"\0", *flipped):
        path.write_bytes(damaged)
        with pytest.raises(DamagedArrays):
            open_arrays(path)


def test_a_checksum_of_other_content_does_not_make_arrays(tmp_path: Path) -> None:
    garbage = b"this is no file of arrays"
    path = tmp_path / f"some-{zlib.crc32(garbage):08x}.segment"
    path.write_bytes(garbage)
    with pytest.raises(DamagedArrays, match="invalid"):
        open_arrays(path)


def test_a_file_that_was_looked_at_and_passed_over_is_remembered_without_pieces(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    with store.write() as writer:
        writer.settle_embedder("four", 4)
        empty = file_of("a.bin", [])
        put(writer, empty._replace(text="", outline=empty.outline._replace(note="passed over: binary")))
    store.catch_up()
    assert set(store.files()) == {"a.bin"}
    assert store.pieces_of("a.bin", EVERYTHING) == []
    store.close()


def test_a_child_that_was_started_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    with closing(EmbeddedStore(tmp_path)) as store:
        with store.lock():
            # As every new process is between fork and exec, with a copy of each handle.
            child = os.fork()
            if not child:
                signal.pause()
        try:
            with store.lock():
                pass
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.slow
def test_a_lost_or_damaged_segment_is_noticed_and_rebuilt(tmp_path: Path) -> None:
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


def test_only_the_owner_may_open_the_folder_of_an_index(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path / "place").close()
    assert (tmp_path / "place").stat().st_mode & 0o077 == 0


def test_files_that_may_not_be_read_change_neither_scores_nor_limits(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    bob = Filters(readers=frozenset({"bob"}))
    mine = file_of("z.py", ["helper", "common"], readers=("bob",))
    caller = file_of("y.py", ["work"], calls=["helper"], readers=("bob",))

    def relevance(folder: Path, hidden: list[str]) -> list[dict[str, float]]:
        others = [file_of(f"h{i}.py", hidden, readers=("ann",)) for i in range(220)]
        with contract.filled(folder, mine, caller, *others) as store:
            from satchel.ports.file_index import StoreQuery

            links = store.links_from(["y.py#work"], bob)["y.py#work"]
            assert [link.target for link in links] == ["z.py#helper"]
            query = StoreQuery(terms={"common": 1.0, "rare": 1.0}, names=("helper",))
            found = store.search(query, bob, top_k=5)
            assert any(one.signals["defines"] for one in found)
            return [{**one.signals, **one.of_file} for one in found]

    assert relevance(tmp_path / "a", ["helper", "rare"]) == relevance(tmp_path / "b", ["helper", "other"])


def test_a_day_ends_at_midnight_and_not_a_moment_later(tmp_path: Path) -> None:
    contract = TestEmbeddedStore()
    midnight = int(datetime(2026, 10, 26, tzinfo=UTC).timestamp())
    with contract.filled(tmp_path, file_of("a.py", ["retry"], modified_ns=midnight * 10**9)) as store:
        assert contract.found(store, "retri", Filters(modified_before=datetime.fromtimestamp(midnight, UTC))) == []
        assert contract.found(store, "retri", Filters(modified_after=datetime.fromtimestamp(midnight, UTC))) == ["a.py"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=14),
    st.randoms(use_true_random=False),
    st.integers(1, 6),
    st.sampled_from([".py", ".md"]),
)
def test_law_answers_depend_neither_on_the_order_of_commits_nor_on_the_segments(
    texts: list[tuple[list[str], list[str]]], random: Random, top_k: int, suffix: str
) -> None:
    files = [file_of(f"{'_'.join(name)}{i}/x{suffix}", text, calls=name) for i, (name, text) in enumerate(texts)]
    shuffled = random.sample(files, len(files))
    with TemporaryDirectory() as folder:
        at_once, in_pieces = EmbeddedStore(Path(folder) / "one"), EmbeddedStore(Path(folder) / "two")
        with closing(at_once), closing(in_pieces):
            _commit(at_once, files)
            while shuffled:
                count = random.randint(1, 3)
                _commit(in_pieces, shuffled[:count])
                del shuffled[:count]
                if random.random() < 0.7:
                    in_pieces.catch_up(partly=random.random() < 0.7)
            at_once.catch_up()
            in_pieces.catch_up()
            query = StoreQuery(terms={"retri": 1.0, "socket": 0.5}, names=("retry",), vector=VECTOR)
            answers = []
            for store in (at_once, in_pieces):
                candidates = store.search(query, EVERYTHING, top_k=top_k)
                paths = store.paths([candidate.file for candidate in candidates], EVERYTHING)
                answers.append([(paths[c.file], c.signals, c.of_file, c.is_passage) for c in candidates])
            assert answers[0] == answers[1]


def _commit(store: EmbeddedStore, files: Sequence[NewFile]) -> None:
    with store.write() as writer:
        writer.settle_embedder("four", len(VECTOR))
        for file in files:
            put(writer, file)
