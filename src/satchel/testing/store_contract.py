"""What every store has to do, as tests: subclass `StoreContract` in your own suite and say how your store is made.

    class TestMyStore(StoreContract):
        def make_store(self, folder):
            return MyStore(folder)

It runs the contract of each role, and what holds for the store as a whole: commits, writers and readers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.errors import IndexBusy
from satchel.testing.access_control_contract import AccessControlContract
from satchel.testing.activity_log_contract import ActivityLogContract
from satchel.testing.block_tree_contract import BlockTreeContract
from satchel.testing.file_index_contract import FileIndexContract
from satchel.testing.store_suite import file_of, put
from satchel.testing.transfer_contract import TransferContract


class StoreContract(FileIndexContract, BlockTreeContract, AccessControlContract, ActivityLogContract, TransferContract):
    """All roles, and the life of a store."""

    def test_an_empty_store_answers(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        assert store.files() == {}
        assert self.found(store, "anything") == []
        assert store.generation == 0
        store.close()

    def test_a_store_that_is_opened_again_holds_the_same(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            before = (store.files(), store.generation, self.found(store, "retri"))
        again = self.make_store(tmp_path)
        assert (again.files(), again.generation, self.found(again, "retri")) == before
        again.close()

    def test_a_commit_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            generation = store.generation
            with pytest.raises(ZeroDivisionError), store.write() as writer:
                put(writer, file_of("b.py", ["socket"]))
                raise ZeroDivisionError
            assert set(store.files()) == {"a.py"}
            assert store.generation == generation

    def test_a_second_writer_is_refused_and_readers_go_on(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            other = self.make_store(tmp_path)
            with store.lock():
                with pytest.raises(IndexBusy), other.write():
                    pass
                assert self.found(other, "retri") == ["a.py"]
            other.close()

    def test_another_reader_sees_acommit_of(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            reader = self.make_store(tmp_path)
            assert self.found(reader, "socket") == []
            self.commit(store, file_of("b.py", ["socket"]))
            assert self.found(reader, "socket") == ["b.py"]
            reader.close()
