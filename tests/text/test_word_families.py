"""Word families: which words of names mean the same."""

from __future__ import annotations

import pytest

from satchel.text.word_families import families_of, family_of, family_of_term
from satchel.text.words import stem


@pytest.mark.parametrize(
    "words",
    ["parser parse parsing parsed", "formatter formatting format fmt", "router routing routes", "logger logging log",
     "validator validates validation", "config configuration cfg configure", "impl implementation", "writer write",
     "serializer serialization serde", "ctx context", "req requests", "attr attributes", "err errors", "db database"],
)  # fmt: skip
def test_words_of_one_family_are_the_same(words: str) -> None:
    assert len({family_of(word) for word in words.split()}) == 1


@pytest.mark.parametrize(
    ("word", "other"),
    [("server", "serve"), ("header", "head"), ("filter", "filt"), ("number", "numb"), ("access", "acces"),
     ("factor", "fact"), ("request", "response"), ("user", "use")],
)  # fmt: skip
def test_words_that_only_look_alike_are_different(word: str, other: str) -> None:
    assert family_of(word) != family_of(other)


@pytest.mark.parametrize("word", ["parse", "parsing", "response", "writer", "configuration", "日本", "été"])
def test_a_search_term_is_in_the_family_of_its_word(word: str) -> None:
    assert family_of_term(stem(word)) == family_of(word)


def test_an_identifier_has_the_families_of_its_words() -> None:
    assert families_of("HTTPRequestParser") == (family_of("http"), family_of("requests"), family_of("parse"))
