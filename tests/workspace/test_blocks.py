"""Edits of a workspace: what can be stored, what is refused, and many threads at once."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from satchel import Block, ContextEngine, Focus
from satchel.errors import InvalidInput
from tests.support.workspaces import BOB, NOW, put, request


def test_many_threads_may_record_and_edit(empty: ContextEngine) -> None:
    put(empty, Block(id="a", type="page", title="A"))
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(10):
                empty.workspace.record("ann", "view", "a", NOW - timedelta(minutes=i))
                with empty.workspace.edit() as edit:
                    edit.put(Block(id=f"{number}-{i}", type="text", content=f"text {number} {i}"))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(empty.store.recent(empty.filters_for(BOB), limit=99)) == 30


@pytest.mark.parametrize("year", [1, 1500, 9999])
def test_any_date_can_be_stored(empty: ContextEngine, year: int) -> None:
    when = datetime(year, 5, 5, tzinfo=UTC)
    put(empty, Block(id="old", type="text", content="an old map", last_modified=when))
    assert empty.build(request("old map", focus=Focus(block_id="old"))).items[0].metadata.last_modified == when


@pytest.mark.parametrize(
    "wrong",
    [{"title": None}, {"content": None}, {"content": b""}, {"position": float("nan")}, {"position": "a"},
     {"last_modified": "2026-01-01"}, {"summary": None}, {"start_line": 2**70}, {"start_line": "a"},
     {"metadata": {"x": object()}}, {"metadata": {"x": float("nan")}}, {"type": "Two Words"}],
)  # fmt: skip
def test_a_block_that_could_not_be_stored_is_refused(empty: ContextEngine, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        put(empty, Block(**{"id": "x", "type": "text", "content": "text"} | wrong))
