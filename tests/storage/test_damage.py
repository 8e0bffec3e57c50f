"""Damaged files of the embedded index: what is derived heals, what is not is refused, and nothing is answered wrong."""

from __future__ import annotations

import random
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from satchel.errors import IndexBusy, IndexDamaged
from satchel.service.factory.opening import FolderPlace
from satchel.storage.sqlite.database_file import connect
from satchel.storage.sqlite.page_vector_file import EmbeddedPageVectors
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.testing.store_suite import file_of
from tests.storage.test_embedded_store import TestEmbeddedStore as Contract
from tests.support.damage import DamagedIndex, write

DAMAGES = 60
"""A short run of what scripts/soak_damage.py does at length."""


@pytest.fixture(scope="module")
def damaged_index(tmp_path_factory: pytest.TempPathFactory) -> DamagedIndex:
    return DamagedIndex(tmp_path_factory.mktemp("damage"))


def test_law_no_damage_changes_an_answer_in_silence(damaged_index: DamagedIndex) -> None:
    outcomes = [damaged_index.trial(random.Random(seed)) for seed in range(DAMAGES)]
    assert [outcome for outcome in outcomes if outcome.is_wrong] == []
    assert {outcome.quick for outcome in outcomes} == {"right", "refused"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """The folder of an index, with nobody at it."""
    with Contract().filled(tmp_path / "index", file_of("a.py", ["retry"]), file_of("b.py", ["socket"])):
        pass
    return tmp_path / "index"


def found(index: Path) -> list[str]:
    with closing(EmbeddedStore(index)) as store:
        return Contract().found(store, "retri socket")


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_lost_database_is_not_started_afresh(index: Path, is_missing: bool) -> None:
    (index / "truth.sqlite").unlink()
    if not is_missing:
        (index / "truth.sqlite").touch()
    with pytest.raises(IndexDamaged, match=r"truth.sqlite is missing or empty.*satchel clear.*satchel index"):
        EmbeddedStore(index)
    FolderPlace(index).remove()
    assert not index.exists()
    EmbeddedStore(index).close()


def test_a_first_run_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    (tmp_path / "derived").mkdir()
    (tmp_path / "truth.sqlite").touch()
    (tmp_path / "write.lock").write_text("pid 1")
    with closing(EmbeddedStore(tmp_path)) as store:
        Contract().commit(store, file_of("a.py", ["retry"]))
        assert Contract().found(store, "retri") == ["a.py"]


def test_a_removal_that_was_interrupted_leaves_an_index_that_heals(index: Path) -> None:
    before = found(index)
    (index / "derived" / "current.json").unlink()
    assert FolderPlace(index).is_there()
    assert found(index) == before


def test_a_database_older_than_its_arrays_is_refused(index: Path, tmp_path: Path) -> None:
    shutil.copy(index / "truth.sqlite", tmp_path / "older")
    with closing(EmbeddedStore(index)) as store:
        Contract().commit(store, file_of("c.py", ["retry"]))
    shutil.copy(tmp_path / "older", index / "truth.sqlite")
    with pytest.raises(IndexDamaged, match="older than the search arrays"):
        EmbeddedStore(index)


@pytest.mark.parametrize("page", [1, 2, 5, 9])
def test_a_bit_flipped_in_a_page_of_the_database_is_noticed(index: Path, page: int) -> None:
    flip(index / "truth.sqlite", page * 4096 - 1000)
    try:
        with closing(EmbeddedStore(index)) as store:
            damage = store.check()
    except IndexDamaged as error:
        damage = error.problem
    assert "checksum" in damage or f"page {page}" in damage


def flip(path: Path, at: int) -> None:
    write(path, at, bytes([path.read_bytes()[at] ^ 1]))


def test_a_header_that_turns_the_checksums_off_is_noticed(index: Path) -> None:
    flip(index / "truth.sqlite", 20)
    with pytest.raises(IndexDamaged):
        EmbeddedStore(index)


def test_an_older_file_without_checksums_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "truth.sqlite"
    with closing(apsw.Connection(str(path), vfs="unix")) as connection:
        connection.execute("CREATE TABLE other (text)")
    connect(path).close()
    flip(path, 4096 - 100)
    with pytest.raises(IndexDamaged, match="checksum"):
        connect(path)


def test_the_database_is_checked_when_the_last_writer_was_killed(index: Path) -> None:
    with closing(apsw.Connection(str(index / "truth.sqlite"), vfs="cksmvfs")) as connection:
        # The pages are right, what they say is not: an index of other rows than the table.
        connection.execute("PRAGMA writable_schema = on; UPDATE sqlite_schema SET rootpage = 3 WHERE name = 'piece'")
    EmbeddedStore(index).close()
    (index / "write.lock").write_text("pid 1")
    with pytest.raises(IndexDamaged):
        EmbeddedStore(index)


def test_the_lock_of_a_killed_writer_is_cleared_after_the_check(index: Path) -> None:
    (index / "write.lock").write_text("pid 1")
    EmbeddedStore(index).close()
    assert (index / "write.lock").read_bytes() == b""


def test_an_older_manifest_is_not_answered_from(index: Path, tmp_path: Path) -> None:
    derived = index / "derived"
    shutil.copytree(derived, tmp_path / "older")
    with closing(EmbeddedStore(index)) as store:
        with store.write() as writer:
            writer.drop("a.py")
        store.catch_up()
    for path in (tmp_path / "older").iterdir():
        shutil.copy(path, derived)
    with closing(EmbeddedStore(index)) as store:
        assert "older state" in store.check()
        assert Contract().found(store, "retri socket") == ["b.py"]
        assert store.check() == ""


def test_arrays_of_another_index_are_not_answered_from(index: Path, tmp_path: Path) -> None:
    before = found(index)
    with Contract().filled(tmp_path / "other", file_of("x.py", ["retry"]), file_of("y.py", ["retry"])):
        pass
    shutil.rmtree(index / "derived")
    shutil.copytree(tmp_path / "other" / "derived", index / "derived")
    assert found(index) == before


def test_a_reader_notices_damage_under_it(index: Path) -> None:
    with closing(EmbeddedStore(index)) as store:
        before = Contract().found(store, "retri socket")
        (segment,) = (index / "derived").glob("*.segment")
        flip(segment, 200)
        assert Contract().found(store, "retri socket") == before
        assert store.check() == ""


def test_damage_that_cannot_be_repaired_now_is_refused(index: Path) -> None:
    with closing(EmbeddedStore(index)) as store, closing(EmbeddedStore(index)) as writer, writer.lock():
        (segment,) = (index / "derived").glob("*.segment")
        segment.unlink()
        with pytest.raises(IndexDamaged, match=r"missing.*satchel index") as raised:
            Contract().found(store, "retri socket")
        assert isinstance(raised.value.__cause__, IndexBusy)


def test_segments_are_verified_once_for_each_version_of_the_file(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import satchel.storage.sqlite.segments as module

    opened: list[Path] = []
    well = module.open_arrays

    def noting(path: Path) -> Any:
        opened.append(path)
        return well(path)

    monkeypatch.setattr(module, "open_arrays", noting)
    with closing(EmbeddedStore(index)) as store:
        for _ in range(3):
            Contract().found(store, "retri socket")
            store.facts()
        assert len(opened) == 1
        Contract().commit(store, file_of("c.py", ["retry"]))
        Contract().found(store, "retri socket")
        assert len(opened) == 2


def test_damaged_page_vectors_are_made_again_and_never_used(tmp_path: Path) -> None:
    path = tmp_path / "pages.sqlite"
    rows = np.random.default_rng(1).random((40, 8), np.float32)
    pages = {number: rows + number for number in range(30)}
    with closing(EmbeddedPageVectors(path, "model", 8)) as vectors:
        vectors.put("document", pages)
        right = vectors.pooled(["document"])
    whole = path.read_bytes()
    for at in range(20, len(whole), 997):
        path.write_bytes(whole)
        flip(path, at)
        with closing(EmbeddedPageVectors(path, "model", 8)) as vectors:
            with suppress(IndexDamaged):
                vectors.documents()
            with suppress(IndexDamaged):
                vectors.pooled(["document"])
            keys, pooled = vectors.pooled(["document"])
            assert not keys or (keys == right[0] and (pooled == right[1]).all())
            assert vectors.documents() == ({"document"} if keys else set())
            vectors.put("document", pages)
            assert (vectors.pooled(["document"])[1] == right[1]).all()
