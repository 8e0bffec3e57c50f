"""Moving a workspace from one store to another: everything arrives, nothing opens, and whoever is stopped goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import satchel
from satchel import Block, LinkKind, User
from satchel.cli.exits import Exit, exit_code_of
from satchel.errors import IndexBusy, InvalidInput, InvalidOption, MoveUnfinished, StoresDiffer
from satchel.models.access import DefaultAccess, Effect, Group, readers_for
from satchel.models.block import Activity
from satchel.models.files import FileState
from satchel.models.outline import Outline, text_hash
from satchel.models.search import Filters
from satchel.ports.file_index import NewFile
from satchel.ports.store import Store
from satchel.ports.transfer import MOVING, RowKind
from satchel.service.importing import import_source
from satchel.storage import move as moving
from satchel.storage.move import KINDS, Side, move, tally, verify
from satchel.storage.postgres.store import PostgresStore
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.workspace.blocks import outline_of
from tests.support.documents import pdf_of_lines
from tests.support.postgres import workspace_url

NOW = datetime(2026, 11, 16, 9, 30, 15, 123456, tzinfo=UTC)
USERS = ("ann", "bob", "cat", "dan", "nobody")
QUESTIONS = ("what does the harbour cost", "retry backoff", "tickets for lions")
NOTES = {
    "Home.md": "# Welcome\n\nSee [[Plans/Launch|the launch]] and [[Nowhere]].\n\n- [ ] Book the hall 📅 2026-12-01\n",
    "Plans/Launch.md": "---\ntags: [launch]\n---\n# Launch\n\nThe harbour costs 300. ^cost\n\nBack to [[Home]].\n",
    "Plans/Salaries.md": "# Salaries\n\nSecret: Ann earns more than Bob.\n",
}


def make_folder(root: Path) -> Path:
    """A folder with sources, prose, a document with pages, a vault, and a name that is no UTF-8."""
    (root / "src").mkdir(parents=True)
    (root / "src" / "retry.py").write_text(
        'class Backoff:\n    """Waits longer each time."""\n\n    def delay(self, n):\n        return 2 ** n\n\n\n'
        "def retry(task):\n    return Backoff().delay(task)\n"
    )
    (root / "src" / "größe.py").write_text("def größe():\n    # naïve — ☃\n    return retry(3)\n", encoding="utf-8")
    (root / "notes.md").write_text("# Harbour\n\nThe harbour has two cranes.\n\n## Cost\n\nIt costs 300 a day.\n" * 9)
    (root / "closed").mkdir()
    (root / "closed" / "plan.txt").write_text("The closed plan of the harbour.\n")
    (root / "garden.pdf").write_bytes(pdf_of_lines([["The garden opens in May."], ["Tickets for lions cost 12."]]))
    Path(os.fsdecode(os.fsencode(root) + b"/na\xefve.txt")).write_bytes(b"caf\xe9 at the harbour\nsecond line\n")
    (root / "empty.txt").write_text("")
    (root / "mine.txt").write_text("My own harbour.\n")
    for name, text in NOTES.items():
        path = root / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def fill(engine: satchel.ContextEngine) -> None:
    """Blocks, links, grants, denials, groups, deeds and commits."""
    engine.index()
    import_source(engine.workspace, engine.root / "vault")
    with engine.workspace.edit() as edit:
        edit.put_group("staff", ["ann", "bob", "cat"])
        edit.put_group("interns", ["cat"])
        for i in range(30):
            edit.put(
                Block(
                    id=f"b\udcff{i}", type="todo" if i % 3 else "page", title=f"Thing {i}", content=f"Text ☃ {i % 4}",
                    parent=f"b\udcff{i // 3}" if i else None, position=i / 7, summary="short", last_modified=NOW,
                    metadata={"due": "2026-12-01", "done": i % 2 == 0, "n": 1, "yes": True, "é\udc80": [1.0, None]},
                )
            )  # fmt: skip
        edit.put(Block(id="nul", type="text", title="a\0b", content="c\0d"))
        edit.link("b\udcff1", "b\udcff2", LinkKind.RELATION, "depends")
        edit.link("b\udcff1", None, name="nothing goes by that")
        edit.grant("b\udcff0", "group:staff")
        edit.deny("b\udcff1", "group:interns")
        edit.grant("b\udcff4", "user:dan")
        edit.set_inherits("b\udcff2", False)
        edit.grant("b\udcff8", "user:bob")
        edit.grant("Home", "*")
        edit.deny("Plans/Salaries", "user:bob")
        edit.grant("/", "group:staff")
        edit.grant("closed/", "user:bob", Effect.DENY)
        edit.record("ann", "edit", "b\udcff1", NOW)
        edit.record("bob", "view", "src/retry.py", NOW - timedelta(days=1, microseconds=7))
    with engine.store.write() as writer:
        told = Activity(block="src/retry.py", actor="Ann", action="commit", timestamp=NOW.replace(microsecond=0),
                        detail="Wait longer", reference="c0ffee")  # fmt: skip
        writer.put_activity([told, replace(told, block="gone.py", actor="Bob")], "c0ffee")
        kept = engine.store.transfer.files_at(["mine.txt"])["mine.txt"]
        writer.put(kept.file._replace(readers=("user:dan", "group:staff")))
    engine.store.catch_up()


def own_readers(path: str, readers: tuple[str, ...]) -> NewFile:
    """A file whose readers come with it."""
    block = Block(id="x", type="text", content=f"the harbour of {path}\n")
    return NewFile(path, FileState(text_hash(path), 9, 8, 7), block.content, outline_of(block), readers)


@contextmanager
def engine_on(root: Path, index: Path, **more: Any) -> Iterator[satchel.ContextEngine]:
    with satchel.open_engine(root, index_dir=str(index), clock=lambda: NOW, history_commits=0, **more) as engine:
        yield engine


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder and where its index is."""
    base = tmp_path_factory.mktemp("migrate")
    root = make_folder(base / "work")
    with engine_on(root, base / "index") as engine:
        fill(engine)
    return root, base / "index"


