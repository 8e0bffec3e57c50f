"""Answers from any endpoint that speaks OpenAI's chat-completions protocol: OpenAI, Ollama, vLLM, llama.cpp and others.

`openai_endpoint` says how patiently and how safely it is asked, `openai_stream` how an answer is read while it comes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from typing import Any, Final

from satchel.errors import InvalidOption, LanguageModelUnavailable
from satchel.integrations.openai.endpoint import EndpointProblem, EndpointStream, OpenAIEndpoint
from satchel.integrations.openai.stream import AnswerSoFar, count_of, without_thoughts, words_of
from satchel.models.checks import as_count
from satchel.ports.language_model import DEFAULT_ANSWER_TOKENS, AnswerStream, Completion, prompt_with_context

_MAX_ANSWER_BYTES: Final = 16_000_000
"""The longest answers of today's models are under one megabyte."""
_MAX_STREAM_BYTES: Final = 64_000_000
"""In a stream some hundred bytes go with each token."""

_HINTS: Final = {
    0: " (is it running, as by `ollama serve`? --language-model-url says where)",
    401: " (is the key right, and is it one of this endpoint?)",
    403: " (may this key use this model?)",
    404: " (is the model's name right, and does the address end where /chat/completions begins, as …/v1 does?)",
}

# OpenAI's newer models refuse the first name and say the second; most other endpoints know only the first.
_LENGTH: Final = "max_tokens"
_NEWER_LENGTH: Final = "max_completion_tokens"
_REFUSED: Final = (400, 422)
_EVENT_STARTS: Final = (b"data:", b"event:", b":")
"""Events that a server, or a proxy before it, calls something else."""


