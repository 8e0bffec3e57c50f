"""Understanding a question."""

from __future__ import annotations

import pytest

from satchel.retrieval.query import understand
from tests.support.effort import no_blow_up


@pytest.mark.parametrize(
    "question", ["a" * 500_000, "a-" * 200_000, "a." * 200_000, "a/" * 200_000, " " * 900_000 + "x"]
)
def test_no_question_takes_long_to_understand(question: str) -> None:
    with no_blow_up("a question"):
        understand(question)
