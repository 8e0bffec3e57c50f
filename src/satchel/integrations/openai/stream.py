"""An answer in OpenAI's chat-completions protocol, read while it arrives."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from satchel.http_client import ERROR_EVENT, HttpProblem, events
from satchel.ports.language_model import Completion

_DONE: Final = "[DONE]"
_THOUGHT_TAGS: Final = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""Local models put their reasoning between these, before the answer."""
_MAX_LEADING_BLANKS: Final = 1000
"""Models that think begin with a tag, or a line break before it; more blanks than this are part of an answer."""
MALFORMED: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading JSON of an unexpected shape raises."""


class Thoughts:
    """Removes the reasoning from the beginning of an answer that comes in pieces.

    Of a thought it stores only what may be the beginning of its closing tag.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._closing_tag = ""
        self._has_begun = False
        self.has_thought = False

    def without(self, piece: str) -> str:
        """The part of the next piece that belongs to the answer."""
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
        """The pending part of the answer, once no more comes; an unfinished thought is not part of it."""
        return "" if self._closing_tag else self._release()

    def _open_thought(self) -> bool:
        """True if the pending text begins with a thought; its tag is then removed."""
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
    """The answer as far as it has arrived, and whether it is complete."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._thoughts = Thoughts()
        # The halves of a surrogate pair may come in two pieces.
        self._surrogates = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._finish_reason = ""
        self._is_done = False
        self._usage: Any = None

    @property
    def is_finished(self) -> bool:
        """True once the model has ended its answer; what goes wrong after that takes nothing away."""
        return self._is_done or bool(self._finish_reason)

    @property
    def content(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def has_thought(self) -> bool:
        """True if thoughts came before the answer."""
        return self._thoughts.has_thought

    def read(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The pieces of the answer as they arrive; HttpProblem where they break off."""
        problem: HttpProblem | None = None
        try:
            for piece in self._raw_pieces(chunks):
                yield from self._note(self._thoughts.without(piece))
        except HttpProblem as caught:
            problem = caught
        yield from self._note(self._thoughts.rest())
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
                raise HttpProblem(f"the endpoint said: {event.data}")
            if piece := self._piece(event.data):
                yield piece
        if not self.is_finished:
            raise HttpProblem("the connection was closed before the end")

    def _note(self, text: str) -> Iterator[str]:
        if text:
            self._pieces.append(text)
            yield text

    def _piece(self, data: str) -> str:
        """The text of an event; '' for one of thoughts, tool calls or counts."""
        try:
            chunk = json.loads(data)
            error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
            if error:
                message = error.get("message") if isinstance(error, dict) else None
                raise HttpProblem(f"the endpoint said: {message or error}")
            self._usage = chunk.get("usage") or self._usage
            choices = [choice for choice in chunk.get("choices") or () if not choice.get("index")]
            if not choices:
                return ""
            reason = choices[0].get("finish_reason")
            self._finish_reason = reason if isinstance(reason, str) else self._finish_reason
            text = message_text(choices[0].get("delta") or choices[0].get("message") or {})
        except MALFORMED as error:
            raise HttpProblem(f"a part of the answer makes no sense ({error!r})") from None
        return self._surrogates.decode(text.encode("utf-16-le", "surrogatepass"))


def message_text(message: dict[str, Any]) -> str:
    """The text of a message: its content, its parts of text, or why the model refuses to answer."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError(f"content is of type {type(content).__name__}")
    return content


def completion(content: str, usage: Any, finish_reason: Any) -> Completion:
    """An answer with the counts that the endpoint gives."""
    return Completion(
        content=content,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        is_cut_off=finish_reason == "length",
    )


def _count(usage: Any, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
