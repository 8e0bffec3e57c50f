"""How contexts are made: the options of S0 to S2, and S4's token budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidOption
from satchel.models.checks import as_choice, as_count, as_unit
from satchel.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence


_MOST_TOKENS: Final = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """The whole, and what is reserved of it for each section.

    `total` bounds the finished text. The rest are reservations: a section is sure of its share while it has items;
    what it leaves goes to the best remaining item of any section; where they add up to more than the total, each
    shrinks in proportion. `system` is kept free for the caller's system prompt, or holds the one that is given.
    """

    total: int = 4000
    focus: int = 1500
    semantic: int = 1200
    relations: int = 800
    activity: int = 300
    history: int = 500
    system: int = 200

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 1 if field.name == "total" else 0
            value = as_count(InvalidOption, f"token_budget.{field.name}", getattr(self, field.name), least)
            if value > _MOST_TOKENS:
                raise InvalidOption(f"token_budget.{field.name}", value, f"must be at most {_MOST_TOKENS:,}")
            object.__setattr__(self, field.name, value)

    @property
    def reserved(self) -> int:
        """What the reservations add up to."""
        return self.focus + self.semantic + self.relations + self.activity + self.history + self.system

    def shrunk(self) -> TokenBudget:
        """The same, with reservations that fit into the total."""
        if self.reserved <= self.total:
            return self
        share = self.total / self.reserved
        parts = {f.name: int(getattr(self, f.name) * share) for f in fields(self) if f.name != "total"}
        return TokenBudget(total=self.total, **parts)

    def scaled(self, total: int) -> TokenBudget:
        """The same proportions of another total."""
        parts = {f.name: getattr(self, f.name) * total // self.total for f in fields(self) if f.name != "total"}
        return TokenBudget(total=total, **parts)


class ContextFormat(StrEnum):
    """How the context is written."""

    MARKDOWN = "markdown"
    PLAIN = "plain"
    XML = "xml"
    JSON = "json"


FORMATS: Final[Registry[Any]] = Registry(
    "format",
    "satchel.formats",
    {name.value: f"satchel.assembly.render.{name}:{name.capitalize()}Format" for name in ContextFormat},
)
"""Every format by its name: the class that renders it, ours by where it is, so that only the one in use is loaded."""


def as_format(name: str, value: object) -> ContextFormat | str:
    """The format by its name: one of ours, or one that an installed package adds."""
    if isinstance(value, str) and value in FORMATS.names():
        return next((known for known in ContextFormat if known == value), value)
    raise InvalidOption(name, value, f"must be one of {', '.join(FORMATS.names())}")


class TokenEstimationMethod(StrEnum):
    """How tokens are counted: two formulas, or the tokenizer itself."""

    CHARACTER_BASED = "character_based"
    WORD_BASED = "word_based"
    TOKENIZER = "tokenizer"


class RerankingStrategy(StrEnum):
    """How hits are scored again before the best are chosen."""

    NONE = "none"
    KEYWORD_BOOST = "keyword_boost"
    DIVERSITY = "diversity"
    RECENCY = "recency"
    CROSS_ENCODER = "cross_encoder"


class OverflowPolicy(StrEnum):
    """What happens to a hit that no longer fits: try the next, trim it, or stop there."""

    SKIP = "skip"
    TRUNCATE = "truncate"
    STOP = "stop"


class Packing(StrEnum):
    """How the set that fits is chosen: the most value for the budget, or in order of score."""

    VALUE = "value"
    GREEDY = "greedy"


class Ordering(StrEnum):
    """In which order groups are written: best first, best at both ends, or as given."""

    RELEVANCE = "relevance"
    EDGES = "edges"
    GIVEN = "given"


class HeadingStyle(StrEnum):
    """A heading with its facts on lines of their own, or all on one line."""

    FULL = "full"
    COMPACT = "compact"


class ProviderFormat(StrEnum):
    """Which provider's message content is made beside the text."""

    NONE = "none"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildOptions:
    """Every choice in building a context; the defaults are the specification's."""

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
    merge_adjacent: bool = True
    provider: ProviderFormat = ProviderFormat.NONE
    tokenizer: str | None = None
    max_sources: int = 10
    entity_content_chars: int = 500
    min_truncated_tokens: int = 100
    min_content_length: int = 50

    def __post_init__(self) -> None:
        for option in fields(self):
            object.__setattr__(self, option.name, _checked(option, getattr(self, option.name)))
        self._check_separator()
        self._settle_tokenizer()

    def _settle_tokenizer(self) -> None:
        """Whoever names a tokenizer wants it used."""
        if self.tokenizer is None:
            return
        if self.token_estimation is TokenEstimationMethod.WORD_BASED:
            raise InvalidOption("tokenizer", self.tokenizer, "cannot be used while token_estimation is word_based")
        object.__setattr__(self, "token_estimation", TokenEstimationMethod.TOKENIZER)

    def _check_separator(self) -> None:
        separator = self.chunk_separator
        # Markdown and plain pieces begin with a heading, which is one only at the start of a line.
        needs_line = self.format in (ContextFormat.MARKDOWN, ContextFormat.PLAIN)
        if needs_line and not separator.endswith("\n"):
            raise InvalidOption("chunk_separator", separator, f"must end with a newline in {self.format}")


_LEAST: Final = {"max_tokens": 1, "max_chunks": 1, "entity_content_chars": 1}
"""The numbers that must not be 0."""


def _checked(option: Field[Any], value: Any) -> Any:
    """The value of an option as its default's type has it; enums are also taken by their text, lists as tuples."""
    name, default = option.name, option.default
    if name == "format":
        return as_format(name, value)
    if isinstance(default, StrEnum):
        return as_choice(InvalidOption, name, value, type(default))
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise InvalidOption(name, value, "must be True or False")
    elif isinstance(default, int):
        return as_count(InvalidOption, name, value, _LEAST.get(name, 0))
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
