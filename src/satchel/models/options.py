"""Build options, S4's token budget, and the configuration of workspace contexts."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final, Self

from satchel.errors import InvalidOption
from satchel.models.checks import as_choice, as_count, as_unit
from satchel.registry import Registry

# Far above any context window; a larger number is a typing error.
_MAX_BUDGET_TOKENS: Final = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """The total budget and the reservation of each section, in tokens.

    `total` limits the finished text. The other fields are reservations: a section with items is guaranteed its share;
    the unused rest goes to the best remaining items of any section; reservations beyond the total shrink in proportion.
    `system` stays free for the caller's system prompt, or contains the given prompt.
    """

    total: int = 4000
    focus: int = 1500
    semantic: int = 1200
    relations: int = 800
    activity: int = 300
    history: int = 500
    system: int = 200

    def __post_init__(self) -> None:
        for part in fields(self):
            name = f"token_budget.{part.name}"
            tokens = as_count(InvalidOption, name, getattr(self, part.name), 1 if part.name == "total" else 0)
            if tokens > _MAX_BUDGET_TOKENS:
                raise InvalidOption(name, tokens, f"must be at most {_MAX_BUDGET_TOKENS:,}")
            object.__setattr__(self, part.name, tokens)

    @property
    def reserved(self) -> int:
        """The sum of the reservations."""
        return self.focus + self.semantic + self.relations + self.activity + self.history + self.system

    def shrunk(self) -> TokenBudget:
        """The budget with reservations reduced to fit the total."""
        if self.reserved <= self.total:
            return self
        share = self.total / self.reserved
        parts = {f.name: int(getattr(self, f.name) * share) for f in fields(self) if f.name != "total"}
        return TokenBudget(total=self.total, **parts)

    def scaled(self, total: int) -> TokenBudget:
        """A budget with another total and the same proportions."""
        parts = {f.name: getattr(self, f.name) * total // self.total for f in fields(self) if f.name != "total"}
        return TokenBudget(total=total, **parts)


class RequestType(StrEnum):
    """The purpose of a context; each purpose has its own defaults (docs/collectors.md)."""

    ASSIST = "assist"
    CHAT = "chat"
    SEARCH = "search"
    AUTOMATE = "automate"


class _Numbered(StrEnum):
    """An enum whose members may be given by their number, as S0 counts them from 0."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(cls)
        return list(cls)[value] if is_number else None  # type: ignore[call-overload]


class ContextFormat(_Numbered):
    """The format of the rendered context."""

    MARKDOWN = "markdown"
    PLAIN = "plain"
    XML = "xml"
    JSON = "json"


FORMATS: Final[Registry[Any]] = Registry(
    "format",
    "satchel.formats",
    {name.value: f"satchel.assembly.render.{name}:{name.capitalize()}Format" for name in ContextFormat},
)
"""All formats by name: the renderer class, or its location (`module:class`), imported on first use."""


def as_format(name: str, value: object) -> ContextFormat | str:
    """The format with the given name, built-in or from an installed package."""
    with suppress(ValueError):
        return ContextFormat(value)  # type: ignore[arg-type]
    if isinstance(value, str) and value in FORMATS.names():
        return value
    raise InvalidOption(name, value, f"must be one of {', '.join(FORMATS.names())}")


class TokenEstimationMethod(_Numbered):
    """The method of counting tokens: two formulas, or the tokenizer of the model."""

    CHARACTER_BASED = "character_based"
    WORD_BASED = "word_based"
    TOKENIZER = "tokenizer"


class RerankingStrategy(StrEnum):
    """The strategy for rescoring hits before packing."""

    NONE = "none"
    KEYWORD_BOOST = "keyword_boost"
    DIVERSITY = "diversity"
    RECENCY = "recency"
    CROSS_ENCODER = "cross_encoder"


class OverflowPolicy(StrEnum):
    """The handling of a hit that does not fit: skip it and try the next hit, trim it, or stop packing."""

    SKIP = "skip"
    TRUNCATE = "truncate"
    STOP = "stop"


class Packing(StrEnum):
    """The packing of hits into the budget: the most valuable set, or the best hits in order of score."""

    VALUE = "value"
    GREEDY = "greedy"


class Ordering(StrEnum):
    """The order of rendered groups: best first, best at both ends, or the order of the hits."""

    RELEVANCE = "relevance"
    EDGES = "edges"
    GIVEN = "given"


class HeadingStyle(StrEnum):
    """The style of a piece's heading: its facts on separate lines, all on one line, or on one line with the symbol."""

    FULL = "full"
    NAMED = "named"
    COMPACT = "compact"


class Fill(StrEnum):
    """How much of the budget a context from an index may use: what is likely to help, or all of it."""

    USEFUL = "useful"
    ALL = "all"


