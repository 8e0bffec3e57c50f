from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import ContextBuildOptions, KnowledgeChunk, assemble, verify
from satchel.assembly.citations.verify import citable_sources
from satchel.errors import InvalidInput
from satchel.models.context import CitableSource, CitationProblem, CitationReport, Context, ContextKind, ContextSource
from tests.support import strategies
from tests.support.effort import no_blow_up

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


SOURCES = [
    CitableSource(1, "Retries wait twice as long each time,\nup to a min-\nute. They are well-\nknown.", "retry.md"),
    CitableSource(2, "The ﬁrst ofﬁce lost 5–10 % of its co\xadpies ⟦U+200B⟧in 2019.", "crisis.pdf", "crisis.pdf", 3),
    CitableSource(
        3, "> The bank\n> failed in | May | 2008.\n# It was **not** alone — never.", "crisis.pdf", "crisis.pdf", 4
    ),
]


def checked(answer: str) -> CitationReport:
    return verify(answer, SOURCES)


def uncited(answer: str) -> list[str]:
    return [sentence.text for sentence in checked(answer).uncited_sentences]


# -- forms of citations


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("So [1].", (1,)),
        ("So [1, 3].", (1, 3)),
        ("So [1-3].", (1, 2, 3)),
        ("So [1][2].", (1, 2)),
        ("So [^2].", (2,)),
        ("So.[2]", (2,)),
        ("So 【1】.", (1,)),
        ("So 【2†source】【3】.", (2, 3)),
        ("So [Document 2].", (2,)),
        ("So [document 2].", (2,)),
        ("So [Documents 1, 3].", (1, 3)),
        ("So [Documents 1 and 3].", (1, 3)),
        ("So [Document 2: crisis.pdf, Page 3].", (2,)),
        ("So [Document 2: crisis.pdf, page 3][Document 3: crisis.pdf, Page 4].", (2, 3)),
        ("So [Document 2, Page 3].", (2,)),
        ("So (Document 2).", (2,)),
        ("So (see Document 2, Page 3).", (2,)),
        ("So (Documents 1 & 3).", (1, 3)),
        ("So [1](Document 2).", (1, 2)),
        ("`[1]` and ~~~\n[2]\n~~~", ()),
        ("(Documentary 2) [Documented 3] [Doc] (Document two)", ()),
    ],
)
def test_every_form_of_a_citation_is_read(answer: str, cited: tuple[int, ...]) -> None:
    report = checked(answer)
    assert report.cited == cited
    assert report.findings == ()


@pytest.mark.parametrize(
    "answer", ["So 【9】.", "So [Document 9].", "So (Document 9).", "So [Document 9: x.pdf, Page 1]."]
)
def test_an_unknown_number_is_found_in_every_form(answer: str) -> None:
    (finding,) = checked(answer).findings
    assert (finding.problem, finding.numbers) == (CitationProblem.UNKNOWN_NUMBER, (9,))
    assert answer[finding.position :].startswith(finding.text)


@pytest.mark.parametrize(
    ("answer", "ok"),
    [
        ("[Document 2: crisis.pdf, Page 3]", True),
        ("[Document 2: CRISIS.pdf, p. 3]", True),
        ("[Document 2: reports/crisis.pdf, Page 3]", True),
        ("[Document 2: the second report]", True),
        ("[Document 1: retry.md, Page 8]", True),  # the page of it is not known
        ("[Document 2: crisis.pdf, Page 4]", False),
        ("[Document 3: crisis.pdf, Page 3]", False),
        ("[Document 2: retry.md, Page 3]", False),
        ("(Document 2, Page 2)", False),
    ],
)
def test_a_citation_that_names_another_file_or_page_than_its_source_is_found(answer: str, ok: bool) -> None:
    assert [finding.problem for finding in checked(f"So {answer}.").findings] == (
        [] if ok else [CitationProblem.OTHER_PLACE]
    )


def test_a_file_name_with_brackets_does_not_break_its_citation() -> None:
    source = CitableSource(1, "text", "a[7].pdf", "a[7].pdf", 2)
    report = verify("So [Document 1: a[7].pdf, Page 2]. And [Document 1: a[7].pdf, Page 3].", [source])
    assert report.cited == (1,)
    assert [finding.problem for finding in report.findings] == [CitationProblem.OTHER_PLACE]


