"""Pydantic models of the requests and responses of the HTTP API.

Request fields are written as in Python (`token_budget`); the specification's spelling (`tokenBudget`) is accepted too.
Unknown fields are refused. The library makes the responses: the models here only describe them in OpenAPI. Field names
and values are those of `to_dict` in the library, and of `--json` on the command line.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, create_model
from pydantic.alias_generators import to_camel
from pydantic.aliases import AliasChoices, AliasGenerator
from pydantic.types import Discriminator, Tag

from satchel.models.find import MAX_MATCHES, FindKind
from satchel.models.options import ContextBuildOptions, Ordering, TokenBudget, TokenEstimationMethod
from satchel.models.request import ContextHints, ConversationMessage, Focus, TimeRange, User
from satchel.models.search import Expansion, SearchHit
from satchel.service.auto_index import IndexState
from satchel.service.client import Indexed, Status
from satchel.service.factory.assembling import ScoreKind
from satchel.service.question import AnyQuestion, Kind, Option, Surface, options_of
from satchel.service.research import ResearchAnswer

_MAX_TEXT_CHARS: Final = 1_000_000  # the longest query of the library; a larger text is a document to upload
_MAX_NAMES: Final = 1_000  # of a list in a request (ids, messages); bounds the work of a question
_MAX_CHUNKS: Final = 10_000  # of a request; bounds the time and memory of an assembly or a check
_MAX_BUDGET_TOKENS: Final = 2_000_000  # a larger budget is a typing error rather than a model's context window


class Strict(BaseModel):
    """A request's part: nothing unknown, no number that is a text."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: AliasChoices(name, to_camel(name))),
    )


_EXAMPLES: Final = tomllib.loads(Path(__file__).with_name("examples.toml").read_text("utf-8"))


def with_examples(body: str) -> ConfigDict:
    """The configuration of a body's model, with the examples of examples.toml."""
    return ConfigDict(json_schema_extra={"examples": _EXAMPLES[body]})


def _whole(value: Any) -> Any:
    """The value as an int if a float has no fraction: JSON has no separate integers (4000.0 is 4000)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[StrictInt, BeforeValidator(_whole)]
Text = Annotated[StrictStr, Field(max_length=_MAX_TEXT_CHARS)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=4_096)]
Names = Annotated[list[Name], Field(max_length=_MAX_NAMES)]
Globs = Annotated[list[Annotated[StrictStr, Field(min_length=1, max_length=500)]], Field(max_length=100)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Moment = Annotated[StrictStr, Field(max_length=40, examples=["2026-11-01", "2026-11-01T09:00:00+00:00"])]


def a_model(value: object) -> object:
    """Validate a model's name; refuses paths, because a path would be read on the server."""
    if isinstance(value, str) and ("/" in value or "\\" in value or os.sep in value or value.endswith(".json")):
        raise ValueError("must be the name of a model or an encoding, not a file")
    return value


ModelName = Annotated[StrictStr, Field(min_length=1, max_length=200), BeforeValidator(a_model)]


class UserBody(Strict):
    """Who asks. With a user's token: that user, or nothing. With an owner's: anybody."""

    id: Name
    name: Annotated[StrictStr, Field(max_length=256)] = ""
    groups: Names = []
    preferred_types: Names = []
    pinned: Names = []


Who = UserBody | Name | None


def user_of(who: UserBody | str | None) -> User | None:
    """The user of a body's `user` field."""
    user: User | None = User(id=who) if isinstance(who, str) else _record_from(who)
    return user


class FocusBody(Strict):
    """What the user looks at: a block (in code also `path:line`), a page, a database, or none of them."""

    block_id: Name | None = None
    page_id: Name | None = None
    database_id: Name | None = None


class TimeRangeBody(Strict):
    """From one moment to another; either end may be open."""

    start: Moment | None = None
    end: Moment | None = None


class HintsBody(Strict):
    """What the caller knows about the answer."""

    prioritize_types: Names = []
    time_range: TimeRangeBody | None = None
    include_blocks: Names = []
    exclude_blocks: Names = []
    max_depth: Annotated[StrictInt, Field(ge=0, le=1_000), BeforeValidator(_whole)] | None = None


class MessageBody(Strict):
    """A turn of the conversation so far."""

    role: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    content: Text
    timestamp: Moment | None = None
    name: Annotated[StrictStr, Field(max_length=256)] = ""


_Tokens = Annotated[StrictInt, Field(ge=0, le=_MAX_BUDGET_TOKENS), BeforeValidator(_whole)]