def folder_of(root: Path, index: Path) -> Path:
    """The folder of a workspace's index."""
    return satchel.service.settings.index_folder(root.resolve(), satchel.Settings(index_dir=str(index)))


@contextmanager
def opened(*stores: Store) -> Iterator[tuple[Side, ...]]:
    """Stores under names of their own, closed at the end."""
    try:
        yield tuple(Side(store, f"store {i}") for i, store in enumerate(stores))
    finally:
        for store in stores:
            store.close()


def on_postgres(url: str, folder: Path) -> PostgresStore:
    return PostgresStore(workspace_url(url, folder), patience=5)


def digests(store: Store) -> dict[str, Any]:
    held = tally(store, lambda *_: None, "")
    return {**held.kinds, "policy": held.policy}


def rights(store: Store) -> dict[str, Any]:
    """What each user may read: files, blocks, pieces of both, links and deeds."""
    found: dict[str, Any] = {}
    files = sorted(store.files())
    everything = [*files, *(f"b\udcff{i}" for i in range(30)), "Home", "Plans/Launch", "Plans/Salaries"]
    for user in USERS:
        filters = Filters(readers=readers_for(user, store.groups_of(user)))
        seen = store.blocks(everything, filters)
        found[user] = (
            seen,
            [store.text_of(path, filters) for path in files],
            store.trails(everything, filters),
            {one: store.links_from([one], filters).get(one, []) for one in seen},
            store.recent(filters),
            store.tasks(filters),
            store.documents(filters),
        )
    return found


def seen_of(store: Store, user: str) -> set[str]:
    """The blocks and files that a user may read."""
    filters = Filters(readers=readers_for(user, store.groups_of(user)))
    names = [f"b\udcff{i}" for i in range(30)] + ["Home", "Plans/Salaries", "notes.md", "closed/plan.txt", "mine.txt"]
    return set(store.blocks(names, filters))


def answers(engine: satchel.ContextEngine) -> list[str]:
    """What the engine writes, for its owner and for each user."""
    written = []
    for question in QUESTIONS:
        for user in USERS:
            asker = User(id=user)
            written.append(engine.build(question, filters=engine.filters_for(asker)).context)
            written.append(engine.build(satchel.ContextRequest(query=question, user=asker)).serialized)
    return written


