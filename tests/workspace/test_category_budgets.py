"""Sharing tokens out among sections, and what is kept of a text that is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import TokenBudget, counter_for
from satchel.errors import LanguageModelUnavailable
from satchel.models.context import Fate
from satchel.models.options import TruncationConfig, TruncationStrategy
from satchel.models.results import ContextItem, SectionType
from satchel.ports.language_model import Completion
from satchel.text.boundaries import sentences
from satchel.workspace.specification import AllocatedContext, GreedyBudgetAllocator
from satchel.workspace.trim import GAP, ContentTruncator

COUNTER = counter_for("gpt-4o")
TEXT = (
    "The harbor opened in 1901. It has four docks and a crane. In winter the docks freeze. "
    "The crane was sold to pay the debts. A new crane arrives in March, paid by the city. Gulls are a nuisance."
)


def item(name: str, section: str = "focus", relevance: float = 0.5, tokens: int = 50) -> ContextItem:
    return ContextItem(
        block_id=name, block_type="text", content="word " * tokens, relevance=relevance, section=SectionType(section)
    )


def budget(total: int, **parts: int) -> TokenBudget:
    none = dict.fromkeys(("focus", "semantic", "relations", "activity", "history", "system"), 0)
    return TokenBudget(total=total, **(none | parts))


def allocate(
    items: list[ContextItem], limit: TokenBudget, truncation: TruncationConfig | None = None, **more: object
) -> AllocatedContext:
    allocator = GreedyBudgetAllocator(
        lambda one: len(one.content.split()) + (5 if one.trim else 0), ContentTruncator(COUNTER),
        truncation=truncation, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return allocator.allocate(items, limit)


def kept(found: AllocatedContext) -> list[str]:
    return [one.block_id for one in found.items]


@pytest.mark.requirement("S4.allocation.order", "S4.allocation.fits", "S4.allocation.result")
def test_the_most_relevant_are_taken_until_the_last_token() -> None:
    items = [item("c", relevance=0.3), item("a", relevance=0.9), item("b", relevance=0.6)]
    found = allocate(items, budget(100, focus=100))
    assert kept(found) == ["a", "b"]
    assert (found.used_tokens, found.remaining_budget) == (100, 0)
    assert kept(allocate(items, budget(99, focus=99))) == ["a"]


@pytest.mark.requirement("S4.budget.reservations")
def test_a_section_is_sure_of_its_share_while_it_has_items() -> None:
    items = [item(f"s{i}", "semantic", 0.9) for i in range(10)] + [item("f", "focus", 0.1)]
    assert "f" in kept(allocate(items, budget(300, focus=50, semantic=250)))
    assert "f" not in kept(allocate(items, budget(300, focus=0, semantic=300)))


@pytest.mark.requirement("S4.budget.leftovers")
def test_what_a_section_leaves_goes_to_the_best_of_any_other() -> None:
    items = [item("r1", "relations", 0.7), item("s1", "semantic", 0.4), item("s2", "semantic", 0.8)]
    # Peers with fixed sections lose the 250 that nobody focuses on.
    found = allocate(items, budget(300, focus=250, semantic=50, relations=0))
    assert set(kept(found)) == {"s2", "r1", "s1"}
    short = allocate(items, budget(100, focus=60, semantic=40))
    assert set(kept(short)) == {"s2", "r1"}


@pytest.mark.requirement("S4.allocation.trim", "S4.config.truncation")
def test_what_does_not_fit_is_trimmed_when_a_hundred_tokens_remain() -> None:
    long = ContextItem(block_id="long", block_type="text", content=TEXT * 20, relevance=0.9, section=SectionType.FOCUS)
    cost = COUNTER.count
    allocator = GreedyBudgetAllocator(
        lambda one: cost(one.content) + (20 if one.trim else 0), ContentTruncator(COUNTER)
    )
    found = allocator.allocate([long], budget(150, focus=150))
    assert found.verdicts[0].fate is Fate.TRIMMED
    trimmed = found.items[0]
    assert trimmed.trim is not None
    assert trimmed.trim.missing_characters > 0
    assert trimmed.whole == long.content
    assert cost(trimmed.content) + 20 <= 150
    assert allocator.allocate([long], budget(99, focus=99)).items == ()


def test_nothing_shorter_than_min_content_length_is_shown() -> None:
    long = ContextItem(block_id="x", block_type="text", content="a " * 4000, relevance=1.0)
    config = TruncationConfig(default_strategy=TruncationStrategy.KEEP_START, min_content_length=5000)
    assert allocate([long], budget(150, focus=150), config).items == ()


@pytest.mark.requirement("S4.allocation.goes-on")
def test_after_one_that_does_not_fit_the_next_is_tried() -> None:
    items = [item("big", relevance=0.9, tokens=500), item("small", relevance=0.2, tokens=20)]
    found = allocate(items, budget(90, focus=90))
    assert kept(found) == ["small"]
    assert [verdict.fate for verdict in found.verdicts] == [Fate.DROPPED, Fate.KEPT]
    assert found.verdicts[0].tokens == 500


@pytest.mark.requirement("S4.budget.history-and-system")
def test_the_systems_share_is_kept_free_and_the_historys_is_the_historys() -> None:
    items = [item(f"s{i}", "semantic", 0.9) for i in range(9)] + [item("h", "history", 0.1)]
    assert len(kept(allocate(items, budget(300, semantic=100, history=50, system=100)))) == 4
    assert "h" in kept(allocate(items, budget(300, semantic=250, history=50)))


def test_what_was_named_by_the_caller_comes_first_in_its_section() -> None:
    items = [item("best", relevance=0.9), item("named", relevance=0.1)]
    assert kept(allocate(items, budget(50, focus=50), pinned={"named"})) == ["named"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["focus", "semantic", "relations", "activity", "history"]), st.floats(0, 1),
                  st.integers(1, 400)),
        max_size=25,
    ),
    st.integers(1, 1500), st.tuples(*[st.integers(0, 800)] * 6), st.integers(0, 200),
)  # fmt: skip
def test_law_no_allocation_is_over_its_total(
    given_items: list[tuple[str, float, int]], total: int, parts: tuple[int, ...], overhead: int
) -> None:
    items = [item(f"i{i}", section, relevance, size) for i, (section, relevance, size) in enumerate(given_items)]
    names = ("focus", "semantic", "relations", "activity", "history", "system")
    limit = TokenBudget(total=total, **dict(zip(names, parts, strict=True)))
    found = allocate(items, limit, overhead=overhead)
    assert found.used_tokens + overhead + limit.shrunk().system <= total or not found.items
    assert len(found.verdicts) == len(items)
    assert [one.block_id for one in found.items] == [
        one.block_id for one, verdict in zip(items, found.verdicts, strict=True) if verdict.fate is not Fate.DROPPED
    ]


# -- truncation


@pytest.mark.requirement("S4.truncation.strategies")
def test_there_are_four_strategies() -> None:
    assert [one.value for one in TruncationStrategy] == ["keep_start", "keep_end", "extractive", "summarize"]


@pytest.mark.requirement("S4.truncation.keep-start")
def test_keep_start_keeps_a_beginning() -> None:
    text = ContentTruncator(COUNTER).truncate(TEXT, 20, TruncationStrategy.KEEP_START)
    assert TEXT.startswith(text)
    assert 10 < COUNTER.count(text) <= 20


@pytest.mark.requirement("S4.truncation.keep-end")
def test_keep_end_keeps_an_ending() -> None:
    text = ContentTruncator(COUNTER).truncate(TEXT, 20, TruncationStrategy.KEEP_END)
    assert TEXT.endswith(text)
    assert 10 < COUNTER.count(text) <= 20


@pytest.mark.requirement("S4.truncation.extractive")
def test_extractive_keeps_the_sentences_that_answer_in_their_order() -> None:
    truncator = ContentTruncator(COUNTER, query="Who paid for the new crane?")
    text = truncator.truncate(TEXT, 40, TruncationStrategy.EXTRACTIVE)
    assert "A new crane arrives in March, paid by the city." in text
    assert "Gulls" not in text
    assert GAP in text
    assert text.index("The harbor opened in 1901.") < text.index("A new crane")
    assert COUNTER.count(text) <= 40


def test_extractive_of_one_endless_line_still_shows_something() -> None:
    text = ContentTruncator(COUNTER).truncate("x" * 5000, 30, TruncationStrategy.EXTRACTIVE)
    assert text
    assert COUNTER.count(text) <= 30


class Model:
    """A language model that answers as it was told to."""

    name = "made-up"

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    def complete(self, prompt: str, *, system: str = "", max_tokens: int = 100) -> Completion:
        return self.complete_with_context(prompt, "", system, max_tokens)

    def complete_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = 100
    ) -> Completion:
        self.asked.append((query, context))
        if isinstance(self.answer, Exception):
            raise self.answer
        return Completion(content=self.answer)


@pytest.mark.requirement("S4.truncation.summarize")
def test_summarize_asks_the_language_model_and_keeps_to_the_limit() -> None:
    model = Model("A harbor with a crane. " * 40)
    truncator = ContentTruncator(COUNTER, query="the crane", language_model=model)
    made = truncator.shorten(TEXT, 20, TruncationStrategy.SUMMARIZE)
    assert made.strategy is TruncationStrategy.SUMMARIZE
    assert made.text.startswith("A harbor with a crane.")
    assert COUNTER.count(made.text) <= 20
    assert model.asked[0][1] == TEXT


@pytest.mark.parametrize("answer", [None, "", LanguageModelUnavailable("m", "it is down")])
def test_summarize_without_a_working_model_falls_back_and_says_so(answer: str | Exception | None) -> None:
    model = None if answer is None else Model(answer)
    made = ContentTruncator(COUNTER, language_model=model).shorten(TEXT, 20, TruncationStrategy.SUMMARIZE)
    assert made.strategy is TruncationStrategy.EXTRACTIVE
    assert made.note.startswith("summarize fell back to extractive")
    assert 0 < COUNTER.count(made.text) <= 20


@given(st.text(max_size=3000), st.integers(0, 120), st.sampled_from(list(TruncationStrategy)), st.text(max_size=40))
def test_law_no_strategy_gives_more_than_its_limit(
    text: str, limit: int, strategy: TruncationStrategy, query: str
) -> None:
    made = ContentTruncator(COUNTER, query=query).truncate(text, limit, strategy)
    assert COUNTER.count(made) <= limit
    if COUNTER.count(text) <= limit:
        assert made == text


@given(st.text(max_size=2000))
def test_law_sentences_put_together_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


def test_one_line_that_answers_among_many_that_repeat_is_kept() -> None:
    log = "\n".join(["12:00 heartbeat ok"] * 400 + ["12:07 worker crashed: disk full"] + ["12:00 heartbeat ok"] * 400)
    truncator = ContentTruncator(counter_for("gpt-4o"), query="why did the worker crash?")
    assert "disk full" in truncator.truncate(log, 300, TruncationStrategy.EXTRACTIVE)