class BudgetBody(Strict):
    """The whole, and what is reserved of it for each section."""

    total: Annotated[StrictInt, Field(ge=1, le=_MAX_BUDGET_TOKENS), BeforeValidator(_whole)] = 4000
    focus: _Tokens = 1500
    semantic: _Tokens = 1200
    relations: _Tokens = 800
    activity: _Tokens = 300
    history: _Tokens = 500
    system: _Tokens = 200


def _field(option: Option) -> tuple[Any, Any]:
    """The type and the default of an option's field."""
    number = Annotated[StrictInt, Field(ge=option.least, le=option.most), BeforeValidator(_whole)]
    lines = Annotated[StrictInt, Field(ge=0, le=option.most), BeforeValidator(_whole)]
    kinds: dict[Kind, tuple[Any, Any]] = {
        Kind.BUDGET: (number | BudgetBody | None, None),
        Kind.COUNT: (number | None, None),
        Kind.SHARE: (Share | None, None),
        Kind.FLAG: (StrictBool, False),
        **dict.fromkeys((Kind.TEXT, Kind.DIFF, Kind.TRACE), (Text, "")),
        Kind.MODEL: (ModelName | None, None),
        Kind.MOMENT: (Moment | None, None),
        Kind.TEXTS: (Names, []),
        Kind.GLOBS: (Globs, []),
        Kind.LINES: (lines | Literal["symbol"] | None, None),
        Kind.FRESH: (Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)] | Literal["now"] | None, None),
        Kind.USER: (Who, None),
        Kind.FOCUS: (FocusBody | Name | None, None),
        Kind.HINTS: (HintsBody | None, None),
        Kind.MESSAGES: (Annotated[list[MessageBody], Field(max_length=_MAX_NAMES)], []),
    }
    if option.kind is Kind.CHOICE:
        choices: Any = Literal.__getitem__(tuple(map(str, option.choices)))
        kinds[Kind.CHOICE] = (choices | None, None)
    annotation, default = kinds[option.kind]
    return annotation, Field(default, description=option.help)


class _QuestionBody(Strict):
    query: Annotated[Text, Field(min_length=1)]

    def question(self, kind: type[AnyQuestion]) -> AnyQuestion:
        """The body as a question of the given class."""
        return kind(**{name: _record_from(value) for name, value in self if value is not None})


def _question_model(surface: Surface) -> Any:
    """The model of a question with the options of a route."""
    fields = {option.name: _field(option) for option in options_of(surface)}
    return create_model(surface.name, __base__=_QuestionBody, **fields)  # type: ignore[call-overload]


class SearchBody(_question_model(Surface.HTTP_SEARCH)):  # type: ignore[misc]  # made from the table of options
    """A question, and what may be found."""

    model_config = with_examples("SearchBody")


class ContextBody(_question_model(Surface.HTTP_CONTEXT)):  # type: ignore[misc]
    """A question, its budget, and everything else that decides what belongs into its context (S4's request)."""

    model_config = with_examples("ContextBody")


class ResearchBody(_question_model(Surface.HTTP_RESEARCH)):  # type: ignore[misc]
    """A question to the documents, and how many of their pages its context may have."""

    model_config = with_examples("ResearchBody")


_RECORDS: Final[dict[type, Callable[..., Any]]] = {
    UserBody: User,
    FocusBody: Focus,
    TimeRangeBody: TimeRange,
    HintsBody: ContextHints,
    MessageBody: ConversationMessage,
    BudgetBody: TokenBudget,
}


def _record_from(value: Any) -> Any:
    """The library's record for a model of a body, with tuples for lists; returns plain values unchanged."""
    if isinstance(value, list):
        return tuple(_record_from(element) for element in value)
    record = _RECORDS.get(type(value))
    return record(**{name: _record_from(part) for name, part in value}) if record else value


# -- chunks to assemble


_OPTIONAL: Final[dict[str, Any]] = {
    "file_patterns": Globs | None,
    "languages": Globs | None,
    "context_header": Text | None,
    "context_footer": Text | None,
    "ordering": Ordering | None,
    "tokenizer": ModelName | None,
    "max_tokens": Annotated[StrictInt, Field(ge=1, le=_MAX_BUDGET_TOKENS), BeforeValidator(_whole)],
    "min_relevance": Share,
}
_KINDS: Final[dict[type, Any]] = {
    bool: StrictBool,
    int: Annotated[StrictInt, Field(ge=0, le=_MAX_BUDGET_TOKENS), BeforeValidator(_whole)],
    str: Text,
}


