"""Server-sent events, however the network cuts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.http_client import Event, events


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [Event("a"), Event("b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event("a"), Event("b")]),
        (b"data: a\r\rdata: b\r\r", [Event("a"), Event("b")]),
        (b"data:a\n\ndata:  b\n\n", [Event("a"), Event(" b")]),
        (b"data: a\ndata: b\n\n", [Event("a\nb")]),
        (b": keep-alive\n\n:\n\ndata: a\n\n: PROCESSING\n\n", [Event("a")]),
        (b"id: 1\nretry: 10\nevent: ping\ndata: a\nnonsense\n\n", [Event("a", "ping")]),
        (b"event: ping\n\ndata: a\n\n", [Event("a")]),
        (b"event: error\ndata: oh\n\n", [Event("oh", "error")]),
        (b"error: oh\n\n", [Event("oh", "error")]),
        (b"data: a\n\ndata: no blank line", [Event("a"), Event("no blank line")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"data: \xff\n\n", [Event("�")]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_events_are_read_as_the_standard_has_them(stream: bytes, expected: list[Event]) -> None:
    assert list(events([stream])) == expected
    assert list(events(stream[i : i + 1] for i in range(len(stream)))) == expected


@given(
    st.lists(st.text(alphabet="aé漢😀 :", min_size=1, max_size=9), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_law_however_it_is_cut_the_same_is_read(words: list[str], end: str, data: st.DataObject) -> None:
    stream = "".join(f"data: {word}{end}{end}" for word in words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [event.data for event in events(chunks)] == words


def test_a_line_without_an_end_is_read_in_linear_time() -> None:
    (event,) = events([b"data: ", *[b"x"] * 300_000])
    assert len(event.data) == 300_000
