from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from satchel import ContextBuildOptions, ContextFormat, KnowledgeChunk, assemble
from satchel.text.boundaries import boundary_at_or_after, boundary_at_or_before, next_boundary
from satchel.text.visible import make_visible, make_visible_line, make_visible_lines
from tests.support import strategies


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b[31m", "␛[31m"),
        ("a\x00b", "a␀b"),
        ("\x7f", "␡"),
        ("\x85", "⟦U+0085⟧"),
        ("a\u202eb", "a⟦U+202E⟧b"),
        ("\u2066x\u2069", "⟦U+2066⟧x⟦U+2069⟧"),
        ("a\u200bb", "a⟦U+200B⟧b"),
        ("a\u200db", "a⟦U+200D⟧b"),
        ("\u00ad", "⟦U+00AD⟧"),
        ("\U000e0041", "⟦U+E0041⟧"),
        ("🏴\U000e0068\U000e0069\U000e007f", "🏴⟦U+E0068⟧⟦U+E0069⟧⟦U+E007F⟧"),
        ("a\ufe0f\ufe0f", "a⟦U+FE0F⟧⟦U+FE0F⟧"),
        ("\ud800", "⟦U+D800⟧"),
        ("\udcff", "⟦0xFF⟧"),
        ("\u3164", "⟦U+3164⟧"),
        ("a\rb", "a␍b"),
        ("\u2028", "⟦U+2028⟧"),
    ],
)
def test_what_hides_is_shown(hidden: str, shown: str) -> None:
    assert make_visible(hidden).text == shown
    assert make_visible(hidden).changes > 0


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\n", "👨‍👩‍👧 ❤️ 1️⃣ 👍🏽 🇩🇪",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "می‌خواهم", "क्‍ष",
        "漢字\U000e0100", "é e\u0301 ñ", "한국어", "“quotes” – dashes…", "\u00a0nbsp",
    ],
)  # fmt: skip
def test_what_belongs_there_stays(text: str) -> None:
    assert make_visible(text) == (text, 0)


def test_windows_line_ends_and_a_byte_order_mark_are_not_news() -> None:
    assert make_visible("\ufeffa\r\nb\r\n") == ("a\nb\n", 0)


def test_a_line_stays_a_line() -> None:
    assert make_visible_line("a\nb\tc\r\nd") == ("a␊b␉c␊d", 3)


@given(st.one_of(strategies.nasty_text, st.text()))
def test_law_nothing_is_left_hidden(text: str) -> None:
    shown, changes = make_visible(text)
    shown.encode("utf-8")
    assert make_visible(shown).text == shown
    for char in shown:
        category = unicodedata.category(char)
        assert category not in ("Cc", "Cs") or char in "\n\t"
        assert category not in ("Zl", "Zp")
    if changes == 0:
        assert shown == text.replace("\r\n", "\n").removeprefix("\ufeff")


def test_the_result_counts_what_was_made_visible() -> None:
    assert assemble([KnowledgeChunk("a\x1bb\u202e", file_path="x\ny")]).statistics.characters_made_visible == 3


@pytest.mark.parametrize("format", ContextFormat)
def test_no_escape_byte_reaches_the_terminal(format: ContextFormat) -> None:
    hit = KnowledgeChunk("\x1b]0;owned\x07", file_path="\x1b[2J", language="\x1b", name="\x1b", type="\x1b", id="\x1b")
    options = ContextBuildOptions(format=format, context_header="\x1b", context_footer="\x1b", include_sources=True)
    result = assemble([hit], options)
    assert "\x1b" not in result.context
    assert "\x07" not in result.context


@given(st.one_of(strategies.nasty_text, st.text()), st.integers(0, 80))
@example("0\u0e33", 1)
@example("0\u0eb3", 1)
def test_law_boundaries_are_those_of_the_full_rules(text: str, position: int) -> None:
    ends = sorted({0, *(match.end() for match in regex.finditer(r"\X", text))})
    position = min(position, len(text))
    assert boundary_at_or_before(text, position) == max(end for end in ends if end <= position)
    assert boundary_at_or_after(text, position) == min(end for end in ends if end >= position)
    if position in ends and position < len(text):
        assert next_boundary(text, position) == min(end for end in ends if end > position)


def test_lines_cut_out_of_a_file_with_windows_line_ends_show_no_mark() -> None:
    assert make_visible_lines("a\r\nb\r") == ("a\nb", 0)
    assert make_visible_lines("a\rb") == ("a␍b", 1)
    assert make_visible("a\r") == ("a␍", 1)


@pytest.mark.parametrize("text", ["അവന്\u200d ", "ه\u200d", "\u1820\u180b"])
def test_joiners_that_end_a_word_stay(text: str) -> None:
    assert make_visible(text) == (text, 0)


def test_bytes_cannot_hide_behind_ideographs() -> None:
    assert make_visible("漢" + chr(0xE0100 + 0x41)).changes == 1
