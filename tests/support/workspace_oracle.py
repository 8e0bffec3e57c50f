"""Who may read what, worked out anew for every question by climbing the tree; and a workspace that is held to it.

`Model` is a workspace as plain dictionaries. It uses none of Satchel's code, knows no shortcuts and keeps nothing that
it has worked out. `World` does to a real workspace whatever is done to its model, and looks at everything that comes
back for words of blocks that the asking user may not read: every block carries words of its own, so that any trace of
it can be told.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

from satchel import (
    Block,
    ContextBuildOptions,
    ContextEngine,
    ContextFormat,
    ContextHints,
    ContextPayload,
    ContextRequest,
    ConversationMessage,
    Focus,
    Link,
    LinkKind,
    TokenBudget,
    User,
    open_engine,
)
from satchel.errors import BudgetCannotBeMet, InvalidInput, UnknownBlock
from satchel.models.access import Effect
from satchel.models.block import Activity
from satchel.models.options import RequestType
from satchel.models.request import TimeRange
from satchel.models.search import Filters
from satchel.ports.embedder import Embedder
from satchel.ports.store import Store
from satchel.workspace.blocks import Edit
from tests.support.oracle import true_count

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
OWNER, DENY, ALLOW = "owner", "deny", "allow"
StoreMaker = Callable[[Path], Store]
"""Makes the store of a folder; the same one each time."""

_MOST_FILE_BYTES = 1_000_000
_WORD = re.compile(r"[a-z]+QXZ(\d{5})")
_SAME_SCORE = 1e-5
"""Scores are compared with what the eight digits of a float32 leave: the same row of a matrix multiplies a little
differently when there are other rows beside it."""

# -- the model


@dataclass
class Entry:
    """A block of the model; `marks` are the numbers in its words, `turn` tells when its words were written."""

    id: str
    type: str
    parent: str | None
    position: float
    inherits: bool
    title: str
    content: str
    summary: str
    metadata: dict[str, Any]
    last_modified: datetime | None
    marks: frozenset[str]
    turn: int

    @property
    def due(self) -> datetime | None:
        """When it is due: a day is over at its end."""
        given = self.metadata.get("due")
        if given is None:
            return None
        day = date.fromisoformat(given)
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


@dataclass
class Deed:
    """What somebody did."""

    block: str
    actor: str
    action: str
    at: datetime
    detail: str
    mark: str


@dataclass
class Model:
    """A workspace."""

    blocks: dict[str, Entry] = field(default_factory=dict)
    grants: dict[tuple[str, str], bool] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)
    links: list[tuple[str, str, str | None, str]] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    default: str = OWNER

    # who may read

    def names(self, user: str, groups: Iterable[str] = ()) -> set[str]:
        """The names under which a user reads."""
        mine = {group for group, members in self.groups.items() if user in members} | set(groups)
        return {f"user:{user}", "*"} | {f"group:{group}" for group in mine}

    def may_read(self, block_id: str, names: set[str]) -> bool:
        """For each name the nearest grant on the way up counts; one refusal outweighs any number of allowances.

        A workspace of one's own is open to its owner, and there is nobody else to ask.
        """
        if self.default == OWNER:
            return True
        allowed = False
        for name in names:
            verdict = self.verdict(block_id, name)
            if verdict is False:
                return False
            allowed = allowed or verdict is True
        if allowed:
            return True
        return self.default == ALLOW and self.inherits_the_default(block_id)

    def verdict(self, block_id: str, name: str) -> bool | None:
        """What the nearest grant to a name says, if any does."""
        for one in self.way_up(block_id):
            if (one.id, name) in self.grants:
                return self.grants[one.id, name]
            if not one.inherits:
                return None
        return None

    def inherits_the_default(self, block_id: str) -> bool:
        """Whether nothing on the way up cuts the block off."""
        return all(one.inherits for one in self.way_up(block_id))

    def way_up(self, block_id: str) -> list[Entry]:
        """The block, its parent, and so on, as far as there are any."""
        way = []
        above: str | None = block_id
        while above is not None and above in self.blocks:
            way.append(self.blocks[above])
            above = self.blocks[above].parent
        return way

    def readable(self, user: str, groups: Iterable[str] = ()) -> set[str]:
        """The ids of all blocks that a user may read."""
        names = self.names(user, groups)
        return {one for one in self.blocks if self.may_read(one, names)}

    # what is seen of the tree by one who may read some blocks

    def children(self, block_id: str, seen: set[str]) -> list[str]:
        """The children in their order; none of a block that is not seen."""
        if block_id not in seen:
            return []
        found = [one for one in self.blocks.values() if one.parent == block_id and one.id in seen]
        return [one.id for one in sorted(found, key=lambda one: (one.position, one.id.encode()))]

    def siblings(self, block_id: str, seen: set[str], count: int) -> list[str]:
        """The nearest before and after, in turn; a root has none."""
        parent = self.blocks[block_id].parent if block_id in seen else None
        if parent is None or parent not in seen:
            return []
        row = self.children(parent, seen)
        at = row.index(block_id)
        before, after = row[:at][::-1][:count], row[at + 1 :][:count]
        found = []
        for i in range(count):
            found += before[i : i + 1] + after[i : i + 1]
        return found

    def descendants(self, block_id: str, seen: set[str], deepest: int) -> list[str]:
        """All that is seen below, in reading order."""
        found = []
        for child in self.children(block_id, seen) if deepest else []:
            found += [child, *self.descendants(child, seen, deepest - 1)]
        return found

    def trail(self, block_id: str, seen: set[str]) -> list[str]:
        """The way up until something is not seen."""
        trail = []
        for one in self.way_up(block_id):
            if one.id not in seen:
                break
            trail.append(one.id)
        return trail

    def distance(self, one: str, other: str, seen: set[str]) -> int | None:
        """The steps up from one and down to the other."""
        mine, theirs = self.trail(one, seen), self.trail(other, seen)
        meeting = next((step for step in theirs if step in mine), None)
        return None if meeting is None else theirs.index(meeting) + mine.index(meeting)

    def links_of(self, block_id: str, seen: set[str], *, back: bool) -> list[tuple[str, str, str, str]]:
        """The links from or to a block between what is seen."""
        found = []
        for source, kind, target, name in self.links:
            mine = target if back else source
            if mine == block_id and source in seen and target in seen:
                found.append((source, kind, target, name))
        return sorted(found)

    def below(self, block_id: str) -> set[str]:
        """The block and all that is below it."""
        return {one for one in self.blocks if any(step.id == block_id for step in self.way_up(one))}

    # changes

    def delete(self, block_id: str) -> None:
        """The block and all that is below it go, with what hangs on them; links to them stay where they start."""
        gone = self.below(block_id)
        self.blocks = {one: entry for one, entry in self.blocks.items() if one not in gone}
        self.grants = {key: value for key, value in self.grants.items() if key[0] not in gone}
        self.links = [link for link in self.links if link[0] not in gone]
        self.deeds = [deed for deed in self.deeds if deed.block not in gone]

    def missing_parents(self) -> set[str]:
        """The ids of parents that are not there."""
        return {one.parent for one in self.blocks.values() if one.parent and one.parent not in self.blocks}

    def marks(self, seen: set[str]) -> set[str]:
        """The numbers that may show to one who sees these blocks."""
        own = {mark for one in seen for mark in self.blocks[one].marks}
        return own | {deed.mark for deed in self.deeds if deed.block in seen}


# -- the world


class Violation(AssertionError):
    """A promise that was not kept; `kind` is `leak`, `hint`, `over budget` or `wrong`."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


