"""Answers from any endpoint that speaks OpenAI's chat-completions protocol.

`openai_endpoint` says how patiently and how safely it is asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from satchel.adapters.openai_endpoint import EndpointProblem, OpenAIEndpoint
from satchel.errors import InvalidOption, LanguageModelUnavailable
from satchel.model.checks import as_count
from satchel.ports.language_model import DEFAULT_ANSWER_TOKENS, Completion, prompt_with_context

_MAX_ANSWER_BYTES: Final = 16_000_000
"""The longest answers of today's models are under one megabyte."""

_HINTS: Final = {
    401: " (is the key right, and is it one of this endpoint?)",
    403: " (may this key use this model?)",
    404: " (is the model's name right, and does the address end where /chat/completions begins, as …/v1 does?)",
}

# OpenAI's newer models refuse the first name and say the second; most other endpoints know only the first.
_LENGTH: Final = "max_tokens"
_NEWER_LENGTH: Final = "max_completion_tokens"


class OpenAILanguageModel:
    """`url` is the endpoint's base (…/v1)."""

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        key: str = "",
        timeout: float = 120.0,
        tries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._length = _LENGTH
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
        return f"openai:{self._model}"

    def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """The model's answer to a prompt."""
        as_count(InvalidOption, "max_tokens", max_tokens, 1)
        if not prompt.strip():
            raise InvalidOption("prompt", prompt, "must not be empty: what is to be answered?")
        messages = [{"role": "system", "content": _clean(system)}] if system.strip() else []
        messages.append({"role": "user", "content": _clean(prompt)})
        return self._completion(self._ask(messages, max_tokens))

    def complete_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> Completion:
        """The model's answer to a question, from a context that it is told to take as data."""
        if not query.strip():
            raise InvalidOption("query", query, "must not be empty: what is to be answered?")
        asked = prompt_with_context(query, context, system_message)
        return self.complete(asked.prompt, system=asked.system, max_tokens=max_tokens)

    def _ask(self, messages: list[dict[str, str]], max_tokens: int) -> bytes:
        try:
            return self._endpoint.ask({"model": self._model, "messages": messages, self._length: max_tokens})
        except EndpointProblem as problem:
            if problem.status != 400 or self._length == _NEWER_LENGTH or _NEWER_LENGTH not in problem.reason:
                raise LanguageModelUnavailable(self._model, problem.reason) from None
        self._length = _NEWER_LENGTH
        return self._ask(messages, max_tokens)

    def _completion(self, data: bytes) -> Completion:
        try:
            answer = json.loads(data)
            choice = answer["choices"][0]
            content = _said(choice["message"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            problem = f"the endpoint's answer makes no sense ({self._endpoint.printable(repr(error))})"
            raise LanguageModelUnavailable(self._model, problem) from None
        is_cut_off = choice.get("finish_reason") == "length"
        if not content.strip():
            # Models that think first may have no room left for words.
            hint = "; raise max_tokens, which thinking counts against too" if is_cut_off else ""
            raise LanguageModelUnavailable(self._model, f"the model answered nothing{hint}")
        usage = answer.get("usage")
        return Completion(
            content=content,
            prompt_tokens=_count(usage, "prompt_tokens"),
            completion_tokens=_count(usage, "completion_tokens"),
            is_cut_off=is_cut_off,
        )


def _said(message: dict[str, Any]) -> str:
    """The words of a message: its text, its parts of text, or why the model will not answer."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError(f"content is of type {type(content).__name__}")
    return content


def _count(usage: Any, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _clean(text: str) -> str:
    """The text without lone surrogates, which are an error to every reader of JSON."""
    return text.encode("utf-8", "replace").decode()
