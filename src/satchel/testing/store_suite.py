"""Shared helpers of the store contract suites (creating and filling a store), and the contract of blocks."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from satchel.errors import InvalidInput, UnknownBlock
from satchel.models.access import DefaultAccess, Effect, Grant, Group, readers_for
from satchel.models.block import Action, Activity, Block, BlockType, Link, LinkKind
from satchel.models.document import whole_markdown
from satchel.models.files import PASSED_OVER, SKIPPED, FileState, SkippedFile
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
from satchel.models.search import Filters
from satchel.ports.block_tree import Step
from satchel.ports.file_index import FileWriter, NewFile, StoreQuery
from satchel.ports.store import BlockWriter, Store
from satchel.workspace.blocks import outline_of

EVERYTHING = Filters()
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOON_NS = int(NOON.timestamp()) * 10**9
# Nanoseconds per day, the unit of `modified_ns`.
DAY_NS = 86_400 * 10**9


def file_of(
    path: str,
    functions: Sequence[str],
    *,
    calls: Sequence[str] = (),
    readers: tuple[str, ...] | None = None,
    language: str = "python",
    modified_ns: int = NOON_NS,
) -> NewFile:
    """A file with a function, a piece and a block for each name, in the form a reader returns."""
    texts = [f"def {name}():\n    return '{name}'" for name in functions]
    text = "\n".join(texts) + "\n"
    blocks, pieces, at = [], [], 0
    for i, (name, body) in enumerate(zip(functions, texts, strict=True)):
        first = 2 * i + 1
        blocks.append(OutlineBlock("function", name, name, WHOLE_FILE, first, first + 1, signature=f"def {name}()"))
        pieces.append(OutlinePiece(first, first + 1, at, at + len(body), i, (i,)))
        at += len(body) + 1
    mentions = tuple(Mention(0, LinkKind.CALLS.value, name) for name in calls)
    outline = Outline(language, tuple(blocks), tuple(pieces), mentions)
    return NewFile(path, _state_of(text, modified_ns), text, outline, readers)


def document_of(path: str, pages: Sequence[str], *, readers: tuple[str, ...] | None = None) -> NewFile:
    """A document with a piece and a block for each page, below the page border."""
    text = whole_markdown(list(enumerate(pages, start=1)))
    blocks, pieces, outlined, at, line = [], [], [], 0, 1
    for number, page in enumerate(pages, start=1):
        start = text.index("\n", at) + 1
        first, last = line + 1, line + 1 + page.count("\n")
        blocks.append(OutlineBlock("page", f"page {number}", f"page-{number}", WHOLE_FILE, first, last, page=number))
        pieces.append(OutlinePiece(first, last, start, start + len(page), number - 1, page=number))
        outlined.append(OutlinePage(number, first, last, captions=(f"Figure {number}",), tables=number))
        at, line = start + len(page) + 1, last + 1
    outline = Outline("markdown", tuple(blocks), tuple(pieces), pages=tuple(outlined), title="A report")
    return NewFile(path, _state_of(path + text, NOON_NS), text, outline, readers)


def _state_of(text: str, modified_ns: int) -> FileState:
    data = text.encode()
    return FileState(blake2b(data, digest_size=16).digest(), len(data), modified_ns, modified_ns + DAY_NS)


def put(writer: FileWriter, file: NewFile) -> None:
    """Store a file with vectors for the pieces."""
    outline = file.outline
    embedded = [embedded_text(outline, piece, file.text[piece.start : piece.end]) for piece in outline.pieces]
    texts = {text_hash(text): text for text in embedded}
    lacking = sorted(writer.lacking(texts))
    if lacking:
        writer.put_vectors(lacking, np.array([vector_of(texts[key]) for key in lacking], np.float32))
    writer.put(file)


def vector_of(text: str) -> list[float]:
    """A unit vector of four numbers, different for texts about retries, about sockets and about neither."""
    raw = [float("retry" in text), float("socket" in text), 0.1, 0.0]
    length = sum(x * x for x in raw) ** 0.5
    return [x / length for x in raw]


def put_blocks(writer: BlockWriter, *blocks: Block) -> None:
    """Store blocks as an edit does."""
    for block in blocks:
        writer.put(block, outline_of(block))


def note(name: str, parent: str | None = None, position: float = 0, **more: object) -> Block:
    """A block with the given text."""
    return Block(id=name, type="text", content=f"text of {name}", parent=parent, position=position, **more)  # type: ignore[arg-type]


def commit_of(path: str, day: int = 1) -> Activity:
    """Activity of a git commit with a change to a file."""
    at = datetime(2026, 11, day, tzinfo=UTC)
    return Activity(block=path, actor="ann", action="commit", timestamp=at, detail="did it")


def mention(source: str, target: str) -> Link:
    """A link from a block to a mentioned block."""
    return Link(source=source, kind=LinkKind.MENTIONS, target=target)


def allow(block: str, principal: str) -> Grant:
    """A grant that gives a principal access."""
    return Grant(block=block, principal=principal)


def deny(block: str, principal: str) -> Grant:
    """A grant that denies a principal access."""
    return Grant(block=block, principal=principal, effect=Effect.DENY)


def ids(blocks: Iterable[Block | Step]) -> list[str]:
    """The ids of blocks, or of the steps of a trail."""
    return [block.id for block in blocks]


def read_by(user: str, *groups: str) -> Filters:
    """Filters for the access of a user."""
    return Filters(readers=readers_for(user, groups))


Change = NewFile | Grant | Link | Activity | Group | Callable[[BlockWriter], object]


class StoreSuite(ABC):
    """Base class of the suites: creates and fills stores."""

    @abstractmethod
    def make_store(self, folder: Path) -> Store:
        """The store in this folder; a second call with the same folder returns the same store."""

    @contextmanager
    def filled(self, folder: Path, *content: NewFile | Block) -> Iterator[Store]:
        """A store with these files and blocks, with an up-to-date index."""
        store = self.make_store(folder)
        try:
            self.commit(store, *content)
            yield store
        finally:
            store.close()

    def commit(self, store: Store, *content: NewFile | Block) -> None:
        """Store files and blocks in a commit and catch up."""
        with store.write() as writer:
            writer.settle_embedder("four", 4)
            for item in content:
                if isinstance(item, Block):
                    put_blocks(writer.blocks, item)
                else:
                    put(writer, item)
        store.catch_up()

    def change(self, store: Store, *changes: Change) -> None:
        """Commit files without vectors, grants, links, activity and groups, and run functions on the block writer."""
        with store.write() as writer:
            blocks = writer.blocks
            methods: dict[type, Callable[[Any], object]] = {NewFile: writer.put, Group: blocks.put_group}
            methods |= {Grant: blocks.grant, Link: blocks.link, Activity: blocks.record}
            for change in changes:
                if callable(change):
                    change(blocks)
                else:
                    methods[type(change)](change)

    def found(self, store: Store, terms: str = "", filters: Filters = EVERYTHING, **query: object) -> list[str]:
        """The paths that a search returns, best first."""
        question = StoreQuery(terms=dict.fromkeys(terms.split(), 1.0), **query)  # type: ignore[arg-type]
        files = [candidate.file for candidate in store.search(question, filters, top_k=20)]
        paths = store.paths(files, filters)
        return list(dict.fromkeys(paths[file] for file in files))

    def evidence(self, store: Store, terms: str, filters: Filters = EVERYTHING) -> dict[str, dict[str, float]]:
        """The evidence for each file that a search returns, by path."""
        found = store.search(StoreQuery(terms=dict.fromkeys(terms.split(), 1.0)), filters, top_k=20)
        paths = store.paths([candidate.file for candidate in found], filters)
        return {paths[candidate.file]: dict(candidate.of_file) for candidate in found}


class BlockTreeContract(StoreSuite):
    """Contract tests; subclass and implement `make_store`."""

    def test_a_block_comes_back_as_it_was_put(self, tmp_path: Path) -> None:
        block = Block(
            id="Größe/1#x\udcff",
            type="acme.ticket",
            title="A title",
            content="line\n\nline \U0001f600",
            parent="p",
            position=2.5,
            summary="short",
            source_path="notes/a.md",
            start_line=3,
            end_line=9,
            language="markdown",
            last_modified=NOON,
            metadata={"due": "2026-12-01", "deep": {"list": [1, None, "x"]}},
            inherits=False,
        )
        with self.filled(tmp_path, block) as store:
            assert store.block(block.id, EVERYTHING) == block
            assert list(store.records()) == [block]

    def test_every_type_is_kept(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, *(Block(id=kind, type=kind, content="x") for kind in BlockType)) as store:
            blocks = store.blocks(list(BlockType), EVERYTHING)
            assert {block.type for block in blocks.values()} == set(BlockType)

    def test_children_come_in_their_order_and_a_limit_holds(self, tmp_path: Path) -> None:
        blocks = [note("p"), *(note(f"c{i}", "p", 10 - i) for i in range(5))]
        with self.filled(tmp_path, *blocks) as store:
            assert ids(store.children(["p"], EVERYTHING, limit=3)["p"]) == ["c4", "c3", "c2"]
            assert {of: ids(found) for of, found in store.children(["c9", "p"], EVERYTHING, limit=1).items()} == {
                "p": ["c4"]
            }
            assert store.children(["nothing"], EVERYTHING, limit=3) == {}
            assert store.children(["p"], EVERYTHING, limit=0) == {}

    def test_siblings_are_the_nearest_on_both_sides(self, tmp_path: Path) -> None:
        blocks = [note("p"), *(note(f"c{i}", "p", i) for i in range(7))]
        with self.filled(tmp_path, *blocks) as store:
            assert ids(store.siblings("c3", EVERYTHING, count=2)) == ["c2", "c4", "c1", "c5"]
            assert ids(store.siblings("c0", EVERYTHING, count=2)) == ["c1", "c2"]
            assert store.siblings("p", EVERYTHING, count=2) == []

    def test_descendants_come_in_reading_order_as_deep_as_asked(self, tmp_path: Path) -> None:
        blocks = [note("p"), note("a", "p", 1), note("a1", "a"), note("a11", "a1"), note("b", "p", 2)]
        with self.filled(tmp_path, *blocks) as store:
            assert ids(store.descendants(["p"], EVERYTHING, limit=9, deepest=9)["p"]) == ["a", "a1", "a11", "b"]
            assert ids(store.descendants(["p"], EVERYTHING, limit=9, deepest=1)["p"]) == ["a", "b"]
            assert ids(store.descendants(["p"], EVERYTHING, limit=2, deepest=9)["p"]) == ["a", "a1"]
            assert store.descendants(["p"], EVERYTHING, limit=9, deepest=0) == {"p": []}

    def test_trails_lead_up_and_distances_are_steps(self, tmp_path: Path) -> None:
        blocks = [note("p"), note("a", "p"), note("a1", "a"), note("b", "p"), note("else")]
        with self.filled(tmp_path, *blocks) as store:
            assert ids(store.trails(["a1"], EVERYTHING)["a1"]) == ["a1", "a", "p"]
            assert store.trails(["gone"], EVERYTHING) == {}
            assert store.distances("a1", ["a1", "a", "b", "else", "gone"], EVERYTHING) == {"a1": 0, "a": 1, "b": 3}

    def test_moving_takes_all_that_is_below_along(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q"), note("a", "p"), note("a1", "a"), note("z", "q", 7)) as store:
            self.change(store, lambda blocks: blocks.move("a", "q"))
            assert ids(store.children(["q"], EVERYTHING, limit=9)["q"]) == ["z", "a"]
            assert ids(store.trails(["a1"], EVERYTHING)["a1"]) == ["a1", "a", "q"]

    def test_deleting_takes_all_that_is_below_along(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a"), note("b", "p")) as store:
            with store.write() as writer:
                writer.blocks.link(mention("b", "a1"))
                assert writer.blocks.delete("a") == 2
            assert set(store.blocks(["p", "a", "a1", "b"], EVERYTHING)) == {"p", "b"}
            assert store.links_from(["b"], EVERYTHING) == {}

    def test_rings_and_unknown_blocks_are_refused(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a")) as store:
            for parent in ("p", "a1"):
                with pytest.raises(InvalidInput, match="ancestor"), store.write() as writer:
                    writer.blocks.move("p", parent)
            changes: list[Change] = [lambda blocks: blocks.move("gone", None), lambda blocks: blocks.delete("gone")]
            for change in (*changes, allow("gone", "ann"), mention("gone", "p")):
                with pytest.raises(UnknownBlock):
                    self.change(store, change)
            assert ids(store.trails(["a1"], EVERYTHING)["a1"]) == ["a1", "a", "p"]

    def test_links_go_both_ways_and_the_same_link_is_one(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("a"), note("b")) as store:
            link = Link(source="a", kind=LinkKind.RELATION, target="b", name="Owner")
            nowhere = Link(source="a", kind=LinkKind.MENTIONS, name="nowhere")
            self.change(store, link, link, mention("a", "a"), mention("a", "later"), nowhere)
            assert [link.target for link in store.links_from(["a"], EVERYTHING)["a"]] == ["b", "a"]  # relations first
            assert store.links_to(["b"], EVERYTHING)["b"] == [link]
            with store.write() as writer:
                put_blocks(writer.blocks, note("later"))
                assert writer.blocks.unlink("a", kind=LinkKind.RELATION) == 1
            assert [link.target for link in store.links_from(["a"], EVERYTHING)["a"]] == ["a", "later"]

    def test_tasks_are_listed_by_when_they_are_due(self, tmp_path: Path) -> None:
        def task(name: str, due: str, done: bool = False) -> Block:
            return Block(id=name, type="todo", content=name, metadata={"due": due, "done": done})

        blocks = [task("late", "2026-11-01"), task("later", "2026-11-10"), task("done", "2026-11-02", True)]
        blocks += [task("today", "2026-11-16"), task("odd", "someday"), task("exact", "2026-11-16T11:00:00+00:00")]
        with self.filled(tmp_path, *blocks) as store:
            assert ids(store.tasks(EVERYTHING, done=False, due_before=NOON)) == ["late", "later", "exact"]
            assert ids(store.tasks(Filters(types=("page",)))) == []

    def test_blocks_are_found_by_what_people_call_them(self, tmp_path: Path) -> None:
        launch = Block(id="8f31-launch", type="page", title="Launch Plan", source_path="plans/launch.md")
        review = Block(
            id="9a20-review", type="page", title="Review", metadata={"aliases": ["Retro", "50%_done", "Größe"]}
        )
        overview = Block(id="7c", type="page", title="Übersicht")
        with self.filled(tmp_path, launch, review, overview, Block(id="8f99", type="page", title="Other")) as store:
            expected = {
                "Launch Plan": ["8f31-launch"],
                "launch plan": ["8f31-launch"],
                "plans/launch.md": ["8f31-launch"],
                "8f31": ["8f31-launch"],
                "8f": ["8f31-launch", "8f99"],
                "retro": ["9a20-review"],
                "50%_done": ["9a20-review"],
                "%": ["9a20-review"],
                "größe": ["9a20-review"],
                "ÜBERSICHT": ["7c"],
                "übersicht": ["7c"],
                "x": [],
            }
            assert {name: ids(store.named(name, EVERYTHING)) for name in expected} == expected

    def test_a_commit_of_blocks_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p")) as store:
            before = store.generation
            with pytest.raises(ZeroDivisionError), store.write() as writer:
                put_blocks(writer.blocks, note("q"))
                writer.blocks.grant(allow("p", "user:ann"))
                raise ZeroDivisionError
            assert store.blocks(["q"], EVERYTHING) == {}
            assert store.default_access() is DefaultAccess.OWNER
            assert store.generation == before

    def test_a_file_is_linked_from_the_imports_of_its_name_in_any_case(self, tmp_path: Path) -> None:
        def importing(path: str, name: str) -> NewFile:
            file = file_of(path, ["work"])
            return file._replace(outline=file.outline._replace(mentions=(Mention(0, LinkKind.IMPORTS.value, name),)))

        names = {"a.py": "my_mod", "b.py": "pkg.MY_MOD", "c.py": "./my_mod.js", "d.py": "pkg.myxmod", "e.py": "pkg.my%"}
        files = [importing(path, name) for path, name in names.items()]
        with self.filled(tmp_path, file_of("my_mod.py", ["f"]), *files) as store:
            links = store.links_to(["my_mod.py"], EVERYTHING)["my_mod.py"]
            assert [link.source for link in links] == ["a.py#work", "b.py#work", "c.py#work"]

    def test_links_are_resolved_by_name(self, tmp_path: Path) -> None:
        caller = file_of("a/caller.py", ["work"], calls=["retry", "unknown"])
        near, far = file_of("a/near.py", ["retry"]), file_of("z/far.py", ["retry"])
        with self.filled(tmp_path, caller, near, far) as store:
            links = store.links_from(["a/caller.py#work"], EVERYTHING)["a/caller.py#work"]
            assert [(link.name, link.target) for link in links] == [
                ("retry", "a/near.py#retry"),
                ("retry", "z/far.py#retry"),
                ("unknown", None),
            ]
            assert [link.source for link in store.links_to(["a/near.py#retry"], EVERYTHING)["a/near.py#retry"]] == [
                "a/caller.py#work"
            ]


class AccessControlContract(StoreSuite):
    """Contract tests; subclass and implement `make_store`."""

    def test_readers_see_only_what_is_theirs_in_every_read(self, tmp_path: Path) -> None:
        secret = file_of("secret.py", ["retry_secret"], calls=["shared"], readers=("ann",))
        shared = file_of("shared.py", ["shared"], readers=("ann", "bob"))
        with self.filled(tmp_path, secret, shared) as store:
            with store.write() as writer:
                writer.put_activity([commit_of("secret.py"), commit_of("shared.py")], "head")
            bob, ann = Filters(readers=frozenset({"bob"})), Filters(readers=frozenset({"ann"}))
            nobody = Filters(readers=frozenset())
            assert self.found(store, "secret retri share", bob) == ["shared.py"]
            assert set(self.found(store, "secret retri share", ann)) == {"secret.py", "shared.py"}
            assert self.found(store, "secret retri share", nobody) == []
            assert self.found(store, filters=bob, names=("retry_secret",)) == []
            pieces = [piece.id for piece in store.pieces_of("secret.py", ann)]
            assert pieces
            assert store.pieces(pieces, bob) == []
            assert store.pieces_of("secret.py", bob) == []
            assert store.text_of("secret.py", bob) is None
            assert store.block("secret.py#retry_secret", bob) is None
            assert store.blocks_of("secret.py", bob) == []
            assert store.links_from(["secret.py#retry_secret"], bob) == {}
            assert store.links_to(["shared.py#shared"], bob) == {}
            assert [link.source for link in store.links_to(["shared.py#shared"], ann)["shared.py#shared"]] == [
                "secret.py#retry_secret"
            ]
            assert [activity.block for activity in store.activity(bob)] == ["shared.py"]

    def test_hidden_files_do_not_change_the_rarity_of_names(self, tmp_path: Path) -> None:
        shown = [file_of(f"{name}.py", ["run"]) for name in ("retry_pool", "shell_pool", "retry")]
        hidden = [file_of(f"x/retry_{i}_secret.py", ["run"], readers=("user:ann",)) for i in range(9)]
        eve = Filters(readers=frozenset({"user:eve", "*"}))
        with self.filled(tmp_path / "without", *shown) as store:
            without = self.evidence(store, "retri pool secret run", eve)
        with self.filled(tmp_path / "with", *hidden, *shown) as store:
            assert self.evidence(store, "retri pool secret run", eve) == without
        assert without["retry_pool.py"]["file_name"] == 1

    def test_pages_are_for_those_who_may_read_the_document(self, tmp_path: Path) -> None:
        document = document_of("report.pdf", ["a socket"], readers=("user:ann",))
        ann, eve = (Filters(readers=frozenset({f"user:{name}", "*"})) for name in ("ann", "eve"))
        with self.filled(tmp_path, document, file_of("open.py", ["other"])) as store:
            assert len(store.pages_of("report.pdf", ann)) == 1
            socket = StoreQuery(terms={"socket": 1.0})
            assert store.search(socket, ann, top_k=5)
            assert not any(candidate.is_passage for candidate in store.search(socket, eve, top_k=5))
            assert not store.pages_of("report.pdf", eve)
            assert not store.documents(eve)
            assert not store.paths_of(document.state.content_hash, eve)

    def test_grants_are_inherited_and_a_block_may_stand_alone(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a"), note("other")) as store:
            self.change(store, lambda blocks: blocks.set_inherits("a", inherits=False))
            self.change(store, allow("p", "ann"), allow("a1", "user:bob"))
            assert self._readable(store, read_by("ann")) == {"p"}
            assert self._readable(store, read_by("bob")) == {"a1"}
            assert self._readable(store, read_by("eve")) == set()
            assert self._readable(store, EVERYTHING) == set()
            self.change(store, lambda blocks: blocks.set_inherits("a", inherits=True))
            assert self._readable(store, read_by("ann")) == {"p", "a", "a1"}

    def test_a_denial_wins_and_a_grant_further_down_lifts_it(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a")) as store:
            self.change(store, allow("p", "group:staff"), deny("a", "user:bob"), allow("a1", "user:bob"))
            assert self._readable(store, read_by("ann", "staff")) == {"p", "a", "a1"}
            assert self._readable(store, read_by("bob", "staff")) == {"p", "a1"}

    def test_the_default_holds_where_nothing_is_said(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p", inherits=False), note("q")) as store:
            self.change(store, lambda blocks: blocks.set_default(DefaultAccess.ALLOW), deny("q", "ann"))
            assert self._readable(store, read_by("ann")) == {"p"}
            assert self._readable(store, read_by("bob")) == {"p", "q"}
            assert self._readable(store, EVERYTHING) == set()
            self.change(store, lambda blocks: blocks.set_default(DefaultAccess.DENY))
            assert self._readable(store, read_by("bob")) == set()

    def test_a_move_changes_who_may_read(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q"), note("a", "p"), note("a1", "a")) as store:
            self.change(store, allow("p", "ann"), allow("q", "bob"), lambda blocks: blocks.move("a", "q"))
            assert self._readable(store, read_by("ann")) == {"p"}
            assert self._readable(store, read_by("bob")) == {"q", "a", "a1"}

    def test_revoking_needs_something_to_revoke_and_says_where_it_is(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p")) as store:
            self.change(store, allow("p", "ann"))
            with pytest.raises(InvalidInput, match="the grant is at 'p'"):
                self.change(store, lambda blocks: blocks.revoke("a", "ann"))
            with pytest.raises(InvalidInput, match="no grant to revoke"):
                self.change(store, lambda blocks: blocks.revoke("p", "bob"))
            self.change(store, lambda blocks: blocks.revoke("p", "ann"))
            assert self._readable(store, read_by("ann")) == set()

    def test_a_block_whose_parent_may_not_be_read_is_a_root(self, tmp_path: Path) -> None:
        blocks = [note("top", title="Top"), note("mid", "top", title="Mid"), note("a", "mid"), note("b", "mid", 1)]
        with self.filled(tmp_path, *blocks) as store:
            self.change(store, allow("top", "ann"), deny("mid", "ann"), allow("a", "ann"), allow("b", "ann"))
            ann = read_by("ann")
            assert ids(store.trails(["a"], ann)["a"]) == ["a"]
            assert store.siblings("a", ann, count=2) == []
            assert store.distances("a", ["b", "top"], ann) == {}
            assert store.children(["mid", "top"], ann, limit=5) == {}

    def test_links_activity_and_tasks_obey_too(self, tmp_path: Path) -> None:
        due = {"due": "2026-11-01"}
        edits = [Activity(block=name, actor="ann", action=Action.EDIT, timestamp=NOON) for name in ("open", "shut")]
        with self.filled(tmp_path, note("open", metadata=due), note("shut", metadata=due)) as store:
            self.change(store, allow("open", "ann"), mention("open", "shut"), mention("shut", "open"), *edits)
            ann = read_by("ann")
            assert store.links_from(["open"], ann) == store.links_to(["open"], ann) == {}
            assert store.links_to(["shut"], ann) == store.links_from(["shut"], ann) == {}
            assert [activity.block for activity in store.recent(ann)] == ["open"]
            assert ids(store.tasks(ann)) == ["open"]
            assert ids(store.named("open", ann)) == ["open"]
            assert store.named("shut", ann) == store.named("s", ann) == []

    def test_groups_are_known_by_their_members(self, tmp_path: Path) -> None:
        with self.filled(tmp_path) as store:
            self.change(store, Group(name="staff", members=("ann", "bob")), Group(name="board", members=("ann",)))
            assert store.groups_of("ann") == {"staff", "board"}
            self.change(store, Group(name="staff", members=()))
            assert store.groups_of("bob") == frozenset()

    @staticmethod
    def _readable(store: Store, filters: Filters) -> set[str]:
        names = ["p", "q", "a", "a1", "b", "other"]
        readable = {name for name in names if store.block(name, filters)}
        assert set(store.blocks(names, filters)) == set(store.trails(names, filters)) == readable
        return readable

    def test_files_and_folders_are_granted_like_blocks(self, tmp_path: Path) -> None:
        with self.filled(tmp_path) as store:
            files = [file_of(path, ["f"]) for path in ("plans/a.md", "plans/old/b.md", "plans2/c.md")]
            grants = [allow("plans", "user:ann"), deny("plans/old/", "user:ann"), allow("plans2/c.md", "user:bob")]
            self.change(store, *files, *grants)
            readable = {
                name: {path for path in store.files() if store.text_of(path, read_by(name)) is not None}
                for name in ("ann", "bob", "eve")
            }
            assert readable == {"ann": {"plans/a.md"}, "bob": {"plans2/c.md"}, "eve": set()}
            self.change(store, file_of("plans/new.md", ["f"]), file_of("plans/old/new.md", ["f"]))
            assert store.text_of("plans/new.md", read_by("ann")) is not None
            assert store.text_of("plans/old/new.md", read_by("ann")) is None
            self.change(store, lambda blocks: blocks.revoke("plans", "user:ann"))
            assert store.text_of("plans/a.md", read_by("ann")) is None

    def test_skipped_files_are_known_to_those_who_may_read_them(self, tmp_path: Path) -> None:
        unread = [SkippedFile(path, "too-large", 60_000_000) for path in ("plans/a.log", "plans/old/b.log", "c.log")]
        failed = file_of("plans/locked.pdf", [])
        failed = failed._replace(outline=failed.outline._replace(note=f"{PASSED_OVER}is encrypted"))
        with self.filled(tmp_path, failed, file_of("plans/old/read.py", ["f"])) as store:
            with store.write() as writer:
                writer.set_fact(SKIPPED, json.dumps(unread))
            every = sorted([*unread, SkippedFile("plans/locked.pdf", "is encrypted")])
            assert store.skipped(EVERYTHING) == every
            self.change(store, allow("plans", "user:ann"), deny("plans/old/", "user:ann"))
            assert {file.path for file in store.skipped(read_by("ann"))} == {"plans/a.log", "plans/locked.pdf"}
            assert store.skipped(read_by("eve")) == store.skipped(EVERYTHING) == []
            self.change(store, lambda blocks: blocks.set_default(DefaultAccess.ALLOW))
            assert {file.path for file in every if file not in store.skipped(read_by("ann"))} == {"plans/old/b.log"}

    def test_a_file_with_readers_of_its_own_keeps_them(self, tmp_path: Path) -> None:
        with self.filled(tmp_path) as store:
            own = file_of("plans/a.md", ["f"], readers=("user:cleo",))
            self.change(store, own, file_of("plans/b.md", ["f"]), allow("plans", "user:ann"))
            assert store.text_of("plans/a.md", read_by("ann")) is None
            assert store.text_of("plans/a.md", read_by("cleo")) is not None
            assert store.text_of("plans/b.md", read_by("ann")) is not None

    def test_equal_access_keys_mean_equal_access(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q")) as store:
            self.change(store, allow("p", "*"), allow("q", "ann"))
            ann, bob, cleo = (store.access_key(read_by(name)) for name in ("ann", "bob", "cleo"))
            assert bob == cleo != ann


class ActivityLogContract(StoreSuite):
    """Contract tests; subclass and implement `make_store`."""

    def test_activity_is_the_newest_first(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["one"])) as store:
            with store.write() as writer:
                writer.put_activity([commit_of("a.py", day) for day in (1, 3, 2)], "head")
            assert [commit.timestamp.day for commit in store.activity(EVERYTHING, path="a.py")] == [3, 2, 1]
            assert store.history_head() == "head"

    def test_activity_is_listed_newest_first(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("a"), note("b")) as store:
            events = [("ann", Action.EDIT, "a"), ("bob", Action.VIEW, "b"), ("ann", Action.VIEW, "b")]
            for hours, (actor, action, block) in enumerate(events):
                at = NOON - timedelta(hours=hours)
                self.change(store, Activity(block=block, actor=actor, action=action, timestamp=at))
            assert [event.block for event in store.recent(EVERYTHING, actor="ann")] == ["a", "b"]
            assert [event.block for event in store.recent(EVERYTHING, actor="ann", actions=[Action.VIEW])] == ["b"]
            assert len(store.recent(EVERYTHING, since=NOON - timedelta(hours=1))) == 2
            assert len(store.recent(EVERYTHING, limit=1)) == 1