@dataclass(frozen=True)
class Outcome:
    """What came of a request: a payload, or an error."""

    payload: ContextPayload | None = None
    error: Exception | None = None


USERS = ("ann", "bob", "cem", "dee")
STRANGERS = ("zoe", "*", "group:staff", "@default", "user:ann")
"""Users that nothing knows, some of them named so as to be taken for something else."""

GROUPS = ("staff", "board", "*", "user:bob")
PRINCIPALS = (
    *(f"user:{user}" for user in USERS), *USERS, "*", "*", "group:staff", "group:board", "user:*", "group:*",
    "user:zoe", "@default",
)  # fmt: skip
TYPES = (
    "page", "page", "heading", "text", "text", "todo", "todo", "database", "db_row", "kanban_card", "message", "code",
    "quote", "recipe",
)  # fmt: skip
WORDS = (
    "harbor budget launch plan review crane invoice salary merger layoff secret meeting roadmap venue press release "
    "contract supplier draft ticket migration backup password audit risk goal owner deadline summary estimate"
).split()
TWIN = "The quarterly harbor budget review was moved to the old customs house."
QUESTIONS = (
    "which tasks are overdue?", "what is due this week, which tasks?", "which tasks are done and were due?",
    "summary of this page", "break this into subtasks", "harbor budget", "what about the merger and the salary review?",
    "password", "who owns the roadmap for the migration?", "this", "kanban cards about the venue", "layoff",
    TWIN,
)  # fmt: skip


