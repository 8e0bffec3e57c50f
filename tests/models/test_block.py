"""Blocks."""

from __future__ import annotations

from typing import Any

import pytest

from satchel.models.block import is_done


@pytest.mark.parametrize(
    ("metadata", "done"),
    [({"status": "done"}, True), ({"done": "false"}, False), ({"done": 1}, True),
     ({"done": False, "status": "done"}, False), ({"status": "Cancelled"}, True), ({}, False)],
)  # fmt: skip
def test_a_block_may_say_in_several_ways_that_it_is_done(metadata: dict[str, Any], done: bool) -> None:
    assert is_done(metadata) is done
