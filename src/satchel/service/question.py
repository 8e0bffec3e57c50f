"""Questions and their options: each option is declared once, as a field of `Question` or of `ResearchQuestion`.

Made from these declarations: the flags of the command line, the bodies of HTTP requests, the arguments of MCP tools and
the names for `satchel eval --set`. Checked against them by tests: the keyword arguments of the clients, the
inspector's form, and the tables in docs/cli.md and docs/options.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum, Flag, auto
from typing import Any, Final, Literal, TypedDict, TypeVar

from satchel.errors import InvalidOption
from satchel.models.checks import as_count, as_text
from satchel.models.options import FORMATS, Fill, RequestType, TokenBudget
from satchel.models.request import NO_HINTS, ContextHints, ConversationMessage, Focus, User
from satchel.service.settings import Settings

HINTS: Final = "type=todo, since=2026-11-01, until=2026-11-30, include=ID, exclude=ID, depth=N"
MAX_EXPANDED_LINES: Final = 10_000
"""More lines around a piece are the file itself; `expand` returns whole files."""
ASK_MIN_SUFFICIENCY: Final = 0.1
"""Below this `ask` does not ask the model unless `min_sufficiency` says so: of the questions that their collection
answers 1.5 % are below, of those put to a wrong one 64 % (docs/sufficiency.md)."""
_LONG_TEXT_CHARS: Final = 200_000  # of a diff from an agent: some thousand changed lines
CHANGE_QUESTION: Final = "What does this change reach?"
"""The question of a diff or a stack trace that comes without one."""
MAX_BUDGET_TOKENS: Final = 2_000_000
"""Twice the largest context window of today's models."""


class Kind(Enum):
    """Type of an option's values."""

    BUDGET = auto()
    """A number of tokens; programs may give a `TokenBudget`."""
    COUNT = auto()
    SHARE = auto()
    """A number from 0 to 1."""
    FLAG = auto()
    CHOICE = auto()
    TEXT = auto()
    MODEL = auto()
    """The name of a model or an encoding; on the command line also a tokenizer's file."""
    MOMENT = auto()
    """A day, or a moment in ISO 8601."""
    DIFF = auto()
    """The text of a diff, or a revision; on the command line also `-` for stdin."""
    TRACE = auto()
    """A stack trace or a comment; on the command line its file, or `-`."""
    TEXTS = auto()
    GLOBS = auto()
    FRESH = auto()
    """A number of seconds, or `now`."""
    LINES = auto()
    """A number of lines, or `symbol`."""
    USER = auto()
    FOCUS = auto()
    HINTS = auto()
    MESSAGES = auto()


class OptionScope(Flag):
    """Kinds of context an option applies to: pieces of files, the sections of a workspace, or pages of documents."""

    CHUNKS = auto()
    WORKSPACE = auto()
    RESEARCH = auto()


