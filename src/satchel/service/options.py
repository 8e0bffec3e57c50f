"""Every option of a question, declared once, in options.toml.

Made from that table: the flags of the command line, the bodies of HTTP requests, the arguments of MCP tools and the
names that `satchel eval --set` takes. Checked against it by tests: `Question`, the keyword arguments of
`client.build`, the inspector's form, and the tables in docs/cli.md and docs/options.md. A new option is a row there, a
field of `Question`, and the code that uses it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from satchel.models.options import FORMATS, RequestType
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
    tool_range: Sequence[int] = (1, 50)
    is_filter: bool = False

    def __post_init__(self) -> None:
        """Without flags it has one of its own name."""
        object.__setattr__(self, "flags", self.flags or (f"--{self.name.replace('_', '-')}",))


HINTS: Final = "type=todo, since=2026-11-01, until=2026-11-30, include=ID, exclude=ID, depth=N"
_CHOICES: Final[dict[str, Iterable[str]]] = {"formats": FORMATS.names(), "request types": RequestType}
_DEFAULTS: Final = Settings()


def _option(row: dict[str, Any]) -> Option:
    """The option that a row of the table declares."""
    choices = row.pop("choices", ())
    if row.pop("default_from_settings", False):
        row["default"] = getattr(_DEFAULTS, row["name"])
    return Option(
        **row
        | {
            "help": row["help"].replace("{hints}", HINTS),
            "kind": Kind[row["kind"].upper()],
            "choices": tuple(_CHOICES[choices] if isinstance(choices, str) else choices),
            "flags": tuple(row.get("flags", ())),
            "surfaces": frozenset(Surface[name.upper()] for name in row["surfaces"]),
            "recipes": frozenset(Recipe[name.upper()] for name in row["recipes"]),
        }
    )


_TABLE: Final = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))
OPTIONS: Final = tuple(_option(row) for row in _TABLE["option"])
FOR_CHUNKS: Final = tuple(option.name for option in OPTIONS if option.recipes == {Recipe.CHUNKS})
"""The options that only contexts of pieces take."""
FOR_WORKSPACES: Final = tuple(option.name for option in OPTIONS if option.recipes == {Recipe.WORKSPACE})
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
