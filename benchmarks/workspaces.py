"""A workspace of a chosen size that is always the same: pages, headings, text, tasks, rows, people, groups, links."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from satchel.models.access import DefaultAccess, Grant, Group
from satchel.models.block import Action, Activity, Block, BlockType, Link, LinkKind, Policy, Record

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
USERS = tuple(f"user{i:03d}" for i in range(200))
GROUPS = tuple(f"team{i:02d}" for i in range(50))
BLOCKS_PER_PAGE = 20
PAGES_PER_SPACE = 40
DEEDS_PER_USER = 60

_SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to va we xi yo zu bra cle dri flo gru pla sto tri".split()
SUBJECTS = (
    "launch budget hiring billing migration security review contract onboarding roadmap pricing support release "
    "incident database backup marketing survey customer invoice travel office holiday design research training"
).split()


def words(random_: random.Random, count: int) -> str:
    """Words of a made-up language in which few words are common and most are rare."""
    chosen = []
    for _ in range(count):
        rank = int(random_.paretovariate(0.9))
        maker = random.Random(rank)
        chosen.append("".join(maker.choice(_SYLLABLES) for _ in range(2 + rank % 3)))
    return " ".join(chosen)


def workspace(blocks: int, seed: int = 1) -> Iterator[Record]:
    """The records of a workspace of about that many blocks."""
    chance = random.Random(seed)
    yield Policy(default=DefaultAccess.DENY)
    for i, group in enumerate(GROUPS):
        yield Group(name=group, members=(*chance.sample(USERS, 12), USERS[i]))
    pages = max(1, blocks // BLOCKS_PER_PAGE)
    tail: list[Record] = []
    for page in range(pages):
        space = page // PAGES_PER_SPACE
        if page % PAGES_PER_SPACE == 0:
            yield Block(id=f"space{space}", type=BlockType.PAGE, title=f"Space {words(chance, 2)}")
            for group in chance.sample(GROUPS, 5):
                tail.append(Grant(block=f"space{space}", principal=f"group:{group}"))
            if space % 2 == 0:
                tail.append(Grant(block=f"space{space}", principal="*"))
        yield from _page(page, f"space{space}", pages, chance, tail)
    yield from tail
    yield from _activity(pages, chance)


def _activity(pages: int, chance: random.Random) -> Iterator[Record]:
    """What everybody did in the last days: as much in a small workspace as in a large one."""
    for user in USERS:
        for _ in range(DEEDS_PER_USER):
            block = f"page{chance.randrange(pages)}/{chance.randrange(BLOCKS_PER_PAGE - 1)}"
            action = Action.EDIT if chance.random() < 0.5 else Action.VIEW
            when = NOW - timedelta(minutes=chance.randrange(60 * 24 * 10))
            yield Activity(block=block, actor=user, action=action, timestamp=when)


def _page(number: int, space: str, pages: int, chance: random.Random, tail: list[Record]) -> Iterator[Record]:
    name = f"page{number}"
    subject = chance.choice(SUBJECTS)
    modified = NOW - timedelta(minutes=chance.randrange(60 * 24 * 90))
    yield Block(
        id=name, type=BlockType.PAGE, title=f"{subject} {words(chance, 2)}", parent=space, position=number,
        summary=f"About {subject} and {words(chance, 5)}", last_modified=modified,
    )  # fmt: skip
    if chance.random() < 0.1:
        tail.append(Grant(block=name, principal=f"user:{chance.choice(USERS)}"))
    for i in range(BLOCKS_PER_PAGE - 1):
        block = f"{name}/{i}"
        if i % 6 == 0:
            yield Block(id=block, type=BlockType.HEADING, title=words(chance, 3), parent=name, position=i)
            heading = block
            continue
        task = i % 6 == 3
        yield Block(
            id=block, type=BlockType.TODO if task else BlockType.TEXT, parent=heading, position=i,
            content=f"{words(chance, 6 if task else 40)} {chance.choice(SUBJECTS)}.",
            last_modified=modified - timedelta(hours=i),
            metadata={"done": chance.random() < 0.5, "due": (NOW + timedelta(days=chance.randrange(-60, 60))).date().isoformat()} if task else {},
        )  # fmt: skip
        if chance.random() < 0.1:
            tail.append(Link(source=block, kind=LinkKind.MENTIONS, target=f"page{chance.randrange(pages)}", name="see"))