# -- quotations


@pytest.mark.parametrize(
    "quote",
    [
        '"wait twice as long each time, up to a minute" [1]',
        '"up to a min- ute" [1]',
        '"They are well-known" [1]',
        '"they are wellknown" [1]',
        '"Retries wait … up to a minute" [1]',
        '"Retries wait ... up to a minute" [1]',
        '"Retries wait [...] up to a minute" [1]',
        '"Retries wait […] up to (...) minute" [1]',
        '"Retries wait . . . up to a minute" [1]',
        '"… up to a minute …" [1]',
        '"the first office" [2]',
        '"the ﬁrst oﬃce" [2]',
        '"lost 5-10 % of its copies in 2019" [2]',
        "«the first office» [2]",
        "「the first office」 [2]",
        '"the bank failed in May 2008" [3]',
        '"It was not alone - never" [3]',
        '"It was not alone—never" [3]',
        '"[The bank] failed in May 2008" (Document 3)',
        '"the first office" [Document 2: crisis.pdf, Page 3]',
        'Per [Document 3], "the bank failed".',
        "> Retries wait twice as long each time,\n> up to a minute. [1]",
        "> The bank failed\n> — crisis.pdf [3]",
    ],
)
def test_a_quote_is_found_however_it_was_set(quote: str) -> None:
    assert checked(quote).findings == ()


@pytest.mark.parametrize(
    "quote",
    [
        '"wait thrice as long" [1]',
        '"lost 510 % of its copies" [2]',
        '"up to a minute … Retries wait" [1]',
        '"the bank failed in May 2009" [3]',
        "> The bank never failed. [3]",
        '"the bank failed" (Document 2)',
        '"the bank failed" 【2】',
    ],
)
def test_a_quote_that_differs_in_a_word_or_a_number_is_found(quote: str) -> None:
    (finding,) = checked(quote).findings
    assert finding.problem is CitationProblem.QUOTE_NOT_IN_SOURCE


def test_a_quote_with_the_wrong_number_is_told_where_it_stands() -> None:
    (finding,) = checked('It says "the bank failed" [1][2].').findings
    assert (finding.numbers, finding.found_in) == ((1, 2), (3,))


@pytest.mark.parametrize("callout", ["> [!NOTE]\n> It never waits. [1]", "> **Note:** it never waits. [1]"])
def test_a_callout_is_not_a_quote(callout: str) -> None:
    assert checked(callout).findings == ()


def test_a_long_quote_without_a_citation_that_no_source_holds_is_a_warning() -> None:
    report = checked('He wrote "the bank was saved by its clients in June". They call it "smart". So [1].')
    assert report.ok
    assert [(one.problem, one.text) for one in report.warnings] == [
        (CitationProblem.QUOTE_NOT_IN_ANY_SOURCE, "the bank was saved by its clients in June")
    ]
    assert checked('He wrote "Retries wait twice as long each time".').warnings == ()


# -- sentences without a citation


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        ("It waits a while [1]. It then gives up.", ["It then gives up."]),
        ("It waits a while. [1] It then gives up.", ["It then gives up."]),
        ("It waits a while.[1] It then gives up.[2]", []),
        ("It waits a while. It then gives up [1].", ["It waits a while."]),
        ("It waits a while.\n[1]", []),
        ("It waits a while.\n\n[1] It then gives up.", ["It waits a while."]),
        ("It waits a while (Document 1). It then gives up 【2】.", []),
        ("It waits a\nwhile and then\ngives up [1].", []),
        ("[1] says that it waits. According to [2], it gives up.", []),
        ("It waits, e.g. for Dr. Who in Fig. 3, a while [1].", []),
        ("It grew by 3.5 million U.S. dollars in all [1].", []),
        ("**It waits a while.** It then gives up [1].", ["It waits a while."]),
        (
            "- It waits a while [1]\n- It then gives up\n* Or not at all, really",
            ["It then gives up", "Or not at all, really"],
        ),
        ("1. It waits a while.\n2. It then gives up. [2]", ["It waits a while."]),
        ("它一直等待很长的时间。[1]然后它就停止了工作。", ["然后它就停止了工作。"]),
        ("| a | b |\n|---|---|\n| one | two |", ["| a | b |\n|---|---|\n| one | two |"]),
        ("| a | b |\n|---|---|\n| one | two [1] |", []),
    ],
)
def test_sentences_that_cite_nothing_are_listed(answer: str, sentences: list[str]) -> None:
    report = checked(answer)
    assert [sentence.text for sentence in report.uncited_sentences] == sentences
    assert all(answer[one.position :].startswith(one.text) for one in report.uncited_sentences)
    assert report.ok


