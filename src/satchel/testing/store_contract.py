"""What every store has to do, as tests: subclass `StoreContract` in your own suite and say how your store is made.

    class TestMyStore(StoreContract):
        def make_store(self, folder):
            return MyStore(folder)

Called twice with the same folder, `make_store` opens the same store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

import numpy as np

from satchel.errors import EmbedderMismatch, IndexBusy
from satchel.models.block import Activity, LinkKind
from satchel.models.file_state import FileState
from satchel.models.filters import Filters
from satchel.models.outline import (
    WHOLE_FILE,
    Mention,
    Outline,
    OutlineBlock,
    OutlinePage,
    OutlinePiece,
    embedded_text,
    text_hash,
)
from satchel.models.page import whole_markdown
from satchel.ports.file_index import NewFile, StoreQuery
from satchel.ports.store import Store, StoreWriter

EVERYTHING = Filters()
_DAY_NS = 86_400 * 10**9
_NOON = int(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp() * 1e9)


def file_of(
    path: str,
    functions: Sequence[str],
    *,
    calls: Sequence[str] = (),
    readers: tuple[str, ...] | None = None,
    language: str = "python",
    modified_ns: int = _NOON,
) -> NewFile:
    """A file with one function, one piece and one block for each name, as a reader would hand it over."""
    texts = [f"def {name}():\n    return '{name}'" for name in functions]
    text = "\n".join(texts) + "\n"
    blocks, pieces, at = [], [], 0
    for i, (name, body) in enumerate(zip(functions, texts, strict=True)):
        first = 2 * i + 1
        blocks.append(OutlineBlock("function", name, name, WHOLE_FILE, first, first + 1, f"def {name}()"))
        pieces.append(OutlinePiece(first, first + 1, at, at + len(body), i, (i,)))
        at += len(body) + 1
    mentions = tuple(Mention(0, LinkKind.CALLS.value, name) for name in calls)
    data = text.encode()
    state = FileState(blake2b(data, digest_size=16).digest(), len(data), modified_ns, modified_ns + _DAY_NS)
    return NewFile(path, state, text, Outline(language, tuple(blocks), tuple(pieces), mentions), readers)


def document_of(path: str, pages: Sequence[str], *, readers: tuple[str, ...] | None = None) -> NewFile:
    """A document with one piece and one block for each page, each below its border."""
    text = whole_markdown(list(enumerate(pages, start=1)))
    blocks, pieces, outlined, at, line = [], [], [], 0, 1
    for number, page in enumerate(pages, start=1):
        start = text.index("\n", at) + 1
        first, last = line + 1, line + 1 + page.count("\n")
        blocks.append(OutlineBlock("page", f"page {number}", f"page-{number}", WHOLE_FILE, first, last, page=number))
        pieces.append(OutlinePiece(first, last, start, start + len(page), number - 1, page=number))
        outlined.append(OutlinePage(number, first, last, captions=(f"Figure {number}",), tables=number))
        at, line = start + len(page) + 1, last + 1
    data = path.encode() + text.encode()
    state = FileState(blake2b(data, digest_size=16).digest(), len(data), _NOON, _NOON + _DAY_NS)
    outline = Outline("markdown", tuple(blocks), tuple(pieces), pages=tuple(outlined), title="A report")
    return NewFile(path, state, text, outline, readers)


def put(writer: StoreWriter, file: NewFile) -> None:
    """Keep a file and vectors for its pieces."""
    texts = {}
    for piece in file.outline.pieces:
        text = embedded_text(file.outline, piece, file.text[piece.start : piece.end])
        texts[text_hash(text)] = text
    lacking = sorted(writer.lacking(texts))
    if lacking:
        writer.put_vectors(lacking, np.array([vector_of(texts[key]) for key in lacking], np.float32))
    writer.put(file)


def vector_of(text: str) -> list[float]:
    """A unit vector of four numbers that depends on whether the text speaks of retries, sockets or neither."""
    raw = [float("retry" in text), float("socket" in text), 0.1, 0.0]
    length = sum(x * x for x in raw) ** 0.5
    return [x / length for x in raw]


class StoreContract:
    """The tests."""

    def make_store(self, folder: Path) -> Store:
        """The store kept in this folder."""
        raise NotImplementedError

    @contextmanager
    def filled(self, folder: Path, *files: NewFile) -> Iterator[Store]:
        """A store that holds these files and has caught up."""
        store = self.make_store(folder)
        try:
            self.commit(store, *files)
            yield store
        finally:
            store.close()

    def commit(self, store: Store, *files: NewFile) -> None:
        """Put files in one commit and catch up."""
        with store.write() as writer:
            writer.settle_embedder("four", 4)
            for file in files:
                put(writer, file)
        store.catch_up()

    def found(self, store: Store, terms: str = "", filters: Filters = EVERYTHING, **query: object) -> list[str]:
        """The paths that a search gives, best first."""
        asked = StoreQuery(terms=dict.fromkeys(terms.split(), 1.0), **query)  # type: ignore[arg-type]
        candidates = store.search(asked, filters, top_k=20)
        paths = store.paths([one.file for one in candidates], filters)
        return list(dict.fromkeys(paths[one.file] for one in candidates))

    def test_an_empty_store_answers(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        assert store.files() == {}
        assert self.found(store, "anything") == []
        assert store.generation == 0
        store.close()

    def test_what_was_put_is_found_by_word_by_name_and_by_meaning(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"]), file_of("b.py", ["socket"])) as store:
            assert self.found(store, "retri")[0] == "a.py"
            assert self.found(store, names=("socket",))[0] == "b.py"
            assert self.found(store, vector=np.array(vector_of("socket"), np.float32))[0] == "b.py"

    def test_pieces_come_back_with_their_exact_text_in_the_order_asked_for(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["one", "two", "three"])) as store:
            pieces = store.pieces_of("a.py", EVERYTHING)
            assert [piece.first_line for piece in pieces] == [1, 3, 5]
            assert pieces[1].text == "def two():\n    return 'two'"
            assert pieces[1].block == "a.py#two"
            backwards = [piece.id for piece in reversed(pieces)]
            assert [piece.id for piece in store.pieces(backwards, EVERYTHING)] == backwards

    def test_a_store_that_is_opened_again_holds_the_same(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            before = (store.files(), store.generation, self.found(store, "retri"))
        again = self.make_store(tmp_path)
        assert (again.files(), again.generation, self.found(again, "retri")) == before
        again.close()

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
            assert store.links_to("a.py#retry", EVERYTHING) == []

    def test_a_commit_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            generation = store.generation
            try:
                with store.write() as writer:
                    put(writer, file_of("b.py", ["socket"]))
                    raise RuntimeError
            except RuntimeError:
                pass
            assert set(store.files()) == {"a.py"}
            assert store.generation == generation

    def test_a_second_writer_is_refused_and_readers_go_on(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            other = self.make_store(tmp_path)
            with store.lock():
                try:
                    with other.write():
                        raise AssertionError("two writers at once")
                except IndexBusy:
                    pass
                assert self.found(other, "retri") == ["a.py"]
            other.close()

    def test_another_reader_sees_a_commit(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            reader = self.make_store(tmp_path)
            assert self.found(reader, "socket") == []
            self.commit(store, file_of("b.py", ["socket"]))
            assert self.found(reader, "socket") == ["b.py"]
            reader.close()

    def test_the_same_content_needs_no_second_vector(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            moved = file_of("elsewhere/b.py", ["retry"])
            piece = moved.outline.pieces[0]
            key = text_hash(embedded_text(moved.outline, piece, moved.text[piece.start : piece.end]))
            with store.write() as writer:
                assert writer.lacking([key]) == set()

    def test_a_second_embedder_is_refused(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["retry"])) as store:
            try:
                with store.write() as writer:
                    writer.settle_embedder("five", 5)
                raise AssertionError("vectors of two models were mixed")
            except EmbedderMismatch as refusal:
                assert "four" in str(refusal)

    def test_patterns_languages_types_and_times_filter_before_the_limit(self, tmp_path: Path) -> None:
        many = [file_of(f"noise/{i}.py", ["retry", "retry_again"]) for i in range(40)]
        wanted = file_of("src/lone.go", ["retry"], language="go", modified_ns=_NOON + 2 * _DAY_NS)
        with self.filled(tmp_path, *many, wanted) as store:
            later = datetime.fromtimestamp(_NOON / 1e9, UTC) + timedelta(days=1)
            for filters in (
                Filters(patterns=("src/**",)),
                Filters(patterns=("!noise/",)),
                Filters(languages=("go",)),
                Filters(modified_after=later),
            ):
                assert self.found(store, "retri", filters) == ["src/lone.go"], filters
            assert "src/lone.go" not in self.found(store, "retri", Filters(modified_before=later))
            assert self.found(store, "retri", Filters(types=("class",))) == []
            assert len(self.found(store, "retri", Filters(types=("function",)))) == 20

    def test_readers_see_only_what_is_theirs_in_every_read(self, tmp_path: Path) -> None:
        secret = file_of("secret.py", ["retry_secret"], calls=["shared"], readers=("ann",))
        shared = file_of("shared.py", ["shared"], readers=("ann", "bob"))
        with self.filled(tmp_path, secret, shared) as store:
            with store.write() as writer:
                writer.put_activity([_commit("secret.py"), _commit("shared.py")], "head")
            bob, ann = Filters(readers=frozenset({"bob"})), Filters(readers=frozenset({"ann"}))
            nobody = Filters(readers=frozenset())
            assert self.found(store, "secret retri share", bob) == ["shared.py"]
            assert set(self.found(store, "secret retri share", ann)) == {"secret.py", "shared.py"}
            assert self.found(store, "secret retri share", nobody) == []
            assert self.found(store, filters=bob, names=("retry_secret",)) == []
            every = [piece.id for piece in store.pieces_of("secret.py", ann)]
            assert every
            assert store.pieces(every, bob) == []
            assert store.pieces_of("secret.py", bob) == []
            assert store.text_of("secret.py", bob) is None
            assert store.block("secret.py#retry_secret", bob) is None
            assert store.blocks_of("secret.py", bob) == []
            assert store.links_from("secret.py#retry_secret", bob) == []
            assert store.links_to("shared.py#shared", bob) == []
            assert [link.source for link in store.links_to("shared.py#shared", ann)] == ["secret.py#retry_secret"]
            assert [one.block for one in store.activity(bob)] == ["shared.py"]

    def test_links_are_resolved_by_name(self, tmp_path: Path) -> None:
        caller = file_of("a/caller.py", ["work"], calls=["retry", "unknown"])
        near, far = file_of("a/near.py", ["retry"]), file_of("z/far.py", ["retry"])
        with self.filled(tmp_path, caller, near, far) as store:
            links = store.links_from("a/caller.py#work", EVERYTHING)
            assert [(link.name, link.target) for link in links] == [
                ("retry", "a/near.py#retry"),
                ("retry", "z/far.py#retry"),
                ("unknown", None),
            ]
            assert [link.source for link in store.links_to("a/near.py#retry", EVERYTHING)] == ["a/caller.py#work"]

    def test_ties_are_broken_the_same_way_every_time(self, tmp_path: Path) -> None:
        files = [file_of(f"{name}.py", ["retry"]) for name in "dbca"]
        with self.filled(tmp_path, *files) as store:
            assert self.found(store, "retri") == self.found(store, "retri")

    def test_activity_is_the_newest_first(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["one"])) as store:
            with store.write() as writer:
                writer.put_activity([_commit("a.py", day) for day in (1, 3, 2)], "head")
            assert [one.timestamp.day for one in store.activity(EVERYTHING, path="a.py")] == [3, 2, 1]
            assert store.history_head() == "head"

    def test_the_pages_of_a_document_come_back_as_they_were_put(self, tmp_path: Path) -> None:
        document = document_of("a/report.pdf", ["retry twice", "", "sockets\nand more"])
        with self.filled(tmp_path, document, file_of("b.py", ["retry"])) as store:
            pages = store.pages_of("a/report.pdf", EVERYTHING)
            assert [(one.page.number, one.text) for one in pages] == [
                (1, "retry twice"), (2, ""), (3, "sockets\nand more"),
            ]  # fmt: skip
            assert [one.page for one in pages] == list(document.outline.pages)
            assert {(one.path, one.title, one.state) for one in pages} == {("a/report.pdf", "A report", document.state)}
            assert [one.page.number for one in store.pages_of("a/report.pdf", EVERYTHING, number=3)] == [3]
            assert store.pages_of("a/report.pdf", EVERYTHING, number=4) == []
            assert store.pages_of("b.py", EVERYTHING) == []
            assert store.documents(EVERYTHING) == {"a/report.pdf": document.state.content_hash}
            assert store.paths_of(document.state.content_hash, EVERYTHING) == ["a/report.pdf"]
            pieces = store.pieces_of("a/report.pdf", EVERYTHING)
            assert [one.page for one in pieces] == [1, 2, 3]
            assert [one.page for one in store.blocks_of("a/report.pdf", EVERYTHING)[1:]] == [1, 2, 3]
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
        """Of a long document more is found than of a file, each passage with its own evidence."""
        document = document_of("report.pdf", [f"retry number {i} and the socket" for i in range(30)])
        with self.filled(tmp_path, document) as store:
            found = store.search(StoreQuery(terms={"socket": 1.0}), EVERYTHING, top_k=5)
            assert len([one for one in found if one.is_passage]) == 30

    def test_pages_are_for_those_who_may_read_the_document(self, tmp_path: Path) -> None:
        document = document_of("report.pdf", ["a socket"], readers=("user:ann",))
        ann, eve = (Filters(readers=frozenset({f"user:{name}", "*"})) for name in ("ann", "eve"))
        with self.filled(tmp_path, document, file_of("open.py", ["other"])) as store:
            assert len(store.pages_of("report.pdf", ann)) == 1
            assert store.search(StoreQuery(terms={"socket": 1.0}), ann, top_k=5)
            for nothing in (
                store.pages_of("report.pdf", eve),
                store.documents(eve),
                store.paths_of(document.state.content_hash, eve),
                [one for one in store.search(StoreQuery(terms={"socket": 1.0}), eve, top_k=5) if one.is_passage],
            ):
                assert not nothing


def _commit(path: str, day: int = 1) -> Activity:
    return Activity(block=path, actor="Ann", action="commit", timestamp=datetime(2026, 11, day, tzinfo=UTC))
