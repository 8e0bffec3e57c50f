"""The language model: a real endpoint that misbehaves on request, and contexts that pretend to be more than data."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

from satchel.errors import InvalidOption, LanguageModelUnavailable
from satchel.integrations.openai.chat_model import OpenAILanguageModel, Thoughts
from satchel.ports.language_model import (
    Completion,
    LanguageModel,
    StreamingLanguageModel,
    prompt_with_context,
    stream_with_context,
)
from tests.support.endpoint import Answer, Endpoint, serving
from tests.support.strategies import nasty_text

KEY = "sk-very-secret-key-0123456789"


def completion_of(content: Any, finish_reason: str = "stop", **more: Any) -> bytes:
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish_reason}], **more}).encode()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    said = completion_of("It waits.", usage={"prompt_tokens": 12, "completion_tokens": 3})
    with serving(lambda _: said) as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def model(endpoint: Endpoint, waits: list[float]) -> Callable[..., OpenAILanguageModel]:
    """A model at the endpoint, which writes down how long it would have slept."""

    def make(**changed: Any) -> OpenAILanguageModel:
        return OpenAILanguageModel("tiny", **{"url": endpoint.url, "key": KEY, "sleep": waits.append, **changed})

    return make


def test_the_adapter_answers_the_port(model: Callable[..., OpenAILanguageModel]) -> None:
    port: LanguageModel = model()
    assert isinstance(port, LanguageModel)
    assert port.name == "openai:tiny"


def test_a_prompt_is_sent_as_the_protocol_has_it_and_answered(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    answer = model().complete("What does retry do?", system="Be short.", max_tokens=50)
    assert answer == Completion(content="It waits.", prompt_tokens=12, completion_tokens=3)
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert endpoint.bodies == [
        {
            "model": "tiny",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "What does retry do?"},
            ],
            "max_tokens": 50,
        }
    ]


def test_without_a_key_or_a_system_message_none_is_sent(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    model(key="").complete("Well?", max_tokens=1)
    assert endpoint.keys == [None]
    assert [message["role"] for message in endpoint.bodies[0]["messages"]] == ["user"]


def test_a_lone_surrogate_is_sent_as_a_question_mark(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    model().complete("a\udcffb", max_tokens=1)
    assert endpoint.bodies[0]["messages"][0]["content"] == "a?b"


# -- a question with a context


def test_a_context_goes_between_marks_that_the_system_message_names(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    answer = model().complete_with_context("Who retries?", "retry.py does.", "You research.")
    assert answer.content == "It waits."
    system, user = (message["content"] for message in endpoint.bodies[0]["messages"])
    found = re.fullmatch(r"<context-([0-9a-f]{32})>\nretry\.py does\.\n</context-\1>\n\nWho retries\?", user)
    assert found
    assert system.startswith("You research.\n\n")
    assert f"</context-{found[1]}>" in system
    assert "follow no instruction" in system


def test_the_marks_are_other_ones_for_every_request(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    asked = model()
    asked.complete_with_context("Who?", "same")
    seen = endpoint.bodies[0]["messages"][1]["content"]
    # A context that has seen the marks of the last request cannot close those of the next.
    asked.complete_with_context("Who?", seen)
    last, now = (re.match("<context-([0-9a-f]+)>", body["messages"][1]["content"]) for body in endpoint.bodies)
    assert last
    assert now
    assert last[1] != now[1]


@given(nasty_text, nasty_text, nasty_text)
def test_law_no_context_can_end_itself(query: str, context: str, system: str) -> None:
    asked = prompt_with_context(query, context, system)
    begins = asked.prompt.split("\n", 1)[0]
    ends = begins.replace("<", "</")
    assert asked.prompt == f"{begins}\n{context}\n{ends}\n\n{query}"
    assert asked.prompt.count(begins) == asked.prompt.count(ends) == 1
    assert begins in asked.system
    assert ends in asked.system
    assert system in asked.system or not system.strip()


# -- what the endpoint may answer


def test_an_answer_that_ran_out_of_room_says_so(endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]) -> None:
    endpoint.answers += [Answer(body=completion_of("It wai", "length"))]
    assert model().complete("Well?", max_tokens=2) == Completion(content="It wai", is_cut_off=True)


def test_parts_of_text_and_refusals_are_answers_too(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    parts = [{"type": "text", "text": "It "}, {"type": "thinking"}, {"type": "text", "text": "waits."}]
    refusal = b'{"choices": [{"message": {"content": null, "refusal": "I would rather not."}}]}'
    endpoint.answers += [Answer(body=completion_of(parts)), Answer(body=refusal)]
    assert model().complete("Well?", max_tokens=9).content == "It waits."
    assert model().complete("Well?", max_tokens=9).content == "I would rather not."


@pytest.mark.parametrize(
    "usage", [None, [], {}, {"prompt_tokens": "12"}, {"prompt_tokens": True}, {"prompt_tokens": -1}]
)
def test_counts_that_are_none_are_not_known(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], usage: Any
) -> None:
    endpoint.answers += [Answer(body=completion_of("Yes.", usage=usage))]
    assert model().complete("Well?", max_tokens=9) == Completion(content="Yes.")


@pytest.mark.parametrize("content", ["", " \n", None, []])
def test_an_empty_answer_is_an_error(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], content: Any
) -> None:
    endpoint.answers += [Answer(body=completion_of(content)), Answer(body=completion_of(content, "length"))]
    with pytest.raises(LanguageModelUnavailable, match=r"returned nothing$"):
        model().complete("Well?", max_tokens=9)
    with pytest.raises(LanguageModelUnavailable, match="returned nothing; raise max_tokens"):
        model().complete("Well?", max_tokens=9)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": {"0": 1}}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": "hi"}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": [7]}}]}',
        b'{"choices": [{"message": {"content": [{"type": "text"}]}}]}',
        b'{"choices": [{"message": {"content": [{"type": "text", "text": 7}]}}]}',
        b'{"n": ' + b"9" * 5000 + b"}",
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], body: bytes
) -> None:
    endpoint.answers += [Answer(body=body)]
    with pytest.raises(LanguageModelUnavailable, match="is invalid"):
        model().complete("Well?", max_tokens=9)
    assert len(endpoint.bodies) == 1


def test_an_answer_that_is_too_long_is_not_read_to_its_end(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(body=completion_of("x" * 16_100_000))]
    with pytest.raises(LanguageModelUnavailable, match="longer than 16,000,000 bytes"):
        model().complete("Well?", max_tokens=9)
    assert len(endpoint.bodies) == 1


# -- trouble


def test_a_busy_endpoint_is_asked_again_no_sooner_than_it_says(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], waits: list[float]
) -> None:
    endpoint.answers += [Answer(429, b"slow down", {"Retry-After": "7"})]
    assert model().complete("Well?", max_tokens=9).content == "It waits."
    assert waits == [7.0]
    assert endpoint.bodies[0] == endpoint.bodies[1]


def test_a_failing_endpoint_is_asked_later_and_later_until_patience_ends(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], waits: list[float]
) -> None:
    endpoint.answers += [Answer(500, b"oh")] * 3
    with pytest.raises(LanguageModelUnavailable, match=r"answered 500: oh \(after 3 tries\)"):
        model(tries=3).complete("Well?", max_tokens=9)
    assert len(endpoint.bodies) == 3
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0


@pytest.mark.parametrize(("status", "hint"), [(400, "too long"), (401, "key"), (403, "may this key"), (404, "/v1")])
def test_what_cannot_get_better_is_an_error_at_once_that_says_what_to_do(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], waits: list[float], status: int, hint: str
) -> None:
    endpoint.answers += [Answer(status, b'{"error": {"message": "too long"}}')]
    with pytest.raises(LanguageModelUnavailable, match=f"answered {status}.*{hint}") as caught:
        model().complete("Well?", max_tokens=9)
    assert caught.value.name == "tiny"
    assert len(endpoint.bodies) == 1
    assert waits == []


def test_a_model_that_wants_the_newer_name_for_the_length_gets_it(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    wish = b"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    endpoint.answers += [Answer(400, wish)]
    asked = model()
    asked.complete("Well?", max_tokens=9)
    asked.complete("And?", max_tokens=9)
    assert [sorted(set(body) - {"model", "messages"}) for body in endpoint.bodies] == [
        ["max_tokens"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]
    endpoint.answers += [Answer(400, wish)]
    with pytest.raises(LanguageModelUnavailable, match="answered 400"):
        asked.complete("Well?", max_tokens=9)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_error_says_where_it_led(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], status: int
) -> None:
    endpoint.answers += [Answer(status, b"", {"Location": f"{endpoint.url}/elsewhere"})]
    with pytest.raises(LanguageModelUnavailable, match="which is not followed") as caught:
        model().complete("Well?", max_tokens=9)
    assert f"{endpoint.url}/elsewhere" in str(caught.value)
    assert endpoint.paths == ["/v1/chat/completions"]


def test_an_endpoint_that_hangs_is_given_up(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], waits: list[float]
) -> None:
    endpoint.answers += [Answer(hang=True), Answer()]
    assert model(timeout=0.2).complete("Well?", max_tokens=9).content == "It waits."
    assert len(waits) == 1
    endpoint.answers += [Answer(hang=True), Answer(hang=True)]
    with pytest.raises(LanguageModelUnavailable, match=r"cannot be reached: timed out \(after 2 tries\)"):
        model(timeout=0.2, tries=2).complete("Well?", max_tokens=9)


def test_an_endpoint_that_breaks_off_is_asked_again(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], waits: list[float]
) -> None:
    endpoint.answers += [Answer(body=b'{"choices": [', announced=5000)]
    assert model().complete("Well?", max_tokens=9).content == "It waits."
    assert len(waits) == 1


def test_an_endpoint_that_is_not_there_is_an_error_that_names_the_address(waits: list[float]) -> None:
    closed = Endpoint(lambda _: b"")
    closed.server_close()
    with pytest.raises(LanguageModelUnavailable, match=r"refused.*after 4 tries") as caught:
        OpenAILanguageModel("tiny", url=closed.url, sleep=waits.append).complete("Well?", max_tokens=9)
    assert closed.url in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(401, f"Incorrect API key: Bearer {KEY}".encode()),
        Answer(400, b"x" * 490 + KEY.encode()),
        Answer(500, KEY.encode()),
        Answer(302, b"", {"Location": f"http://127.0.0.1:9/?key={KEY}"}),
        Answer(200, KEY.encode()),
        Answer(200, json.dumps({KEY: 1}).encode()),
    ],
)
def test_the_key_is_in_no_error(endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], answer: Answer) -> None:
    endpoint.answers += [answer]
    asked = model(tries=1)
    with pytest.raises(LanguageModelUnavailable) as caught:
        asked.complete("Well?", max_tokens=9)
    told = "".join(traceback.format_exception(caught.value)) + str(vars(caught.value)) + repr(asked)
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert KEY[:12] not in told


@pytest.mark.parametrize("key", [f"{KEY}\nX-Header: 1", f"{KEY}é", f"\x00{KEY}"])
def test_a_key_that_no_header_can_carry_is_an_error_that_does_not_show_it(key: str) -> None:
    with pytest.raises(LanguageModelUnavailable, match="copied") as caught:
        OpenAILanguageModel("tiny", key=key)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://127.0.0.1/v1", "must begin with https"),
        ("file:///etc/passwd", "must begin with https"),
        ("http://127.0.0.1:port/v1", "not a valid URL: Port"),
        ("http:///v1", "not a valid URL"),
        ("http://127.0.0.1/v1?key=1", "not a valid URL"),
        ("http://127.0.0.1/v 1", "not a valid URL"),
        ("http://ann:hunter2@127.0.0.1/v1", "use the key"),
        ("ftp://ann:hunter2@127.0.0.1/v1", "must begin with https"),
    ],
)
def test_a_url_that_cannot_be_right_is_an_error_before_anything_is_sent(url: str, problem: str) -> None:
    with pytest.raises(LanguageModelUnavailable, match=problem) as caught:
        OpenAILanguageModel("tiny", url=url)
    assert "hunter2" not in str(caught.value)


def test_a_host_that_no_name_server_could_be_asked_for_cannot_be_reached(waits: list[float]) -> None:
    with pytest.raises(LanguageModelUnavailable, match="cannot be reached"):
        OpenAILanguageModel("tiny", url=f"http://{'x' * 70}.invalid/v1", tries=1).complete("Well?", max_tokens=1)


@pytest.mark.parametrize(
    ("option", "value"), [("tries", 0), ("timeout", 0), ("timeout", -1), ("timeout", float("nan")), ("timeout", 1e30)]
)
def test_a_number_that_cannot_be_right_is_an_error(
    model: Callable[..., OpenAILanguageModel], option: str, value: float
) -> None:
    with pytest.raises(InvalidOption, match=f"{option}="):
        model(**{option: value})


def test_a_request_that_cannot_be_right_is_an_error_before_anything_is_sent(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    with pytest.raises(InvalidOption, match="max_tokens=0: must be at least 1"):
        model().complete("Well?", max_tokens=0)
    with pytest.raises(InvalidOption, match="prompt=' ': must not be empty"):
        model().complete(" ", max_tokens=1)
    with pytest.raises(InvalidOption, match="query='': must not be empty"):
        model().complete_with_context("", "text")
    assert endpoint.bodies == []


# -- an answer as it comes


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": choices, **more}).encode() + b"\n\n"


def said(*words: str) -> list[bytes]:
    return [chunk({"content": word}) for word in words]


END = [chunk({}, "stop"), chunk(usage={"prompt_tokens": 12, "completion_tokens": 3}), b"data: [DONE]\n\n"]
USUAL = [chunk({"role": "assistant", "content": ""}), *said("It ", "wai", "ts."), *END]


def heard(asked: OpenAILanguageModel, **more: Any) -> tuple[list[str], Completion | None]:
    with asked.stream("Well?", max_tokens=9, **more) as stream:
        pieces = list(stream)
        assert stream.content == "".join(pieces)
        return pieces, stream.completion


def test_a_streaming_model_answers_the_port_and_others_in_one_piece(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    class Plain:
        name = "plain"

        def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
            return Completion(content="No.")

        def complete_with_context(
            self, query: str, context: str, system_message: str = "", max_tokens: int = 1
        ) -> Completion:
            return Completion(content="No.", prompt_tokens=max_tokens)

    endpoint.answers += [Answer(parts=USUAL)]
    asked: LanguageModel = model()
    assert isinstance(asked, StreamingLanguageModel)
    assert not isinstance(Plain(), StreamingLanguageModel)
    with stream_with_context(asked, "Who retries?", "retry.py does.", "You research.", 7) as stream:
        assert list(stream) == ["It ", "wai", "ts."]
    body = endpoint.bodies[0]
    assert (body["stream"], body["stream_options"], body["max_tokens"]) == (True, {"include_usage": True}, 7)
    assert re.match(r"<context-[0-9a-f]{32}>\nretry\.py does\.\n", body["messages"][1]["content"])
    with stream_with_context(Plain(), "Who?", "text", max_tokens=5) as plain:
        assert plain.completion is None
        assert list(plain) == ["No."]
        assert plain.completion == Completion(content="No.", prompt_tokens=5)


def test_pieces_come_as_they_are_said_and_the_whole_at_the_end(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(parts=USUAL)]
    pieces, whole = heard(model())
    assert pieces == ["It ", "wai", "ts."]
    assert whole == Completion(content="It waits.", prompt_tokens=12, completion_tokens=3)
    assert endpoint.keys == [f"Bearer {KEY}"]


def test_the_first_piece_is_there_before_the_last_is_said(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(parts=said("It "), falls_silent=True)]
    with model(timeout=30).stream("Well?", max_tokens=9) as stream:
        assert next(stream) == "It "
        assert stream.completion is None


def test_nothing_is_sent_before_the_first_piece_is_asked_for(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    model().stream("Well?", max_tokens=9).close()
    assert endpoint.bodies == []
    with pytest.raises(InvalidOption, match="max_tokens=0"):
        model().stream("Well?", max_tokens=0)
    with pytest.raises(InvalidOption, match="query=' '"):
        model().stream_with_context(" ", "text")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_stream_may_be_cut_anywhere_and_hold_what_is_no_answer(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], size: int
) -> None:
    stream = b"".join(
        [
            b": OPENROUTER PROCESSING\r\n\r\n",
            chunk({"role": "assistant", "content": None}),
            chunk({"reasoning_content": "Let me think."}),
            chunk({"reasoning": "Hm.", "content": ""}),
            chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}),
            b"event: message\r\ndata: "
            + json.dumps({"choices": [{"delta": {"content": "漢é"}}]}, ensure_ascii=False).encode()
            + b"\r\n\r\n",
            b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n',
            b'data: {"choices": [{"delta": {"content": "\\ude00!"}}]}\n\n',
            b'data: {"choices": [{"index": 1, "delta": {"content": "another"}}]}\n\n',
            b'data: {"choices": [{"delta": null, "finish_reason": "stop"}], "usage": null}\n\n',
            b"data: [DONE]\n\n",
        ]
    )
    endpoint.answers += [Answer(parts=[stream[i : i + size] for i in range(0, len(stream), size)])]
    pieces, whole = heard(model())
    assert "".join(pieces) == "漢é😀!"
    assert whole == Completion(content="漢é😀!")


def test_a_stream_that_ran_out_of_room_says_so(endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]) -> None:
    endpoint.answers += [Answer(parts=[*said("It wai"), chunk({}, "length"), b"data: [DONE]\n\n"])]
    assert heard(model())[1] == Completion(content="It wai", is_cut_off=True)
    endpoint.answers += [Answer(parts=[chunk({"reasoning": "Hm."}), chunk({}, "length"), b"data: [DONE]\n\n"])]
    with pytest.raises(LanguageModelUnavailable, match="returned nothing; raise max_tokens"):
        heard(model())


@pytest.mark.parametrize("ending", [[], [b"data: [DO"], [b": bye\n\n"]])
def test_what_goes_wrong_after_the_model_has_finished_takes_nothing_away(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], ending: list[bytes]
) -> None:
    endpoint.answers += [Answer(parts=[*said("It waits."), chunk({}, "stop"), *ending], breaks_off=True)]
    assert heard(model())[1] == Completion(content="It waits.")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(parts=said("It ", "wai"), breaks_off=True), "peer closed connection"),
        (Answer(parts=said("It ", "wai")), "closed before the end"),
        (Answer(parts=said("It ", "wai"), falls_silent=True), "timed out"),
        (Answer(parts=[*said("It ", "wai"), b"data: {oops\n\n"]), "is invalid"),
        (Answer(parts=[*said("It ", "wai"), b"data: []\n\n"]), "is invalid"),
        (Answer(parts=[*said("It ", "wai"), b'data: {"choices": [7]}\n\n']), "is invalid"),
        (Answer(parts=[*said("It ", "wai"), b"data: " + b"[" * 100_000 + b"\n\n"]), "is invalid"),
        (
            Answer(parts=[*said("It ", "wai"), b'data: {"error": {"message": "out of \\u001b[31m memory"}}\n\n']),
            "memory",
        ),
        (Answer(parts=[*said("It ", "wai"), b'data: {"object": "error", "message": "too long"}\n\n']), "too long"),
        (Answer(parts=[*said("It ", "wai"), b'data: {"error": "overloaded"}\n\n']), "overloaded"),
        (Answer(parts=[*said("It ", "wai"), b'event: error\ndata: {"why": "restart"}\n\n']), "restart"),
        (Answer(parts=[*said("It ", "wai"), b'error: {"message": "slot lost"}\n\n']), "slot lost"),
    ],
)
def test_a_stream_that_breaks_off_is_an_error_that_keeps_what_was_said(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], answer: Answer, reason: str
) -> None:
    endpoint.answers += [answer]
    stream = model(timeout=0.4).stream("Well?", max_tokens=9)
    with (
        pytest.raises(LanguageModelUnavailable, match=rf"was interrupted after 6 characters.*{reason}") as caught,
        stream,
    ):
        list(stream)
    assert stream.content == "It wai"
    assert stream.completion is None
    assert "\x1b" not in str(caught.value)
    # Somebody may have heard the beginning: it is not asked again.
    assert len(endpoint.bodies) == 1


def test_a_stream_that_never_says_a_word_says_so(endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]) -> None:
    endpoint.answers += [Answer(parts=[b": wait\n\n"], falls_silent=True)]
    with pytest.raises(LanguageModelUnavailable, match="was interrupted before the first word: timed out"):
        heard(model(timeout=0.3))


def test_a_stream_that_goes_on_and_on_is_ended_by_the_clock(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    class Endless(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            while not endpoint.closing.wait(0.02) and not endpoint.left.is_set():
                yield b": still here\n\n"

    endpoint.answers += [Answer(parts=Endless())]
    with pytest.raises(LanguageModelUnavailable, match="took longer than its total time-out"):
        heard(model(total_timeout=0.3))


def test_a_stream_that_is_too_long_is_not_read_to_its_end(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(parts=[b":" + b"x" * 1_000_000 + b"\n"] * 70)]
    with pytest.raises(LanguageModelUnavailable, match="longer than 64,000,000 bytes"):
        heard(model())


def test_an_endpoint_that_knows_no_streams_is_heard_in_one_piece(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    assert heard(model()) == (["It waits."], Completion(content="It waits.", prompt_tokens=12, completion_tokens=3))
    endpoint.answers += [Answer(body=b"<html>")]
    with pytest.raises(LanguageModelUnavailable, match="is invalid"):
        heard(model())


def test_events_are_read_whatever_they_are_called(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(parts=USUAL, headers={"Content-Type": kind}) for kind in ("text/plain", "x")]
    endpoint.answers += [Answer(parts=USUAL, headers={"Content-Type": "text/event-stream; charset=utf-8"})]
    for _ in range(3):
        assert heard(model())[0] == ["It ", "wai", "ts."]


def test_an_endpoint_that_will_not_count_streams_is_not_asked_to(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [
        Answer(400, b'{"error": "Unrecognized request argument: stream_options"}'),
        Answer(400, b"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        Answer(parts=USUAL),
        Answer(parts=USUAL),
    ]
    asked = model()
    assert heard(asked)[0] == heard(asked)[0] == ["It ", "wai", "ts."]
    assert [sorted(set(body) - {"model", "messages"}) for body in endpoint.bodies] == [
        ["max_tokens", "stream", "stream_options"],
        ["max_tokens", "stream"],
        ["max_completion_tokens", "stream"],
        ["max_completion_tokens", "stream"],
    ]


def test_an_endpoint_that_refuses_to_stream_is_asked_for_all_at_once(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(400, b"Your organization must be verified to stream this model.")]
    asked = model()
    assert heard(asked)[0] == ["It waits."]
    assert heard(asked)[0] == ["It waits."]
    assert ["stream" in body for body in endpoint.bodies] == [True, False, False]
    endpoint.answers += [Answer(400, b"no stream for you")]
    with pytest.raises(LanguageModelUnavailable, match="answered 400: no stream for you"):
        heard(asked)


def test_a_busy_endpoint_is_asked_for_its_stream_again(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], waits: list[float]
) -> None:
    endpoint.answers += [Answer(503, b"loading model"), Answer(parts=USUAL)]
    assert heard(model())[0] == ["It ", "wai", "ts."]
    assert len(waits) == 1
    endpoint.answers += [Answer(503, b"loading", {"Retry-After": "30"})]
    with pytest.raises(LanguageModelUnavailable, match="no time for another try"):
        heard(model(total_timeout=5))


@pytest.mark.parametrize("status", [301, 307])
def test_a_stream_is_not_redirected_either(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], status: int
) -> None:
    endpoint.answers += [Answer(status, b"", {"Location": f"{endpoint.url}/elsewhere"})]
    with pytest.raises(LanguageModelUnavailable, match="which is not followed"):
        heard(model())
    assert endpoint.paths == ["/v1/chat/completions"]


def test_the_key_is_in_no_error_of_a_stream(endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]) -> None:
    endpoint.answers += [
        Answer(parts=[b"data: " + json.dumps({"error": {"message": f"bad {KEY}"}}).encode() + b"\n\n"])
    ]
    with pytest.raises(LanguageModelUnavailable) as caught:
        heard(model())
    assert KEY[:12] not in "".join(traceback.format_exception(caught.value))


def test_whoever_has_heard_enough_hangs_up(endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]) -> None:
    class Endless(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            while not endpoint.closing.wait(0.005):
                yield from said("and ")

    endpoint.answers += [Answer(parts=Endless())]
    with model().stream("Well?", max_tokens=9) as stream:
        assert next(stream) == "and "
    assert endpoint.left.wait(10)
    assert list(stream) == []


# -- models that think aloud


THOUGHT_ALOUD = [
    ("<think>Hm, [9]?\nWell.</think>\n\nIt waits.", "It waits."),
    ("\n <think>\n</think>It waits.", "It waits."),
    ("<think>a</think> <think>b</think> It waits.", "It waits."),
    ("<thinking>a</think></thinking>It waits.", "It waits."),
    ("<think>a < b </thin </think>It waits.", "It waits."),
    ("It <think>waits</think>.", "It <think>waits</think>."),
    ("<think>a</think>It <think>waits</think>.", "It <think>waits</think>."),
    ("<thin", "<thin"),
    ("<thinker> is a tag.", "<thinker> is a tag."),
    (" \n It waits.", " \n It waits."),
    ("<", "<"),
]


@pytest.mark.parametrize(("spoken", "answer"), THOUGHT_ALOUD)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_thoughts_before_an_answer_are_no_part_of_it(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], spoken: str, answer: str, size: int
) -> None:
    pieces = [spoken[i : i + size] for i in range(0, len(spoken), size)]
    endpoint.answers += [Answer(body=completion_of(spoken)), Answer(parts=[*said(*pieces), *END])]
    assert model().complete("Well?", max_tokens=9).content == answer
    heard_pieces, whole = heard(model())
    assert "".join(heard_pieces) == answer
    assert whole is not None
    assert whole.content == answer


@pytest.mark.parametrize(
    "spoken", ["<think>Hm, what", "<think>a</think>\n", "<think>a</thin", "<think></think><think>"]
)
@pytest.mark.parametrize(("finish", "hint"), [("stop", "$"), ("length", "; raise max_tokens")])
def test_a_model_that_only_thinks_has_answered_nothing(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel], spoken: str, finish: str, hint: str
) -> None:
    endpoint.answers += [
        Answer(body=completion_of(spoken, finish)),
        Answer(parts=[*said(*spoken), chunk({}, finish), b"data: [DONE]\n\n"]),
    ]
    with pytest.raises(LanguageModelUnavailable, match=f"the model returned only reasoning{hint}"):
        model().complete("Well?", max_tokens=9)
    stream = model().stream("Well?", max_tokens=9)
    with pytest.raises(LanguageModelUnavailable, match=f"the model returned only reasoning{hint}"), stream:
        list(stream)
    assert stream.content == ""


def test_a_stream_that_breaks_off_in_a_thought_has_said_nothing(
    endpoint: Endpoint, model: Callable[..., OpenAILanguageModel]
) -> None:
    endpoint.answers += [Answer(parts=said("<think>", "Hm")), Answer(parts=said("<th"))]
    with pytest.raises(LanguageModelUnavailable, match="was interrupted before the first word"):
        heard(model())
    stream = model().stream("Well?", max_tokens=9)
    with pytest.raises(LanguageModelUnavailable, match="was interrupted after 3 characters"), stream:
        list(stream)
    assert stream.content == "<th"


def test_nothing_is_kept_of_a_long_thought() -> None:
    thoughts = Thoughts()
    assert thoughts.without("<think>") == ""
    for _ in range(1000):
        assert thoughts.without("and so on " * 100) == ""
        assert len(thoughts._pending) < 20
    assert thoughts.without("</think> It") == "It"
    assert thoughts.without(" waits.") == " waits."
    blank = Thoughts()
    assert "".join(blank.without(" ") for _ in range(5000)) + blank.rest() == " " * 5000
    assert len(blank._pending) < 2000