@pytest.mark.parametrize(
    "answer",
    [
        "# How long it waits in all\n\nHow Long It Waits\n=================\n",
        "**How long it waits**\n\nHere is what I found:\n\n- These are the reasons for it:",
        "Does it wait for long? Yes. No, it does not. In short.",
        "```\nIt waits for a very long time.\n```",
        "`It waits for a very long time.`",
        "> It waits for a very long time.",
        "The context does not say how long it waits.",
        "The provided documents don't mention how long it waits.",
        "There is no information on how long it waits.",
        "How long it waits is not stated in the context.",
        "I cannot find how long it waits in the material.",
        "Let me know if you need more than that.",
        "https://example.org/it/waits/for/a/while",
        "---\n\n***",
        "",
    ],
)
def test_what_states_nothing_is_not_listed(answer: str) -> None:
    assert uncited(answer) == []


def test_a_claim_about_a_file_is_no_refusal() -> None:
    assert uncited("The file does not use a lock.") == ["The file does not use a lock."]


def test_a_report_says_of_itself_whether_it_is_fully_cited_and_goes_into_json() -> None:
    assert checked("It waits a while [1].").is_fully_cited
    report = checked('It waits a while. It says "the bank failed" [1]. He wrote "all that glitters is not gold".')
    assert not report.is_fully_cited
    told = report.to_dict()
    assert (told["ok"], told["cited"], told["uncited"]) == (False, [1], [2, 3])
    assert told["findings"][0]["found_in"] == [3]
    assert told["uncited_sentences"][0] == {"text": "It waits a while.", "position": 0}
    assert told["warnings"][0]["problem"] == "quote-not-in-any-source"


# -- what an answer can be checked against


def test_a_context_is_checked_by_the_numbers_of_its_sources() -> None:
    context = Context(
        kind=ContextKind.WORKSPACE,
        sources=(
            ContextSource(entity_id="b", name="b", type="note", number=2, text="The bank failed."),
            ContextSource(entity_id="a", name="a", type="note", number=1, text="It waits."),
        ),
    )
    assert verify('"The bank failed" [2], and "it waits" [1].', context).ok
    (finding,) = verify('"The bank failed" [1].', context).findings
    assert finding.found_in == (2,)
    assert verify("So [3].", context).findings[0].problem is CitationProblem.UNKNOWN_NUMBER
    assert [source["number"] for source in context.to_dict()["sources"]] == [2, 1]


def test_whatever_says_what_it_showed_can_be_checked_against() -> None:
    class Pages:
        def citable_sources(self) -> list[CitableSource]:
            return SOURCES

    assert verify('"the bank failed" [3]', Pages()).ok
    assert citable_sources(iter(SOURCES)) == tuple(SOURCES)
    for nothing in (7, ["text"], "text"):
        with pytest.raises(InvalidInput, match="must be a context"):
            verify("So [1].", nothing)  # type: ignore[arg-type]


@given(st.permutations(range(6)), st.sampled_from(["relevance", "edges", "given"]), st.booleans())
def test_law_a_number_resolves_to_the_very_text_that_stands_under_it(
    order: list[int], ordering: str, group: bool
) -> None:
    """Where numbers are given before the order is final, `[2]` in an answer is another text than the model read."""
    facts = [f"Fact {i}: the harbor {i} opened in {1900 + i}." for i in range(6)]
    chunks = [
        KnowledgeChunk(
            facts[i], file_path=f"{i % 3}.md", relevance=0.5 + order[i] / 20, start_line=i * 9 + 1, end_line=i * 9 + 1
        )
        for i in order
    ]
    result = assemble(
        chunks,
        ContextBuildOptions(include_citations=True, include_sources=True, group_by_file=group, ordering=ordering),  # type: ignore[arg-type]
    )
    for source, (start, end) in zip(result.sources, result.spans, strict=True):
        read = result.context[start:end]
        held = [fact for fact in facts if fact in read]
        assert f"[{source.number}]" in read
        for fact in facts:
            assert verify(f'It says "{fact}" [{source.number}]', result).ok is (fact in held)