class TestMoving:
    def test_there_and_back_again_everything_is_the_same(
        self, filled: tuple[Path, Path], postgres: str, tmp_path: Path
    ) -> None:
        root, index = filled
        there, back = workspace_url(postgres, tmp_path), tmp_path / "back"
        with (
            opened(EmbeddedStore(folder_of(root, index)), PostgresStore(there)) as (ours, theirs),
            opened(EmbeddedStore(folder_of(root, back))) as (again,),
        ):
            report = move(ours, theirs)
            move(theirs, again._replace(name="again"))
            assert digests(ours.store) == digests(theirs.store) == digests(again.store)
            assert all(report.content[kind].count for kind in KINDS), report.content
            assert report.questions == 20
            seen = rights(ours.store)
            assert rights(theirs.store) == seen
            assert rights(again.store) == seen
            assert len({len(seen[user][0]) for user in USERS}) > 3  # they do not all see the same
            assert theirs.store.fact(MOVING) is None
            (source,) = json.loads(ours.store.fact("sources"))
            assert theirs.store.blocks_from(source) == ours.store.blocks_from(source) != []
            assert theirs.store.check() == again.store.check() == ""  # type: ignore[attr-defined]
        with (
            engine_on(root, index) as one,
            engine_on(root, index, store=there) as two,
            engine_on(root, back) as three,
        ):
            written = answers(one)
            assert answers(two) == written
            assert answers(three) == written
            assert any("Backoff" in text for text in written)
            # Nothing has to be read or imported again, and what is granted from now on holds as it would have.
            assert one.index().read == 0  # though some may have to be looked at
            assert two.index().read == 0  # though some may have to be looked at
            assert not two.workspace.changed_sources()
            for engine in (two, three):
                assert not engine.index().changed
                with engine.workspace.edit() as edit:
                    edit.deny("b\udcff0", "user:bob")
            assert rights(two.store) == rights(three.store) != seen

    def test_what_was_worked_out_from_grants_is_what_would_be_worked_out(
        self, filled: tuple[Path, Path], tmp_path: Path
    ) -> None:
        with opened(EmbeddedStore(folder_of(*filled)), EmbeddedStore(tmp_path / "to")) as (ours, theirs):
            move(ours, theirs)
            before = rights(theirs.store)
            with theirs.store.write() as writer:
                for grant in list(theirs.store.transfer.rows(RowKind.GRANTS)):
                    writer.blocks.grant(grant)  # type: ignore[arg-type]
            assert rights(theirs.store) == before

    def test_an_empty_workspace(self, postgres: str, tmp_path: Path) -> None:
        with opened(EmbeddedStore(tmp_path / "from"), on_postgres(postgres, tmp_path)) as (ours, theirs):
            report = move(ours, theirs)
            assert {one.count for one in report.content.values()} == {0}
            assert theirs.store.default_access() is DefaultAccess.OWNER
            assert verify(ours, theirs).questions == 0

    @pytest.mark.parametrize("policy", list(DefaultAccess))
    def test_the_policy_comes_last(self, policy: DefaultAccess, tmp_path: Path) -> None:
        with opened(EmbeddedStore(tmp_path / "from"), EmbeddedStore(tmp_path / "to")) as (ours, theirs):
            with ours.store.write() as writer:
                for i in range(3):
                    block = Block(id=f"b{i}", type="text", content=f"text {i}")
                    writer.blocks.put(block, outline_of(block))
                writer.blocks.set_default(policy)
            open_to: set[int] = set()

            def watch(*_: object) -> None:
                readers = [None, readers_for("ann")]
                open_to.add(sum(len(theirs.store.blocks(["b0", "b1"], Filters(readers=one))) for one in readers))

            move(ours, theirs, watch)
            assert open_to == {0}
            assert theirs.store.default_access() is policy

    def test_order_decides_among_equals(self, postgres: str, tmp_path: Path) -> None:
        with opened(EmbeddedStore(tmp_path / "from"), on_postgres(postgres, tmp_path)) as (ours, theirs):
            for name in ("z", "a", "m", "b"):
                with ours.store.write() as writer:
                    block = Block(id=name, type="text", content="the very same words")
                    writer.blocks.put(block, outline_of(block))
            move(ours, theirs)
            for side in (ours, theirs):
                found = side.store.transfer.files(limit=9)
                assert [one.block.id for one in found if one.block] == ["z", "a", "m", "b"]

    def test_pieces_have_their_characters_again(self, filled: tuple[Path, Path]) -> None:
        with opened(EmbeddedStore(folder_of(*filled))) as (ours,):
            looked_at = 0
            for kept in ours.store.transfer.files(limit=1000):
                lines = kept.file.text.split("\n")
                for piece in kept.file.outline.pieces:
                    said = "\n".join(lines[piece.first_line - 1 : piece.last_line])
                    assert kept.file.text[piece.start : piece.end] == said
                    looked_at += not said.isascii()
            assert looked_at > 5


