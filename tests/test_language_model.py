"""The language model: a real endpoint that misbehaves on request, and contexts that pretend to be more than data."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

from satchel.adapters.openai_language_model import OpenAILanguageModel
from satchel.errors import InvalidOption, LanguageModelUnavailable
from satchel.ports.language_model import Completion, LanguageModel, prompt_with_context
from tests.endpoint import Answer, Endpoint, serving
from tests.strategies import nasty_text

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
    with pytest.raises(LanguageModelUnavailable, match=r"answered nothing$"):
        model().complete("Well?", max_tokens=9)
    with pytest.raises(LanguageModelUnavailable, match="answered nothing; raise max_tokens"):
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
    with pytest.raises(LanguageModelUnavailable, match="makes no sense"):
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
    with pytest.raises(LanguageModelUnavailable, match="pasted") as caught:
        OpenAILanguageModel("tiny", key=key)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://127.0.0.1/v1", "must begin with https"),
        ("file:///etc/passwd", "must begin with https"),
        ("http://127.0.0.1:port/v1", "is none"),
        ("http://ann:hunter2@127.0.0.1/v1", "use the key"),
    ],
)
def test_an_address_that_is_none_is_an_error_before_anything_is_sent(url: str, problem: str) -> None:
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