def test_checking_a_long_answer_takes_no_time() -> None:
    for nasty in (
        "[Document 1: " * 15_000,
        "【1 " * 25_000,
        "(Document 1, " * 15_000,
        "> a\n" * 25_000,
        "a. " * 40_000,
        "| a |\n" * 25_000,
    ):
        with no_blow_up(nasty[:20]):
            verify(nasty, SOURCES)
            verify(nasty + "]" * 15_000 + '"' * 4999, SOURCES)


@given(st.one_of(strategies.nasty_text, st.text(alphabet='[]()【】123Doc ument:,.-|>#*\n"…', max_size=80)))
def test_law_any_answer_can_be_checked_against_pages(answer: str) -> None:
    report = checked(answer)
    assert set(report.cited) | set(report.uncited) == {1, 2, 3}
    places = [one.position for one in (*report.findings, *report.warnings)]
    places += [one.position for one in report.uncited_sentences]
    assert all(0 <= place < len(answer) for place in places)
    assert all(answer[one.position :].startswith(one.text) for one in report.uncited_sentences)


# -- forms that went unseen

CRISIS = [
    CitableSource(
        1,
        "The crisis was caused by subprime mortgages and by excessive leverage. It fell. Revenue rose to $4,210 "
        "million, a growth of 12.5\u202f% in 4\u202f210 places of 5 km each, and 7 | 300 more. [Applause] It's over.",
    )
]


@pytest.mark.parametrize(
    "answer",
    [
        "東京は首都である[9]。",
        "东京是首都[9]，人口很多[1]。",
        "서울은 수도[9]입니다.",
        "Sales rose in FY2008[9].",
        "It really was 4,210[9].",
        "It rose a lot (to 4,210 million)[9].",
        "So it is[9].",
        "It fell[9] because.",
        "_It all fell_[9] because.",
        "**It all fell[9]** because.",
        "It is the bank's[9] fault.",
        "All the bank(s)[9] fell.",
        "It all fell[9] - and rose.",
        "| It all fell[9] | rose |",
        "So it is [ 9 ].",
        "So it is ［9］.",
        "So it is [Source 9].",
        "So it is [source: 9].",
        "So it is (Source 9).",
        "So it is [Sources 1, 9].",
        "So it is [1、9].",
    ],
)
def test_a_citation_is_seen_behind_any_word(answer: str) -> None:
    (finding,) = verify(answer, CRISIS).findings
    assert (finding.problem, finding.numbers) == (CitationProblem.UNKNOWN_NUMBER, (9,))
    report = verify(answer.replace("9", "1"), CRISIS)
    assert (report.cited, report.findings, report.uncited_sentences) == ((1,), (), ())


@pytest.mark.parametrize(
    "answer",
    [
        "Add x[1] + 2 to it",
        "arr[0] = 3",
        "It is names[0] here",
        "foo.bar[2](x)",
        "So matrix[7][2] = 3 holds",
        "So y = matrix[7][2]",
        "So 2 + total[7] is it",
        "So matrix[7][i] is it",
        "So x[1]-x[0] is it",
        "[7](http://example.org)",
        "[see there][7]",
        "`a[9]` and ``b [9]``",
        "[2024-01-15]",
        "[0, 255]",
        "In [2008] and [2007-2009] it fell",
        "Smith[2008] says so",
        "So my_array[5] is it",
        "So myArray[5] is it",
        "So array[5] is it",
        "So f(x)[3] is it",
        "So items[2].name is it",
        "So self.rows[4] and sys.argv[3] and node.x[5] are it",
        "So data_[5] and _data[6] are it",
    ],
)
def test_an_index_a_link_or_a_year_is_no_citation(answer: str) -> None:
    report = verify(answer, CRISIS)
    assert (report.cited, report.findings) == ((), ())


