"""The activity on blocks and the version history of files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from satchel.models.block import Action, Activity
from satchel.testing.store_suite import EVERYTHING, NOON, StoreSuite, commit_of, file_of, note


class ActivityLogContract(StoreSuite):
    """Subclass it and make a store."""

    def test_activity_is_the_newest_first(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, file_of("a.py", ["one"])) as store:
            with store.write() as writer:
                writer.put_activity([commit_of("a.py", day) for day in (1, 3, 2)], "head")
            assert [one.timestamp.day for one in store.activity(EVERYTHING, path="a.py")] == [3, 2, 1]
            assert store.history_head() == "head"

    def test_activity_is_listed_newest_first(self, tmp_path: Path) -> None:
        with self.filled(tmp_path, note("a"), note("b")) as store:
            with store.write() as writer:
                for hours, (who, action, block) in enumerate(
                    (("ann", Action.EDIT, "a"), ("bob", Action.VIEW, "b"), ("ann", Action.VIEW, "b"))
                ):
                    at = NOON - timedelta(hours=hours)
                    writer.blocks.record(Activity(block=block, actor=who, action=action, timestamp=at))
            assert [one.block for one in store.recent(EVERYTHING, actor="ann")] == ["a", "b"]
            assert [one.block for one in store.recent(EVERYTHING, actor="ann", actions=[Action.VIEW])] == ["b"]
            assert len(store.recent(EVERYTHING, since=NOON - timedelta(hours=1))) == 2
            assert len(store.recent(EVERYTHING, limit=1)) == 1
