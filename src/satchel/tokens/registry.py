"""Which tokenizer counts for which model.

A name is an encoding (`o200k_base`), a model (`gpt-5-mini`, `llama-3.1-70b`), or the path of a tokenizer.json.
Where a maker publishes no tokenizer, the count is another tokenizer's plus the margin declared in `models.toml`: a
number chosen to be on the safe side of what has been reported, never a silent guess.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from satchel.errors import InvalidOption, UnknownTokenizer
from satchel.tokens import families
from satchel.tokens.openai import ENCODINGS, OpenAICounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.tokens.counter import TokenCounter


class MarginCounter:
    """Counts with `inner` and adds `margin_percent`, rounded up."""

    exact = False

    def __init__(self, name: str, inner: TokenCounter, margin_percent: int) -> None:
        self.name = name
        self.inner = inner
        self.margin_percent = margin_percent

    def count(self, text: str) -> int:
        """The stand-in's count with the margin on top."""
        return self._with_margin(self.inner.count(text))

    def count_joined(self, parts: Sequence[str], known: dict[str, int]) -> int:
        """The same for the parts joined."""
        return self._with_margin(self.inner.count_joined(parts, known))

    def fits(self, text: str, limit: int) -> bool:
        """Whether the text has at most `limit` tokens with the margin."""
        return limit >= 0 and self.inner.fits(text, self._without_margin(limit))

    def prefix(self, text: str, limit: int) -> str:
        """A longest beginning within `limit` tokens with the margin."""
        return self.inner.prefix(text, self._without_margin(limit))

    def suffix(self, text: str, limit: int) -> str:
        """A longest end within `limit` tokens with the margin."""
        return self.inner.suffix(text, self._without_margin(limit))

    def _with_margin(self, count: int) -> int:
        return -(-count * (100 + self.margin_percent) // 100)

    def _without_margin(self, limit: int) -> int:
        return max(limit, 0) * 100 // (100 + self.margin_percent)


@dataclass(frozen=True, slots=True)
class Tokenization:
    """How a model's tokens are counted: by which vocabulary, and with what margin."""

    vocabulary: str
    margin_percent: int = 0
    note: str = ""

    @property
    def exact(self) -> bool:
        """Whether the count is the model's own."""
        return self.margin_percent == 0


# Models whose names begin like one in `models.toml`, but whose vocabulary is another one that is not here.
_OTHER_VOCABULARIES: Final = ("phi-4-mini", "phi-4-multimodal")

# Publishers and regions that a host puts before a model's own name: `openai/gpt-5`, `us.anthropic.claude-…`.
_BEFORE_THE_NAME: Final = re.compile(
    r"^(?:.*/)?(?:[a-z]{2,4}\.)?(?:anthropic\.|meta\.|google\.|openai\.|meta-(?=llama))?"
)


def counter_for(name: str) -> TokenCounter:
    """The counter for an encoding, a model, or the path of a tokenizer.json."""
    if not isinstance(name, str):
        raise InvalidOption(
            "tokenizer", name, "must be the name of a model or encoding, or the path of a tokenizer.json"
        )
    if name.endswith(".json"):
        return families.from_file(name)
    return _named(name)


def describe_tokenizer(name: str) -> Tokenization:
    """By which vocabulary and with what margin a model's tokens are counted."""
    models = known_models()
    vocabularies = {tokenization.vocabulary for tokenization in models.values()}
    if name in vocabularies or name in ENCODINGS or name.endswith(".json"):
        return Tokenization(name)
    folded = _BEFORE_THE_NAME.sub("", name.lower())
    fitting = [prefix for prefix in models if _names(prefix, folded)]
    if not fitting or folded.startswith(_OTHER_VOCABULARIES):
        near = get_close_matches(folded, [*ENCODINGS, *models], n=2, cutoff=0.5)
        raise UnknownTokenizer(name, near)
    return models[max(fitting, key=len)]


def _names(prefix: str, model: str) -> bool:
    """Whether the model is of this family: `o1-mini` is an `o1`, `o1000` is not."""
    rest = model.removeprefix(prefix)
    return model.startswith(prefix) and (not rest or not rest[0].isalnum() or not prefix[-1].isdigit())


@cache
def _named(name: str) -> TokenCounter:
    how = describe_tokenizer(name)
    if how.vocabulary in ENCODINGS:
        counter: TokenCounter = OpenAICounter(how.vocabulary)
    else:
        counter = families.bundled(name, how.vocabulary)
    if how.margin_percent:
        return MarginCounter(name, counter, how.margin_percent)
    return counter


@cache
def known_models() -> dict[str, Tokenization]:
    """How the tokens of every model family in `models.toml` are counted."""
    table = tomllib.loads(resources.files("satchel.tokens").joinpath("models.toml").read_text("utf-8"))
    return {model: Tokenization(**row) for row in table["tokenization"] for model in row.pop("models")}
