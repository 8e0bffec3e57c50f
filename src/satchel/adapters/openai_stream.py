"""An answer in OpenAI's chat-completions protocol, read while it comes."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from satchel.adapters.openai_endpoint import EndpointProblem
from satchel.adapters.server_sent_events import ERROR, events
from satchel.ports.language_model import Completion

_DONE: Final = "[DONE]"
_UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class AnswerSoFar:
    """What has been said, and whether that was all."""

    def __init__(self) -> None:
        self._said: list[str] = []
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

    def read(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The pieces of text, as they come; an `EndpointProblem` where they break off."""
        for event in events(chunks):
            if event.data.strip() == _DONE:
                self._is_done = True
                break
            if event.kind == ERROR:
                raise EndpointProblem(f"the endpoint said: {event.data}", 200)
            if piece := self._piece(event.data):
                self._said.append(piece)
                self.characters += len(piece)
                yield piece
        if not self.is_finished:
            raise EndpointProblem("the connection was closed before the end", 200)

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


def count_of(usage: Any, name: str) -> int | None:
    """A count of the endpoint's, if it is one."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