class Surface(Flag):
    """A command, HTTP route, tool or page for asking questions."""

    NOWHERE = 0

    BUILD = auto()
    """`satchel build` and `satchel explain`."""
    ASK = auto()
    SEARCH = auto()
    RESEARCH = auto()
    HTTP_CONTEXT = auto()
    HTTP_SEARCH = auto()
    HTTP_RESEARCH = auto()
    MCP_BUILD = auto()
    MCP_SEARCH = auto()
    EVAL = auto()
    INSPECTOR = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Declaration of an option of a question.

    `default` applies if the caller leaves the option out; on the surfaces `from_settings`, the setting of this name.
    `least` and `most` bound numbers; `tool_range`, for texts `longest`, bounds a model's values in MCP tools. A filter
    limits search results.
    """

    kind: Kind
    help: str
    surfaces: Surface
    recipes: OptionScope = OptionScope.CHUNKS | OptionScope.WORKSPACE
    name: str = ""
    flags: tuple[str, ...] = ()
    default: Any = None
    from_settings: Surface = Surface.NOWHERE
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    least: int = 1
    most: int = 1_000
    tool_range: tuple[int, int] = (1, 50)
    longest: int = 4_000
    is_filter: bool = False


def option(
    kind: Kind,
    text: str,
    surfaces: Surface,
    recipes: OptionScope = OptionScope.CHUNKS | OptionScope.WORKSPACE,
    **more: Any,
) -> Any:
    """Declare a dataclass field as an option; `text` is the help text, `value` the default of the field."""
    value = more.pop("value", _EMPTY.get(kind))
    declared = Option(kind=kind, help=text, surfaces=surfaces, recipes=recipes, **more)
    return field(default=value, metadata={"option": declared})


_EMPTY: Final = {
    Kind.FLAG: False,
    Kind.TEXT: "",
    Kind.DIFF: "",
    Kind.TRACE: "",
    Kind.TEXTS: (),
    Kind.GLOBS: (),
    Kind.MESSAGES: (),
    Kind.HINTS: NO_HINTS,
}
_CONTEXT: Final = Surface.BUILD | Surface.ASK | Surface.HTTP_CONTEXT
_SEARCH: Final = Surface.SEARCH | Surface.HTTP_SEARCH
_FOUND: Final = _CONTEXT | _SEARCH | Surface.EVAL
_WRITING: Final = Surface.BUILD | Surface.HTTP_CONTEXT | Surface.EVAL
_TOOLS: Final = Surface.MCP_BUILD | Surface.MCP_SEARCH
_PAGES: Final = Surface.RESEARCH | Surface.HTTP_RESEARCH
_ANYWHERE: Final = ~Surface.NOWHERE
_BUDGET: Final[dict[str, Any]] = {"flags": ("-b", "--token-budget", "--max-tokens"), "most": MAX_BUDGET_TOKENS}
_BUDGET_HELP: Final = "Hard limit in tokens, counted on the finished text."
_MODEL_HELP: Final = "Model, encoding or tokenizer.json for counting tokens."
_SUFFICIENCY_HELP: Final = (
    "Below this sufficiency (0 to 1) say that nothing here seems to answer, and exit with code 3; `ask` then does not "
    "ask the model (there the default is 0.1, and 0 always asks)."
)
_USER_HELP: Final = "User who asks, in a workspace with several users; only content that this user may read is used."
_FRESH_HELP: Final = "Accept an index checked so many seconds ago; `now` compares every file."
_FOCUS_HELP: Final = "Block, page or path:line that the user works on; its surroundings are included, too."


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its options. Missing options are taken from the settings.

    With a `type`, `focus`, `hints`, `conversation_history`, `truncation` or `system_prompt` the question gets the
    context of a workspace (S4's request); also with a `user` alone, and wherever there are blocks beside the files.
    Filters and rendering options for pieces of files (`include`, `expand`, …) then raise an error.
    """

    query: str
    token_budget: int | TokenBudget | None = option(
        Kind.BUDGET,
        _BUDGET_HELP,
        _CONTEXT | Surface.MCP_BUILD | Surface.INSPECTOR,
        from_settings=_ANYWHERE,
        tool_range=(100, 10_000),
        **_BUDGET,
    )
    format: str | None = option(
        Kind.CHOICE,
        "Output format of the context.",
        _CONTEXT | Surface.MCP_BUILD | Surface.EVAL | Surface.INSPECTOR,
        flags=("-f", "--format"),
        choices=tuple(FORMATS.names()),
        from_settings=_ANYWHERE,
    )
    top_k: int | None = option(
        Kind.COUNT,
        "Maximum number of pieces.",
        _FOUND | Surface.MCP_SEARCH | Surface.INSPECTOR,
        flags=("-k", "--top-k"),
        from_settings=_SEARCH | Surface.MCP_SEARCH,
    )
    model: str | None = option(Kind.MODEL, _MODEL_HELP, _CONTEXT | Surface.EVAL, from_settings=_ANYWHERE)
    min_relevance: float | None = option(
        Kind.SHARE, "Leave out pieces with a lower relevance.", _FOUND | Surface.INSPECTOR
    )
    min_sufficiency: float | None = option(Kind.SHARE, _SUFFICIENCY_HELP, _CONTEXT)
    expand: str | int | None = option(
        Kind.LINES,
        "Show N more lines around each piece, or its whole symbol.",
        _WRITING,
        OptionScope.CHUNKS,
        metavar="N|symbol",
        most=MAX_EXPANDED_LINES,
    )
    include_sources: bool = option(
        Kind.FLAG, "List the sources at the end.", _WRITING, OptionScope.CHUNKS, flags=("--sources/--no-sources",)
    )
    include_scores: bool = option(
        Kind.FLAG, "Show the relevance of each piece.", _WRITING, OptionScope.CHUNKS, flags=("--scores/--no-scores",)
    )
    compact: bool = option(Kind.FLAG, "Write each heading on one line.", _WRITING, OptionScope.CHUNKS)
    fill: str | None = option(
        Kind.CHOICE,
        "Use the budget for what is likely to help, or all of it.",
        _WRITING | Surface.EVAL,
        OptionScope.CHUNKS,
        choices=tuple(Fill),
        default="useful",
    )
    focus: Focus | str | None = option(
        Kind.FOCUS,
        _FOCUS_HELP,
        _CONTEXT | Surface.MCP_BUILD | Surface.INSPECTOR,
        OptionScope.WORKSPACE,
        metavar="ID|PATH:LINE",
    )
    user: User | None = option(Kind.USER, _USER_HELP, _FOUND | Surface.INSPECTOR, metavar="USER")
    type: RequestType | str | None = option(
        Kind.CHOICE,
        "Purpose of the context; sets the defaults.",
        _CONTEXT | Surface.EVAL | Surface.INSPECTOR,
        OptionScope.WORKSPACE,
        choices=tuple(RequestType),
    )
    hints: ContextHints = option(
        Kind.HINTS,
        f"Preferences: {HINTS}.",
        _CONTEXT,
        OptionScope.WORKSPACE,
        flags=("--hint",),
        metavar="NAME=VALUE",
    )
    conversation_history: tuple[ConversationMessage, ...] = option(
        Kind.MESSAGES,
        "The conversation so far: JSON lines with role and content.",
        _CONTEXT,
        OptionScope.WORKSPACE,
        flags=("--history",),
    )
    truncation: str | None = option(
        Kind.CHOICE,
        "How to shorten a text that is too long.",
        _CONTEXT | Surface.EVAL,
        OptionScope.WORKSPACE,
        choices=("keep_start", "keep_end", "extractive", "summarize"),
        default="extractive",
    )
    system_prompt: str = option(
        Kind.TEXT,
        "Instructions at the start of the context, within the budget.",
        _CONTEXT,
        OptionScope.WORKSPACE,
        flags=("--system",),
    )
    include: tuple[str, ...] = option(
        Kind.GLOBS,
        "Only paths that match these globs, e.g. src/**/*.py.",
        _FOUND | _TOOLS | Surface.INSPECTOR,
        OptionScope.CHUNKS,
        metavar="GLOB",
        is_filter=True,
    )
    exclude: tuple[str, ...] = option(
        Kind.GLOBS,
        "No paths that match these globs.",
        _FOUND | _TOOLS | Surface.INSPECTOR,
        OptionScope.CHUNKS,
        metavar="GLOB",
        is_filter=True,
    )
    languages: tuple[str, ...] = option(
        Kind.TEXTS,
        "Only these languages, e.g. python.",
        _FOUND | _TOOLS,
        OptionScope.CHUNKS,
        flags=("--lang",),
        metavar="LANGUAGE",
        is_filter=True,
    )
    block_types: tuple[str, ...] = option(
        Kind.TEXTS,
        "Only these types of blocks, e.g. function, class, section, todo.",
        _FOUND | Surface.MCP_SEARCH,
        OptionScope.CHUNKS,
        flags=("--block-type",),
        metavar="TYPE",
        is_filter=True,
    )
    since: str | datetime | None = option(
        Kind.MOMENT,
        "Only files modified on this day (2026-11-01) or later.",
        _FOUND,
        OptionScope.CHUNKS,
        metavar="DATE",
        is_filter=True,
    )
    until: str | datetime | None = option(
        Kind.MOMENT,
        "Only files modified before the end of this day.",
        _FOUND,
        OptionScope.CHUNKS,
        metavar="DATE",
        is_filter=True,
    )

    diff: str = option(
        Kind.DIFF,
        "What this change reaches (uses, tests, companions): a revision (HEAD, A..B), or a diff's text.",
        Surface.BUILD | Surface.HTTP_CONTEXT | Surface.MCP_BUILD,
        OptionScope.CHUNKS,
        metavar="REV|-",
        longest=_LONG_TEXT_CHARS,
    )
    trace: str = option(
        Kind.TRACE,
        "What this stack trace or review comment is about: its places, their callers and tests.",
        Surface.BUILD | Surface.HTTP_CONTEXT | Surface.MCP_BUILD,
        OptionScope.CHUNKS,
        metavar="FILE|-",
        longest=_LONG_TEXT_CHARS,
    )
    session: str = option(
        Kind.TEXT,
        "Name of this conversation: leave out what it was shown before. Each agent needs a name of its own.",
        Surface.HTTP_CONTEXT | Surface.MCP_BUILD,
        OptionScope.CHUNKS,
    )
    fresh: float | Literal["now"] | None = option(
        Kind.FRESH,
        _FRESH_HELP,
        Surface.HTTP_CONTEXT | Surface.HTTP_SEARCH | _TOOLS,
        metavar="SECONDS|now",
    )

    def __post_init__(self) -> None:
        if self.is_about_change and self.query == "":
            _set(self, "query", CHANGE_QUESTION)
        _check(self)
        if not isinstance(self.token_budget, TokenBudget | None):
            _set(self, "token_budget", as_count(InvalidOption, "token_budget", self.token_budget, 1))
        _set(self, "hints", self.hints or NO_HINTS)
        _set(self, "focus", self.focus or None)
        _set(self, "expand", _expansion(self.expand))

    @property
    def is_about_change(self) -> bool:
        """True if the question is what a change reaches."""
        return bool(self.diff or self.trace)

    @property
    def asks_a_workspace(self) -> bool:
        """True if an option is set for workspace contexts only.

        A `user` alone also asks for a workspace context, but not together with filters for files.
        """
        asks_files = self.user is None or bool(self._changed(OptionScope.CHUNKS))
        return bool(self.workspace_options) or not asks_files

    @property
    def workspace_options(self) -> list[str]:
        """Names of the options that are set and apply to the context of a workspace only."""
        return self._changed(OptionScope.WORKSPACE)

    def _changed(self, scope: OptionScope) -> list[str]:
        """Names of the options for this scope only with values other than the default."""
        names = [option.name for option in OPTIONS[Question] if option.recipes == scope]
        return [name for name in names if getattr(self, name) != _DEFAULTS[name]]

    def refuse_options_for_chunks(self) -> None:
        """Raise InvalidOption for the first option not supported by workspace contexts."""
        for name in self._changed(OptionScope.CHUNKS):
            instead = " (use the hint prioritize_types)" if name == "block_types" else ""
            problem = f"does not apply to the context of a workspace{instead}"
            raise InvalidOption(name, getattr(self, name), problem)

    def asked_by(self, user: User | None) -> Question:
        """The same question from the given user."""
        return replace(self, user=user)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchQuestion:
    """A question to the documents, with limits for the pages in the context.

    Tokens are counted for `model` (default: the setting); `answer_tokens` limits the length of a model's answer.
    """

    query: str
    num_results: int = option(
        Kind.COUNT,
        "Number of pages to search for.",
        _PAGES,
        OptionScope.RESEARCH,
        value=10,
        flags=("-n", "--num-results"),
    )
    max_sources: int = option(
        Kind.COUNT, "Maximum number of pages in the context.", _PAGES, OptionScope.RESEARCH, value=10
    )
    token_budget: int = option(Kind.COUNT, _BUDGET_HELP, _PAGES, OptionScope.RESEARCH, value=10_000, **_BUDGET)
    model: str | None = option(Kind.MODEL, _MODEL_HELP, _PAGES, OptionScope.RESEARCH, from_settings=_ANYWHERE)
    by: str = option(
        Kind.CHOICE,
        "Search pages by their text, by their appearance, or by both.",
        _PAGES,
        OptionScope.RESEARCH,
        value="hybrid",
        choices=("hybrid", "text", "visual"),
    )
    min_sufficiency: float | None = option(Kind.SHARE, _SUFFICIENCY_HELP, _PAGES, OptionScope.RESEARCH)
    user: User | None = option(Kind.USER, _USER_HELP, _PAGES, OptionScope.RESEARCH, metavar="USER")
    answer_tokens: int = 1024

    def __post_init__(self) -> None:
        _check(self)


