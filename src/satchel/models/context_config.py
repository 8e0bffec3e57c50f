"""How contexts are built for requests: what each collector looks for, how items are weighed and cut."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.models.checks import as_choice
from satchel.models.options import TokenBudget
from satchel.models.request import RequestType

_MOST: Final = 1_000_000_000


class TruncationStrategy(StrEnum):
    """What is kept of a text that is too long."""

    KEEP_START = "keep_start"
    KEEP_END = "keep_end"
    EXTRACTIVE = "extractive"
    SUMMARIZE = "summarize"


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusConfig:
    """How far around the focus is looked; of a focused page or database, its first blocks are taken."""

    enabled: bool = True
    ancestor_depth: int = 3
    sibling_count: int = 2
    children_limit: int = 5
    page_blocks_limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticConfig:
    """How many hits are asked for, and how relevant they have to be; the best `keep_best` are kept all the same."""

    enabled: bool = True
    top_k: int = 20
    min_threshold: float = 0.6
    keep_best: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationsConfig:
    """How many steps links are followed, and how many blocks are taken."""

    enabled: bool = True
    max_depth: int = 2
    max_items: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityConfig:
    """How much of what the user did lately is taken."""

    enabled: bool = True
    recent_edit_count: int = 10
    recent_view_count: int = 5
    max_age_hours: float = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """How many of the last turns are taken as they are; older ones are condensed."""

    enabled: bool = True
    max_turns: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorsConfig:
    """The collectors, and how long they may take side by side; one that takes longer is reported and done without."""

    focus: FocusConfig = FocusConfig()
    semantic: SemanticConfig = SemanticConfig()
    relations: RelationsConfig = RelationsConfig()
    activity: ActivityConfig = ActivityConfig()
    history: HistoryConfig = HistoryConfig()
    deadline_ms: int = 2000
    disabled: tuple[str, ...] = ()
    """The names of collectors of installed packages that are not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """How much each signal counts."""

    semantic: float = 0.35
    structural: float = 0.25
    recency: float = 0.15
    type_match: float = 0.15
    user_affinity: float = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig:
    """How items are weighed."""

    weights: RankingWeights = RankingWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationConfig:
    """How a text that does not fit is cut: never for less than `min_tokens` of room or `min_content_length` of text."""

    default_strategy: TruncationStrategy = TruncationStrategy.EXTRACTIVE
    min_content_length: int = 50
    min_tokens: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """Everything about building contexts that can be set once."""

    token_budget: TokenBudget = TokenBudget()  # noqa: RUF009 - frozen
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
        """The configuration for requests of a type: our changes for it, then the caller's."""
        ours = _where_untouched(self, DEFAULT_CONTEXT_CONFIG, _type_defaults(kind))
        changed: ContextConfig = with_changes(with_changes(self, ours), self.by_type.get(kind, {}))
        return changed


def _where_untouched(config: Any, default: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the changes that concern settings which nobody has set otherwise."""
    kept: dict[str, Any] = {}
    for name, value in changes.items():
        mine, usual = getattr(config, name), getattr(default, name)
        if isinstance(value, Mapping):
            kept[name] = _where_untouched(mine, usual, value)
        elif mine == usual:
            kept[name] = value
    return kept


def with_changes(config: Any, changes: Mapping[str, Any], where: str = "") -> Any:
    """A configuration with nested changes: `{"collectors": {"semantic": {"top_k": 5}}}`."""
    known = {one.name for one in fields(config)}
    new: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise InvalidOption(
                f"{where}{name}", value, f"there is no such setting; known are {', '.join(sorted(known))}"
            )
        before = getattr(config, name)
        if is_dataclass(before) and not isinstance(value, type(before)):
            value = with_changes(before, _table(f"{where}{name}", value), f"{where}{name}.")  # noqa: PLW2901 - made whole
        elif isinstance(before, Mapping):
            _table(f"{where}{name}", value)
        new[name] = value
    return replace(config, **new)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidOption(name, value, "must be a table of settings")
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(part, str) for part in value):
        raise InvalidOption(name, value, "must be a list of names")
    return tuple(value)


def _check(config: Any, where: str) -> None:
    for one in fields(config):
        value, name = getattr(config, one.name), f"{where}{one.name}"
        if is_dataclass(value):
            if not isinstance(value, TokenBudget):
                _check(value, f"{name}.")
        elif isinstance(value, (bool, Mapping)):
            continue
        elif one.name == "disabled":
            object.__setattr__(config, one.name, _names(name, value))
        elif one.name == "default_strategy":
            object.__setattr__(config, one.name, as_choice(InvalidOption, name, value, TruncationStrategy))
        elif not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise InvalidOption(name, value, "must be a number of at least 0")
        elif isinstance(one.default, int) and value != int(value):
            raise InvalidOption(name, value, "must be a whole number")
        elif value > _MOST:
            raise InvalidOption(name, value, f"must be at most {_MOST:,}")
        elif one.name == "min_threshold" and value > 1:
            raise InvalidOption(name, value, "must be from 0 to 1")


@cache
def _type_defaults(kind: RequestType) -> Mapping[str, Any]:
    """What a request type changes in the defaults."""
    table = tomllib.loads(resources.files("satchel.models").joinpath("request_types.toml").read_text("utf-8"))
    changes: dict[str, Any] = table[kind]
    if "token_budget" in changes:
        changes["token_budget"] = TokenBudget(**changes["token_budget"])
    return changes


DEFAULT_CONTEXT_CONFIG: Final = ContextConfig()
