"""Every option of a question, declared once.

Made from this table: the flags of the command line, the bodies of HTTP requests, the arguments of MCP tools and the
names that `satchel eval --set` takes. Checked against it by tests: `Question`, the keyword arguments of
`client.build`, the inspector's form, and the tables in docs/cli.md and docs/options.md. A new option is a row here, a
field of `Question`, and the code that uses it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from satchel.models.options import FORMATS
from satchel.models.request import RequestType
from satchel.service.settings import Settings


class Kind(Enum):
    """What values an option takes."""

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
    TEXTS = auto()
    GLOBS = auto()
    LINES = auto()
    """A number of lines, or `symbol`."""
    USER = auto()
    FOCUS = auto()
    HINTS = auto()
    MESSAGES = auto()


class Recipe(Enum):
    """Which context is built: pieces of files, or the sections of a workspace."""

    CHUNKS = auto()
    WORKSPACE = auto()


class Surface(Enum):
    """Where questions are asked."""

    BUILD = auto()
    """`satchel build` and `satchel explain`."""
    ASK = auto()
    SEARCH = auto()
    HTTP_CONTEXT = auto()
    HTTP_SEARCH = auto()
    MCP_BUILD = auto()
    MCP_SEARCH = auto()
    EVAL = auto()
    INSPECTOR = auto()


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a question.

    `default` is what counts if neither the caller nor the settings say otherwise; `least` and `most` bound numbers,
    `tool_range` bounds what a model may ask for. A filter says what may be found.
    """

    name: str
    kind: Kind
    help: str
    _: KW_ONLY
    surfaces: frozenset[Surface]
    recipes: frozenset[Recipe]
    flags: tuple[str, ...] = ()
    default: Any = None
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    least: int = 1
    most: int = 1_000
    tool_range: tuple[int, int] = (1, 50)
    is_filter: bool = False

    def __post_init__(self) -> None:
        """Without flags it has one of its own name."""
        object.__setattr__(self, "flags", self.flags or (f"--{self.name.replace('_', '-')}",))


_BOTH: Final = frozenset(Recipe)
_CHUNKS: Final = frozenset({Recipe.CHUNKS})
_WORKSPACE: Final = frozenset({Recipe.WORKSPACE})
_DEFAULTS: Final = Settings()
HINTS: Final = "type=todo, since=2026-11-01, until=2026-11-30, include=ID, exclude=ID, depth=N"

_WRITTEN: Final = frozenset({Surface.BUILD, Surface.HTTP_CONTEXT, Surface.EVAL})
_CONTEXT: Final = _WRITTEN | {Surface.ASK}
_SEARCH: Final = frozenset({Surface.SEARCH, Surface.HTTP_SEARCH})
_FOUND: Final = _CONTEXT | _SEARCH
_TOOL: Final = frozenset({Surface.MCP_BUILD})
_SEARCH_TOOL: Final = frozenset({Surface.MCP_SEARCH})
_TOOLS: Final = _TOOL | _SEARCH_TOOL
_TOP_K: Final = ("-k", "--top-k")
_PAGE: Final = frozenset({Surface.INSPECTOR})
_EVAL: Final = frozenset({Surface.EVAL})

_context_option = partial(Option, surfaces=_CONTEXT, recipes=_BOTH)
_chunk_style = partial(Option, surfaces=_WRITTEN, recipes=_CHUNKS)
_workspace_option = partial(Option, surfaces=_CONTEXT - _EVAL, recipes=_WORKSPACE)
_filter = partial(Option, surfaces=_FOUND, recipes=_CHUNKS, is_filter=True)

