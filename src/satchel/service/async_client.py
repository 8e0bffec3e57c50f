"""The client for asynchronous code: every call is made in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from satchel.service.client import names_options

if TYPE_CHECKING:
    from typing import Self, Unpack

    from satchel.assembly.citations.verify import Citable
    from satchel.models.citation import CitationReport
    from satchel.models.context import Context
    from satchel.models.search import Expansion, SearchResult
    from satchel.service.auto_index import IndexState
    from satchel.service.client import Indexed, QuestionOptions, Satchel, Status
    from satchel.service.question import Question
    from satchel.service.research import ResearchAnswer

T = TypeVar("T")


class AsyncSatchel:
    """A workspace that can be asked with `await`; opened by `async with`, or by the first question."""

    def __init__(self, opening: Callable[[], Satchel]) -> None:
        self._opening = opening
        self._satchel: Satchel | None = None
        self._lock = asyncio.Lock()

    @names_options
    async def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """The context for a question."""
        return await self._call(lambda client: client.build(question, **options))

    @names_options
    async def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """The pieces that answer a question best."""
        return await self._call(lambda client: client.search(question, **options))

    async def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """The exact text behind an id."""
        return await self._call(lambda client: client.expand(piece_id, lines=lines))

    async def ask(self, query: str, *, num_results: int = 10, max_tokens: int = 10_000) -> ResearchAnswer:
        """An answer from the documents with its sources."""
        return await self._call(lambda client: client.ask(query, num_results=num_results, max_tokens=max_tokens))

    async def status(self) -> Status:
        """What the index holds and how far it is."""
        return await self._call(lambda client: client.status())

    async def index(self, watch: Callable[[IndexState], None] | None = None) -> Indexed:
        """Bring the index up to the folder; `watch` is called in a thread."""
        return await self._call(lambda client: client.index(watch))

    async def verify(self, answer: str, context: Citable) -> CitationReport:
        """Whether an answer's citations are in the context."""
        return await self._call(lambda client: client.verify(answer, context))

    async def aclose(self) -> None:
        """Let go of everything."""
        satchel, self._satchel = self._satchel, None
        if satchel is not None:
            await asyncio.to_thread(satchel.close)

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _call(self, method: Callable[[Satchel], T]) -> T:
        client = await self._opened()
        return await asyncio.to_thread(method, client)

    async def _opened(self) -> Satchel:
        async with self._lock:
            if self._satchel is None:
                self._satchel = await asyncio.to_thread(self._opening)
            return self._satchel