class QuestionOptions(TypedDict, total=False):
    """The options of a question as keyword arguments, for type checkers."""

    token_budget: int | TokenBudget | None
    format: str | None
    top_k: int | None
    model: str | None
    min_relevance: float | None
    min_sufficiency: float | None
    expand: str | int | None
    include_sources: bool
    include_scores: bool
    compact: bool
    fill: str | None
    focus: Focus | str | None
    user: User | str | None
    type: RequestType | str | None
    hints: ContextHints
    conversation_history: tuple[ConversationMessage, ...]
    truncation: str | None
    system_prompt: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    languages: tuple[str, ...]
    block_types: tuple[str, ...]
    since: str | datetime | None
    until: str | datetime | None
    diff: str
    trace: str
    session: str
    fresh: float | Literal["now"] | None


class ResearchOptions(TypedDict, total=False):
    """The options of a question to the documents as keyword arguments, for type checkers."""

    num_results: int
    max_sources: int
    token_budget: int
    model: str | None
    by: str
    min_sufficiency: float | None
    user: User | str | None
    answer_tokens: int


AnyQuestion = TypeVar("AnyQuestion", Question, ResearchQuestion)


def question_from(kind: type[AnyQuestion], question: str | AnyQuestion, options: Mapping[str, Any]) -> AnyQuestion:
    """Create a question from a text, or change options of an existing question; unknown names raise InvalidOption."""
    known = [field.name for field in fields(kind) if field.name != "query"]
    unknown = sorted(options.keys() - set(known))
    if unknown:
        problem = f"there is no such option; known options: {', '.join(known)}"
        raise InvalidOption(unknown[0], options[unknown[0]], problem)
    return kind(query=question, **options) if isinstance(question, str) else replace(question, **options)


