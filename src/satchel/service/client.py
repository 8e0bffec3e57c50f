"""The methods that every client of a workspace has, on this machine or behind a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from satchel.service.question import Question, ResearchQuestion, option_list

if TYPE_CHECKING:
    from typing import Self, Unpack

    from satchel.assembly.citations.verify import Citable
    from satchel.models.citation import CitationReport
    from satchel.models.context import Context
    from satchel.models.search import Expansion, SearchResult
    from satchel.service.auto_index import IndexState
    from satchel.service.question import QuestionOptions, ResearchOptions
    from satchel.service.research import ResearchAnswer

Method = TypeVar("Method", bound=Callable[..., Any])


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


def names_options(kind: type[Question | ResearchQuestion]) -> Callable[[Method], Method]:
    """A decorator that lists all options of such questions in a method's docstring."""

    def decorate(method: Method) -> Method:
        method.__doc__ = f"{method.__doc__}\n\n    Options:\n{option_list(kind)}"
        return method

    return decorate


class Satchel(ABC):
    """A workspace that can be asked; close it, or use it in a `with` statement. Threads may share it."""

    @abstractmethod
    @names_options(Question)
    def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """The context for a question: one text inside the budget, its sources, and the reasons for every piece."""

    @abstractmethod
    @names_options(Question)
    def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """The pieces that answer a question best."""

    @abstractmethod
    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """The exact text behind an id, and `lines` more on either side."""

    @abstractmethod
    @names_options(ResearchQuestion)
    def research(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> Context:
        """The pages of the documents that answer a question, numbered, within the budget."""

    @abstractmethod
    @names_options(ResearchQuestion)
    def ask(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchAnswer:
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
