"""The tree of blocks: order, depth, trails, moves, links and tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.errors import InvalidInput, UnknownBlock
from satchel.models.access import DefaultAccess, Grant
from satchel.models.block import Block, BlockType, Link, LinkKind
from satchel.models.outline import Mention
from satchel.models.search import Filters
from satchel.ports.file_index import NewFile
from satchel.ports.store import BlockWriter
from satchel.testing.store_suite import EVERYTHING, NOON, StoreSuite, file_of, note, put_blocks


class BlockTreeContract(StoreSuite):
    """Subclass it and make a store."""

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
            found = store.blocks(list(BlockType), EVERYTHING)
            assert {one.type for one in found.values()} == set(BlockType)

    def test_children_come_in_their_order_and_a_limit_holds(self, tmp_path: Path) -> None:
        blocks = [note("p"), *(note(f"c{i}", "p", 10 - i) for i in range(5))]
        with self.filled(tmp_path, *blocks) as store:
            assert [one.id for one in store.children("p", EVERYTHING, limit=3)] == ["c4", "c3", "c2"]
            assert store.children("nothing", EVERYTHING, limit=3) == []
            assert store.children("p", EVERYTHING, limit=0) == []

    def test_siblings_are_the_nearest_on_both_sides(self, tmp_path: Path) -> None:
        blocks = [note("p"), *(note(f"c{i}", "p", i) for i in range(7))]
        with self.filled(tmp_path, *blocks) as store:
            assert [one.id for one in store.siblings("c3", EVERYTHING, count=2)] == ["c2", "c4", "c1", "c5"]
            assert [one.id for one in store.siblings("c0", EVERYTHING, count=2)] == ["c1", "c2"]
            assert store.siblings("p", EVERYTHING, count=2) == []

    def test_descendants_come_in_reading_order_as_deep_as_asked(self, tmp_path: Path) -> None:
        blocks = [note("p"), note("a", "p", 1), note("a1", "a"), note("a11", "a1"), note("b", "p", 2)]
        with self.filled(tmp_path, *blocks) as store:
            everything = store.descendants("p", EVERYTHING, limit=9, deepest=9)
            assert [one.id for one in everything] == ["a", "a1", "a11", "b"]
            assert [one.id for one in store.descendants("p", EVERYTHING, limit=9, deepest=1)] == ["a", "b"]
            assert [one.id for one in store.descendants("p", EVERYTHING, limit=2, deepest=9)] == ["a", "a1"]
            assert store.descendants("p", EVERYTHING, limit=9, deepest=0) == []

    def test_trails_lead_up_and_distances_are_steps(self, tmp_path: Path) -> None:
        blocks = [note("p"), note("a", "p"), note("a1", "a"), note("b", "p"), note("else")]
        with self.filled(tmp_path, *blocks) as store:
            assert [step.id for step in store.trails(["a1"], EVERYTHING)["a1"]] == ["a1", "a", "p"]
            assert store.trails(["gone"], EVERYTHING) == {}
            assert store.distances("a1", ["a1", "a", "b", "else", "gone"], EVERYTHING) == {"a1": 0, "a": 1, "b": 3}

    def test_moving_takes_all_that_is_below_along(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q"), note("a", "p"), note("a1", "a"), note("z", "q", 7)) as store:
            with store.write() as writer:
                writer.blocks.move("a", "q")
            assert [one.id for one in store.children("q", EVERYTHING, limit=9)] == ["z", "a"]
            assert [step.id for step in store.trails(["a1"], EVERYTHING)["a1"]] == ["a1", "a", "q"]

    def test_deleting_takes_all_that_is_below_along(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a"), note("b", "p")) as store:
            with store.write() as writer:
                writer.blocks.link(Link(source="b", kind=LinkKind.MENTIONS, target="a1"))
                assert writer.blocks.delete("a") == 2
            assert set(store.blocks(["p", "a", "a1", "b"], EVERYTHING)) == {"p", "b"}
            assert store.links_from("b", EVERYTHING) == []

    def test_rings_and_unknown_blocks_are_refused(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a")) as store:
            for parent in ("p", "a1"):
                with pytest.raises(InvalidInput, match="ancestor"), store.write() as writer:
                    writer.blocks.move("p", parent)
            for work in ("move", "delete", "grant", "link"):
                with pytest.raises(UnknownBlock), store.write() as writer:
                    _do(writer.blocks, work, "gone")
            assert [step.id for step in store.trails(["a1"], EVERYTHING)["a1"]] == ["a1", "a", "p"]

    def test_links_go_both_ways_and_the_same_link_is_one(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("a"), note("b")) as store:
            link = Link(source="a", kind=LinkKind.RELATION, target="b", name="Owner")
            with store.write() as writer:
                for _ in range(2):
                    writer.blocks.link(link)
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, target="a"))
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, target="later"))
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, name="nowhere"))
            assert [one.target for one in store.links_from("a", EVERYTHING)] == ["b", "a"]  # relations first
            assert store.links_to("b", EVERYTHING) == [link]
            with store.write() as writer:
                put_blocks(writer.blocks, note("later"))
                assert writer.blocks.unlink("a", kind=LinkKind.RELATION) == 1
            assert [one.target for one in store.links_from("a", EVERYTHING)] == ["a", "later"]

    def test_tasks_are_listed_by_when_they_are_due(self, tmp_path: Path) -> None:
        def task(name: str, due: str, done: bool = False) -> Block:
            return Block(id=name, type="todo", content=name, metadata={"due": due, "done": done})

        blocks = [task("late", "2026-11-01"), task("later", "2026-11-10"), task("done", "2026-11-02", True)]
        blocks += [task("today", "2026-11-16"), task("odd", "someday"), task("exact", "2026-11-16T11:00:00+00:00")]
        with self.filled(tmp_path, *blocks) as store:
            found = store.tasks(EVERYTHING, done=False, due_before=NOON)
            assert [one.id for one in found] == ["late", "later", "exact"]
            assert [one.id for one in store.tasks(Filters(types=("page",)))] == []

    def test_a_commit_of_blocks_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p")) as store:
            before = store.generation
            with pytest.raises(ZeroDivisionError), store.write() as writer:
                put_blocks(writer.blocks, note("q"))
                writer.blocks.grant(Grant(block="p", principal="user:ann"))
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
            links = store.links_to("my_mod.py", EVERYTHING)
            assert [link.source for link in links] == ["a.py#work", "b.py#work", "c.py#work"]

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


def _do(writer: BlockWriter, work: str, block: str) -> None:
    match work:
        case "move":
            writer.move(block, None)
        case "delete":
            writer.delete(block)
        case "grant":
            writer.grant(Grant(block=block, principal="ann"))
        case _:
            writer.link(Link(source=block, kind=LinkKind.MENTIONS, target="p"))