class TestRefusing:
    def test_a_target_with_something_else_in_it(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        with opened(EmbeddedStore(folder_of(*filled)), EmbeddedStore(tmp_path)) as (ours, theirs):
            with theirs.store.write() as writer:
                writer.put(NewFile("a", FileState(b"x", 1, 1, 1), "text", Outline(None)))
            with pytest.raises(InvalidOption, match="is not empty"):
                move(ours, theirs)
            assert list(theirs.store.files()) == ["a"]
            assert theirs.store.default_access() is DefaultAccess.OWNER

    def test_a_grant_alone_is_something(self, tmp_path: Path) -> None:
        with opened(EmbeddedStore(tmp_path / "a"), EmbeddedStore(tmp_path / "b")) as (ours, theirs):
            with theirs.store.write() as writer:
                writer.blocks.put_group(Group(name="staff", members=("ann",)))
            with pytest.raises(InvalidOption, match="is not empty"):
                move(ours, theirs)

    def test_itself(self, filled: tuple[Path, Path]) -> None:
        with (
            opened(EmbeddedStore(folder_of(*filled))) as (ours,),
            pytest.raises(InvalidOption, match="the source itself"),
        ):
            move(ours, ours)

    def test_what_is_being_filled_from_another(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        root, index = filled
        target = folder_of(root, tmp_path)
        with opened(EmbeddedStore(folder_of(root, index)), EmbeddedStore(target)) as (ours, theirs):
            _stopped_after(2, ours, theirs)
            with pytest.raises(InvalidOption, match="contains an unfinished move from 'store 0'"):
                move(ours._replace(name="another"), theirs)
            for wrong in ((theirs, ours), (ours, theirs)):
                with pytest.raises(MoveUnfinished, match="is not finished"):
                    verify(*wrong)
            with pytest.raises(MoveUnfinished):
                move(theirs, ours)
            with pytest.raises(MoveUnfinished), engine_on(root, tmp_path):
                pass
            move(ours, theirs)
        with engine_on(root, tmp_path) as engine:
            assert engine.search("harbour", filters=Filters(readers=readers_for("ann", ["staff"]))).hits

    def test_a_target_that_is_written_to_by_another(self, filled: tuple[Path, Path], tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
        monkeypatch.setattr(moving, "_PATIENCE_S", 0.05)
        with (
            opened(EmbeddedStore(folder_of(*filled)), EmbeddedStore(tmp_path), EmbeddedStore(tmp_path)) as (
                ours, theirs, other,
            ),
            other.store.lock(),
            pytest.raises(IndexBusy),
        ):  # fmt: skip
            move(ours, theirs)


class _Stopped(Exception):
    pass


def _stopped_after(steps: int, ours: Side, theirs: Side) -> None:
    """Begin a move, and stop it."""
    left = [steps]

    def watch(*_: object) -> None:
        left[0] -= 1
        if not left[0]:
            raise _Stopped

    with pytest.raises(_Stopped):
        move(ours, theirs, watch)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_FILES_AT_ONCE", 7)
    monkeypatch.setattr(moving, "_ROWS_AT_ONCE", 3)


@pytest.mark.usefixtures("small_batches")
class TestGoingOn:
    def test_stopped_at_every_step(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        with opened(EmbeddedStore(folder_of(*filled)), EmbeddedStore(tmp_path)) as (ours, theirs):
            stops = 0
            while stops < 50:
                try:
                    _stopped_after(stops + 1, ours, theirs)
                except pytest.fail.Exception:
                    break  # it came to its end
                assert theirs.store.fact(MOVING) == "store 0"
                stops += 1
            assert 10 < stops < 50
            assert digests(theirs.store) == digests(ours.store)

    @pytest.mark.parametrize("kind", ["embedded", "postgres"])
    def test_nothing_is_open_that_is_closed_in_the_source(
        self, kind: str, filled: tuple[Path, Path], postgres: str, tmp_path: Path
    ) -> None:
        target = EmbeddedStore(tmp_path) if kind == "embedded" else on_postgres(postgres, tmp_path)
        with opened(EmbeddedStore(folder_of(*filled)), target) as (ours, theirs):
            allowed = {user: seen_of(ours.store, user) for user in USERS}
            most = dict.fromkeys(USERS, 0)

            def watch(*_: object) -> None:
                for user in USERS:
                    seen = seen_of(theirs.store, user)
                    assert seen <= allowed[user]
                    most[user] = max(most[user], len(seen))

            move(ours, theirs, watch)
            assert most["ann"] > 20  # there was something to see meanwhile
            assert {user: seen_of(theirs.store, user) for user in USERS} == allowed

    def test_what_is_there_is_passed_over(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        with opened(EmbeddedStore(folder_of(*filled)), EmbeddedStore(tmp_path)) as (ours, theirs):
            _stopped_after(4, ours, theirs)
            there = theirs.store.transfer.count()
            assert there == 14
            report = move(ours, theirs)
            assert (report.already_present, report.put) == (there, ours.store.transfer.count() - there)
            assert report.amended == report.dropped == 0

    def test_the_source_changes_between_two_runs(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        root, index = filled
        _copied(folder_of(root, index), tmp_path / "from")
        with opened(EmbeddedStore(tmp_path / "from"), EmbeddedStore(tmp_path / "to")) as (ours, theirs):
            _stopped_after(9, ours, theirs)
            _change(ours.store)
            report = move(ours, theirs)
            assert digests(ours.store) == digests(theirs.store)
            assert report.dropped >= 2
            assert report.amended
            numbers = [[one.path for one in side.store.transfer.files(limit=999)] for side in (ours, theirs)]
            assert numbers[0] == numbers[1]

    @pytest.mark.parametrize("kind", ["embedded", "postgres"])
    def test_the_source_changes_meanwhile(
        self, kind: str, filled: tuple[Path, Path], postgres: str, tmp_path: Path
    ) -> None:
        root, index = filled
        _copied(folder_of(root, index), tmp_path / "from")
        target = EmbeddedStore(tmp_path / "to") if kind == "embedded" else on_postgres(postgres, tmp_path)
        with opened(EmbeddedStore(tmp_path / "from"), target, EmbeddedStore(tmp_path / "from")) as (ours, theirs, own):
            changed: list[str] = []

            def watch(doing: str, done: int, _of: int) -> None:
                if doing == "moving" and done > 20 and not changed:
                    changed.append(doing)
                    _change(own.store)

            report = move(ours, theirs, watch)
            assert report.rounds == 2
            assert digests(ours.store) == digests(theirs.store)
            assert rights(ours.store) == rights(theirs.store)

    def test_a_source_that_never_stands_still(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        _copied(folder_of(*filled), tmp_path / "from")
        with opened(EmbeddedStore(tmp_path / "from"), EmbeddedStore(tmp_path / "to"),
                    EmbeddedStore(tmp_path / "from")) as (ours, theirs, own):  # fmt: skip
            times = []

            def watch(doing: str, *_: object) -> None:
                if doing == "moving links":
                    times.append(doing)
                    with own.store.write() as writer:
                        name = f"more{len(times)}"
                        writer.put(NewFile(name, FileState(b"x", 1, 1, 1), "text", Outline(None)))

            with pytest.raises(IndexBusy, match="store 0"):
                move(ours, theirs, watch)
            assert theirs.store.fact(MOVING) == "store 0"
            move(ours, theirs)
            assert digests(ours.store) == digests(theirs.store)

    def test_what_was_closed_meanwhile_is_closed_in_the_end(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        _copied(folder_of(*filled), tmp_path / "from")
        with opened(EmbeddedStore(tmp_path / "from"), EmbeddedStore(tmp_path / "to")) as (ours, theirs):
            _stopped_after(12, ours, theirs)
            ann = Filters(readers=readers_for("ann", ["staff"]))
            assert theirs.store.block("b\udcff0", ann)
            with ours.store.write() as writer:
                writer.blocks.revoke("b\udcff0", "group:staff")
            _stopped_after(12, ours, theirs)
            assert theirs.store.block("b\udcff0", ann) is None
            numbers = {one.path: one.number for one in theirs.store.transfer.files(limit=999)}
            move(ours, theirs)
            assert numbers["\0b\udcff0"] == theirs.store.transfer.files_at(["\0b\udcff0"])["\0b\udcff0"].number

    @pytest.mark.parametrize("kind", [pytest.param("embedded", marks=pytest.mark.slow), "postgres"])
    def test_killed_and_begun_again(self, kind: str, filled: tuple[Path, Path], postgres: str, tmp_path: Path) -> None:
        source = folder_of(*filled)
        target = str(tmp_path) if kind == "embedded" else workspace_url(postgres, tmp_path)
        for moment in ("moving members", "moving 7", "within 21", "within 3", "moving activity", "arranging"):
            done = subprocess.run(
                [sys.executable, "-c", _KILLED, str(source), target, moment],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == -signal.SIGKILL, (moment, done.stderr)
        other = EmbeddedStore(tmp_path) if kind == "embedded" else PostgresStore(target)
        with opened(EmbeddedStore(source), other) as (ours, theirs):
            assert theirs.store.fact(MOVING) == "store 0"
            move(ours, theirs)
            assert digests(ours.store) == digests(theirs.store)
            assert rights(ours.store) == rights(theirs.store)


_KILLED = """
import os, signal, sys
from pathlib import Path
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.storage.sql.table_transfer import SqlTransferWriter
from satchel.storage import move as moving
source, target, moment = sys.argv[1:]
moving._FILES_AT_ONCE = 7
def die(): os.kill(os.getpid(), signal.SIGKILL)
def watch(doing, done, of):
    if moment in (doing, f"{doing} {done}"): die()
if target.startswith("postgresql"):
    from satchel.storage.postgres.store import PostgresStore
    other = PostgresStore(target)
else:
    other = EmbeddedStore(Path(target))
if moment.startswith("within"):
    put, seen = SqlTransferWriter.put, []
    def half(self, files, vectors):
        put(self, files, vectors)
        seen.extend(files)
        if len(seen) >= int(moment.split()[1]): die()
    SqlTransferWriter.put = half
moving.move(moving.Side(EmbeddedStore(Path(source)), "store 0"), moving.Side(other, "target"), watch)
"""


def _copied(folder: Path, to: Path) -> None:
    subprocess.run(["cp", "-r", folder, to], check=True)


def _change(store: Store) -> None:
    """Change a little of everything: in place, anew, and away."""
    with store.write() as writer:
        writer.touch("notes.md", FileState(text_hash("x"), 5, 6, 7))
        writer.drop("src/retry.py")
        writer.put(own_readers("mine.txt", ("user:ann",)))
        writer.put(own_readers("new.txt", ("user:bob",)))
        blocks = writer.blocks
        blocks.move("b\udcff9", "b\udcff4")
        blocks.delete("b\udcff7")
        blocks.unlink("b\udcff1", target="b\udcff2")
        blocks.revoke("b\udcff4", "user:dan")
        blocks.grant(satchel.Grant(block="b\udcff5", principal="group:interns"))
        blocks.put_group(Group(name="staff", members=("ann", "dan")))
        blocks.record(Activity(block="b\udcff4", actor="cat", action="edit", timestamp=NOW))
        block = Block(id="b\udcff3", type="page", title="Thing 3", content="Other words", parent="b\udcff1")
        blocks.put(block, outline_of(block))
        writer.set_fact("sources", "{}")
        writer.put_activity([], "beef")
    store.catch_up()


class TestVerifying:
    @pytest.mark.parametrize(
        ("damage", "says"),
        [
            (
                "UPDATE content SET text = '\\x58' WHERE file = (SELECT min(id) FROM file)",
                "files: .* different content",
            ),
            ("UPDATE file SET access = (SELECT max(id) FROM access) WHERE path = 'notes.md'", "first at 'notes.md'"),
            ("DELETE FROM vector WHERE hash = (SELECT min(hash) FROM vector)", "vectors: .* there"),
            pytest.param(
                "UPDATE vector SET vector = '\\x00' WHERE hash = (SELECT min(hash) FROM vector)",
                "vectors: .* in both",
                marks=pytest.mark.slow,
            ),
            pytest.param("DELETE FROM permit WHERE effect = 'deny'", "grants: ", marks=pytest.mark.slow),
            (
                "UPDATE node SET position = position + 1 WHERE title = 'Thing 3'",
                "workspace blocks: .* different content",
            ),
            pytest.param("UPDATE deed SET actor = 'eve'", "activity: 2 in both", marks=pytest.mark.slow),
            pytest.param("DELETE FROM page WHERE number = 2", "pages: 2 there, 1 here", marks=pytest.mark.slow),
            ("UPDATE fact SET value = 'allow' WHERE name = 'default_access'", "default access: deny there, allow here"),
            ("DELETE FROM posting", "the answers to a question"),
        ],
    )
    def test_a_damaged_row_is_found(self, damage: str, says: str, moved: tuple[Side, Side], postgres: str) -> None:
        ours, theirs = moved
        here = theirs.store._connections.workspace  # type: ignore[attr-defined]
        with psycopg.connect(postgres, autocommit=False) as connection:
            connection.execute("SET search_path = satchel")
            connection.execute("SET row_security = off")
            table = damage.split()[2 if damage.startswith("DELETE") else 1]
            connection.execute(f"CREATE TEMP TABLE before AS SELECT * FROM {table} WHERE workspace = {here}".encode())
            connection.commit()
            narrowed = damage.replace(" FROM file)", f" FROM file WHERE workspace = {here})")
            narrowed = narrowed.replace(" FROM access)", f" FROM access WHERE workspace = {here})")
            narrowed = narrowed.replace(" FROM vector)", f" FROM vector WHERE workspace = {here})")
            narrowed += f" {'AND' if 'WHERE' in damage else 'WHERE'} workspace = {here}"
            assert connection.execute(narrowed.encode()).rowcount > 0
            connection.commit()
            try:
                with (
                    opened(PostgresStore(theirs.name)) as (fresh,),
                    pytest.raises(StoresDiffer, match=says),
                ):
                    verify(ours, fresh)
            finally:
                if table == "file":  # so that what belongs to files is for the same readers again, too
                    connection.execute(
                        "UPDATE file SET access = before.access FROM before"
                        " WHERE file.workspace = before.workspace AND file.id = before.id"
                    )
                connection.execute(f"DELETE FROM {table} WHERE workspace = {here}".encode())
                connection.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM before".encode())
                connection.commit()
        with opened(PostgresStore(theirs.name)) as (fresh,):
            assert verify(ours, fresh).questions == 20


@pytest.fixture(scope="module")
def moved(
    filled: tuple[Path, Path], postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    """A source and the place in PostgreSQL that it was moved to."""
    url = workspace_url(postgres, tmp_path_factory.mktemp("moved"))
    with opened(EmbeddedStore(folder_of(*filled)), PostgresStore(url)) as (ours, theirs):
        move(ours, theirs)
        yield ours, theirs._replace(name=url)


@pytest.mark.slow
def test_many_blocks_move_in_little_memory(tmp_path: Path) -> None:
    with opened(EmbeddedStore(tmp_path / "from")) as (ours,), ours.store.write() as writer:
        for i in range(5000):
            block = Block(id=f"b{i}", type="text", title=f"b{i}", content=f"{'x' * 12_000}{i % 50}")
            writer.blocks.put(block, outline_of(block))
    code = (
        "import re, sys\nfrom pathlib import Path\n"
        "from satchel.storage.sqlite.store import EmbeddedStore\n"
        "from satchel.storage.move import Side, move\n"
        "import satchel.storage.sqlite.segments, satchel.storage.sql.scoring_layout\n"
        "used = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])\n"
        "stores = [EmbeddedStore(Path(one)) for one in sys.argv[1:]]\n"
        "before = used()\n"
        "report = move(Side(stores[0], 'from'), Side(stores[1], 'to'))\n"
        "print(report.content['workspace_blocks'].count, (used() - before) // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "from"), str(tmp_path / "to")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    count, megabytes = map(int, done.stdout.split())
    assert count == 5000
    assert megabytes < 45  # of 60 MB of text


class TestCommand:
    @pytest.fixture
    def run(self, filled: tuple[Path, Path]) -> Callable[..., subprocess.CompletedProcess[str]]:
        def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "satchel", "migrate", *arguments, "--index-dir", str(filled[1])],
                capture_output=True, text=True, check=False, **more,
            )  # fmt: skip

        return run

    def test_from_a_folder_to_a_database_and_to_an_index(
        self, run: Callable[..., subprocess.CompletedProcess[str]], filled: tuple[Path, Path], postgres: str,
        tmp_path: Path,
    ) -> None:  # fmt: skip
        root = str(filled[0])
        there = workspace_url(postgres, tmp_path).replace("workspace=", "workspace=cli")
        done = run(root, there, "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["content"]["workspace_blocks"]["count"] > 30
        assert "verified" in done.stderr
        done = run(there, f"embedded:{tmp_path / 'to'}", "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        done = run(root, f"embedded:{tmp_path / 'to'}", "--verify-only", "--json")
        assert done.returncode == 0, done.stderr
        again = json.loads(done.stdout)
        assert again["content"] == told["content"]
        assert again["put"] == 0

    def test_a_database_without_a_name_gets_the_folders(
        self, run: Callable[..., subprocess.CompletedProcess[str]], filled: tuple[Path, Path], postgres: str
    ) -> None:
        root, index = filled
        assert run(str(root), postgres).returncode == 0
        with engine_on(root, index, store=postgres) as engine:
            assert engine.index().read == 0  # though some may have to be looked at
            assert engine.store.files()

    def test_what_cannot_be_is_said(self, filled: tuple[Path, Path], postgres: str, tmp_path: Path) -> None:
        from satchel.cli.main import cli

        root = str(filled[0])
        (tmp_path / "bare").mkdir()
        for arguments, says in (
            ((str(tmp_path / "bare"), f"embedded:{tmp_path / 'x'}"), "no index at"),
            ((f"embedded:{tmp_path / 'nothing'}", root), "no index at"),
            ((str(tmp_path / "missing"), root), "the folder does not exist"),
            ((root, root), "is the source itself"),
            ((workspace_url(postgres, tmp_path), f"embedded:{tmp_path / 'x'}"), "the workspace is empty"),
            ((root, f"embedded:{tmp_path / 'nothing'}", "--verify-only"), "no index at"),
        ):
            with pytest.raises(InvalidInput, match=says) as raised:
                cli(["migrate", *arguments, "--index-dir", str(filled[1])], standalone_mode=False)
            assert exit_code_of(raised.value) is Exit.USAGE
        assert not (tmp_path / "nothing").exists()
        assert not (tmp_path / "x").exists()

    def test_a_difference_is_an_error(
        self, run: Callable[..., subprocess.CompletedProcess[str]], filled: tuple[Path, Path], tmp_path: Path
    ) -> None:
        root, target = str(filled[0]), f"embedded:{tmp_path / 'to'}"
        assert run(root, target).returncode == 0
        with apsw.Connection(str(tmp_path / "to" / "truth.sqlite")) as connection:
            connection.execute("UPDATE content SET text = x'58' WHERE file = (SELECT min(id) FROM file)")
        done = run(root, target, "--verify-only")
        assert done.returncode == 1
        assert "stores-differ" in done.stderr
        done = run(root, target)
        assert done.returncode == 2
        assert "is not empty" in done.stderr

    def test_interrupted_it_says_how_to_go_on(self, filled: tuple[Path, Path], tmp_path: Path) -> None:
        arguments = ["migrate", str(filled[0]), f"embedded:{tmp_path / 'to'}", "--index-dir", str(filled[1])]
        code = (
            "import os, signal, sys\n"
            "from satchel.storage.sql.table_transfer import SqlTransferWriter\n"
            "from satchel.cli.main import main\n"
            "SqlTransferWriter.put = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
            f"sys.argv = ['satchel', *{arguments!r}]\n"
            "main()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 130
        assert "run the same command again to continue" in done.stderr
