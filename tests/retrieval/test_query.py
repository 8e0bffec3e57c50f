"""Understanding a question."""

from __future__ import annotations

import pytest

from satchel.retrieval.intents import Intent, holds_answer
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
    assert Intent.TESTS in understand(question).intents


@pytest.mark.parametrize(
    "question", ["test client for requests", "how bats runs a test file", "test runner worker pool"]
)
def test_a_question_about_testing_tools_wants_their_code(question: str) -> None:
    assert Intent.TESTS not in understand(question).intents


@pytest.mark.parametrize(
    "question", ["How do I add a route?", "how to log in", "Wie kann ich eine Route anlegen?", "如何配置"]
)
def test_a_question_for_instructions_is_a_how_to(question: str) -> None:
    assert Intent.HOW_TO in understand(question).intents


@pytest.mark.parametrize("question", ["how does routing work", "where is the router", "how requests are retried"])
def test_a_question_how_something_works_is_none(question: str) -> None:
    assert Intent.HOW_TO not in understand(question).intents


def test_the_words_of_a_template_are_no_terms() -> None:
    question = understand("Login fails\n### Describe the bug\nThe token is lost\n- [x] I searched the issues\n")
    assert question.terms.keys() == {"login", "fail", "token", "lost"}


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("what changed in version 2.0", Intent.WHAT_CHANGED),
        ("What's new in the router?", Intent.WHAT_CHANGED),
        ("breaking changes of the client", Intent.WHAT_CHANGED),
        ("Was hat sich am Router geändert?", Intent.WHAT_CHANGED),
        ("что нового в маршрутизаторе", Intent.WHAT_CHANGED),
        ("why are requests retried three times", Intent.WHY),
        ("pourquoi le cache est-il vidé", Intent.WHY),
        ("なぜキャッシュが消えるのか", Intent.WHY),
        ("where is the retry delay computed", Intent.WHERE_IS),
        ("which class parses the header", Intent.WHERE_IS),
        ("dónde se calcula el retraso", Intent.WHERE_IS),
        ("list all middleware", Intent.LIST_ALL),
        ("which output formats are supported", Intent.LIST_ALL),
        ("所有的命令", Intent.LIST_ALL),
        ("Backoff.delay", Intent.SYMBOL),
        ('it fails\n  File "app/retry.py", line 3', Intent.STACK_TRACE),
    ],
)
def test_an_intent_is_recognized_in_the_languages_of_the_embedder(question: str, intent: Intent) -> None:
    assert intent in understand(question).intents


@pytest.mark.parametrize(
    "question", ["how requests are retried", "retry with backoff", "router and its layers", "new user form"]
)
def test_a_plain_question_has_no_intent(question: str) -> None:
    assert not understand(question).intents


def test_a_change_log_holds_what_changed_and_a_decision_record_holds_why() -> None:
    changed, why = understand("what changed in 2.0").intents, understand("why is it retried").intents
    assert holds_answer(changed, "docs/changelog/2.0.md")
    assert holds_answer(why, "docs/decisions/0003-retries.md")
    assert not holds_answer(changed, "docs/decisions/0003-retries.md")
    assert not holds_answer(why, "src/retry.py")
