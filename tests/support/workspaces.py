"""A small workspace for tests: one page with a little tree, a database, and a page that is nobody's but Bob's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from satchel import Block, ContextEngine, ContextPayload, ContextRequest, LinkKind, User, open_engine
from satchel.models.results import SectionType

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
ANN, BOB = User(id="ann"), User(id="bob")


@contextmanager
def engine_in(folder: Path, **options: Any) -> Iterator[ContextEngine]:
    """An engine on an empty workspace, at a fixed time."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    with open_engine(root, index_dir=str(folder / "index"), clock=lambda: NOW, **options) as engine:
        yield engine


def fill(engine: ContextEngine) -> None:
    """Put the small workspace in; it is its owner's."""
    with engine.workspace.edit() as edit:
        for block in blocks():
            edit.put(block)
        edit.link("book", "venue", name="the venue")
        edit.link("press", "book")
        edit.link("row-1", "row-2", LinkKind.RELATION, "Depends on")


def blocks() -> Iterator[Block]:
    """The blocks, parents first."""
    old = NOW - timedelta(days=90)
    yield Block(id="launch", type="page", title="Launch plan", summary="How we launch in December.", last_modified=NOW)
    for place, name in enumerate(("goals", "tasks", "risks")):
        yield Block(id=name, type="heading", title=name.title(), parent="launch", position=place)
    yield Block(id="goal", type="text", parent="goals", content="Reach a thousand harbors in the first month.")
    due = {"done": False, "due": "2026-11-01"}
    for place, (name, text) in enumerate(
        (
            ("invite", "Invite the press to the launch"),
            ("book", "Book the hall for the launch event"),
            ("press", "Write the press release"),
            ("cake", "Order the cake"),
            ("band", "Hire the band"),
        )
    ):
        yield Block(
            id=name, type="todo", parent="tasks", position=place, content=text,
            last_modified=NOW - timedelta(days=place),
            metadata=due if name == "book" else {"done": name == "cake", "due": "2026-12-01"},
        )  # fmt: skip
    for place in range(7):
        yield Block(id=f"sub{place}", type="todo", parent="book", position=place, content=f"Step {place} of the hall")
    yield Block(id="venue", type="text", parent="risks", content="The venue may be taken already.", last_modified=old)
    yield Block(id="crew", type="database", title="Crew")
    yield Block(id="row-1", type="db_row", parent="crew", title="Sound", content="Role: sound\nBudget: 300")
    yield Block(id="row-2", type="db_row", parent="crew", position=1, title="Light", content="Role: light\nBudget: 200")
    yield Block(id="salaries", type="page", title="Salaries", content="Ann earns more than Bob at the launch event.")


def request(query: str = "What about the launch event?", user: User = ANN, **more: Any) -> ContextRequest:
    """A request by Ann, unless said otherwise."""
    return ContextRequest(query=query, user=user, **more)


def ids(payload: ContextPayload, section: SectionType | str) -> list[str]:
    """The blocks of a section, as written."""
    found = payload.section(SectionType(section))
    return [item.block_id for item in found.items] if found else []


def relevances(payload: ContextPayload) -> dict[str, float]:
    """What the collectors gave, by block: the best of it."""
    found: dict[str, float] = {}
    for entry in payload.ledger:
        found[entry.id] = max(found.get(entry.id, 0.0), entry.relevance)
    return found


def put(engine: ContextEngine, *blocks: Block) -> None:
    """Put the blocks in, in one edit."""
    with engine.workspace.edit() as edit:
        for block in blocks:
            edit.put(block)