def test_a_year_is_a_number_where_there_are_that_many_sources() -> None:
    many = [CitableSource(i, "text") for i in range(1, 1500)]
    assert [one.numbers for one in verify("So [2008].", many).findings] == [(2008,)]
    assert [one.numbers for one in verify("So [1, 2008].", CRISIS).findings] == [(2008,)]


@pytest.mark.parametrize(
    "answer",
    [
        '"[the CEO was arrested for fraud]" [1]',
        '"[the crisis]" [1]',
        '"Revenue ... [fell] ... $4,210 million" [1]',
        '"[The CEO was arrested] ... Revenue rose" [1]',
        '"Revenue rose … [then it fell]" [1]',
        '"the crisis [which the central bank alone had brought upon everybody] was caused" [1]',
        '"The crisis [it] Revenue rose" [1]',
        '"the crisis was\ncaused by magic beans" [1]',
        '"the crisis was caused by magic beans"\n[1]',
        '"the crisis was caused by magic" as they\nsay [1].',
        "“the crisis was\r\ncaused by magic beans” [1]",
        'It was "caused\nby subprime\nmortgages" [1] and by "magic beans" [1].',
        '"caused by magic beans [1]"',
        "> magic beans\n\n[1]",
        "> magic beans\n\n— the report [1]",
        "> magic beans\n\nSource: [1]",
        "> magic beans\n[1]",
        "As [1] says:\n\n> magic beans",
        "»magic beans« [1]",
        "»magic beans» [1]",
        "‹magic beans› [1]",
        "›magic beans‹ [1]",
        "”magic beans” [1]",
        "『magic beans』 [1]",
        "It was 'caused by magic beans' [1].",
        "‘It’s magic beans’ [1]",
        "‚magic beans‘ [1]",
        '"a growth of 125 %" [1]',
        '"in 42 10 places" [1]',
    ],
)
def test_an_invented_quote_is_found_however_it_is_set(answer: str) -> None:
    (finding,) = verify(answer, CRISIS).findings
    assert finding.problem is CitationProblem.QUOTE_NOT_IN_SOURCE


@pytest.mark.parametrize(
    "answer",
    [
        '"[the company] fell" [1]',
        '"[It] fell" [1]',
        '"[T]he crisis was caused […] by excessive leverage" [1]',
        '"The crisis was [due to] subprime mortgages" [1]',
        '"was caused [sic] by subprime mortgages [emphasis added]" [1]',
        '"[Applause] It\'s over" [1]',
        '"caused by subprime mortgages [1]"',
        'It was "caused by subprime\nmortgages" [1] and by "excessive leverage" [1].',
        'A 5" disk\nand "excessive leverage" [1].',
        "> The crisis was caused\n> by subprime mortgages\n\n[1]",
        "> magic beans\n\n[1] says more on it.",
        "»excessive leverage« [1]",
        "‹excessive leverage› [1]",
        "”excessive leverage” [1]",
        "It was 'caused by subprime mortgages' [1].",
        "‘It’s over’ [1] and 'It's over' [1]",
        "The banks' and the dealers' losses [1].",
        "In the '90s they told 'em of the banks' losses [1].",
        "They're the banks’ and the dealers’ losses [1].",
        "It is a 'magic' bean [1].",
        '"12.5%" [1] and "12.5 %" [1] and "12.5\xa0%" [1]',
        '"4 210 places" [1] and "4\u2009210 places" [1] and "4,210 places" [1] and "4210 places" [1]',
        '"$ 4 210 million" [1] and "5km" [1] and "7 300 more" [1]',
    ],
)
def test_a_true_quote_is_fine_however_it_is_set(answer: str) -> None:
    report = verify(answer, CRISIS)
    assert (report.findings, report.warnings) == ((), ())


@pytest.mark.parametrize(
    "answer",
    [
        '"was [never] caused by subprime mortgages" [1]',
        '"was ［never］ caused by subprime mortgages" [1]',
        '"Revenue [fell] ... $4,210 million" [1]',
        '"Revenue rose [sharply]" [1]',
        '"… Revenue rose [sharply] … million" [1]',
    ],
)
def test_a_quote_with_a_word_put_in_is_a_warning(answer: str) -> None:
    report = verify(answer, CRISIS)
    assert report.ok
    assert [(one.problem, one.numbers) for one in report.warnings] == [(CitationProblem.QUOTE_NOT_IN_SOURCE, (1,))]
    assert not report.is_fully_cited


