from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import CitationProblem, ContextBuildOptions, KnowledgeChunk, assemble, verify
from tests import strategies

RESULT = assemble(
    [
        KnowledgeChunk("Retries wait twice as long each time,\nup to a minute.", file_path="retry.md", relevance=0.9),
        KnowledgeChunk("It’s limited to 5 attempts.", file_path="limits.md", relevance=0.8),
    ],
    ContextBuildOptions(include_citations=True),
)


def problems(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(finding.problem.value, finding.numbers) for finding in verify(answer, RESULT).findings]


@pytest.mark.parametrize(
    "answer",
    [
        "They back off [1].",
        "Both matter [1][2], and again [1, 2] or [1-2].",
        'The guide says "wait twice as long each time, up to a minute" [1].',
        'It is "limited to 5 attempts." [2]',
        "It says “It's limited to 5 attempts” [2].",
        'In short: "Retries wait … up to a minute" [1].',
        'A "quote of nobody" without a citation.',
        'As [1] says, "up to a minute". Then somebody said "anything at all".',
        "An index x[7] and a list [1](http://x) are not citations; nor is code: `a [9]`.",
        "```\nrows [3]\n```",
        "",
    ],
)
def test_a_good_answer_passes(answer: str) -> None:
    assert problems(answer) == []
    assert verify(answer, RESULT).ok


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [("See [3].", (3,)), ("See [0].", (0,)), ("See [1, 7].", (7,)), ("See [2-4].", (3, 4)), ("[1-900000]", (900000,))],
)
def test_an_unknown_number_is_found(answer: str, numbers: tuple[int, ...]) -> None:
    (finding,) = verify(answer, RESULT).findings
    assert finding.problem is CitationProblem.UNKNOWN_NUMBER
    assert finding.numbers == numbers
    assert answer[finding.position] == "["


@pytest.mark.parametrize(
    "answer",
    [
        'It says "wait three times as long" [1].',
        'It says "limited to 5 attempts" [1].',
        'It says "Retries wait … attempts" [1].',
        'It says "something else" and cites both [1][2].',
        'It says "up to an hour". [1]',
        'Per [1], it is "up to an hour".',
        '[1]: "up to an hour"',
    ],
)
def test_a_quote_that_is_not_in_its_source_is_found(answer: str) -> None:
    (finding,) = verify(answer, RESULT).findings
    assert finding.problem is CitationProblem.QUOTE_NOT_IN_SOURCE


def test_a_quote_is_fine_when_one_of_its_sources_holds_it() -> None:
    assert verify('It is "limited to 5 attempts" [1][2].', RESULT).ok


def test_the_report_says_which_sources_were_used() -> None:
    report = verify("Only the first [1], really [1].", RESULT)
    assert report.cited == (1,)
    assert report.uncited == (2,)


@given(st.one_of(strategies.nasty_text, st.text(alphabet='[]1239-, "“”…`.', max_size=60)))
def test_law_any_answer_can_be_checked(answer: str) -> None:
    report = verify(answer, RESULT)
    assert set(report.cited) | set(report.uncited) == {1, 2}
    assert all(0 <= finding.position < len(answer) for finding in report.findings)
