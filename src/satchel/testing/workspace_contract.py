"""What every store does with a workspace's own blocks: the tree, links, activity, tasks, and who may read what.

Subclass `WorkspaceContract`, give it `make_store`, and run it with pytest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from satchel.errors import InvalidInput, UnknownBlock
from satchel.models.access import DefaultAccess, Effect, Grant, Group, readers_for
from satchel.models.block import Action, Activity, Block, BlockType, Link, LinkKind
from satchel.models.filters import Filters
from satchel.models.records import Policy
from satchel.testing.store_contract import file_of
from satchel.workspace.blocks import outline_of

if TYPE_CHECKING:
    from satchel.ports.store import BlockWriter, Store

OWNER = Filters()
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def seen_by(user: str, *groups: str) -> Filters:
    """The filters of a user."""
    return Filters(readers=readers_for(user, groups))


def put(writer: BlockWriter, *blocks: Block) -> None:
    """Put blocks as an edit does."""
    for block in blocks:
        writer.put(block, outline_of(block))


def note(name: str, parent: str | None = None, position: float = 0, **more: object) -> Block:
    """A block with a text of its own."""
    return Block(id=name, type="text", content=f"text of {name}", parent=parent, position=position, **more)  # type: ignore[arg-type]


class WorkspaceContract(ABC):
    """The suite."""

    @abstractmethod
    def make_store(self, folder: Path) -> Store:
        """A store in an empty folder."""

    @contextmanager
    def filled(self, folder: Path, *blocks: Block) -> Iterator[Store]:
        store = self.make_store(folder)
        with store.write() as writer:
            put(writer.blocks, *blocks)
        try:
            yield store
        finally:
            store.close()

    # -- the tree

    def test_a_block_comes_back_as_it_was_put(self, tmp_path: Path) -> None:
        block = Block(
            id="Größe/1#x\udcff", type="acme.ticket", title="A title", content="line\n\nline \U0001f600", parent="p",
            position=2.5, summary="short", source_path="notes/a.md", start_line=3, end_line=9, language="markdown",
            last_modified=NOON, metadata={"due": "2026-12-01", "deep": {"list": [1, None, "x"]}}, inherits=False,
        )  # fmt: skip
        with self.filled(tmp_path, block) as store:
            assert store.block(block.id, OWNER) == block
            assert list(store.records()) == [block]

    def test_every_type_is_kept(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, *(Block(id=kind, type=kind, content="x") for kind in BlockType)) as store:
            found = store.blocks(list(BlockType), OWNER)
            assert {one.type for one in found.values()} == set(BlockType)

    def test_children_come_in_their_order_and_a_limit_holds(self, tmp_path: Path) -> None:
        blocks = [note("p"), *(note(f"c{i}", "p", 10 - i) for i in range(5))]
        with self.filled(tmp_path, *blocks) as store:
            assert [one.id for one in store.children("p", OWNER, limit=3)] == ["c4", "c3", "c2"]
            assert store.children("nothing", OWNER, limit=3) == []
            assert store.children("p", OWNER, limit=0) == []

    def test_siblings_are_the_nearest_on_both_sides(self, tmp_path: Path) -> None:
        blocks = [note("p"), *(note(f"c{i}", "p", i) for i in range(7))]
        with self.filled(tmp_path, *blocks) as store:
            assert [one.id for one in store.siblings("c3", OWNER, count=2)] == ["c2", "c4", "c1", "c5"]
            assert [one.id for one in store.siblings("c0", OWNER, count=2)] == ["c1", "c2"]
            assert store.siblings("p", OWNER, count=2) == []

    def test_descendants_come_in_reading_order_as_deep_as_asked(self, tmp_path: Path) -> None:
        blocks = [note("p"), note("a", "p", 1), note("a1", "a"), note("a11", "a1"), note("b", "p", 2)]
        with self.filled(tmp_path, *blocks) as store:
            everything = store.descendants("p", OWNER, limit=9, deepest=9)
            assert [one.id for one in everything] == ["a", "a1", "a11", "b"]
            assert [one.id for one in store.descendants("p", OWNER, limit=9, deepest=1)] == ["a", "b"]
            assert [one.id for one in store.descendants("p", OWNER, limit=2, deepest=9)] == ["a", "a1"]
            assert store.descendants("p", OWNER, limit=9, deepest=0) == []

    def test_trails_lead_up_and_distances_are_steps(self, tmp_path: Path) -> None:
        blocks = [note("p"), note("a", "p"), note("a1", "a"), note("b", "p"), note("else")]
        with self.filled(tmp_path, *blocks) as store:
            assert [step.id for step in store.trails(["a1"], OWNER)["a1"]] == ["a1", "a", "p"]
            assert store.trails(["gone"], OWNER) == {}
            assert store.distances("a1", ["a1", "a", "b", "else", "gone"], OWNER) == {"a1": 0, "a": 1, "b": 3}

    def test_moving_takes_all_that_is_below_along(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q"), note("a", "p"), note("a1", "a"), note("z", "q", 7)) as store:
            with store.write() as writer:
                writer.blocks.move("a", "q")
            assert [one.id for one in store.children("q", OWNER, limit=9)] == ["z", "a"]
            assert [step.id for step in store.trails(["a1"], OWNER)["a1"]] == ["a1", "a", "q"]

    def test_deleting_takes_all_that_is_below_along(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a"), note("b", "p")) as store:
            with store.write() as writer:
                writer.blocks.link(Link(source="b", kind=LinkKind.MENTIONS, target="a1"))
                assert writer.blocks.delete("a") == 2
            assert set(store.blocks(["p", "a", "a1", "b"], OWNER)) == {"p", "b"}
            assert store.links_from("b", OWNER) == []

    def test_rings_and_unknown_blocks_are_refused(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a")) as store:
            for parent in ("p", "a1"):
                with pytest.raises(InvalidInput, match="ancestor"), store.write() as writer:
                    writer.blocks.move("p", parent)
            for work in ("move", "delete", "grant", "link"):
                with pytest.raises(UnknownBlock), store.write() as writer:
                    _do(writer.blocks, work, "gone")
            assert [step.id for step in store.trails(["a1"], OWNER)["a1"]] == ["a1", "a", "p"]

    def test_a_commit_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p")) as store:
            before = store.generation
            with pytest.raises(ZeroDivisionError), store.write() as writer:
                put(writer.blocks, note("q"))
                writer.blocks.grant(Grant(block="p", principal="user:ann"))
                raise ZeroDivisionError
            assert store.blocks(["q"], OWNER) == {}
            assert store.default_access() is DefaultAccess.OWNER
            assert store.generation == before

    # -- links, activity, tasks

    def test_links_go_both_ways_and_the_same_link_is_one(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("a"), note("b")) as store:
            link = Link(source="a", kind=LinkKind.RELATION, target="b", name="Owner")
            with store.write() as writer:
                for _ in range(2):
                    writer.blocks.link(link)
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, target="a"))
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, target="later"))
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, name="nowhere"))
            assert [one.target for one in store.links_from("a", OWNER)] == ["b", "a"]  # relations first
            assert store.links_to("b", OWNER) == [link]
            with store.write() as writer:
                put(writer.blocks, note("later"))
                assert writer.blocks.unlink("a", kind=LinkKind.RELATION) == 1
            assert [one.target for one in store.links_from("a", OWNER)] == ["a", "later"]

    def test_activity_is_listed_newest_first(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("a"), note("b")) as store:
            with store.write() as writer:
                for hours, (who, action, block) in enumerate(
                    (("ann", Action.EDIT, "a"), ("bob", Action.VIEW, "b"), ("ann", Action.VIEW, "b"))
                ):
                    at = NOON - timedelta(hours=hours)
                    writer.blocks.record(Activity(block=block, actor=who, action=action, timestamp=at))
            assert [one.block for one in store.recent(OWNER, actor="ann")] == ["a", "b"]
            assert [one.block for one in store.recent(OWNER, actor="ann", actions=[Action.VIEW])] == ["b"]
            assert len(store.recent(OWNER, since=NOON - timedelta(hours=1))) == 2
            assert len(store.recent(OWNER, limit=1)) == 1

    def test_tasks_are_listed_by_when_they_are_due(self, tmp_path: Path) -> None:
        def task(name: str, due: str, done: bool = False) -> Block:
            return Block(id=name, type="todo", content=name, metadata={"due": due, "done": done})

        blocks = [task("late", "2026-11-01"), task("later", "2026-11-10"), task("done", "2026-11-02", True)]
        blocks += [task("today", "2026-11-16"), task("odd", "someday"), task("exact", "2026-11-16T11:00:00+00:00")]
        with self.filled(tmp_path, *blocks) as store:
            found = store.tasks(OWNER, done=False, due_before=NOON)
            assert [one.id for one in found] == ["late", "later", "exact"]
            assert [one.id for one in store.tasks(Filters(types=("page",)))] == []

    # -- who may read

    def test_grants_are_inherited_and_a_block_may_stand_alone(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a"), note("other")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="ann"))
                writer.blocks.set_inherits("a", inherits=False)
                writer.blocks.grant(Grant(block="a1", principal="user:bob"))
            assert self._readable(store, seen_by("ann")) == {"p"}
            assert self._readable(store, seen_by("bob")) == {"a1"}
            assert self._readable(store, seen_by("eve")) == set()
            assert self._readable(store, OWNER) == set()
            with store.write() as writer:
                writer.blocks.set_inherits("a", inherits=True)
            assert self._readable(store, seen_by("ann")) == {"p", "a", "a1"}

    def test_a_denial_wins_and_a_grant_further_down_lifts_it(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="group:staff"))
                writer.blocks.grant(Grant(block="a", principal="user:bob", effect=Effect.DENY))
                writer.blocks.grant(Grant(block="a1", principal="user:bob"))
            assert self._readable(store, seen_by("ann", "staff")) == {"p", "a", "a1"}
            assert self._readable(store, seen_by("bob", "staff")) == {"p", "a1"}

    def test_the_default_holds_where_nothing_is_said(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p", inherits=False), note("q")) as store:
            with store.write() as writer:
                writer.blocks.set_default(DefaultAccess.ALLOW)
                writer.blocks.grant(Grant(block="q", principal="ann", effect=Effect.DENY))
            assert self._readable(store, seen_by("ann")) == {"p"}
            assert self._readable(store, seen_by("bob")) == {"p", "q"}
            assert self._readable(store, OWNER) == set()
            with store.write() as writer:
                writer.blocks.set_default(DefaultAccess.DENY)
            assert self._readable(store, seen_by("bob")) == set()

    def test_a_move_changes_who_may_read(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q"), note("a", "p"), note("a1", "a")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="ann"))
                writer.blocks.grant(Grant(block="q", principal="bob"))
                writer.blocks.move("a", "q")
            assert self._readable(store, seen_by("ann")) == {"p"}
            assert self._readable(store, seen_by("bob")) == {"q", "a", "a1"}

    def test_revoking_needs_something_to_revoke_and_says_where_it_is(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="ann"))
            with pytest.raises(InvalidInput, match="it is granted at 'p'"), store.write() as writer:
                writer.blocks.revoke("a", "ann")
            with pytest.raises(InvalidInput, match="nothing to revoke"), store.write() as writer:
                writer.blocks.revoke("p", "bob")
            with store.write() as writer:
                writer.blocks.revoke("p", "ann")
            assert self._readable(store, seen_by("ann")) == set()

    def test_a_block_whose_parent_may_not_be_read_is_a_root(self, tmp_path: Path) -> None:
        blocks = [note("top", title="Top"), note("mid", "top", title="Mid"), note("a", "mid"), note("b", "mid", 1)]
        with self.filled(tmp_path, *blocks) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="top", principal="ann"))
                writer.blocks.grant(Grant(block="mid", principal="ann", effect=Effect.DENY))
                for name in ("a", "b"):
                    writer.blocks.grant(Grant(block=name, principal="ann"))
            ann = seen_by("ann")
            assert [step.id for step in store.trails(["a"], ann)["a"]] == ["a"]
            assert store.siblings("a", ann, count=2) == []
            assert store.distances("a", ["b", "top"], ann) == {}
            assert store.children("mid", ann, limit=5) == store.children("top", ann, limit=5) == []

    def test_links_activity_and_tasks_obey_too(self, tmp_path: Path) -> None:
        due = {"due": "2026-11-01"}
        blocks = [note("open", metadata=due), note("shut", metadata=due)]
        with self.filled(tmp_path, *blocks) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="open", principal="ann"))
                for source, target in (("open", "shut"), ("shut", "open")):
                    writer.blocks.link(Link(source=source, kind=LinkKind.MENTIONS, target=target))
                for name in ("open", "shut"):
                    writer.blocks.record(Activity(block=name, actor="ann", action=Action.EDIT, timestamp=NOON))
            ann = seen_by("ann")
            assert store.links_from("open", ann) == store.links_to("open", ann) == []
            assert store.links_to("shut", ann) == store.links_from("shut", ann) == []
            assert [one.block for one in store.recent(ann)] == ["open"]
            assert [one.id for one in store.tasks(ann)] == ["open"]

    def test_groups_are_known_by_their_members(self, tmp_path: Path) -> None:
        with self.filled(tmp_path) as store:
            with store.write() as writer:
                writer.blocks.put_group(Group(name="staff", members=("ann", "bob")))
                writer.blocks.put_group(Group(name="board", members=("ann",)))
            assert store.groups_of("ann") == {"staff", "board"}
            with store.write() as writer:
                writer.blocks.put_group(Group(name="staff", members=()))
            assert store.groups_of("bob") == frozenset()

    def test_rights_are_equal_for_those_who_may_see_the_same(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="*"))
                writer.blocks.grant(Grant(block="q", principal="ann"))
            assert (
                store.access_key(seen_by("bob"))
                == store.access_key(seen_by("cleo"))
                != store.access_key(seen_by("ann"))
            )

    def test_everything_that_was_put_can_be_had_again(self, tmp_path: Path) -> None:
        grant = Grant(block="p", principal="user:ann", effect=Effect.DENY)
        done = Activity(block="p", actor="ann", action=Action.VIEW, timestamp=NOON, detail="d", reference="r")
        link = Link(source="p", kind=LinkKind.REPLY, target="gone", name="n")
        group = Group(name="staff", members=("ann", "bob"))
        with self.filled(tmp_path, note("p")) as store:
            with store.write() as writer:
                writer.blocks.grant(grant)
                writer.blocks.record(done)
                writer.blocks.link(link)
                writer.blocks.put_group(group)
            found = list(store.records())
            assert found[0] == Policy(default=DefaultAccess.DENY)
            assert [one for one in found[1:] if not isinstance(one, Block)] == [group, link, grant, done]

    @staticmethod
    def _readable(store: Store, filters: Filters) -> set[str]:
        found = {one for one in ("p", "q", "a", "a1", "b", "other") if store.block(one, filters)}
        assert set(store.blocks(["p", "q", "a", "a1", "b", "other"], filters)) == found
        assert set(store.trails(["p", "q", "a", "a1", "b", "other"], filters)) == found
        return found

    # -- files

    def test_files_and_folders_are_granted_like_blocks(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        try:
            with store.write() as writer:
                for path in ("plans/a.md", "plans/old/b.md", "plans2/c.md"):
                    writer.put(file_of(path, ["f"]))
                writer.blocks.grant(Grant(block="plans", principal="user:ann"))
                writer.blocks.grant(Grant(block="plans/old/", principal="user:ann", effect=Effect.DENY))
                writer.blocks.grant(Grant(block="plans2/c.md", principal="user:bob"))
            readable = {
                name: {path for path in store.files() if store.text_of(path, seen_by(name)) is not None}
                for name in ("ann", "bob", "eve")
            }
            assert readable == {"ann": {"plans/a.md"}, "bob": {"plans2/c.md"}, "eve": set()}
            with store.write() as writer:
                writer.put(file_of("plans/new.md", ["f"]))
                writer.put(file_of("plans/old/new.md", ["f"]))
            assert store.text_of("plans/new.md", seen_by("ann")) is not None
            assert store.text_of("plans/old/new.md", seen_by("ann")) is None
            with store.write() as writer:
                writer.blocks.revoke("plans", "user:ann")
            assert store.text_of("plans/a.md", seen_by("ann")) is None
        finally:
            store.close()

    def test_a_file_with_readers_of_its_own_keeps_them(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        try:
            with store.write() as writer:
                writer.put(file_of("plans/a.md", ["f"], readers=("user:cleo",)))
                writer.put(file_of("plans/b.md", ["f"]))
                writer.blocks.grant(Grant(block="plans", principal="user:ann"))
            assert store.text_of("plans/a.md", seen_by("ann")) is None
            assert store.text_of("plans/a.md", seen_by("cleo")) is not None
            assert store.text_of("plans/b.md", seen_by("ann")) is not None
        finally:
            store.close()


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
