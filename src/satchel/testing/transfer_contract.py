"""Everything in a store handed out to its owner, and taken over by another store."""

from __future__ import annotations

from pathlib import Path

from satchel.models.access import DefaultAccess, Effect, Grant, Group
from satchel.models.block import Action, Activity, Block, Link, LinkKind, Policy
from satchel.ports.transfer import RowKind
from satchel.testing.store_suite import NOON, StoreSuite, commit_of, document_of, file_of, note, read_by


class TransferContract(StoreSuite):
    """Subclass it and make a store."""

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

    def test_another_store_takes_over_everything_unchanged(self, tmp_path: Path) -> None:
        file = file_of("a.py", ["retry"], calls=["socket"])
        document = document_of("r.pdf", ["one", "two"], readers=("user:ann",))
        with self.filled(tmp_path / "from", file, document, note("p"), note("a", "p")) as source:
            with source.write() as writer:
                writer.blocks.link(Link(source="a", kind=LinkKind.MENTIONS, target="p"))
                writer.blocks.put_group(Group(name="staff", members=("ann",)))
                writer.blocks.grant(Grant(block="p", principal="group:staff"))
                writer.blocks.record(Activity(block="a", actor="ann", action=Action.EDIT, timestamp=NOON))
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
                taken = target.transfer.files_by_path(limit=9)
                assert [file._replace(number=0) for file in taken] == [
                    file._replace(number=0) for file in source.transfer.files_by_path(limit=9)
                ]
                assert target.transfer.vectors(hashes) == source.transfer.vectors(hashes)
                assert target.transfer.paths(limit=9) == source.transfer.paths(limit=9)
                for kind in RowKind:
                    assert list(target.transfer.rows(kind)) == list(source.transfer.rows(kind)) != []
                assert target.transfer.facts() == source.transfer.facts()
                assert self.found(target, "retri", read_by("ann")) == self.found(source, "retri", read_by("ann"))