def _options_model() -> type[BaseModel]:
    """`ContextBuildOptions` as a request may give them: all but the folder."""
    defaults = {field.name: field.default for field in fields(ContextBuildOptions) if field.name != "workspace_path"}
    # Every surface counts tokens exactly by default.
    defaults["token_estimation"] = TokenEstimationMethod.TOKENIZER
    types = {name: _OPTIONAL.get(name) or _KINDS.get(type(value), type(value)) for name, value in defaults.items()}
    options: dict[str, Any] = {name: (types[name], value) for name, value in defaults.items()}
    description = "How chunks are assembled: `ContextBuildOptions`."
    return create_model("AssembleOptions", __base__=Strict, __doc__=description, **options)


AssembleOptions = _options_model()


class AssembleBody(Strict):
    """Chunks that a retriever found, to be assembled; `options` are those of `satchel.assemble`."""

    model_config = with_examples("AssembleBody")

    chunks: Annotated[list[dict[str, Any]], Field(max_length=_MAX_CHUNKS)]
    query: Text | None = None
    options: AssembleOptions = AssembleOptions()  # type: ignore[valid-type]
    scores_are: ScoreKind = ScoreKind.RELEVANCE

    def build_options(self) -> ContextBuildOptions:
        """The options for the assembler."""
        return ContextBuildOptions(**dict(self.options))


def _body_kind(body: Any) -> str:
    has_chunks = "chunks" in body if isinstance(body, dict) else isinstance(body, AssembleBody)
    return "chunks" if has_chunks else "question"


QuestionOrChunks = Annotated[
    Annotated[ContextBody, Tag("question")] | Annotated[AssembleBody, Tag("chunks")], Discriminator(_body_kind)
]


class FindBody(Strict):
    """A symbol, a text or a path, and what is to be found of it."""

    model_config = with_examples("FindBody")

    what: Annotated[StrictStr, Field(max_length=500)]
    kind: FindKind = FindKind.DEFINITION
    limit: Annotated[StrictInt, Field(ge=1, le=MAX_MATCHES), BeforeValidator(_whole)] = 100
    include: Globs = []
    exclude: Globs = []
    user: Who = None


class ExpandBody(Strict):
    """The id of a piece, and how many more lines on either side."""

    model_config = with_examples("ExpandBody")

    id: Name
    lines: Annotated[StrictInt, Field(ge=0, le=100_000), BeforeValidator(_whole)] = 0
    user: Who = None


class SourceBody(Strict):
    """What was shown under a number."""

    number: Annotated[StrictInt, Field(ge=1, le=1_000_000), BeforeValidator(_whole)]
    text: Text
    name: Annotated[StrictStr, Field(max_length=4_096)] = ""
    file: Annotated[StrictStr, Field(max_length=4_096)] | None = None
    page: Annotated[StrictInt, Field(ge=1, le=10_000_000), BeforeValidator(_whole)] | None = None


class VerifyBody(Strict):
    """An answer, and what it was written from: a context as it was given, or its sources."""

    model_config = with_examples("VerifyBody")

    answer: Annotated[StrictStr, Field(max_length=16_000_000)]
    context: dict[str, Any] | None = None
    sources: Annotated[list[SourceBody], Field(max_length=_MAX_CHUNKS)] | None = None


class ResearchRequest(Strict):
    """A question to the documents (S3)."""

    model_config = with_examples("ResearchRequest")

    query: Annotated[Text, Field(min_length=1)]
    num_results: Annotated[StrictInt, Field(ge=1, le=100), BeforeValidator(_whole)] = 10
    max_sources: Annotated[StrictInt, Field(ge=1, le=100), BeforeValidator(_whole)] | None = None
    max_tokens: Annotated[StrictInt, Field(ge=1, le=_MAX_BUDGET_TOKENS), BeforeValidator(_whole)] = 10_000
    include_text: StrictBool = True
    include_visual: StrictBool = True
    answer_tokens: Annotated[StrictInt, Field(ge=1, le=100_000), BeforeValidator(_whole)] = 1024
    min_sufficiency: Annotated[float, Field(ge=0, le=1)] | None = None
    stream: StrictBool = False
    user: Who = None


class AnswerModel(BaseModel):
    """An answer's part; more may be added in time."""

    model_config = ConfigDict(extra="allow")


def _answer(model: str, description: str, /, **types: Any) -> type[AnswerModel]:
    """The model of an answer with required fields."""
    required: dict[str, Any] = {name: (kind, ...) for name, kind in types.items()}
    return create_model(model, __base__=AnswerModel, __doc__=description, **required)


def _model_of(record: type, name: str, description: str) -> type[AnswerModel]:
    """A model with the fields of a record."""
    types = get_type_hints(record)
    return _answer(name, description, **{field.name: types[field.name] for field in fields(record)})