def test_the_best_place_for_brackets_is_looked_for() -> None:
    source = [CitableSource(1, "He was there. He was not here, he was seen here. He was once here.")]
    assert verify('"he was [twice] here" [1]', source).is_fully_cited
    assert verify('"he was [twice] here … once here" [1]', source).is_fully_cited
    assert not verify('"once here … he [often] was" [1]', source).ok
    assert verify('"once [was] here" [1]', source).warnings


@pytest.mark.slow
def test_many_quotes_are_checked_in_no_time() -> None:
    source = [CitableSource(1, "a a b c " * 6000)]
    for nasty in (
        '"' * 50_000,
        '"a b" ' * 8000 + "[1]",
        '"a b"' * 5000 + "[1]" * 8000,
        '"a\n' * 16_000,
        '"a b\nc" [1]\n' * 4000,
        "'a b' " * 8000,
        " '" * 25_000,
        " 'a'b" * 10_000,
        " ‘a b" * 10_000,
        "„a " * 16_000,
        " ”a" * 16_000,
        "«a\n" * 16_000,
        "".join(f'"{i} a b" [1] ' for i in range(3500)),
        "".join(f'"a [{i}x] a" [1] ' for i in range(3000)),
        ('"a' + " [c] a" * 300 + '" [1] ') * 25,
        ('"[1' + " " * 1900 + '" [1] ') * 25,
        "> a\n\n[1]\n\n" * 5000,
        "(" * 20_000 + ")[1]" * 8000,
        "_a" * 20_000 + "[1]",
        "[ " * 25_000,
        "[Source" + " " * 50_000,
    ):
        with no_blow_up(nasty[:20]):
            verify(nasty, source)


RETRY_NOTE = assemble([KnowledgeChunk("Waits up to a minute. Use `retry` now.", file_path="a.md")])


@pytest.mark.parametrize(
    ("answer", "ok"),
    [
        ("As of [2024-01-15] it waits [1].", True),
        ("[1-3-5]", True),
        ('The "x" flag means "up to a minute" [1].', True),
        ('The "x" flag means "up to an hour" [1].', False),
        ('"use `retry` now" [1]', True),
        ("It waits forever[5].", False),
        ("It waits[1].", True),
        ("The array a[5] is long, and rows[3] + 1 too.", True),
    ],
)
def test_citations_and_quotes_are_read_as_models_write_them(answer: str, ok: bool) -> None:
    assert verify(answer, RETRY_NOTE).ok is ok


def test_a_hundred_thousand_quotation_marks_take_no_time() -> None:
    with no_blow_up("the check of many quotes"):
        verify("“" * 100_000 + '"' * 99_999 + "[1]" * 25_000, RETRY_NOTE)


TWO_NOTES = assemble(
    [
        KnowledgeChunk(
            'Waits up to a minute. Use `retry` now. He said "wait up" now.', file_path="retry.md", relevance=0.9
        ),
        KnowledgeChunk("The cache holds ten entries.", file_path="cache.md", relevance=0.8),
    ]
)


@pytest.mark.parametrize(
    "answer",
    [
        '[1] says "up to a minute" while [2] says "ten entries".',
        'In [1], "up to a minute" is used; see also [2].',
        '"Use retry now" [1]',
        '"up to **a minute**" [1]',
        "\"He said 'wait up' now\" [1]",
        'The file "retry.md" says so [1].',
        "values in [0, 255] or [0, 1]",
        'The 27" and 32" monitors are fine [1].',
        '"[It] waits up to a minute" [1]',
        "Code ``[5]`` is code.",
        "In [2024-01] it was so.",
        "Er sagt „up to a minute“ [1].",
        "1. **Waiting**: it waits [1].\n2. **Cache**: ten [2].\n\n[1]: retry.md",
    ],
)
def test_a_true_answer_raises_no_false_alarm(answer: str) -> None:
    assert verify(answer, TWO_NOTES).findings == ()


def test_an_invented_quote_in_german_quotation_marks_is_found() -> None:
    assert not verify("Er sagt „up to an hour“ [1].", TWO_NOTES).ok
