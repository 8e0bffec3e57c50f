"""Answers from endpoints with OpenAI's chat-completions protocol: OpenAI, Ollama, vLLM, llama.cpp and more.

`endpoint` retries requests; `AnswerSoFar` reads an answer while it arrives.
"""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from satchel.errors import InvalidOption, LanguageModelUnavailable
from satchel.http_client import ERROR_EVENT, HttpProblem, HttpResponse, events
from satchel.integrations.openai.endpoint import OpenAIEndpoint
from satchel.models.checks import as_count
from satchel.ports.language_model import DEFAULT_ANSWER_TOKENS, AnswerStream, Completion, prompt_with_context
from satchel.text.visible import replace_surrogates

_MAX_ANSWER_BYTES: Final = 16_000_000  # the longest answers of today's models have less than one megabyte
_MAX_STREAM_BYTES: Final = 64_000_000  # in a stream each token comes with some hundred bytes

_HINTS: Final = {
    0: " (is it running, e.g. `ollama serve`? --language-model-url sets the URL)",
    401: " (is the key right for this endpoint?)",
    403: " (may this key use this model?)",
    404: " (is the model's name right, and does the URL end where /chat/completions begins, as …/v1 does?)",
}

# OpenAI's newer models reject the first name and require the second; most endpoints know only the first.
_LENGTH: Final = "max_tokens"
_NEWER_LENGTH: Final = "max_completion_tokens"
_INVALID_REQUEST_STATUSES: Final = (400, 422)
_EVENT_STARTS: Final = (b"data:", b"event:", b":")  # some servers and proxies send events under another content type

