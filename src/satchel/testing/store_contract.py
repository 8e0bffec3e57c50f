"""Contract tests for stores: subclass `StoreContract` in your own suite and implement `make_store`.

    class TestMyStore(StoreContract):
        def make_store(self, folder):
            return MyStore(folder)

`StoreContract` runs the contract of each role, and the tests of the whole store: commits, writers and readers.
"""

from __future__ import annotations

import math
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from satchel.errors import EmbedderMismatch, IndexBusy
from satchel.models.access import DefaultAccess, Group
from satchel.models.block import Action, Activity, Block, Link, LinkKind, Policy
from satchel.models.outline import embedded_text, text_hash
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery, WordCounts
from satchel.ports.transfer import RowKind
from satchel.testing.store_suite import (
    DAY_NS,
    EVERYTHING,
    NOON,
    NOON_NS,
    AccessControlContract,
    ActivityLogContract,
    BlockTreeContract,
    StoreSuite,
    allow,
    commit_of,
    deny,
    document_of,
    file_of,
    mention,
    note,
    put,
    read_by,
    vector_of,
)


class FileIndexContract(StoreSuite):
    """Contract tests; subclass and implement `make_store`."""

    def test_what_was_put_is_found_by_word_by_name_and_by_meaning(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"]), file_of("b.py", ["socket"])) as store:
            assert self.found(store, "retri")[0] == "a.py"
            assert self.found(store, names=("socket",))[0] == "b.py"
            assert self.found(store, vector=np.array(vector_of("socket"), np.float32))[0] == "b.py"

    def test_names_match_by_word_family_and_count_by_rarity(self, tmp_path: Path) -> None:
        files = [file_of(f"acme_{name}.py", ["run"]) for name in ("parser", "pool", "shell")]
        with self.filled(tmp_path, *files) as store:
            of_file = self.evidence(store, "acm pars")
            assert of_file["acme_parser.py"]["file_name"] == pytest.approx(1)
            assert of_file["acme_parser.py"]["file_name_precision"] == pytest.approx(1)
            assert 0 < of_file["acme_pool.py"]["file_name"] < 0.3, "the word that every name has says little"
            assert of_file["acme_parser.py"]["path_words"] == pytest.approx(1)

    def test_the_rarity_of_names_does_not_depend_on_commits(self, tmp_path: Path) -> None:
        files = [file_of(f"{name}.py", ["run"]) for name in ("retry_pool", "retry", "shell")]
        with self.filled(tmp_path / "once", *files) as store:
            once = self.evidence(store, "retri run")
        with self.filled(tmp_path / "each", files[0]) as store:
            for file in files[1:]:
                self.commit(store, file)
            each = self.evidence(store, "retri run")
        for path, signals in once.items():
            assert each[path] == pytest.approx(signals), path

    def test_words_are_counted_in_the_pieces_that_a_reader_may_read(self, tmp_path: Path) -> None:
        hidden = file_of("hidden.py", ["socket", "retry"], readers=("bob",))
        with self.filled(tmp_path, file_of("a.py", ["retry", "retry_again"], readers=("ann", "bob")), hidden) as store:
            for reader, pieces, socket in (("ann", 2, 0), ("bob", 4, 1)):
                counts = store.word_counts(["retri", "socket", "hidden"], Filters(readers=frozenset({reader})))
                assert counts.pieces == pieces
                assert counts.with_term["socket"] == counts.with_term["hidden"] == socket
            assert store.word_counts(["nowhere"], EVERYTHING).with_term == {"nowhere": 0}

    def test_words_are_as_rare_as_in_all_stores_that_are_searched_together(self, tmp_path: Path) -> None:
        terms = {"retri": 1.0, "elsewher": 1.0}
        with self.filled(tmp_path, file_of("a.py", ["retry"]), file_of("b.py", ["retry", "socket"])) as store:
            (alone, *_) = store.search(StoreQuery(terms=terms), EVERYTHING, top_k=1)
            assert alone.of_file["file_coverage"] == pytest.approx(1), "a word that only others have counts for nothing"
            rare, common = math.log(1 + 100.5 / 2.5), math.log(1 + 100.5 / 98.5)
            for here, elsewhere, share in ((98, 2, common), (2, 98, rare)):
                counts = WordCounts(100, {"retri": here, "elsewher": elsewhere})
                (found, *_) = store.search(StoreQuery(terms=terms, counts=counts), EVERYTHING, top_k=1)
                assert found.of_file["file_coverage"] == pytest.approx(share / (rare + common))

    def test_pieces_come_back_with_their_exact_text_in_the_order_asked_for(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["one", "two", "three"])) as store:
            pieces = store.pieces_of("a.py", EVERYTHING)
            assert [piece.first_line for piece in pieces] == [1, 3, 5]
            assert pieces[1].text == "def two():\n    return 'two'"
            assert pieces[1].block == "a.py#two"
            backwards = [piece.id for piece in reversed(pieces)]
            assert [piece.id for piece in store.pieces(backwards, EVERYTHING)] == backwards

    def test_a_file_that_is_put_again_takes_the_place_of_the_old_one(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            self.commit(store, file_of("a.py", ["socket"]))
            assert self.found(store, "retri") == []
            assert self.found(store, "socket") == ["a.py"]
            assert store.facts().files == 1

    def test_a_dropped_file_is_gone_everywhere(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"]), file_of("b.py", ["other"], calls=["retry"])) as store:
            with store.write() as writer:
                writer.drop("b.py")
            assert self.found(store, "other") == []
            store.catch_up()
            assert self.found(store, "other") == []
            assert store.text_of("b.py", EVERYTHING) is None
            assert store.block("b.py#other", EVERYTHING) is None
            assert store.links_to(["a.py#retry"], EVERYTHING) == {}

    def test_the_same_content_needs_no_second_vector(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            moved = file_of("elsewhere/b.py", ["retry"])
            piece = moved.outline.pieces[0]
            key = text_hash(embedded_text(moved.outline, piece, moved.text[piece.start : piece.end]))
            with store.write() as writer:
                assert writer.lacking([key]) == set()

    def test_a_second_embedder_is_refused(self, tmp_path: Path) -> None:
        refused = pytest.raises(EmbedderMismatch, match="four")
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store, refused, store.write() as writer:
            writer.settle_embedder("five", 5)

    def test_patterns_languages_types_and_times_filter_before_the_limit(self, tmp_path: Path) -> None:
        many = [file_of(f"noise/{i}.py", ["retry", "retry_again"]) for i in range(40)]
        lone = file_of("src/lone.go", ["retry"], language="go", modified_ns=NOON_NS + 2 * DAY_NS)
        with self.filled(tmp_path, *many, lone) as store:
            later = NOON + timedelta(days=1)
            by_name = (Filters(patterns=("src/**",)), Filters(patterns=("!noise/",)), Filters(languages=("go",)))
            for filters in (*by_name, Filters(modified_after=later)):
                assert self.found(store, "retri", filters) == ["src/lone.go"], filters
            assert "src/lone.go" not in self.found(store, "retri", Filters(modified_before=later))
            assert self.found(store, "retri", Filters(types=("class",))) == []
            assert len(self.found(store, "retri", Filters(types=("function",)))) == 20

    def test_ties_are_broken_the_same_way_every_time(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, *(file_of(f"{name}.py", ["retry"]) for name in "dbca")) as store:
            assert self.found(store, "retri") == self.found(store, "retri")

    def test_the_pages_of_a_document_come_back_as_they_were_put(self, tmp_path: Path) -> None:
        document = document_of("a/report.pdf", ["retry twice", "", "sockets\nand more"])
        with self.filled(tmp_path, document, file_of("b.py", ["retry"])) as store:
            pages = store.pages_of("a/report.pdf", EVERYTHING)
            assert [page.text for page in pages] == ["retry twice", "", "sockets\nand more"]
            assert [page.page for page in pages] == list(document.outline.pages)
            for page in pages:
                assert (page.path, page.title, page.state) == ("a/report.pdf", "A report", document.state)
            assert [page.page.number for page in store.pages_of("a/report.pdf", EVERYTHING, number=3)] == [3]
            assert store.pages_of("a/report.pdf", EVERYTHING, number=4) == []
            assert store.pages_of("b.py", EVERYTHING) == []
            assert store.documents(EVERYTHING) == {"a/report.pdf": document.state.content_hash}
            assert store.paths_of(document.state.content_hash, EVERYTHING) == ["a/report.pdf"]
            assert [piece.page for piece in store.pieces_of("a/report.pdf", EVERYTHING)] == [1, 2, 3]
            assert [block.page for block in store.blocks_of("a/report.pdf", EVERYTHING)[1:]] == [1, 2, 3]
            block = store.block("a/report.pdf#page-3", EVERYTHING)
            assert block is not None
            assert (block.page, block.content) == (3, "sockets\nand more")

    def test_a_dropped_document_leaves_no_pages(self, tmp_path: Path) -> None:
        document = document_of("report.pdf", ["retry twice"])
        with self.filled(tmp_path, document) as store:
            with store.write() as writer:
                writer.drop("report.pdf")
            store.catch_up()
            assert store.pages_of("report.pdf", EVERYTHING) == []
            assert store.documents(EVERYTHING) == {}
            assert store.paths_of(document.state.content_hash, EVERYTHING) == []

    def test_passages_of_documents_stand_for_themselves(self, tmp_path: Path) -> None:
        """A search finds more passages of a long document than of a file, each with separate evidence."""
        document = document_of("report.pdf", [f"retry number {i} and the socket" for i in range(30)])
        with self.filled(tmp_path, document) as store:
            candidates = store.search(StoreQuery(terms={"socket": 1.0}), EVERYTHING, top_k=5)
            assert sum(candidate.is_passage for candidate in candidates) == 30


class TransferContract(StoreSuite):
    """Contract tests; subclass and implement `make_store`."""

    def test_everything_that_was_put_can_be_had_again(self, tmp_path: Path) -> None:
        grant = deny("p", "user:ann")
        done = Activity(block="p", actor="ann", action=Action.VIEW, timestamp=NOON, detail="d", reference="r")
        link = Link(source="p", kind=LinkKind.REPLY, target="gone", name="n")
        group = Group(name="staff", members=("ann", "bob"))
        with self.filled(tmp_path, note("p")) as store:
            self.change(store, grant, done, link, group)
            policy, *records = store.records()
            assert policy == Policy(default=DefaultAccess.DENY)
            assert [record for record in records if not isinstance(record, Block)] == [group, link, grant, done]

    def test_another_store_takes_over_everything_unchanged(self, tmp_path: Path) -> None:
        file = file_of("a.py", ["retry"], calls=["socket"])
        document = document_of("r.pdf", ["one", "two"], readers=("user:ann",))
        with self.filled(tmp_path / "from", file, document, note("p"), note("a", "p")) as source:
            staff = Group(name="staff", members=("ann",))
            edit = Activity(block="a", actor="ann", action=Action.EDIT, timestamp=NOON)
            self.change(source, mention("a", "p"), staff, allow("p", "group:staff"), edit)
            with source.write() as writer:
                writer.put_activity([commit_of("a.py")], "head")
            stored = source.transfer.files(limit=9)
            hashes = [key for file in stored for key in file.hashes]
            with self.filled(tmp_path / "to") as target:
                with target.write() as writer:
                    writer.transfer.put(stored, source.transfer.vectors(hashes))
                    for kind in RowKind:
                        writer.transfer.put_rows(kind, source.transfer.rows(kind))
                    writer.transfer.set_facts(dict(source.transfer.facts()))
                    writer.blocks.set_default(source.default_access())
                target.catch_up()
                given_out, taken_over = (
                    [file._replace(number=0) for file in store.transfer.files_by_path(limit=9)]
                    for store in (source, target)
                )
                assert given_out == taken_over
                assert target.transfer.vectors(hashes) == source.transfer.vectors(hashes)
                assert target.transfer.paths(limit=9) == source.transfer.paths(limit=9)
                for kind in RowKind:
                    assert list(target.transfer.rows(kind)) == list(source.transfer.rows(kind)) != []
                assert target.transfer.facts() == source.transfer.facts()
                assert self.found(target, "retri", read_by("ann")) == self.found(source, "retri", read_by("ann"))


class StoreContract(FileIndexContract, BlockTreeContract, AccessControlContract, ActivityLogContract, TransferContract):
    """Contract tests of all roles and of the life cycle of a store."""

    def test_an_empty_store_answers(self, tmp_path: Path) -> None:
        with closing(self.make_store(tmp_path)) as store:
            assert store.files() == {}
            assert self.found(store, "anything") == []
            assert store.generation == 0

    def test_a_store_that_is_opened_again_holds_the_same(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            before = (store.files(), store.generation, self.found(store, "retri"))
        with closing(self.make_store(tmp_path)) as again:
            assert (again.files(), again.generation, self.found(again, "retri")) == before

    def test_a_commit_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            generation = store.generation
            with pytest.raises(ZeroDivisionError), store.write() as writer:
                put(writer, file_of("b.py", ["socket"]))
                raise ZeroDivisionError
            assert set(store.files()) == {"a.py"}
            assert store.generation == generation

    def test_a_second_writer_is_refused_and_readers_go_on(self, tmp_path: Path) -> None:
        retry = file_of("a.py", ["retry"])
        with self.filled(tmp_path, retry) as store, closing(self.make_store(tmp_path)) as other, store.lock():
            with pytest.raises(IndexBusy), other.write():
                pass
            assert self.found(other, "retri") == ["a.py"]

    def test_another_reader_sees_a_commit(self, tmp_path: Path) -> None:
        retry = file_of("a.py", ["retry"])
        with self.filled(tmp_path, retry) as store, closing(self.make_store(tmp_path)) as reader:
            assert self.found(reader, "socket") == []
            self.commit(store, file_of("b.py", ["socket"]))
            assert self.found(reader, "socket") == ["b.py"]
