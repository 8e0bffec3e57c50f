from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import estimate_tokens
from satchel.models.options import TokenEstimationMethod
from satchel.tokens import registry as formulas
from tests.support import strategies
from tests.support.formulas_again import by_characters, by_words

CHARACTERS = TokenEstimationMethod.CHARACTER_BASED
WORDS = TokenEstimationMethod.WORD_BASED


@pytest.mark.requirement("S1.tokens.empty")
@pytest.mark.parametrize("method", TokenEstimationMethod)
def test_nothing_has_no_tokens(method: TokenEstimationMethod) -> None:
    assert estimate_tokens("", method) == 0


@pytest.mark.requirement("S1.tokens.characters", "S0.method.character-based", "S2.tokens.estimate")
@pytest.mark.parametrize(
    ("text", "tokens"), [("a", 1), ("abcd", 1), ("abcde", 2), ("abcdefghij", 3), ("hello world", 3), ("x" * 400, 100)]
)
def test_four_characters_are_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text, CHARACTERS) == tokens


@pytest.mark.requirement("S1.tokens.special-characters")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("..", 1),
        ("...", 2),
        ("{};", 2),
        ("a.b.c.d", 3),
        ("a_b_c_d_", 3),
        ("½²Ⅷ", 2),
        ("漢字か", 1),
        ("١٢٣", 1),
        ("€€€", 2),
    ],
)
def test_three_special_characters_are_one_token_more(text: str, tokens: int) -> None:
    assert estimate_tokens(text, CHARACTERS) == tokens


@pytest.mark.requirement("S1.tokens.words", "S0.method.word-based")
@pytest.mark.parametrize(("text", "tokens"), [("one", 2), ("one two three", 4), ("  a \n\t b ", 3), ("\n", 0)])
def test_three_words_are_four_tokens(text: str, tokens: int) -> None:
    assert estimate_tokens(text, WORDS) == tokens


@pytest.mark.requirement("S1.tokens.long-words")
def test_a_word_of_more_than_ten_characters_counts_twice() -> None:
    assert estimate_tokens("a" * 10, WORDS) == 2
    assert estimate_tokens("a" * 11, WORDS) == 3


@pytest.mark.requirement("S1.tokens.mixed-case")
def test_a_word_in_mixed_case_counts_once_more() -> None:
    assert estimate_tokens("userid", WORDS) == 2
    assert estimate_tokens("userId", WORDS) == 3
    assert estimate_tokens("USERID", WORDS) == 2
    assert estimate_tokens("getUserIdentity", WORDS) == 4


@pytest.mark.requirement("S1.tokens.constants")
def test_the_constants_are_the_specified_ones() -> None:
    assert formulas.CHARS_PER_TOKEN == 4.0
    assert formulas.WORDS_PER_TOKEN == 0.75


@pytest.mark.requirement("S1.estimate-tokens.signature")
def test_characters_are_the_default_method() -> None:
    assert estimate_tokens("a.b.c.") == estimate_tokens("a.b.c.", CHARACTERS) == 3


@given(st.one_of(strategies.nasty_text, st.text()))
def test_law_the_fast_formulas_are_the_plain_ones(text: str) -> None:
    assert formulas.character_based(text) == by_characters(text)
    assert formulas.word_based(text) == by_words(text)