class OpenAILanguageModel:
    """`url` is the endpoint's base (…/v1); it may be silent for `timeout` seconds, and talk for `total_timeout`."""

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
                "chat/completions",
                url=url,
                key=key,
                timeout=timeout,
                tries=tries,
                max_answer_bytes=_MAX_ANSWER_BYTES,
                hints=_HINTS,
                sleep=sleep,
            )
        except EndpointProblem as problem:
            raise LanguageModelUnavailable(model, problem.reason) from None

    @property
    def name(self) -> str:
        """The endpoint's model."""
        return f"{self._kind}:{self._model}"

    def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """The model's answer to a prompt."""
        question = self._question(prompt, system, max_tokens)
        try:
            return self._completion(self._endpoint.ask(self._worded(question)))
        except EndpointProblem as problem:
            if not self._can_ask_otherwise(problem, is_stream=False):
                raise LanguageModelUnavailable(self._model, problem.reason) from None
        return self.complete(prompt, system=system, max_tokens=max_tokens)

    def complete_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> Completion:
        """The model's answer to a question, from a context that it is told to take as data."""
        _check_query(query)
        asked = prompt_with_context(query, context, system_message)
        return self.complete(asked.prompt, system=asked.system, max_tokens=max_tokens)

    def stream(self, prompt: str, *, system: str = "", max_tokens: int) -> AnswerStream:
        """The model's answer to a prompt, as it comes; nothing is sent before the first piece is asked for."""
        question = self._question(prompt, system, max_tokens)
        return AnswerStream(self._pieces(question))

    def stream_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> AnswerStream:
        """What `complete_with_context` gives, piece by piece."""
        _check_query(query)
        asked = prompt_with_context(query, context, system_message)
        return self.stream(asked.prompt, system=asked.system, max_tokens=max_tokens)

    def _question(self, prompt: str, system: str, max_tokens: int) -> dict[str, Any]:
        as_count(InvalidOption, "max_tokens", max_tokens, 1)
        if not prompt.strip():
            raise InvalidOption("prompt", prompt, "must not be empty: what is to be answered?")
        messages = [{"role": "system", "content": _clean(system)}] if system.strip() else []
        messages.append({"role": "user", "content": _clean(prompt)})
        return {"model": self._model, "messages": messages, _LENGTH: max_tokens}

    def _worded(self, question: dict[str, Any]) -> dict[str, Any]:
        """The question in the words that this endpoint has been found to take."""
        return {self._length if name == _LENGTH else name: value for name, value in question.items()}

    def _can_ask_otherwise(self, problem: EndpointProblem, *, is_stream: bool) -> bool:
        """Whether the endpoint refused one of our words and is now to be asked with others; each is changed once."""
        if problem.status not in _REFUSED:
            return False
        if self._length == _LENGTH and _NEWER_LENGTH in problem.reason:
            self._length = _NEWER_LENGTH
        elif is_stream and self._counts_streams and "stream_options" in problem.reason:
            self._counts_streams = False
        elif is_stream and self._streams and "stream" in problem.reason.lower():
            self._streams = False
        else:
            return False
        return True

    def _pieces(self, question: dict[str, Any]) -> Generator[str, None, Completion]:
        try:
            stream = self._opened(question)
        except EndpointProblem as problem:
            raise LanguageModelUnavailable(self._model, problem.reason) from None
        if isinstance(stream, Completion):
            yield stream.content
            return stream
        so_far = AnswerSoFar()
        try:
            if stream.is_events:
                yield from so_far.read(stream)
            elif (data := b"".join(stream)).lstrip().startswith(_EVENT_STARTS):
                yield from so_far.read([data])
            else:
                whole = self._completion(data)
                yield whole.content
                return whole
        except EndpointProblem as problem:
            if not so_far.is_finished:
                raise LanguageModelUnavailable(self._model, self._broke_off(problem.reason, so_far)) from None
        finally:
            stream.close()
        return self._checked(so_far.completion(), has_thought=so_far.has_thought)

    def _opened(self, question: dict[str, Any]) -> EndpointStream | Completion:
        """The stream, or the whole answer of an endpoint that will not stream."""
        while self._streams:
            counted = {"stream_options": {"include_usage": True}} if self._counts_streams else {}
            try:
                return self._endpoint.stream(
                    {**self._worded(question), "stream": True, **counted},
                    max_bytes=_MAX_STREAM_BYTES,
                    total_timeout=self._total_timeout,
                )
            except EndpointProblem as problem:
                if not self._can_ask_otherwise(problem, is_stream=True):
                    raise
        return self._completion(self._endpoint.ask(self._worded(question)))

    def _broke_off(self, reason: str, so_far: AnswerSoFar) -> str:
        reason = self._endpoint.printable(reason)
        if not so_far.characters:
            return f"the answer broke off before its first word: {reason}"
        return f"the answer broke off after {so_far.characters:,} characters: {reason}"

    def _completion(self, data: bytes) -> Completion:
        try:
            answer = json.loads(data)
            choice = answer["choices"][0]
            content, has_thought = without_thoughts(words_of(choice["message"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            problem = f"the endpoint's answer makes no sense ({self._endpoint.printable(repr(error))})"
            raise LanguageModelUnavailable(self._model, problem) from None
        usage = answer.get("usage")
        return self._checked(
            Completion(
                content=content,
                prompt_tokens=count_of(usage, "prompt_tokens"),
                completion_tokens=count_of(usage, "completion_tokens"),
                is_cut_off=choice.get("finish_reason") == "length",
            ),
            has_thought=has_thought,
        )

    def _checked(self, completion: Completion, *, has_thought: bool) -> Completion:
        if not completion.content.strip():
            # Models that think first may have no room left for words.
            hint = "; raise max_tokens, which thinking counts against too" if completion.is_cut_off else ""
            nothing = "nothing but thoughts" if has_thought else "nothing"
            raise LanguageModelUnavailable(self._model, f"the model answered {nothing}{hint}")
        return completion


def _check_query(query: str) -> None:
    if not query.strip():
        raise InvalidOption("query", query, "must not be empty: what is to be answered?")


def _clean(text: str) -> str:
    """The text without lone surrogates, which are an error to every reader of JSON."""
    return text.encode("utf-8", "replace").decode()
