"""Cached rankings and pages: kept over edits that the reader cannot see, and never another answer than a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel import Block, ContextEngine, LinkKind
from satchel.models.search import Filters
from satchel.workspace.blocks import Edit
from tests.support.workspaces import ANN, BOB, engine_in, request

QUESTIONS = ("Which venue is booked for the launch?", "salary of the launch crew")
PAGES = ("open", "secret", "own")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ContextEngine]:
    with engine_in(tmp_path) as engine:
        fill(engine)
        yield engine


def fill(engine: ContextEngine) -> None:
    """A page for everybody, one for Bob, and one for Ann, each with blocks."""
    with engine.workspace.edit() as edit:
        for page in PAGES:
            edit.put(Block(id=page, type="page", title=f"{page} launch"))
            for number in range(3):
                text = f"{page} note {number} on the launch venue and its crew"
                edit.put(Block(id=f"{page}{number}", type="text", parent=page, content=text))
        edit.set_default("deny")
        edit.grant("open", "*")
        edit.grant("secret", "bob")
        edit.grant("own", "ann")


def answers(engine: ContextEngine, filters: Filters) -> list[object]:
    """What a reader gets, without what tells of the cache."""
    found = [replace(engine.search(question, filters=filters), cached=False) for question in QUESTIONS]
    user = ANN if filters.readers and "user:ann" in filters.readers else BOB
    built = [engine.build(replace(request(question), user=user)) for question in QUESTIONS]
    return [*found, *((payload.serialized, payload.statistics.generation, payload.ledger) for payload in built)]


def readers(engine: ContextEngine) -> list[Filters]:
    return [engine.filters_for(ANN), engine.filters_for(BOB), Filters()]


BLOCKS = [f"{page}{number}" for page in PAGES for number in range(4)]
EDITS: list[Callable[[Edit, str, str], object]] = [
    lambda edit, block, page: edit.put(Block(id=block, type="text", parent=page, content=f"venue of {block}")),
    lambda edit, block, page: edit.put(Block(id=block, type="todo", title="Launch", parent=page, position=9)),
    lambda edit, block, page: edit.move(block, page, 0.5),
    lambda edit, block, _: edit.delete(block),
    lambda edit, block, page: edit.link(block, page, LinkKind.MENTIONS),
    lambda edit, block, _: edit.unlink(block),
    lambda edit, block, _: edit.grant(block, "ann"),
    lambda edit, block, _: edit.deny(block, "bob"),
    lambda edit, block, _: edit.revoke(block, "ann"),
    lambda edit, _, page: edit.set_inherits(f"{page}1", inherits=False),
    lambda edit, block, page: edit.put_group(page, [block, "ann"]),
    lambda edit, _, page: edit.remove(page),
]
STEP = st.tuples(st.sampled_from(EDITS), st.sampled_from(BLOCKS), st.sampled_from(PAGES))


@settings(max_examples=20)
@given(steps=st.lists(STEP, min_size=2, max_size=6))
def test_law_an_answer_with_the_caches_is_the_answer_without_them(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Callable[[Edit, str, str], object], str, str]]
) -> None:
    place = tmp_path_factory.mktemp("law")
    with engine_in(place) as cached:
        fill(cached)
        for change, block, page in steps:
            for filters in readers(cached):
                answers(cached, filters)
            apply(cached, change, block, page)
            with engine_in(place) as fresh:
                for filters in readers(fresh):
                    assert answers(cached, filters) == answers(fresh, filters)


def apply(engine: ContextEngine, change: Callable[[Edit, str, str], object], block: str, page: str) -> None:
    from satchel.errors import InvalidInput, UnknownBlock

    try:
        with engine.workspace.edit() as edit:
            change(edit, block, page)
    except (UnknownBlock, InvalidInput):
        pass  # there is nothing to change


HIDDEN: dict[str, Callable[[Edit], object]] = {
    "put": lambda edit: edit.put(Block(id="new", type="text", parent="secret", content="the launch venue is booked")),
    "change": lambda edit: edit.put(Block(id="secret1", type="text", parent="secret", content="another venue")),
    "retitle": lambda edit: edit.put(Block(id="secret", type="page", title="secret launch", summary="new")),
    "move": lambda edit: edit.move("secret0", "secret", 7),
    "delete": lambda edit: edit.delete("secret0"),
    "link": lambda edit: edit.link("secret0", "open", LinkKind.MENTIONS),
    "grant": lambda edit: edit.grant("secret", "cleo"),
    "deny": lambda edit: edit.deny("secret1", "bob"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_user_does_not_notice_an_edit_of_what_they_may_not_read(engine: ContextEngine, name: str) -> None:
    ann, bob = engine.filters_for(ANN), engine.filters_for(BOB)
    for filters in (ann, bob):
        engine.search(QUESTIONS[0], filters=filters)
    before, for_bob = answers(engine, ann), engine.store.generation_for(bob)
    with engine.workspace.edit() as edit:
        HIDDEN[name](edit)
    found = engine.search(QUESTIONS[0], filters=ann)
    assert found.cached
    assert answers(engine, ann) == before
    assert engine.store.generation_for(bob) > for_bob
    assert not engine.search(QUESTIONS[0], filters=bob).cached
    assert engine.store.generation_for(Filters()) == engine.store.generation


@pytest.mark.parametrize("change", ["revoke", "share", "default", "group"])
def test_a_user_notices_an_edit_that_changes_what_they_may_read(engine: ContextEngine, change: str) -> None:
    ann = engine.filters_for(ANN)
    engine.search(QUESTIONS[0], filters=ann)
    before = engine.store.generation_for(ann)
    with engine.workspace.edit() as edit:
        {
            "revoke": lambda: edit.revoke("own", "ann"),
            "share": lambda: edit.grant("secret", "ann"),
            "default": lambda: edit.set_default("allow"),
            "group": lambda: edit.put_group("crew", ["ann"]),
        }[change]()
    assert engine.store.generation_for(ann) > before
    assert not engine.search(QUESTIONS[0], filters=ann).cached


def test_most_searches_are_cached_with_an_edit_of_somebody_else_before_every_fifth(engine: ContextEngine) -> None:
    asked = ["launch venue", "crew", "launch venue", "who is on the crew", "launch venue"] * 6
    cached = []
    for number, question in enumerate(asked):
        if number % 5 == 0:
            with engine.workspace.edit() as edit:
                edit.put(Block(id=f"more{number}", type="text", parent="secret", content="launch venue"))
        cached.append(engine.search(question, filters=engine.filters_for(ANN)).cached)
    assert sum(cached) / len(cached) > 0.6


def test_an_index_of_an_earlier_version_counts_every_commit_until_the_next(engine: ContextEngine) -> None:
    ann = engine.filters_for(ANN)
    with engine.store.write() as writer:
        for name in engine_facts(engine):
            writer.set_fact(name, "0")
    assert engine.store.generation_for(ann) == 0
    with engine.workspace.edit() as edit:
        edit.put(Block(id="open1", type="text", parent="open", content="seen by all"))
    assert engine.store.generation_for(ann) == engine.store.generation


def engine_facts(engine: ContextEngine) -> list[str]:
    return [f"changed for {name}" for name in ("all", *range(1, 9)) if engine.store.fact(f"changed for {name}")]
