"""Answers from any endpoint that speaks OpenAI's chat-completions protocol: OpenAI, Ollama, vLLM, llama.cpp and others.

`endpoint` retries requests, `stream` reads an answer while it arrives.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from typing import Any, Final

from satchel.errors import InvalidOption, LanguageModelUnavailable
from satchel.http_client import HttpProblem, HttpResponse
from satchel.integrations.openai.endpoint import OpenAIEndpoint
from satchel.integrations.openai.stream import MALFORMED, AnswerSoFar, Thoughts, completion, message_text
from satchel.models.checks import as_count
from satchel.ports.language_model import (
    DEFAULT_ANSWER_TOKENS,
    AnswerStream,
    Completion,
    ContextPrompt,
    prompt_with_context,
)
from satchel.text.visible import replace_surrogates

_MAX_ANSWER_BYTES: Final = 16_000_000
"""The longest answers of today's models have less than one megabyte."""
_MAX_STREAM_BYTES: Final = 64_000_000
"""In a stream each token comes with some hundred bytes."""

_HINTS: Final = {
    0: " (is it running, as by `ollama serve`? --language-model-url says where)",
    401: " (is the key right, and is it one of this endpoint?)",
    403: " (may this key use this model?)",
    404: " (is the model's name right, and does the URL end where /chat/completions begins, as …/v1 does?)",
}

# OpenAI's newer models refuse the first name and say the second; most other endpoints know only the first.
_LENGTH: Final = "max_tokens"
_NEWER_LENGTH: Final = "max_completion_tokens"
_INVALID_REQUEST_STATUSES: Final = (400, 422)
_EVENT_STARTS: Final = (b"data:", b"event:", b":")
"""Some servers and proxies send events under another content type."""