class ProviderFormat(StrEnum):
    """The provider whose message content is built in addition to the text, or none."""

    NONE = "none"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildOptions:
    """All options of a build; the defaults are the specification's."""

    workspace_path: str = ""
    max_tokens: int = 4000
    max_chunks: int = 10
    min_relevance: float = 0.5

    format: ContextFormat | str = ContextFormat.MARKDOWN
    include_file_headers: bool = True
    include_line_numbers: bool = True
    include_scores: bool = False
    group_by_file: bool = True
    chunk_separator: str = "\n\n"

    expand_context: bool = True
    context_lines: int = 5

    file_patterns: Sequence[str] | None = None
    languages: Sequence[str] | None = None

    context_header: str | None = None
    context_footer: str | None = None

    reranking: RerankingStrategy = RerankingStrategy.KEYWORD_BOOST
    token_estimation: TokenEstimationMethod = TokenEstimationMethod.CHARACTER_BASED

    group_by_type: bool = False
    include_sources: bool = False
    include_code_content: bool = True

    include_citations: bool = False
    heading_style: HeadingStyle = HeadingStyle.FULL
    ordering: Ordering | None = None
    overflow: OverflowPolicy = OverflowPolicy.SKIP
    packing: Packing = Packing.VALUE
    fill: Fill = Fill.USEFUL
    merge_adjacent: bool = True
    provider: ProviderFormat = ProviderFormat.NONE
    cache_breakpoints: bool = False
    tokenizer: str | None = None
    max_sources: int = 10
    entity_content_chars: int = 500
    min_truncated_tokens: int = 100
    min_content_length: int = 50

    def __post_init__(self) -> None:
        for option in fields(self):
            object.__setattr__(self, option.name, _checked(option, getattr(self, option.name)))
        # Markdown and plain pieces begin with a heading, and a heading must start on a new line.
        needs_line = self.format in (ContextFormat.MARKDOWN, ContextFormat.PLAIN)
        if needs_line and not self.chunk_separator.endswith("\n"):
            raise InvalidOption(
                "chunk_separator", self.chunk_separator, f"must end with a newline in the format {self.format}"
            )
        if self.tokenizer is not None:
            if self.token_estimation is TokenEstimationMethod.WORD_BASED:
                raise InvalidOption("tokenizer", self.tokenizer, "cannot be combined with token_estimation=word_based")
            object.__setattr__(self, "token_estimation", TokenEstimationMethod.TOKENIZER)


_MIN_COUNTS: Final = {"max_tokens": 1, "max_chunks": 1, "entity_content_chars": 1}
"""Least values of the numbers that must not be 0."""


def _checked(option: Field[Any], value: Any) -> Any:
    """Validate and convert an option to the type of the default; texts become enums, lists become tuples."""
    name, default = option.name, option.default
    if name == "format":
        return as_format(name, value)
    if isinstance(default, StrEnum):
        return as_choice(InvalidOption, name, value, type(default))
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise InvalidOption(name, value, "must be True or False")
    elif isinstance(default, int):
        return as_count(InvalidOption, name, value, _MIN_COUNTS.get(name, 0))
    elif isinstance(default, float):
        return as_unit(InvalidOption, name, value)
    elif value is None and default is None:
        return None
    elif name == "ordering":
        return as_choice(InvalidOption, name, value, Ordering)
    elif name in ("file_patterns", "languages"):
        texts = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
        if texts is None or not all(isinstance(text, str) for text in texts):
            raise InvalidOption(name, value, "must be a list of strings")
        return texts
    elif not isinstance(value, str) and name != "workspace_path":
        raise InvalidOption(name, value, "must be text")
    return value


# No setting (count, milliseconds, hours, weight) needs more; a larger number is a typing error.
_MAX_SETTING: Final = 1_000_000_000


