"""What the sources say about each sentence of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel import verify
from satchel.assembly.citations.facts import FactKind, facts_of
from satchel.models.context import CitableSource, Claim

REPORT = """# Plant report

The works produced 1,308 boilers in the first half of 2024, of which 41 failed the test. Output rose by 12 percent
after the new press was opened in March. Greta Olsen leads the works; Paul Marten leads the sales office. The works
does not make radiators. A boiler must be tested within five minutes.
"""
CODE = """def fetch(url, max_retries=3):
    \"\"\"Fetch a page; waits `backoff_seconds` (2.5 s) between attempts and never follows redirects.\"\"\"
"""
SOURCES = [CitableSource(1, REPORT, "report.md"), CitableSource(2, CODE, "src/fetch.py", "src/fetch.py")]


def claim(sentence: str) -> Claim:
    (found,) = verify(sentence, SOURCES).claims
    return found


@pytest.mark.parametrize(
    "sentence",
    [
        "The works produced 1308 boilers in the first half of 2024 [1].",
        "Of the boilers produced in 2024, forty-one failed the test [1].",
        "About 1,300 boilers were produced in the first half of 2024 [1].",
        "Output rose 12% after the new press was opened [1].",
        "Every boiler must be tested within 300 seconds [1].",
        "Radiators are not made by the works [1].",
        "No, the works does not make radiators [1].",
        "Olsen leads the works [1].",
        "`fetch` waits `backoff_seconds` between attempts [2].",
        "Between attempts, it waits 2500 ms and never follows redirects [2].",
    ],
)
def test_what_the_sources_say_is_supported(sentence: str) -> None:
    found = claim(sentence)
    assert (found.verdict, found.reason) == ("supported", "")
    assert found.evidence


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The works produced 1,380 boilers in the first half of 2024 [1].", "1,380: the source says 1,308"),
        ("Of the boilers, 14 failed the test in 2024 [1].", "14"),
        ("Output fell by 12 percent after the new press was opened in March [1].", "fell: the source says rose"),
        ("Output rose by 12 percent after the new press was opened in May [1].", "May: the source says March"),
        ("Hugo Brand leads the works [1].", "Brand"),
        ("The works makes radiators [1].", "the source negates it"),
        ("The works did not produce 1,308 boilers in 2024 [1].", "the source does not negate it"),
        ("A boiler must be tested within five hours [1].", "five"),
        ("`fetch` waits `retry_seconds` between attempts [2].", "retry_seconds"),
        ("It waits 2.5 s between attempts and follows redirects [2].", "the source negates it"),
        ("The works produced 1,308 boilers in the first half of 2024 [2].", "it is in [1], not in what is cited"),
    ],
)
def test_what_the_sources_say_otherwise_is_doubted(sentence: str, reason: str) -> None:
    found = claim(sentence)
    assert found.is_doubted, found
    assert reason in found.reason


def test_a_sentence_with_other_words_is_not_checkable() -> None:
    found = claim("Manufacturing went well this spring [1].")
    assert (found.verdict, found.source, found.evidence) == ("not-checkable", None, "")


def test_a_sentence_that_cites_nothing_is_compared_with_all_sources() -> None:
    assert claim("It waits 2.5 s between attempts and never follows redirects.").source == 2


def test_claims_are_told_beside_what_is_wrong_with_citations() -> None:
    answer = "The works produced 1,380 boilers in the first half of 2024 [1]."
    report = verify(answer, SOURCES)
    assert report.ok
    assert not report.is_fully_cited
    (doubt,) = report.doubted
    assert report.to_dict()["claims"] == [doubt.to_dict()]
    assert doubt.to_dict() == {
        "text": answer,
        "position": 0,
        "verdict": "contradicted",
        "reason": "1,380: the source says 1,308",
        "cited": [1],
        "source": 1,
        "evidence": "The works produced 1,308 boilers in the first half of 2024, of which 41 failed the test.",
        "is_likely": False,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6.4 million euros", [("number", 6_400_000.0, "euro")]),
        ("twenty-four weeks", [("number", 24 * 604_800.0, "time")]),
        ("on 2026-11-19", [("number", 19.0, "novemb"), ("number", 2026.0, ""), ("month", 11.0, "")]),
        ("the 3rd try of COVID-19", [("ordinal", 3.0, ""), ("name", "covid", "")]),
        ("is `a.b()` or Server::start", [("identifier", "a.b", ""), ("identifier", "server::start", "")]),
        ("e.g. and/or U.S. rules", []),
        ("he met Ann of York", [("name", "ann york", "")]),
    ],
)
def test_facts_are_read_from_words(text: str, expected: list[tuple[str, float | str, str]]) -> None:
    assert [(str(fact.kind), fact.value, fact.unit) for fact in facts_of(text).facts if fact.text != "try"] == expected


WORDS = st.lists(
    st.sampled_from(
        ["The", "works", "made", "12", "boilers", "not", "Olsen", "`x_y`", "5 s", "in May", "—", "n't", "9"]
    ),
    min_size=4,
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(WORDS, WORDS)
def test_law_a_sentence_of_a_source_is_never_doubted_before_it(words: list[str], others: list[str]) -> None:
    sentence = " ".join(words)
    source = CitableSource(1, f"{sentence}. {' '.join(others)}.", "a")
    for found in verify(f"{sentence} [1].", [source]).claims:
        assert not found.is_doubted, found


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_law_any_text_is_judged(answer: str, source: str) -> None:
    report = verify(answer, [CitableSource(1, source, "a")])
    assert [found.text for found in report.claims] == [
        answer[found.position :][: len(found.text)] for found in report.claims
    ]


def test_numbers_words_and_names_have_their_kinds() -> None:
    kinds = {fact.kind for fact in facts_of("the third of 4 tries by Olsen on Monday in May 2024 called `f`").facts}
    assert kinds == set(FactKind)