class OpenAILanguageModel:
    """`url` is the endpoint's base (…/v1); it may be silent for `timeout` seconds and answer for `total_timeout`."""

    def __init__(
        self,
        model: str,
        *,
        kind: str = "openai",
        url: str | None = None,
        key: str = "",
        timeout: float = 120.0,
        total_timeout: float = 900.0,
        tries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not total_timeout > 0:
            raise InvalidOption("total_timeout", total_timeout, "must be a number of seconds, more than 0")
        self._model = model
        self._kind = kind
        self._length = _LENGTH
        self._counts_streams = True
        self._streams = True
        self._total_timeout = total_timeout
        try:
            self._endpoint = OpenAIEndpoint(
                "chat/completions", url=url, key=key, timeout=timeout, tries=tries, hints=_HINTS, sleep=sleep
            )
        except HttpProblem as problem:
            raise LanguageModelUnavailable(model, problem.reason) from None

    @property
    def name(self) -> str:
        """The kind of endpoint and its model."""
        return f"{self._kind}:{self._model}"

    def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """The model's answer to a prompt."""
        return self._complete(self._request(prompt, system, max_tokens))

    def complete_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> Completion:
        """The model's answer to a question, from a context that it is told to take as data."""
        asked = _prompt(query, context, system_message)
        return self.complete(asked.prompt, system=asked.system, max_tokens=max_tokens)

    def stream(self, prompt: str, *, system: str = "", max_tokens: int) -> AnswerStream:
        """The model's answer to a prompt as it arrives; the request is sent when the first piece is asked for."""
        return AnswerStream(self._pieces(self._request(prompt, system, max_tokens)))

    def stream_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> AnswerStream:
        """What `complete_with_context` gives, piece by piece."""
        asked = _prompt(query, context, system_message)
        return self.stream(asked.prompt, system=asked.system, max_tokens=max_tokens)

    def _request(self, prompt: str, system: str, max_tokens: int) -> dict[str, Any]:
        as_count(InvalidOption, "max_tokens", max_tokens, 1)
        if not prompt.strip():
            raise InvalidOption("prompt", prompt, "must not be empty: what is to be answered?")
        messages = [{"role": "system", "content": replace_surrogates(system)}] if system.strip() else []
        messages.append({"role": "user", "content": replace_surrogates(prompt)})
        return {"model": self._model, "messages": messages, _LENGTH: max_tokens}

    def _adapted(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request with the parameters that this endpoint accepts."""
        return {self._length if name == _LENGTH else name: value for name, value in request.items()}

    def _adapt_or_raise(self, problem: HttpProblem, *, is_stream: bool) -> None:
        """Leave out or rename the parameter that the endpoint refused, each once; raise for every other problem."""
        reason = problem.reason if problem.status in _INVALID_REQUEST_STATUSES else ""
        if self._length == _LENGTH and _NEWER_LENGTH in reason:
            self._length = _NEWER_LENGTH
        elif is_stream and self._counts_streams and "stream_options" in reason:
            self._counts_streams = False
        elif is_stream and self._streams and "stream" in reason.lower():
            self._streams = False
        else:
            raise LanguageModelUnavailable(self._model, problem.reason) from None

    def _complete(self, request: dict[str, Any]) -> Completion:
        while True:
            try:
                return self._completion(self._endpoint.ask(self._adapted(request), max_bytes=_MAX_ANSWER_BYTES))
            except HttpProblem as problem:
                self._adapt_or_raise(problem, is_stream=False)

    def _pieces(self, request: dict[str, Any]) -> Generator[str, None, Completion]:
        response = self._open(request)
        if response is None:
            whole = self._complete(request)
            yield whole.content
            return whole
        so_far = AnswerSoFar()
        try:
            with response:
                if response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    yield from so_far.read(response)
                elif (data := response.read()).lstrip().startswith(_EVENT_STARTS):
                    yield from so_far.read([data])
                else:
                    whole = self._completion(data)
                    yield whole.content
                    return whole
        except HttpProblem as problem:
            if not so_far.is_finished:
                raise LanguageModelUnavailable(self._model, self._interruption(problem.reason, so_far)) from None
        return self._checked(so_far.completion(), has_thought=so_far.has_thought)

    def _open(self, request: dict[str, Any]) -> HttpResponse | None:
        """The stream, or None if the endpoint refuses to stream."""
        while self._streams:
            counted = {"stream_options": {"include_usage": True}} if self._counts_streams else {}
            try:
                return self._endpoint.stream(
                    {**self._adapted(request), "stream": True, **counted},
                    max_bytes=_MAX_STREAM_BYTES,
                    total_timeout=self._total_timeout,
                )
            except HttpProblem as problem:
                self._adapt_or_raise(problem, is_stream=True)
        return None

    def _interruption(self, reason: str, so_far: AnswerSoFar) -> str:
        place = f"after {len(so_far.content):,} characters" if so_far.content else "before its first word"
        return f"the answer broke off {place}: {self._endpoint.printable(reason)}"

    def _completion(self, data: bytes) -> Completion:
        thoughts = Thoughts()
        try:
            answer = json.loads(data)
            choice = answer["choices"][0]
            content = thoughts.without(message_text(choice["message"])) + thoughts.rest()
            whole = completion(content, answer.get("usage"), choice.get("finish_reason"))
        except MALFORMED as error:
            problem = f"the endpoint's answer makes no sense ({self._endpoint.printable(repr(error))})"
            raise LanguageModelUnavailable(self._model, problem) from None
        return self._checked(whole, has_thought=thoughts.has_thought)

    def _checked(self, answer: Completion, *, has_thought: bool) -> Completion:
        if not answer.content.strip():
            # Models that think first may have no room left for words.
            hint = "; raise max_tokens, which thinking counts against too" if answer.is_cut_off else ""
            nothing = "nothing but thoughts" if has_thought else "nothing"
            raise LanguageModelUnavailable(self._model, f"the model answered {nothing}{hint}")
        return answer


def _prompt(query: str, context: str, system_message: str) -> ContextPrompt:
    if not query.strip():
        raise InvalidOption("query", query, "must not be empty: what is to be answered?")
    return prompt_with_context(query, context, system_message)
