"""An answer in OpenAI's chat-completions protocol, read while it comes."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from satchel.integrations.openai.endpoint import EndpointProblem
from satchel.ports.language_model import Completion
from satchel.text.server_sent_events import ERROR, events

_DONE: Final = "[DONE]"
_THOUGHTS: Final = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""How local models say that they have not begun to answer."""
_MOST_BLANKS: Final = 1000
"""What has begun with more than that begins with no thought."""
_UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class Thoughts:
    """Takes what a model thinks aloud off the beginning of its answer, in whatever pieces it comes.

    Nothing is kept of a thought but what may be the beginning of the mark that ends it.
    """

    def __init__(self) -> None:
        self._kept = ""
        self._end = ""
        self._has_begun = False
        self.has_thought = False

    def without(self, piece: str) -> str:
        """What of the next piece is answer."""
        if self._has_begun:
            return piece
        self._kept += piece
        while self._end or self._opened():
            _, end, rest = self._kept.partition(self._end)
            if not end:
                self._kept = self._kept[1 - len(self._end) :]
                return ""
            self._kept, self._end = rest, ""
        if self.has_thought:
            self._kept = self._kept.lstrip()
        begun = self._kept.lstrip()
        may_open = any(mark.startswith(begun) for mark in _THOUGHTS)
        return "" if may_open and len(self._kept) < _MOST_BLANKS else self._released()

    def rest(self) -> str:
        """What had been kept, when no more comes; an unfinished thought is no answer."""
        return "" if self._end else self._released()

    def _opened(self) -> bool:
        """Whether a thought begins the answer."""
        begun = self._kept.lstrip()
        for mark, end in _THOUGHTS.items():
            if begun.startswith(mark):
                self._kept, self._end, self.has_thought = begun[len(mark) :], end, True
                return True
        return False

    def _released(self) -> str:
        released, self._kept, self._has_begun = self._kept, "", True
        return released


class AnswerSoFar:
    """What has been said, and whether that was all."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._thoughts = Thoughts()
        # Halves of a character beyond the first 65,536 may come in two pieces.
        self._halves = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._finish = ""
        self._is_done = False
        self._usage: Any = None
        self.characters = 0

    @property
    def is_finished(self) -> bool:
        """Whether the model came to its end; whatever goes wrong after that took nothing away."""
        return self._is_done or bool(self._finish)

    @property
    def has_thought(self) -> bool:
        """Whether thoughts came before the answer; they are no part of it."""
        return self._thoughts.has_thought

    def read(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The pieces of the answer, as they come; an `EndpointProblem` where they break off."""
        broken: EndpointProblem | None = None
        try:
            for piece in self._pieces(chunks):
                if words := self._thoughts.without(piece):
                    yield self._noted(words)
        except EndpointProblem as problem:
            broken = problem
        if words := self._thoughts.rest():
            yield self._noted(words)
        if broken:
            raise broken

    def _pieces(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The pieces of text with the thoughts in it."""
        for event in events(chunks):
            if event.data.strip() == _DONE:
                self._is_done = True
                break
            if event.kind == ERROR:
                raise EndpointProblem(f"the endpoint said: {event.data}", 200)
            if piece := self._piece(event.data):
                yield piece
        if not self.is_finished:
            raise EndpointProblem("the connection was closed before the end", 200)

    def _noted(self, words: str) -> str:
        self._said.append(words)
        self.characters += len(words)
        return words

    def completion(self) -> Completion:
        """The whole answer."""
        return Completion(
            content="".join(self._said),
            prompt_tokens=count_of(self._usage, "prompt_tokens"),
            completion_tokens=count_of(self._usage, "completion_tokens"),
            is_cut_off=self._finish == "length",
        )

    def _piece(self, data: str) -> str:
        """The words of one event; thoughts, tool calls and counts are none."""
        try:
            said = json.loads(data)
            error = said.get("error") or (said if said.get("object") == "error" else None)
            if error:
                told = error.get("message") if isinstance(error, dict) else None
                raise EndpointProblem(f"the endpoint said: {told or error}", 200)
            self._usage = said.get("usage") or self._usage
            choices = [choice for choice in said.get("choices") or () if not choice.get("index")]
            if not choices:
                return ""
            finish = choices[0].get("finish_reason")
            self._finish = finish if isinstance(finish, str) else self._finish
            words = words_of(choices[0].get("delta") or choices[0].get("message") or {})
        except _UNREADABLE as error:
            raise EndpointProblem(f"a part of the answer makes no sense ({error!r})", 200) from None
        return self._halves.decode(words.encode("utf-16-le", "surrogatepass"))


def words_of(message: dict[str, Any]) -> str:
    """The words of a message: its text, its parts of text, or why the model will not answer."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError(f"content is of type {type(content).__name__}")
    return content


def without_thoughts(content: str) -> tuple[str, bool]:
    """A whole answer without the thoughts before it, and whether there were any."""
    thoughts = Thoughts()
    return thoughts.without(content) + thoughts.rest(), thoughts.has_thought


def count_of(usage: Any, name: str) -> int | None:
    """A count of the endpoint's, if it is one."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
