"""A workspace without a block, for tests that put in their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel import ContextEngine
from tests.support.workspaces import engine_in


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[ContextEngine]:
    """An engine on an empty workspace."""
    with engine_in(tmp_path) as engine:
        yield engine