class AtOnce(ThreadPoolExecutor):
    """Does what it is given at once: a soak has better things to do than to start threads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class World:
    """A workspace in a folder and its model, changed together; two engines look at it, as two processes would.

    The first works as always; the second and the references run their collectors one after the other. `make_store` is
    for another store than the embedded one; what it is compared with is in the embedded one all the same.
    """

    def __init__(
        self,
        folder: Path,
        embedder: Embedder,
        known_faults: frozenset[str] = frozenset(),
        make_store: StoreMaker | None = None,
    ) -> None:
        self.model = Model()
        self.builds = 0
        self.payloads = 0
        self._folder = folder
        self._embedder = embedder
        self._known_faults = known_faults
        self._numbers = 0
        self._turns = 0
        self._references = 0
        self._ids: list[str] = []
        self._seen: dict[tuple[str, tuple[str, ...]], set[str]] = {}
        self.engines = [opened(folder, embedder, at_once=at_once, make_store=make_store) for at_once in (False, True)]

    def close(self) -> None:
        """Let go of the folder."""
        for engine in self.engines:
            engine.close()

    # changing it

    @contextmanager
    def edit(self, chooser: Random) -> Iterator[Edit]:
        """One commit, by either of the two."""
        self._seen.clear()
        with chooser.choice(self.engines).workspace.edit() as edit:
            yield edit

    @contextmanager
    def cut_off(self, chooser: Random) -> Iterator[Edit]:
        """One commit by a process that ends before it has brought the search index up to it."""
        self._seen.clear()
        with chooser.choice(self.engines).store.write() as writer:
            yield Edit(writer, self._embedder)

    def engine(self, chooser: Random) -> ContextEngine:
        """Either of the two, mostly the faster."""
        return self.engines[chooser.random() < 0.9]

    def fill(self, chooser: Random, edit: Edit, size: int) -> None:
        """Some blocks, of which most people may read some."""
        for _ in range(size):
            self.put(chooser, edit)
        for name in ("staff", "board"):
            members = {user for user in USERS if chooser.random() < 0.5}
            edit.put_group(name, sorted(members))
            self.model.groups[name] = members
        for _ in range(size // 8):
            self._grant(edit, self.existing(chooser), chooser.choice(PRINCIPALS), True)
        if chooser.random() < 0.5:
            self.model.default = chooser.choice([OWNER, ALLOW, ALLOW, ALLOW])
            edit.set_default(self.model.default)
            for _ in range(size // 8):
                self.set_inherits(chooser, edit)
        for _ in range(size):
            self.change(chooser, edit)

    def change(self, chooser: Random, edit: Edit) -> None:
        """Any change that may be made."""
        if not self.model.blocks:
            self.put(chooser, edit)
            return
        changes: list[tuple[int, Callable[[Random, Edit], None]]] = [
            (5, self.put), (4, self.put_again), (3, self.move), (2, self.delete), (5, self.link), (1, self.unlink),
            (5, self.record), (8, self.grant), (6, self.revoke), (3, self.set_inherits), (1, self.set_default),
            (2, self.put_group),
        ]  # fmt: skip
        chooser.choices([change for _, change in changes], [weight for weight, _ in changes])[0](chooser, edit)

    def take_away(self, chooser: Random, edit: Edit) -> None:
        """A change after which somebody may read less, or more, but nothing has to be found anew."""
        changes = [self.grant, self.revoke, self.set_inherits, self.set_default, self.put_group, self.delete]
        if self.model.blocks:
            chooser.choice(changes)(chooser, edit)

    def put(self, chooser: Random, edit: Edit) -> None:
        """A new block, or one anew that was deleted; its parent need not be there."""
        gone = [one for one in self._ids if one not in self.model.blocks]
        again = gone and chooser.random() < 0.3
        block_id = chooser.choice(gone) if again else f"idQXZ{self._number()}"
        if not again:
            self._ids.append(block_id)
        self._put(chooser, edit, block_id, self._parent(chooser, block_id), chooser.random() > 0.07)

    def put_again(self, chooser: Random, edit: Edit) -> None:
        """The same block with other words, or at another place, or with the same words and another date."""
        old = self.model.blocks[self.existing(chooser)]
        how = chooser.random()
        if how < 0.6:
            self._put(chooser, edit, old.id, old.parent, old.inherits)
            return
        entry = replace(old, inherits=old.inherits if how < 0.9 else not old.inherits)
        if how < 0.8:
            entry = replace(entry, parent=self._parent(chooser, old.id), position=chooser.randint(0, 4))
        self._keep(edit, replace(entry, last_modified=NOW - timedelta(days=chooser.randint(0, 40))))

    def move(self, chooser: Random, edit: Edit) -> None:
        """Somewhere else, with all that is below it; below itself it cannot go."""
        block_id = self.existing(chooser)
        parent = self._parent(chooser, block_id)
        position = chooser.choice([None, 0.0, 1.0, chooser.random() * 5])
        edit.move(block_id, parent, position)
        entry = self.model.blocks[block_id]
        if position is None:
            row = [one.position for one in self.model.blocks.values() if one.parent == parent and one.id != block_id]
            position = max(row) + 1 if row else 0.0
        self.model.blocks[block_id] = replace(entry, parent=parent, position=position)
        inside = chooser.choice(sorted(self.model.below(block_id)))
        try:
            edit.move(block_id, inside)
        except InvalidInput:
            return
        raise Violation("wrong", f"{block_id} was hung below itself, at {inside}")

    def delete(self, chooser: Random, edit: Edit) -> None:
        """A block that has not much below it: what is left should not be nothing."""
        block_id = min((self.existing(chooser) for _ in range(3)), key=lambda one: len(self.model.below(one)))
        count = edit.delete(block_id)
        if count != len(self.model.below(block_id)):
            raise Violation("wrong", f"{count} blocks were deleted at {block_id}")
        self.model.delete(block_id)

    def link(self, chooser: Random, edit: Edit) -> None:
        """To another, to itself, to what is gone or never was, or to nothing but a name."""
        source = self.existing(chooser)
        target = chooser.choice([self.any_id(chooser), self.any_id(chooser), self.any_id(chooser), source, None])
        kind = chooser.choice([LinkKind.MENTIONS, LinkKind.RELATION, LinkKind.EMBEDS, LinkKind.REPLY])
        name = chooser.choice(["", f"from{source[2:]} to{target[2:]}" if target else f"from{source[2:]}"])
        edit.link(source, target, kind, name)
        if (source, kind.value, target, name) not in self.model.links:
            self.model.links.append((source, kind.value, target, name))

    def unlink(self, chooser: Random, edit: Edit) -> None:
        """All links from a block."""
        source = self.existing(chooser)
        edit.unlink(source)
        self.model.links = [link for link in self.model.links if link[0] != source]

    def record(self, chooser: Random, edit: Edit) -> None:
        """An edit or a view by anybody, lately, long ago or in times to come."""
        mark = self._number()
        deed = Deed(
            chooser.choice([self.existing(chooser), self.any_id(chooser)]),
            chooser.choice([*USERS, "zoe"]),
            chooser.choice(["edit", "edit", "view"]),
            NOW - timedelta(minutes=chooser.choice([-60, 5, 5, 90, 1000, 4000, 100_000])),
            chooser.choice(["", f"deedQXZ{mark}"]),
            mark,
        )
        try:
            edit.add(_activity(deed))
        except UnknownBlock:
            if deed.block in self.model.blocks:
                raise
        else:
            self.model.deeds.append(deed)

    def grant(self, chooser: Random, edit: Edit) -> None:
        """To or against anybody."""
        self._grant(edit, self.existing(chooser), chooser.choice(PRINCIPALS), chooser.random() < 0.7)

    def revoke(self, chooser: Random, edit: Edit) -> None:
        """Any grant that there is."""
        if self.model.grants:
            block_id, name = chooser.choice(sorted(self.model.grants))
            edit.revoke(block_id, name)
            del self.model.grants[block_id, name]

    def set_inherits(self, chooser: Random, edit: Edit) -> None:
        """Cut a block off, or join it again."""
        block_id = self.existing(chooser)
        inherits = chooser.random() < 0.6
        edit.set_inherits(block_id, inherits)
        self.model.blocks[block_id].inherits = inherits

    def set_default(self, chooser: Random, edit: Edit) -> None:
        """Single user, closed or open."""
        self.model.default = chooser.choice([OWNER, DENY, DENY, DENY, ALLOW, ALLOW])
        edit.set_default(self.model.default)

    def put_group(self, chooser: Random, edit: Edit) -> None:
        """Who is in a group from now on."""
        name = chooser.choice(GROUPS)
        members = {user for user in (*USERS, *STRANGERS) if chooser.random() < 0.3}
        edit.put_group(name, sorted(members))
        self.model.groups[name] = members

    def existing(self, chooser: Random) -> str:
        """A block that is there."""
        return chooser.choice(list(self.model.blocks))

    def any_id(self, chooser: Random) -> str:
        """A block that is there, one that was, or one that never will be."""
        return chooser.choice(self._ids) if chooser.random() < 0.85 else f"idQXZ{chooser.randint(90_000, 90_009)}"

    def _put(self, chooser: Random, edit: Edit, block_id: str, parent: str | None, inherits: bool) -> None:
        mark = self._number()
        kind = chooser.choice(TYPES)
        content = f"bodyQXZ{mark} {' '.join(chooser.choices(WORDS, k=chooser.randint(0, 14)))}"
        title = chooser.choice(["", f"titleQXZ{mark}", f"titleQXZ{mark} {chooser.choice(WORDS)}"])
        how = chooser.random()
        if how < 0.06 and "rounding" not in self._known_faults:
            title, content = "", TWIN
        elif how < 0.12:
            paragraphs = (" ".join(chooser.choices(WORDS, k=60)) + "." for _ in range(chooser.randint(4, 14)))
            content = f"{content}\n\n" + "\n\n".join(paragraphs)
        elif how < 0.18:
            content = ""
        metadata: dict[str, Any] = {"note": f"metaQXZ{mark}", "assignee": f"metaQXZ{mark}"}
        if kind in ("todo", "kanban_card", "event") or chooser.random() < 0.1:
            metadata |= {"due": (NOW.date() + timedelta(days=chooser.randint(-9, 9))).isoformat()}
            metadata |= {"done": chooser.random() < 0.3, "status": chooser.choice(["open", "done", "blocked"])}
        if kind == "message":
            metadata["role"] = f"metaQXZ{mark}"
        entry = Entry(
            id=block_id,
            type=kind,
            parent=parent,
            position=chooser.choice([0.0, 1.0, 2.0, 3.0, chooser.random() * 4]),
            inherits=inherits,
            title=title,
            content=content,
            summary=chooser.choice(["", f"sumQXZ{mark} in short"]),
            metadata=metadata,
            last_modified=chooser.choice([None, NOW - timedelta(days=chooser.randint(0, 40))]),
            marks=frozenset({block_id[-5:], mark}),
            turn=0,
        )
        self._keep(edit, entry)

    def _keep(self, edit: Edit, entry: Entry) -> None:
        old = self.model.blocks.get(entry.id)
        self._turns += 1
        same = old is not None and (old.title, old.content, old.type) == (entry.title, entry.content, entry.type)
        entry.turn = old.turn if same and old is not None else self._turns
        edit.put(_block(entry))
        # What was cut off stays so until it is told otherwise.
        entry.inherits = entry.inherits and (old is None or old.inherits)
        self.model.blocks[entry.id] = entry

    def _grant(self, edit: Edit, block_id: str, name: str, allow: bool) -> None:
        edit.grant(block_id, name, Effect.ALLOW if allow else Effect.DENY)
        full = name if name == "*" or name.startswith(("user:", "group:")) else f"user:{name}"
        self.model.grants[block_id, full] = allow
        if self.model.default == OWNER:
            self.model.default = DENY

    def _parent(self, chooser: Random, block_id: str) -> str | None:
        """Where the block may hang: not below itself; now and then below what is not there."""
        if chooser.random() < 0.12 or not self._ids:
            return None
        wanted = self._ids[-1 - min(int(chooser.expovariate(0.3)), len(self._ids) - 1)]
        wanted = wanted if chooser.random() < 0.6 else self.any_id(chooser)
        # A ring can also be closed through a parent that is not there yet.
        above: str | None = wanted
        while above is not None:
            if above == block_id:
                return None
            above = self.model.blocks[above].parent if above in self.model.blocks else None
        return wanted

    def _number(self) -> str:
        self._numbers += 1
        return f"{self._numbers:05d}"

    # asking

    def seen_by(self, user: User) -> set[str]:
        """What a user may read, as the model has it."""
        key = (user.id, user.groups)
        if key not in self._seen:
            self._seen[key] = self.model.readable(user.id, user.groups)
        return self._seen[key]

    def user(self, chooser: Random) -> User:
        """Somebody, mostly known; now and then with groups, pinned pages and types of their own."""
        known = chooser.random() < 0.85
        return User(
            id=chooser.choice(USERS if known else STRANGERS),
            name=chooser.choice(["", "", "", *USERS]),
            groups=tuple(one for one in GROUPS if chooser.random() < 0.08),
            pinned=tuple(self._some_ids(chooser)) if chooser.random() < 0.1 else (),
            preferred_types=("todo",) if chooser.random() < 0.1 else (),
        )

    def request(self, chooser: Random, user: User) -> ContextRequest:
        """Any request of a user's."""
        include = self._some_ids(chooser) if chooser.random() < 0.15 else []
        exclude = self._some_ids(chooser) if chooser.random() < 0.15 else []
        hints = ContextHints(
            include_blocks=tuple(include),
            exclude_blocks=tuple(one for one in exclude if one not in include),
            prioritize_types=tuple(chooser.choices(TYPES, k=2)) if chooser.random() < 0.15 else (),
            time_range=TimeRange(start=NOW - timedelta(days=9), end=NOW) if chooser.random() < 0.1 else None,
            max_depth=chooser.randint(0, 3) if chooser.random() < 0.15 else None,
        )
        budget: TokenBudget | None = None
        if chooser.random() < 0.5:
            budget = TokenBudget().scaled(chooser.choice([chooser.randint(40, 160), chooser.randint(160, 900), 60_000]))
        return ContextRequest(
            query=self._question(chooser),
            user=user,
            type=chooser.choice(list(RequestType)),
            focus=self._focus(chooser, user),
            conversation_history=self._turns_said(chooser) if chooser.random() < 0.15 else (),
            token_budget=budget,
            hints=hints,
            format=chooser.choice(list(ContextFormat)),
            system_prompt="Answer in one sentence." if chooser.random() < 0.08 else "",
        )

    def ask(self, request: ContextRequest, engine: ContextEngine, *, thoroughly: bool = True) -> Outcome:
        """The answer to a request, after it was looked at for everything that it must not show."""
        self.builds += 1
        seen = self.seen_by(request.user)
        focus = request.focus or Focus()
        hidden = [one for one in (focus.block_id, focus.page_id, focus.database_id) if one and one not in seen]
        try:
            payload = engine.build(request)
        except UnknownBlock as error:
            _check_unknown(error, hidden)
            return Outcome(error=error)
        except BudgetCannotBeMet as error:
            if words_of(str(error)):
                raise Violation("leak", str(error)) from error
            return Outcome(error=error)
        if hidden:
            raise Violation("leak", f"{request.user.id} focused {hidden[0]}, which may not be read")
        self.payloads += 1
        self._check_payload(payload, request, seen)
        if thoroughly:
            found = engine.validate(payload)
            if not found.valid:
                raise Violation("wrong", f"the payload is not valid: {found.failed}")
        return Outcome(payload)

    def ask_plainly(self, chooser: Random, user: User, engine: ContextEngine) -> None:
        """A search, and a context for a question without a request, through the user's filters."""
        seen = self.seen_by(user)
        filters = engine.filters_for(user)
        question = self._question(chooser)
        found = engine.search(question, filters=filters, top_k=chooser.choice([1, 5, 30]))
        for hit in found.hits:
            if hit.block_id not in seen:
                raise Violation("leak", f"{user.id} found {hit.block_id} with {question!r}")
        self._check_words(repr(found), seen, question)
        self.builds += 1
        options = ContextBuildOptions(
            format=chooser.choice(list(ContextFormat)), max_tokens=800, min_relevance=0, expand_context=False
        )
        result = engine.build(question, options, filters=filters)
        self._check_words(repr(result) + result.context, seen, question)
        nobody = engine.search(question, filters=Filters())
        if self.model.default != OWNER and nobody.hits:
            raise Violation("leak", f"{question!r} finds {len(nobody.hits)} blocks for nobody in particular")

    def _question(self, chooser: Random) -> str:
        how = chooser.random()
        if how < 0.6:
            return chooser.choice(QUESTIONS)
        if how < 0.8:
            return (
                f"{chooser.choice(['id', 'title', 'body', 'meta'])}QXZ{chooser.randint(1, max(1, self._numbers)):05d}"
            )
        return " ".join(chooser.choices(WORDS, k=chooser.randint(1, 4)))

    def _focus(self, chooser: Random, user: User) -> Focus | None:
        readable = sorted(self.seen_by(user))
        if chooser.random() < (0.2 if readable else 0.8) or not self._ids:
            return None

        def one(often: float) -> str | None:
            if chooser.random() > often:
                return None
            return chooser.choice(readable) if readable and chooser.random() < 0.92 else self.any_id(chooser)

        return Focus(block_id=one(0.7), page_id=one(0.3), database_id=one(0.1))

    def _turns_said(self, chooser: Random) -> tuple[ConversationMessage, ...]:
        return tuple(
            ConversationMessage(role=chooser.choice(["user", "assistant"]), content=self._question(chooser))
            for _ in range(chooser.randint(1, 25))
        )

    def _some_ids(self, chooser: Random) -> list[str]:
        return [self.any_id(chooser) for _ in range(chooser.randint(1, 3))] if self._ids else []

    def _check_payload(self, payload: ContextPayload, request: ContextRequest, seen: set[str]) -> None:
        shown = [entry.id for entry in payload.ledger] + [entry.into for entry in payload.ledger if entry.into]
        shown += [item.block_id for item in payload.items]
        for one in shown:
            if one not in seen and not one.startswith("conversation:") and one != "system":
                raise Violation("leak", f"{request.user.id} is shown the id {one}")
        wholes = " ".join(item.whole or "" for item in payload.items)
        everything = f"{payload!r} {payload.to_dict()} {payload.serialized} {wholes}"
        self._check_words(everything, seen, repr(request))
        most = (request.token_budget or TokenBudget()).total
        tokens = true_count(payload.serialized)
        if tokens > most or tokens != payload.metadata.total_tokens:
            raise Violation("over budget", f"{tokens} tokens of {most}, told {payload.metadata.total_tokens}")
        if request.format is ContextFormat.JSON:
            json.loads(payload.serialized)
        if request.format is ContextFormat.XML:
            ElementTree.fromstring(payload.serialized)

    def _check_words(self, text: str, seen: set[str], given: str) -> None:
        """Every word that belongs to a block belongs to one that is seen, as it is now, or was the caller's own."""
        strange = words_of(text) - words_of(given)
        allowed = self.model.marks(seen) if strange else set()
        if self.model.default == OWNER:
            allowed |= {one[-5:] for one in self.model.missing_parents()}  # the owner's own words, wherever they lead
        leaked = sorted(word for word in strange if word[-5:] not in allowed)
        if leaked:
            raise Violation("leak", f"{leaked[:5]} may not be shown")

    # looking into the store

    def look(self, chooser: Random, user: User, engine: ContextEngine) -> None:
        """Every reading of the store and the engine gives what the model says, for ids of all kinds."""
        seen, model, store = self.seen_by(user), self.model, engine.store
        filters = engine.filters_for(user)
        ids = list(dict.fromkeys(self.any_id(chooser) for _ in range(6))) if self._ids else []
        answers: list[tuple[str, object, object]] = []

        def expect(name: str, got: object, wanted: object) -> None:
            answers.append((name, got, wanted))

        expect("blocks", sorted(store.blocks(ids, filters)), sorted(one for one in ids if one in seen))
        trails = store.trails(ids, filters)
        expect("trails", {one: [step.id for step in way] for one, way in trails.items()},
               {one: model.trail(one, seen) for one in ids if one in seen})  # fmt: skip
        returned: list[object] = [trails]
        for one in ids:
            block = store.block(one, filters)
            expect("block", None if block is None else block.id, one if one in seen else None)
            lists = {
                "children": (store.children([one], filters, limit=3).get(one, []), model.children(one, seen)[:3]),
                "siblings": (store.siblings(one, filters, count=2), model.siblings(one, seen, 2)),
                "descendants": (
                    store.descendants([one], filters, limit=9, deepest=3).get(one, []),
                    model.descendants(one, seen, 3)[:9],
                ),
            }
            for name, (got, wanted) in lists.items():
                if one in seen or name not in self._known_faults:
                    expect(name, [each.id for each in got], wanted)
                    returned.append(got)
            steps = {other: model.distance(one, other, seen) for other in ids}
            expect("distances", store.distances(one, ids, filters),
                   {other: far for other, far in steps.items() if far is not None})  # fmt: skip
            for name, links, back in (
                ("links_from", store.links_from([one], filters).get(one, []), False),
                ("links_to", store.links_to([one], filters).get(one, []), True),
            ):
                if one in seen or name not in self._known_faults:
                    told = sorted((each.source, each.kind.value, each.target or "", each.name) for each in links)
                    expect(name, told, model.links_of(one, seen, back=back))
                    returned.append(links)
            returned += [block, self._expanded(engine, one, filters, seen)]
        actor = chooser.choice([None, *USERS])
        deeds = [deed for deed in model.deeds if deed.block in seen and actor in (None, deed.actor)]
        deeds.reverse()
        deeds.sort(key=lambda deed: deed.at, reverse=True)
        recent = store.recent(filters, actor=actor, limit=5)
        expect("recent", [(one.block, one.detail) for one in recent], [(deed.block, deed.detail) for deed in deeds[:5]])
        tasks = store.tasks(filters, done=False, due_before=NOW, limit=3)
        due = [(entry.due, one.encode(), one) for one, entry in model.blocks.items()
               if one in seen and entry.due and entry.due <= NOW and not entry.metadata["done"]]  # fmt: skip
        expect("tasks", [one.id for one in tasks], [one for _, _, one in sorted(due)[:3]])
        for asked, given, right in answers:
            if given != right:
                raise Violation("leak", f"{user.id} asks for {asked} and gets {given} instead of {right}")
        text = repr([*returned, recent, tasks])
        if "parent" in self._known_faults:
            text = re.sub(r"parent='[^']*'", "", text)
        self._check_words(text, seen, repr(ids))

    def _expanded(self, engine: ContextEngine, block_id: str, filters: Filters, seen: set[str]) -> object:
        try:
            found = engine.expand(block_id, filters=filters)
        except UnknownBlock as error:
            _check_unknown(error, [] if block_id in seen else [block_id])
            return error
        if block_id not in seen:
            raise Violation("leak", f"{block_id} was expanded")
        own = [line.strip() for line in self.model.blocks[block_id].content.split("\n")]
        if not all(line in found.text for line in own):
            raise Violation("wrong", f"{block_id} was expanded to {found.text[:60]!r}")
        return found

    # the world without what somebody may not read

    @contextmanager
    def without_hidden(self, user: User) -> Iterator[ContextEngine]:
        """A workspace in which there is nothing but what a user may read; what was below other blocks is a root.

        The order in which words were written is kept: it is what decides between equals.
        """
        seen = self.seen_by(user)
        self._references += 1
        folder = self._folder / f"reference-{self._references}"
        folder.mkdir()
        engine = opened(folder, self._embedder, at_once=True)
        try:
            with engine.workspace.edit() as edit:
                for entry in sorted(self.model.blocks.values(), key=lambda entry: entry.turn):
                    if entry.id in seen:
                        kept = entry.parent if entry.parent in seen else None
                        edit.put(_block(replace(entry, parent=kept, inherits=kept is not None)))
                for one in seen:
                    if self.model.blocks[one].parent not in seen:
                        edit.grant(one, f"user:{user.id}")
                for source, kind, target, name in self.model.links:
                    if source in seen and (target in seen or target not in self.model.blocks):
                        edit.add(Link(source=source, kind=LinkKind(kind), target=target, name=name))
                for deed in self.model.deeds:
                    if deed.block in seen:
                        edit.add(_activity(deed))
                edit.set_default(self.model.default)
            yield engine
        finally:
            engine.close()
            shutil.rmtree(folder)

    def compare(self, request: ContextRequest, engine: ContextEngine, reference: ContextEngine) -> None:
        """The same request here and where nothing is hidden gives the same: what is not seen leaves no trace."""
        here, there = self.ask(request, engine, thoroughly=False), self.ask(request, reference, thoroughly=False)
        if type(here.error) is not type(there.error) or str(here.error) != str(there.error):
            raise Violation("hint", f"{here.error!r} is not {there.error!r}")
        if here.payload is None or there.payload is None:
            return
        mine, theirs = comparable(here.payload), comparable(there.payload)
        for (name, one), (_, other) in zip(mine, theirs, strict=True):
            if not alike(one, other):
                raise Violation("hint", f"{request.user.id}: {name} tells of what is hidden\n{one}\n-- not\n{other}")


