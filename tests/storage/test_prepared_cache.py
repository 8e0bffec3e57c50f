"""The cache of prepared files: what it returns is what was added, and without it the work goes on."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.indexing.parse import read_outline
from satchel.models.outline import text_hash
from satchel.ports.workers import Prepared
from satchel.storage.sqlite.prepared_cache import SqlitePreparedCache

KEYS = [bytes([number]) * 16 for number in range(40)]


def prepared(text: str, path: str = "a.py") -> Prepared:
    return Prepared(path, read_outline(path, text), text)


def filled(folder: Path, **changed: int) -> SqlitePreparedCache:
    cache = SqlitePreparedCache(folder, "four", **changed)
    files = {key: prepared(f"def f{i}():\n    return {i}\n") for i, key in enumerate(KEYS)}
    cache.add(files, {key: np.full(4, i / 127, np.float32) for i, key in enumerate(KEYS)})
    return cache


@given(text=st.text(max_size=300), numbers=st.lists(st.integers(-127, 127), min_size=3, max_size=3))
def test_law_what_was_added_is_returned_exactly(
    tmp_path_factory: pytest.TempPathFactory, text: str, numbers: list[int]
) -> None:
    cache = SqlitePreparedCache(tmp_path_factory.mktemp("shared"), "three")
    file, vector = prepared(text + "\udc80"), np.array(numbers, np.float32) / np.float32(127)
    cache.add({KEYS[0]: file}, {text_hash(text): vector})
    assert cache.prepared(KEYS[0]) == file
    assert cache.prepared(KEYS[1]) is None
    stored = np.rint(cache.vectors([text_hash(text), KEYS[1]])[text_hash(text)] * 127)
    assert stored.tolist() == numbers
    cache.close()


def test_vectors_of_one_embedder_are_not_given_to_another_and_none_without_a_name(tmp_path: Path) -> None:
    filled(tmp_path).close()
    other, nameless = SqlitePreparedCache(tmp_path, "five"), SqlitePreparedCache(tmp_path)
    nameless.add({}, {KEYS[1]: np.ones(4, np.float32)})
    assert other.vectors(KEYS) == {}
    assert nameless.vectors(KEYS) == {}
    assert len(SqlitePreparedCache(tmp_path, "four").vectors(KEYS)) == len(KEYS)


def test_only_the_user_may_read_the_files(tmp_path: Path) -> None:
    cache = filled(tmp_path / "shared")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "shared").glob("prepared*")}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o700
    cache.close()


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_gives_the_right_rows_or_none_and_is_usable_again(tmp_path: Path, seed: int) -> None:
    filled(tmp_path).close()
    whole = {key: file for key in KEYS if (file := SqlitePreparedCache(tmp_path, "four").prepared(key))}
    assert len(whole) == len(KEYS)
    path, chance = tmp_path / "prepared-1.sqlite", random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(30):
        data[chance.randrange(len(data))] ^= 0xFF
    path.write_bytes(data[: len(data) // 2] if seed % 4 == 3 else data)
    cache = SqlitePreparedCache(tmp_path, "four")
    for key in KEYS:
        assert cache.prepared(key) in (None, whole[key])
        assert {float(v[0]) for v in cache.vectors([key]).values()} <= {KEYS.index(key) / np.float32(127)}
    cache.add({KEYS[0]: whole[KEYS[0]]}, {})
    cache.add({KEYS[0]: whole[KEYS[0]]}, {})  # the first call may find the damage and begin a new file
    assert cache.prepared(KEYS[0]) == whole[KEYS[0]]
    assert not cache.problem
    cache.close()


def test_where_no_file_can_be_made_it_says_so_and_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = SqlitePreparedCache(tmp_path / "file" / "shared", "four")
    cache.add({KEYS[0]: prepared("x = 1\n")}, {})
    assert cache.prepared(KEYS[0]) is None
    assert "cannot be reused" in cache.problem
    assert cache.size() == 0


def test_beside_a_busy_writer_nothing_is_found_or_added_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("satchel.storage.sqlite.prepared_cache._BUSY_TIMEOUT_MS", 1)
    filled(tmp_path).close()
    writer = apsw.Connection(os.fspath(tmp_path / "prepared-1.sqlite"))
    writer.execute("BEGIN IMMEDIATE")
    cache = SqlitePreparedCache(tmp_path, "four")
    cache.add({b"new" * 5: prepared("x = 1\n")}, {})
    writer.execute("ROLLBACK")
    assert not cache.problem
    assert cache.prepared(b"new" * 5) is None
    assert cache.prepared(KEYS[0]) is not None
    writer.close()
    cache.close()


def test_beyond_the_limit_the_least_recently_used_rows_go(tmp_path: Path) -> None:
    cache = filled(tmp_path)
    with apsw.Connection(os.fspath(tmp_path / "prepared-1.sqlite")) as db:
        db.execute("UPDATE prepared SET used = 1")
        db.execute("UPDATE vector SET used = 1")
    recent = KEYS[5]
    assert cache.prepared(recent)
    assert len(cache.vectors([recent])) == 1
    small = SqlitePreparedCache(tmp_path, "four", max_bytes=1)
    small.add({b"new" * 5: prepared("x = 1\n")}, {})
    left = [key for key in KEYS if small.prepared(key)]
    assert 20 < len(left) < len(KEYS)
    assert recent in left
    assert len(small.vectors([recent])) == 1
    small.close()
    cache.close()


def test_clearing_removes_the_files_and_others_go_on(tmp_path: Path) -> None:
    cache, other = filled(tmp_path / "shared"), SqlitePreparedCache(tmp_path / "shared", "four")
    assert other.prepared(KEYS[0])
    assert cache.size() > 0
    assert cache.clear()
    assert other.prepared(KEYS[0])
    assert not cache.clear()
    assert cache.prepared(KEYS[0]) is None
    other.close()
    cache.close()