def options_of(surface: Surface) -> tuple[Option, ...]:
    """Options of a surface, each with its default on this surface."""
    taken = [option for declared in OPTIONS.values() for option in declared if option.surfaces & surface]
    return tuple(
        replace(option, default=getattr(_SETTINGS, option.name)) if option.from_settings & surface else option
        for option in taken
    )


def option_list(kind: type[Question | ResearchQuestion]) -> str:
    """List of the options of a kind of question, a line each, for docstrings."""
    rows = []
    for option in OPTIONS[kind]:
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        rows.append(f"    {option.name}: {option.help}{choices}")
    return "\n".join(rows)


def _declared(kind: type[Question | ResearchQuestion]) -> Iterator[Option]:
    for declared in fields(kind):
        option: Option | None = declared.metadata.get("option")
        if option is not None:
            name, value = declared.name, declared.default
            usual = value if value and isinstance(value, int | str) else option.default
            flags = option.flags or (f"--{name.replace('_', '-')}",)
            yield replace(option, name=name, flags=flags, default=usual)


def _check(question: Question | ResearchQuestion) -> None:
    """Raise InvalidOption for the first value of a wrong type or range; convert lists to tuples."""
    if not as_text(InvalidOption, "query", question.query).strip():
        raise InvalidOption("query", question.query, "must not be empty")
    for option in OPTIONS[type(question)]:
        name, value = option.name, getattr(question, option.name)
        match option.kind:
            case Kind.TEXTS | Kind.GLOBS | Kind.MESSAGES:
                if isinstance(value, str):
                    raise InvalidOption(name, value, "must be a list of texts, not a single text")
                if value is not None and not isinstance(value, Iterable):
                    raise InvalidOption(name, value, "must be a list")
                _set(question, name, tuple(value or ()))
            case Kind.COUNT if value is not None:
                _set(question, name, as_count(InvalidOption, name, value, option.least))
            case Kind.TEXT | Kind.DIFF | Kind.TRACE:
                as_text(InvalidOption, name, value)
            case Kind.SHARE if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
                raise InvalidOption(name, value, "must be a number from 0 to 1")
            case Kind.CHOICE if value is not None and value not in option.choices:
                raise InvalidOption(name, value, f"must be one of {', '.join(option.choices)}")
            case Kind.FRESH:
                _set(question, name, _freshness(value))
            case Kind.USER if isinstance(value, str):
                _set(question, name, User(id=value))
            case Kind.USER if not isinstance(value, User | None):
                raise InvalidOption(name, value, "must be a User, or the name of one")


def _freshness(value: object) -> float | Literal["now"] | None:
    if value is None or value == "":
        return None
    if value == "now":
        return "now"
    try:
        seconds = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise InvalidOption("fresh", value, "must be a number of seconds, or now")
    return seconds


def _expansion(value: object) -> str | int | None:
    if value is None or value in ("", "0") or (value == 0 and not isinstance(value, bool)):
        return None
    if value == "symbol":
        return "symbol"
    lines = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 6 else value
    if isinstance(lines, bool) or not isinstance(lines, int) or not 0 < lines <= MAX_EXPANDED_LINES:
        raise InvalidOption("expand", value, "must be a number of lines, or symbol")
    return lines


def _set(question: object, name: str, value: object) -> None:
    object.__setattr__(question, name, value)


_SETTINGS: Final = Settings()
OPTIONS: Final[dict[type[Question | ResearchQuestion], tuple[Option, ...]]] = {
    kind: tuple(_declared(kind)) for kind in (Question, ResearchQuestion)
}
"""The options of each kind of question, in the order in which commands list them."""
_DEFAULTS: Final = {field.name: field.default for field in fields(Question)}
