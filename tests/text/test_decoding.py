"""From a file's bytes to its text."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.text.decoding import decode_text, has_byte_order_mark, is_binary

MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@given(text=st.text(st.characters(codec="utf-8")), encoding=st.sampled_from(sorted(MARKS)))
@example(text="\u0a0a\u010a\nsecond line\n", encoding="utf-16-le")
@example(text="\U0001f993" * 5000, encoding="utf-16-be")
@example(text="a\rb\r", encoding="utf-16-le")
def test_law_text_with_a_byte_order_mark_comes_back_without_the_mark(text: str, encoding: str) -> None:
    data = MARKS[encoding] + text.encode(encoding)
    expected = text if "\n" in text else text.replace("\r", "\n")
    assert decode_text(data) == expected
    assert has_byte_order_mark(data)
    assert is_binary(data) == ("\0" in text[:2000])


@given(data=st.binary(max_size=300))
@example(data=b"\xff\xfe\x00")
@example(data=b"\xff\xfe\x00\xd8a\x00")
def test_law_any_bytes_become_text_that_can_be_stored(data: bytes) -> None:
    decode_text(data).encode("utf-8", "surrogateescape")
    is_binary(data)


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be"])
def test_utf_32_is_binary(encoding: str) -> None:
    assert is_binary("\ufefftext".encode(encoding))


def test_bytes_that_only_begin_like_utf_16_are_binary() -> None:
    assert is_binary(codecs.BOM_UTF16_LE + bytes(range(1, 256)) * 10)


def test_a_pair_cut_where_the_search_ends_makes_no_text_binary() -> None:
    for filler in range(3):
        assert not is_binary(codecs.BOM_UTF16_LE + ("a" * filler + "\U0001f993" * 4000).encode("utf-16-le"))