_DONE: Final = "[DONE]"
# Local models put their reasoning between these, before the answer.
_THOUGHT_TAGS: Final = {"<think>": "</think>", "<thinking>": "</thinking>"}
# Models that think begin with a tag, or a line break before it; more blanks than this are part of an answer.
_MAX_LEADING_BLANKS: Final = 1000
MALFORMED: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading JSON of an unexpected shape raises."""


@dataclass(slots=True)
class Thoughts:
    """Removes the reasoning from the beginning of an answer received in pieces.

    Of a thought it stores only what may be the beginning of its closing tag.
    """

    has_thought: bool = False
    _pending: str = ""
    _closing_tag: str = ""
    _has_begun: bool = False

    def without(self, piece: str) -> str:
        """The part of the next piece outside of the reasoning."""
        if self._has_begun:
            return piece
        self._pending += piece
        while self._closing_tag or self._open_thought():
            _, tag, rest = self._pending.partition(self._closing_tag)
            if not tag:
                self._pending = self._pending[1 - len(self._closing_tag) :]
                return ""
            self._pending, self._closing_tag = rest, ""
        if self.has_thought:
            self._pending = self._pending.lstrip()
        start = self._pending.lstrip()
        may_open = any(tag.startswith(start) for tag in _THOUGHT_TAGS)
        return "" if may_open and len(self._pending) < _MAX_LEADING_BLANKS else self._release()

    def rest(self) -> str:
        """The pending part of the answer at the end of the stream, without an unfinished thought."""
        return "" if self._closing_tag else self._release()

    def _open_thought(self) -> bool:
        """True if the pending text begins with a thought; the opening tag is then removed."""
        start = self._pending.lstrip()
        for tag, closing_tag in _THOUGHT_TAGS.items():
            if start.startswith(tag):
                self._pending, self._closing_tag, self.has_thought = start[len(tag) :], closing_tag, True
                return True
        return False

    def _release(self) -> str:
        released, self._pending, self._has_begun = self._pending, "", True
        return released


class AnswerSoFar:
    """The part of an answer received to date, and the state of completion."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.thoughts = Thoughts()
        # The halves of a surrogate pair may come in two pieces.
        self._surrogates = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._finish_reason = ""
        self._is_done = False
        self._usage: Any = None

    @property
    def is_finished(self) -> bool:
        """True once the model has ended the answer; later failures take nothing away."""
        return self._is_done or bool(self._finish_reason)

    @property
    def content(self) -> str:
        """The text received to date."""
        return "".join(self._pieces)

    def read(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The pieces of the answer on arrival; raises HttpProblem if the stream breaks off."""
        problem: HttpProblem | None = None
        try:
            for piece in self._raw_pieces(chunks):
                yield from self._note(self.thoughts.without(piece))
        except HttpProblem as caught:
            problem = caught
        yield from self._note(self.thoughts.rest())
        if problem:
            raise problem

    def completion(self) -> Completion:
        """The whole answer."""
        return completion(self.content, self._usage, self._finish_reason)

    def _raw_pieces(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The pieces of text, thoughts included."""
        for event in events(chunks):
            if event.data.strip() == _DONE:
                self._is_done = True
                break
            if event.kind == ERROR_EVENT:
                raise HttpProblem(f"the endpoint reported: {event.data}")
            if piece := self._piece(event.data):
                yield piece
        if not self.is_finished:
            raise HttpProblem("the connection was closed before the end")

    def _note(self, text: str) -> Iterator[str]:
        if text:
            self._pieces.append(text)
            yield text

    def _piece(self, data: str) -> str:
        """The text of an event; '' for an event of thoughts, tool calls or counts."""
        try:
            chunk = json.loads(data)
            error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
            if error:
                message = error.get("message") if isinstance(error, dict) else None
                raise HttpProblem(f"the endpoint reported: {message or error}")
            self._usage = chunk.get("usage") or self._usage
            choices = [choice for choice in chunk.get("choices") or () if not choice.get("index")]
            if not choices:
                return ""
            reason = choices[0].get("finish_reason")
            self._finish_reason = reason if isinstance(reason, str) else self._finish_reason
            text = message_text(choices[0].get("delta") or choices[0].get("message") or {})
        except MALFORMED as error:
            raise HttpProblem(f"a part of the answer is invalid ({error!r})") from None
        return self._surrogates.decode(text.encode("utf-16-le", "surrogatepass"))


def message_text(message: dict[str, Any]) -> str:
    """The text of a message: content, text parts, or the model's reason for a refusal."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError(f"content is of type {type(content).__name__}")
    return content


def completion(content: str, usage: Any, finish_reason: Any) -> Completion:
    """An answer with the token counts of the endpoint."""
    return Completion(
        content=content,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        is_cut_off=finish_reason == "length",
    )


def _count(usage: Any, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


class OpenAILanguageModel:
    """Language model at base `url` (…/v1); `timeout` limits silence, `total_timeout` the whole answer, in seconds."""

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
        self.name = f"{kind}:{model}"
        self._model = model
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

    def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """The model's answer to a prompt."""
        return self._complete(self._request(prompt, system, max_tokens))

    def complete_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> Completion:
        """The model's answer to a question from a context, marked in the prompt as data."""
        return self.complete(**_prompt(query, context, system_message), max_tokens=max_tokens)

    def stream(self, prompt: str, *, system: str = "", max_tokens: int) -> AnswerStream:
        """The model's answer to a prompt as a stream; the request is sent with the first read."""
        return AnswerStream(self._pieces(self._request(prompt, system, max_tokens)))

    def stream_with_context(
        self, query: str, context: str, system_message: str = "", max_tokens: int = DEFAULT_ANSWER_TOKENS
    ) -> AnswerStream:
        """The answer of `complete_with_context` as a stream."""
        return self.stream(**_prompt(query, context, system_message), max_tokens=max_tokens)

    def _request(self, prompt: str, system: str, max_tokens: int) -> dict[str, Any]:
        as_count(InvalidOption, "max_tokens", max_tokens, 1)
        if not prompt.strip():
            raise InvalidOption("prompt", prompt, "must not be empty")
        messages = [{"role": "system", "content": replace_surrogates(system)}] if system.strip() else []
        messages.append({"role": "user", "content": replace_surrogates(prompt)})
        return {"model": self._model, "messages": messages, _LENGTH: max_tokens}

    def _adapted(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request with parameter names accepted by this endpoint."""
        return {self._length if name == _LENGTH else name: value for name, value in request.items()}

    def _adapt_or_raise(self, problem: HttpProblem, *, is_stream: bool) -> None:
        """Leave out or rename the parameter refused by the endpoint, each once; raise for every different problem."""
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
                place = f"after {len(so_far.content):,} characters" if so_far.content else "before the first word"
                reason = f"the answer was interrupted {place}: {self._endpoint.client.printable(problem.reason)}"
                raise LanguageModelUnavailable(self._model, reason) from None
        return self._checked(so_far.completion(), has_thought=so_far.thoughts.has_thought)

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

    def _completion(self, data: bytes) -> Completion:
        thoughts = Thoughts()
        try:
            answer = json.loads(data)
            choice = answer["choices"][0]
            content = thoughts.without(message_text(choice["message"])) + thoughts.rest()
            whole = completion(content, answer.get("usage"), choice.get("finish_reason"))
        except MALFORMED as error:
            problem = f"the endpoint's answer is invalid ({self._endpoint.client.printable(repr(error))})"
            raise LanguageModelUnavailable(self._model, problem) from None
        return self._checked(whole, has_thought=thoughts.has_thought)

    def _checked(self, answer: Completion, *, has_thought: bool) -> Completion:
        if not answer.content.strip():
            # A reasoning model may use all tokens before the answer.
            hint = "; raise max_tokens, which includes the model's reasoning" if answer.is_cut_off else ""
            nothing = "only reasoning" if has_thought else "nothing"
            raise LanguageModelUnavailable(self._model, f"the model returned {nothing}{hint}")
        return answer


def _prompt(query: str, context: str, system_message: str) -> dict[str, str]:
    if not query.strip():
        raise InvalidOption("query", query, "must not be empty")
    return asdict(prompt_with_context(query, context, system_message))
