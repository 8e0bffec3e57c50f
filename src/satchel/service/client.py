"""The methods that every client of a workspace has, on this machine or behind a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from satchel.service.options import option_list

if TYPE_CHECKING:
    from typing import Self, Unpack

    from satchel.assembly.citations.verify import Citable
    from satchel.models.context import CitationReport, Context
    from satchel.models.options import RequestType, TokenBudget
    from satchel.models.request import ContextHints, ConversationMessage, Focus, User
    from satchel.models.search import Expansion, SearchResult
    from satchel.service.auto_index import IndexState
    from satchel.service.question import Question
    from satchel.service.research import ResearchAnswer

Method = TypeVar("Method", bound=Callable[..., Any])


class QuestionOptions(TypedDict, total=False):
    """The options of a question by name (`satchel.service.options` says what each does)."""

    token_budget: int | TokenBudget | None
    format: str | None
    model: str | None
    top_k: int | None
    min_relevance: float | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    languages: tuple[str, ...]
    block_types: tuple[str, ...]
    since: str | datetime | None
    until: str | datetime | None
    expand: str | int | None
    include_sources: bool
    include_scores: bool
    compact: bool
    user: User | str | None
    type: RequestType | str | None
    focus: Focus | str | None
    hints: ContextHints
    conversation_history: tuple[ConversationMessage, ...]
    truncation: str | None
    system_prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a workspace's index holds and how far it is, and what questions get that do not say otherwise.

    What only its owner may know is None for others.
    """

    workspace: str
    generation: int
    indexing: bool
    state: str
    done: int = 0
    of: int = 0
    token_budget: int = 4000
    format: str = "markdown"
    files: int | None = None
    blocks: int | None = None
    pieces: int | None = None
    embedder: str | None = None
    bytes_on_disk: int | None = None
    default_access: str | None = None
    language_model: str | None = None
    version: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The status as JSON can hold it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What an index run did."""

    found: int = 0
    read: int = 0
    dropped: int = 0
    seconds: float = 0.0
    generation: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": list(self.notes)}


def names_options(method: Method) -> Method:
    """The method with all options of questions in its docstring."""
    method.__doc__ = f"{method.__doc__}\n\n    Options:\n{option_list()}"
    return method


class Satchel(ABC):
    """A workspace that can be asked; close it, or use it in a `with` statement. Threads may share it."""

    @abstractmethod
    @names_options
    def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """The context for a question: one text inside the budget, its sources, and the reasons for every piece."""

    @abstractmethod
    @names_options
    def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """The pieces that answer a question best."""

    @abstractmethod
    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """The exact text behind an id, and `lines` more on either side."""

    @abstractmethod
    def ask(self, query: str, *, num_results: int = 10, max_tokens: int = 10_000) -> ResearchAnswer:
        """An answer from the documents with its sources, by the language model that is set."""

    @abstractmethod
    def status(self) -> Status:
        """What the index holds and how far it is."""

    @abstractmethod
    def index(self, watch: Callable[[IndexState], None] | None = None) -> Indexed:
        """Bring the index up to the folder."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def verify(self, answer: str, context: Citable) -> CitationReport:
        """Whether an answer's citations are in the context."""
        from satchel.assembly.citations.verify import verify

        return verify(answer, context)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