class TruncationStrategy(StrEnum):
    """The part of a long text that is kept: start, end, important sentences, or a summary."""

    KEEP_START = "keep_start"
    KEEP_END = "keep_end"
    EXTRACTIVE = "extractive"
    SUMMARIZE = "summarize"


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusConfig:
    """Limits of the focus collector: ancestors, siblings, children, and blocks of a focused page."""

    enabled: bool = True
    ancestor_depth: int = 3
    sibling_count: int = 2
    children_limit: int = 5
    page_blocks_limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticConfig:
    """Number of hits and least relevance for the semantic collector; the best `keep_best` hits may be below."""

    enabled: bool = True
    top_k: int = 15
    min_threshold: float = 0.6
    keep_best: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationsConfig:
    """Limits of the relations collector: link steps and blocks."""

    enabled: bool = True
    max_depth: int = 2
    max_items: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityConfig:
    """Limits of the activity collector: edits, views and age."""

    enabled: bool = True
    recent_edit_count: int = 10
    recent_view_count: int = 5
    max_age_hours: float = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """Number of recent turns that the history collector keeps verbatim; older turns are condensed."""

    enabled: bool = True
    max_turns: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorsConfig:
    """Settings of the collectors and their common deadline; a late collector is reported and left out."""

    focus: FocusConfig = FocusConfig()
    semantic: SemanticConfig = SemanticConfig()
    relations: RelationsConfig = RelationsConfig()
    activity: ActivityConfig = ActivityConfig()
    history: HistoryConfig = HistoryConfig()
    deadline_ms: int = 2000
    disabled: tuple[str, ...] = ()
    """Names of disabled collectors from installed packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """Weights of the five ranking signals (S4)."""

    semantic: float = 0.35
    structural: float = 0.25
    recency: float = 0.15
    type_match: float = 0.15
    user_affinity: float = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig:
    """Settings of the ranking."""

    weights: RankingWeights = RankingWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationConfig:
    """Truncation strategy, and the least room (tokens) and least text (characters) for a trimmed item."""

    default_strategy: TruncationStrategy = TruncationStrategy.EXTRACTIVE
    min_content_length: int = 50
    min_tokens: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """The configuration for building workspace contexts (S4)."""

    token_budget: TokenBudget = TokenBudget()
    collectors: CollectorsConfig = CollectorsConfig()
    ranking: RankingConfig = RankingConfig()
    truncation: TruncationConfig = TruncationConfig()
    metadata_hints: bool = True
    citations: bool = True
    by_type: Mapping[RequestType, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self, "")
        for kind, changes in self.by_type.items():
            if kind not in list(RequestType):
                raise InvalidOption("by_type", kind, f"must be one of {', '.join(RequestType)}")
            with_changes(replace(self, by_type={}), _table(f"by_type.{kind}", changes), f"by_type.{kind}.")

    def for_type(self, kind: RequestType) -> ContextConfig:
        """The configuration for a request type: with the built-in defaults of the type, then the caller's changes."""
        defaults = _where_untouched(self, DEFAULT_CONTEXT_CONFIG, _type_defaults(kind))
        changed: ContextConfig = with_changes(with_changes(self, defaults), self.by_type.get(kind, {}))
        return changed


def _where_untouched(config: Any, default: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes for settings that still have their default values."""
    untouched: dict[str, Any] = {}
    for name, value in changes.items():
        current, default_value = getattr(config, name), getattr(default, name)
        if isinstance(value, Mapping):
            untouched[name] = _where_untouched(current, default_value, value)
        elif current == default_value:
            untouched[name] = value
    return untouched


def with_changes(config: Any, changes: Mapping[str, Any], where: str = "") -> Any:
    """A copy of the configuration with nested changes: `{"collectors": {"semantic": {"top_k": 5}}}`."""
    known = {setting.name for setting in fields(config)}
    changed_values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise InvalidOption(
                f"{where}{name}", value, f"there is no such setting; known settings: {', '.join(sorted(known))}"
            )
        before = getattr(config, name)
        if is_dataclass(before) and not isinstance(value, type(before)):
            value = with_changes(before, _table(f"{where}{name}", value), f"{where}{name}.")  # noqa: PLW2901 - made whole
        elif isinstance(before, Mapping):
            _table(f"{where}{name}", value)
        changed_values[name] = value
    return replace(config, **changed_values)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidOption(name, value, "must be a table of settings (names and values)")
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(part, str) for part in value):
        raise InvalidOption(name, value, "must be a list of names")
    return tuple(value)


def _check(config: Any, where: str) -> None:
    for setting in fields(config):
        value, name = getattr(config, setting.name), f"{where}{setting.name}"
        if is_dataclass(value):
            if not isinstance(value, TokenBudget):
                _check(value, f"{name}.")
        elif isinstance(value, (bool, Mapping)):
            continue
        elif setting.name == "disabled":
            object.__setattr__(config, setting.name, _names(name, value))
        elif setting.name == "default_strategy":
            object.__setattr__(config, setting.name, as_choice(InvalidOption, name, value, TruncationStrategy))
        elif not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise InvalidOption(name, value, "must be a number of at least 0")
        elif isinstance(setting.default, int) and value != int(value):
            raise InvalidOption(name, value, "must be a whole number")
        elif value > _MAX_SETTING:
            raise InvalidOption(name, value, f"must be at most {_MAX_SETTING:,}")
        elif setting.name == "min_threshold" and value > 1:
            raise InvalidOption(name, value, "must be from 0 to 1")


@cache
def _type_defaults(kind: RequestType) -> Mapping[str, Any]:
    """The changes of a request type to the defaults."""
    table = tomllib.loads(resources.files("satchel.models").joinpath("request_types.toml").read_text("utf-8"))
    changes: dict[str, Any] = table[kind]
    if "token_budget" in changes:
        changes["token_budget"] = TokenBudget(**changes["token_budget"])
    return changes


DEFAULT_CONTEXT_CONFIG: Final = ContextConfig()