_STATUS = "Content of the index; values for the owner only are null for other callers."
StatusAnswer = _model_of(Status, "StatusAnswer", _STATUS)
Progress = _model_of(IndexState, "Progress", "Progress of an index run.")
IndexedAnswer = _model_of(Indexed, "IndexedAnswer", "Report of an index run.")
Answered = _model_of(ResearchAnswer, "Answered", "An answer from the documents (S3).")
CheckedAnswer = create_model(
    "CheckedAnswer",
    __doc__="An answer, its sources, and what they say about it; the report is null where nothing was found.",
    answer=(str, ...),
    sources=(list[dict[str, Any]], ...),
    report=(dict[str, Any] | None, ...),
    sufficiency=(dict[str, Any] | None, ...),
    tokens=(int, ...),
    notes=(list[str], ...),
)
FoundPlaces = create_model(
    "FoundPlaces",
    __doc__="The places that were found, and how many there are in all.",
    what=(str, ...),
    kind=(FindKind, ...),
    total=(int, ...),
    matches=(list[dict[str, Any]], ...),
    notes=(list[str], ...),
)
Expanded = _model_of(Expansion, "Expanded", "The exact text of an id.")
Hit = _model_of(SearchHit, "Hit", "A piece that may answer the question.")
Health = _answer("Health", "Up.", status=Literal["ok"], version=str)
Edited = _answer("Edited", "A commit.", done=int, generation=int)
Problem = _answer(
    "Problem", "An error, as in RFC 9457.", type=str, title=str, status=int, detail=str, code=str, request_id=str
)


class Uploaded(AnswerModel):
    """A file that was taken over, and whether it can be found now."""

    path: str
    bytes: int
    indexed: bool
    note: str | None


class Entry(AnswerModel):
    """What became of one considered piece, and why."""

    id: str
    fate: Literal["kept", "trimmed", "merged", "dropped"]
    reason: str
    relevance: float
    score: float
    tokens: int
    number: int | None
    into: str | None
    collector: str
    signals: dict[str, float]


class Source(AnswerModel):
    """A numbered source, and what was shown of it."""

    number: int
    id: str
    name: str
    type: str
    path: str | None
    line: int | None
    end_line: int | None
    page: int | None
    relevance: float
    section: str
    text: str
    elided: int


class Section(AnswerModel):
    """A titled part of the context."""

    name: str
    title: str
    tokens: int


class SufficiencyAnswer(AnswerModel):
    """How likely a context answers its question, and if not, why."""

    probability: Annotated[float, Field(ge=0, le=1)]
    reasons: list[str]


class ContextAnswer(AnswerModel):
    """A context: the same keys whatever was asked; `kind` says which recipe made it."""

    kind: Literal["chunks", "workspace", "research"]
    text: str
    tokens: int
    budget: int
    estimated: bool
    format: str
    sources: list[Source]
    spans: list[tuple[int, int]]
    sections: list[Section]
    ledger: list[Entry]
    notes: list[str]
    sufficiency: SufficiencyAnswer | None
    provider_content: list[dict[str, Any]]
    statistics: dict[str, Any]


class PayloadAnswer(BaseModel):
    """A workspace context with the names of its specification (`?shape=specification`)."""

    sections: list[dict[str, Any]]
    metadata: dict[str, Any]


class ResultAnswer(BaseModel):
    """A context of chunks with the names of its specification (`?shape=specification`)."""

    context: str
    estimated_tokens: int


ShapedContext: TypeAlias = ContextAnswer | PayloadAnswer | ResultAnswer
"""A context in the shape that was asked for."""


class Found(AnswerModel):
    """What a search found, best first."""

    hits: list[Hit]  # type: ignore[valid-type]  # made from a record
    generation: int
    notes: list[str]


class Report(AnswerModel):
    """What is wrong with an answer's citations."""

    ok: bool
    cited: list[int]
    uncited: list[int]
    findings: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    uncited_sentences: list[dict[str, Any]]
    claims: list[dict[str, Any]]


class BlockAnswer(AnswerModel):
    """A block with what is above and directly below it, as far as the caller may read."""

    block: dict[str, Any]
    trail: list[dict[str, Any]]
    children: list[dict[str, Any]]


class NamedRow(AnswerModel):
    """Something that can be opened, or focused on, by its id; the detail is a path, a type or a day."""

    id: str
    title: str
    detail: str


class ContentsAnswer(AnswerModel):
    """What the caller may read, at most 500 of each kind."""

    documents: list[NamedRow]
    notes: list[NamedRow]
    tasks: list[NamedRow]
    files: list[str]
    questions: list[str]


class DocumentRow(AnswerModel):
    """A document with pages; copies of the same content have the same `doc_id`."""

    path: str
    doc_id: str


class Documents(AnswerModel):
    """The documents that the caller may read."""

    documents: list[DocumentRow]
    uploads: list[str]
