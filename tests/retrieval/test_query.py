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


@pytest.mark.parametrize(
    "question", ["unit tests for the parser", "where are the tests of retry", "how is login tested"]
)
def test_a_request_for_tests_wants_tests(question: str) -> None:
    assert understand(question).wants_tests


@pytest.mark.parametrize(
    "question", ["test client for requests", "how bats runs a test file", "test runner worker pool"]
)
def test_a_question_about_testing_tools_wants_their_code(question: str) -> None:
    assert not understand(question).wants_tests


@pytest.mark.parametrize(
    "question", ["How do I add a route?", "how to log in", "Wie kann ich eine Route anlegen?", "如何配置"]
)
def test_a_question_for_instructions_is_a_how_to(question: str) -> None:
    assert understand(question).is_how_to


@pytest.mark.parametrize("question", ["how does routing work", "where is the router", "how requests are retried"])
def test_a_question_how_something_works_is_none(question: str) -> None:
    assert not understand(question).is_how_to


def test_the_words_of_a_template_are_no_terms() -> None:
    question = understand("Login fails\n### Describe the bug\nThe token is lost\n- [x] I searched the issues\n")
    assert question.terms.keys() == {"login", "fail", "token", "lost"}