OPTIONS: Final = (
    _context_option(
        "token_budget",
        Kind.BUDGET,
        "Hard limit in tokens, counted on the finished text.",
        flags=("-b", "--token-budget", "--max-tokens"),
        default=_DEFAULTS.token_budget,
        surfaces=_CONTEXT - _EVAL | _TOOL | _PAGE,
        most=2_000_000,
        tool_range=(100, 10_000),
    ),
    _context_option(
        "format",
        Kind.CHOICE,
        "How the context is written.",
        flags=("-f", "--format"),
        choices=FORMATS.names(),
        default=_DEFAULTS.format,
        surfaces=_CONTEXT | _TOOL | _PAGE,
    ),
    _context_option("top_k", Kind.COUNT, "At most this many pieces.", flags=_TOP_K, surfaces=_CONTEXT | _PAGE),
    _context_option(
        "top_k", Kind.COUNT, "How many.", flags=_TOP_K, default=_DEFAULTS.top_k, surfaces=_SEARCH | _SEARCH_TOOL
    ),
    _context_option("model", Kind.MODEL, "Model, encoding or tokenizer.json to count for.", default=_DEFAULTS.model),
    _context_option("min_relevance", Kind.SHARE, "Leave out pieces below this.", surfaces=_FOUND | _PAGE),
    _chunk_style(
        "expand",
        Kind.LINES,
        "Show N more lines around each piece, or all of its symbol.",
        metavar="N|symbol",
        most=10_000,
    ),
    _chunk_style("include_sources", Kind.FLAG, "List the sources at the end.", flags=("--sources/--no-sources",)),
    _chunk_style("include_scores", Kind.FLAG, "Give each piece's relevance.", flags=("--scores/--no-scores",)),
    _chunk_style("compact", Kind.FLAG, "Headings on one line."),
    _workspace_option(
        "focus",
        Kind.FOCUS,
        "What is being worked on: a block's id, a page or path:line; gives what is around it, too.",
        metavar="ID|PATH:LINE",
        surfaces=_CONTEXT - _EVAL | _TOOL | _PAGE,
    ),
    _context_option(
        "user",
        Kind.USER,
        "Who asks, where a workspace has several users; only what they may read is shown.",
        metavar="USER",
        surfaces=_FOUND | _PAGE,
    ),
    _workspace_option(
        "type",
        Kind.CHOICE,
        "What the context is for; it decides the defaults.",
        choices=tuple(RequestType),
        surfaces=_CONTEXT | _PAGE,
    ),
    _workspace_option("hints", Kind.HINTS, f"What to prefer: {HINTS}.", flags=("--hint",), metavar="NAME=VALUE"),
    _workspace_option(
        "conversation_history",
        Kind.MESSAGES,
        "The conversation so far: JSON lines with role and content.",
        flags=("--history",),
    ),
    _workspace_option(
        "truncation",
        Kind.CHOICE,
        "What is kept of a text that is too long.",
        choices=("keep_start", "keep_end", "extractive", "summarize"),
        default="extractive",
        surfaces=_CONTEXT,
    ),
    _workspace_option(
        "system_prompt", Kind.TEXT, "Instructions to write first, within the budget.", flags=("--system",)
    ),
    _filter(
        "include",
        Kind.GLOBS,
        "Only paths that match these globs, e.g. src/**/*.py.",
        metavar="GLOB",
        surfaces=_FOUND | _TOOLS | _PAGE,
    ),
    _filter(
        "exclude", Kind.GLOBS, "No paths that match these globs.", metavar="GLOB", surfaces=_FOUND | _TOOLS | _PAGE
    ),
    _filter(
        "languages",
        Kind.TEXTS,
        "Only these languages, e.g. python.",
        flags=("--lang",),
        metavar="LANGUAGE",
        surfaces=_FOUND | _TOOLS,
    ),
    _filter(
        "block_types",
        Kind.TEXTS,
        "Only these types of blocks, e.g. function, class, section, todo.",
        flags=("--block-type",),
        metavar="TYPE",
        surfaces=_FOUND | _SEARCH_TOOL,
    ),
    _filter("since", Kind.MOMENT, "Only files modified on this day (2026-11-01) or later.", metavar="DATE"),
    _filter("until", Kind.MOMENT, "Only files modified before the end of this day.", metavar="DATE"),
)

FOR_CHUNKS: Final = tuple(option.name for option in OPTIONS if option.recipes == _CHUNKS)
"""The options that only contexts of pieces take."""
FOR_WORKSPACES: Final = tuple(option.name for option in OPTIONS if option.recipes == _WORKSPACE)
"""The options that only contexts of workspaces take."""
FILTERS: Final = tuple(option for option in OPTIONS if option.is_filter)


def options_of(surface: Surface) -> tuple[Option, ...]:
    """The options that a surface takes."""
    return tuple(option for option in OPTIONS if surface in option.surfaces)


def option_list() -> str:
    """The options that contexts take, a line each, for docstrings."""
    rows = []
    for option in options_of(Surface.HTTP_CONTEXT):
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        rows.append(f"    {option.name}: {option.help}{choices}")
    return "\n".join(rows)