def opened(
    folder: Path, embedder: Embedder, *, at_once: bool = False, make_store: StoreMaker | None = None
) -> ContextEngine:
    """An engine on a folder, at a fixed time."""
    if make_store is None:
        engine = open_engine(folder, index_dir=str(folder / ".index"), embedder=embedder, clock=lambda: NOW)
    else:
        engine = ContextEngine(folder, make_store(folder), embedder, max_file_bytes=_MOST_FILE_BYTES, clock=lambda: NOW)
    if at_once:
        engine._executor = AtOnce()
    return engine


def words_of(text: str) -> set[str]:
    """The words that belong to blocks."""
    return {match[0] for match in _WORD.finditer(text)}


def comparable(payload: ContextPayload) -> list[tuple[str, Any]]:
    """What must not depend on what is hidden, part by part.

    Left out are how long it took, the number of commits, and whether the answer to the question was known: each of
    them tells that something was done in the workspace, none what.
    """
    meta = payload.metadata
    return [
        ("serialized", payload.serialized),
        ("ledger ids", [entry.id for entry in payload.ledger]),
        ("fates", [(entry.id, str(entry.fate), str(entry.reason), entry.into) for entry in payload.ledger]),
        ("places", [(entry.id, entry.tokens, entry.number, entry.collector) for entry in payload.ledger]),
        ("scores", [(entry.id, entry.relevance, entry.score) for entry in payload.ledger]),
        ("sections", [(str(one.type), one.title, one.token_count, len(one.items)) for one in payload.sections]),
        ("reasons", [(item.block_id, item.reasons, item.metadata, item.trim) for item in payload.items]),
        ("notes", payload.notes),
        (
            "counts",
            (
                meta.total_tokens,
                meta.blocks_included,
                meta.blocks_considered,
                payload.statistics.characters_made_visible,
            ),
        ),
        ("collectors", (meta.collectors_used, dict(payload.statistics.collectors_failed))),
    ]


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same, scores up to rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= _SAME_SCORE
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def _check_unknown(error: UnknownBlock, hidden: Sequence[str]) -> None:
    """The error names the first id that may not be read, and is what it is for an id that never was."""
    if not hidden:
        raise Violation("wrong", f"{error} although all may be read") from error
    missing = UnknownBlock("idQXZ99999")
    if str(error).replace(hidden[0], "idQXZ99999") != str(missing) or vars(error) != {
        "block_id": hidden[0],
        "near": (),
    }:
        raise Violation("hint", f"{error} is not what is said of a missing block") from error


def _block(entry: Entry) -> Block:
    return Block(
        id=entry.id,
        type=entry.type,
        title=entry.title,
        parent=entry.parent,
        position=entry.position,
        summary=entry.summary,
        content=entry.content,
        last_modified=entry.last_modified,
        metadata=entry.metadata,
        inherits=entry.inherits,
    )


def _activity(deed: Deed) -> Activity:
    return Activity(block=deed.block, actor=deed.actor, action=deed.action, timestamp=deed.at, detail=deed.detail)
