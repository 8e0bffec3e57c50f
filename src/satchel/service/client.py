"""Interface of all clients of a workspace (local or remote), identity of callers, and results as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from satchel.errors import InvalidOption, NotAllowed
from satchel.models.request import User
from satchel.models.search import SearchHit, SearchResult
from satchel.service.question import Question, ResearchQuestion, option_list

if TYPE_CHECKING:
    from typing import Self, Unpack

    from satchel.assembly.citations.verify import Citable
    from satchel.models.context import CitationReport, Context
    from satchel.models.find import FindKind, Found
    from satchel.models.request import User
    from satchel.models.search import Expansion, SearchResult
    from satchel.service.auto_index import IndexState
    from satchel.service.question import QuestionOptions, ResearchOptions
    from satchel.service.research import ResearchAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated caller. An owner without a user is the holder of the workspace's own key."""

    user: User | None = None
    is_owner: bool = False

    def __post_init__(self) -> None:
        if self.user is None and not self.is_owner:
            raise InvalidOption("caller", None, "must be a user, or the owner")

    def asking(self, user: User | None) -> User | None:
        """The user on whose behalf a question is asked; only an owner may name a different user."""
        if user is None or user == self.user:
            return self.user
        if self.is_owner:
            return user
        assert self.user is not None
        if user.id != self.user.id or not set(user.groups) <= set(self.user.groups):
            raise NotAllowed(
                "user", user.id, f"this token belongs to {self.user.id}; only an owner's token may ask for other users"
            )
        return User(
            id=self.user.id,
            name=user.name or self.user.name,
            groups=self.user.groups,
            preferred_types=user.preferred_types,
            pinned=user.pinned,
        )

    def on_behalf_of(self, user: User | None) -> Caller:
        """This caller asking as the given user."""
        return Caller(user=self.asking(user), is_owner=self.is_owner)

    def must_be_owner(self, to_do: str) -> None:
        """Raise NotAllowed if the caller is not an owner; `to_do` names the action."""
        if not self.is_owner:
            name = self.user.id if self.user else ""
            raise NotAllowed("user", name, f"only an owner's token may {to_do}")


OWNER = Caller(is_owner=True)
"""The person at the machine."""


T = TypeVar("T")


def search_to_dict(result: SearchResult) -> dict[str, Any]:
    """Convert a search result to JSON values."""
    return {"hits": [asdict(hit) for hit in result.hits], "generation": result.generation, "notes": list(result.notes)}


def search_from_dict(values: Mapping[str, Any]) -> SearchResult:
    """Read a search result from the output of `search_to_dict`."""
    hits = tuple(record_from_dict(SearchHit, hit) for hit in values["hits"])
    return SearchResult(hits, values["generation"], tuple(values["notes"]))


def record_from_dict(kind: type[T], values: Mapping[str, Any]) -> T:
    """Read a dataclass or named tuple from JSON; ignores unknown keys of newer servers; missing keys raise KeyError."""
    names = getattr(kind, "_fields", None) or [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _as_tuples(values[name]) for name in names})


def _as_tuples(value: Any) -> Any:
    """Convert lists to tuples, recursively; records hold tuples."""
    return tuple(_as_tuples(element) for element in value) if isinstance(value, list) else value


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
        """Convert the status to JSON values."""
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
        """Convert the report to JSON values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": list(self.notes)}


def names_options(kind: type[Question | ResearchQuestion]) -> Callable[[Method], Method]:
    """Decorator: append the list of options of a kind of question to a method's docstring."""

    def decorate(method: Method) -> Method:
        method.__doc__ = f"{method.__doc__}\n\n    Options:\n{option_list(kind)}"
        return method

    return decorate


class Satchel(ABC):
    """Client of a workspace; close the client, or use a `with` statement. Threads may share a client."""

    @abstractmethod
    @names_options(Question)
    def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """Build the context for a question: a text inside the budget, its sources, and the reason for every piece."""

    @abstractmethod
    @names_options(Question)
    def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """Return the pieces with the highest relevance to a question."""

    @abstractmethod
    def find(
        self,
        what: str,
        kind: FindKind | str = "definition",
        *,
        limit: int = 100,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> Found:
        """Find a symbol's `definition`, `references` or `implementations`, the `outline` of a file or folder, or every
        line with a `text` or a `pattern` (RE2); `include` and `exclude` are globs of paths."""

    @abstractmethod
    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """Return the exact text behind an id, and `lines` more lines before and after."""

    @abstractmethod
    @names_options(ResearchQuestion)
    def research(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> Context:
        """Build a context of numbered document pages for a question, within the budget."""

    @abstractmethod
    @names_options(ResearchQuestion)
    def ask(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchAnswer:
        """Answer a question from the documents with the configured language model, with sources."""

    @abstractmethod
    def status(self) -> Status:
        """Return the contents and the progress of the index."""

    @abstractmethod
    def index(self, watch: Callable[[IndexState], None] | None = None) -> Indexed:
        """Refresh the index from the folder."""

    @abstractmethod
    def close(self) -> None:
        """Close the client and release its resources."""

    def verify(self, answer: str, context: Citable) -> CitationReport:
        """Check the citations of an answer against the context."""
        from satchel.assembly.citations.verify import verify

        return verify(answer, context)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
