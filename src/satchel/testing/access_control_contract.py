"""Who may read what: in every read, of files and of blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.errors import InvalidInput
from satchel.models.access import DefaultAccess, Effect, Grant, Group
from satchel.models.block import Action, Activity, Link, LinkKind
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.ports.store import Store
from satchel.testing.store_suite import (
    EVERYTHING,
    NOON,
    StoreSuite,
    commit_of,
    document_of,
    file_of,
    note,
    read_by,
)


class AccessControlContract(StoreSuite):
    """Subclass it and make a store."""

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

    def test_grants_are_inherited_and_a_block_may_stand_alone(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a"), note("other")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="ann"))
                writer.blocks.set_inherits("a", inherits=False)
                writer.blocks.grant(Grant(block="a1", principal="user:bob"))
            assert self._readable(store, read_by("ann")) == {"p"}
            assert self._readable(store, read_by("bob")) == {"a1"}
            assert self._readable(store, read_by("eve")) == set()
            assert self._readable(store, EVERYTHING) == set()
            with store.write() as writer:
                writer.blocks.set_inherits("a", inherits=True)
            assert self._readable(store, read_by("ann")) == {"p", "a", "a1"}

    def test_a_denial_wins_and_a_grant_further_down_lifts_it(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p"), note("a1", "a")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="group:staff"))
                writer.blocks.grant(Grant(block="a", principal="user:bob", effect=Effect.DENY))
                writer.blocks.grant(Grant(block="a1", principal="user:bob"))
            assert self._readable(store, read_by("ann", "staff")) == {"p", "a", "a1"}
            assert self._readable(store, read_by("bob", "staff")) == {"p", "a1"}

    def test_the_default_holds_where_nothing_is_said(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("a", "p", inherits=False), note("q")) as store:
            with store.write() as writer:
                writer.blocks.set_default(DefaultAccess.ALLOW)
                writer.blocks.grant(Grant(block="q", principal="ann", effect=Effect.DENY))
            assert self._readable(store, read_by("ann")) == {"p"}
            assert self._readable(store, read_by("bob")) == {"p", "q"}
            assert self._readable(store, EVERYTHING) == set()
            with store.write() as writer:
                writer.blocks.set_default(DefaultAccess.DENY)
            assert self._readable(store, read_by("bob")) == set()

    def test_a_move_changes_who_may_read(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q"), note("a", "p"), note("a1", "a")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="ann"))
                writer.blocks.grant(Grant(block="q", principal="bob"))
                writer.blocks.move("a", "q")
            assert self._readable(store, read_by("ann")) == {"p"}
            assert self._readable(store, read_by("bob")) == {"q", "a", "a1"}

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
            assert self._readable(store, read_by("ann")) == set()

    def test_a_block_whose_parent_may_not_be_read_is_a_root(self, tmp_path: Path) -> None:
        blocks = [note("top", title="Top"), note("mid", "top", title="Mid"), note("a", "mid"), note("b", "mid", 1)]
        with self.filled(tmp_path, *blocks) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="top", principal="ann"))
                writer.blocks.grant(Grant(block="mid", principal="ann", effect=Effect.DENY))
                for name in ("a", "b"):
                    writer.blocks.grant(Grant(block=name, principal="ann"))
            ann = read_by("ann")
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
            ann = read_by("ann")
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

    @staticmethod
    def _readable(store: Store, filters: Filters) -> set[str]:
        found = {one for one in ("p", "q", "a", "a1", "b", "other") if store.block(one, filters)}
        assert set(store.blocks(["p", "q", "a", "a1", "b", "other"], filters)) == found
        assert set(store.trails(["p", "q", "a", "a1", "b", "other"], filters)) == found
        return found

    def test_files_and_folders_are_granted_like_blocks(self, tmp_path: Path) -> None:
        with self.filled(tmp_path) as store:
            with store.write() as writer:
                for path in ("plans/a.md", "plans/old/b.md", "plans2/c.md"):
                    writer.put(file_of(path, ["f"]))
                writer.blocks.grant(Grant(block="plans", principal="user:ann"))
                writer.blocks.grant(Grant(block="plans/old/", principal="user:ann", effect=Effect.DENY))
                writer.blocks.grant(Grant(block="plans2/c.md", principal="user:bob"))
            readable = {
                name: {path for path in store.files() if store.text_of(path, read_by(name)) is not None}
                for name in ("ann", "bob", "eve")
            }
            assert readable == {"ann": {"plans/a.md"}, "bob": {"plans2/c.md"}, "eve": set()}
            with store.write() as writer:
                writer.put(file_of("plans/new.md", ["f"]))
                writer.put(file_of("plans/old/new.md", ["f"]))
            assert store.text_of("plans/new.md", read_by("ann")) is not None
            assert store.text_of("plans/old/new.md", read_by("ann")) is None
            with store.write() as writer:
                writer.blocks.revoke("plans", "user:ann")
            assert store.text_of("plans/a.md", read_by("ann")) is None

    def test_a_file_with_readers_of_its_own_keeps_them(self, tmp_path: Path) -> None:
        with self.filled(tmp_path) as store:
            with store.write() as writer:
                writer.put(file_of("plans/a.md", ["f"], readers=("user:cleo",)))
                writer.put(file_of("plans/b.md", ["f"]))
                writer.blocks.grant(Grant(block="plans", principal="user:ann"))
            assert store.text_of("plans/a.md", read_by("ann")) is None
            assert store.text_of("plans/a.md", read_by("cleo")) is not None
            assert store.text_of("plans/b.md", read_by("ann")) is not None

    def test_equal_access_keys_mean_equal_access(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("p"), note("q")) as store:
            with store.write() as writer:
                writer.blocks.grant(Grant(block="p", principal="*"))
                writer.blocks.grant(Grant(block="q", principal="ann"))
            ann, bob, cleo = (store.access_key(read_by(name)) for name in ("ann", "bob", "cleo"))
            assert bob == cleo != ann
