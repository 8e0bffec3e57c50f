"""Which tokenizer counts for which model.

A name is an encoding (`o200k_base`), a model (`gpt-5-mini`, `llama-3.1-70b`), or the path of a tokenizer.json.
Where a maker publishes no tokenizer, the count is another tokenizer's plus the margin declared here: a number
chosen to be on the safe side of what has been reported, never a silent guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final

from satchel.errors import InvalidOption, UnknownTokenizer
from satchel.tokens import families
from satchel.tokens.margin import MarginCounter
from satchel.tokens.openai import ENCODINGS, OpenAICounter

if TYPE_CHECKING:
    from satchel.tokens.counter import TokenCounter


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


_CLAUDE: Final = Tokenization(
    "o200k_base",
    60,
    "Claude 3 and later have no public tokenizer; counts of 1.1 to 1.6 × o200k were reported",
)
_GEMINI: Final = Tokenization("gemma3", 10, "Gemini's tokenizer is not published; Gemma's is of the same family")

# The longest prefix that fits a model's name wins.
_MODELS: Final[dict[str, Tokenization]] = {
    "gpt-5": Tokenization("o200k_base"),
    "gpt-4.5": Tokenization("o200k_base"),
    "gpt-4.1": Tokenization("o200k_base"),
    "gpt-4o": Tokenization("o200k_base"),
    "chatgpt-4o": Tokenization("o200k_base"),
    "gpt-oss": Tokenization("o200k_harmony"),
    "o1": Tokenization("o200k_base"),
    "o3": Tokenization("o200k_base"),
    "o4": Tokenization("o200k_base"),
    "gpt-4": Tokenization("cl100k_base"),
    "gpt-3.5": Tokenization("cl100k_base"),
    "text-embedding-3": Tokenization("cl100k_base"),
    "text-embedding-ada-002": Tokenization("cl100k_base"),
    "claude": _CLAUDE,
    "gemini": _GEMINI,
    "gemma-2": Tokenization("gemma2"),
    "gemma-3": Tokenization("gemma3"),
    "gemma-4": Tokenization("gemma4"),
    "gemma2": Tokenization("gemma2"),
    "gemma3": Tokenization("gemma3"),
    "llama-2": Tokenization("llama2"),
    "llama-3": Tokenization("llama3"),
    "llama2": Tokenization("llama2"),
    "llama3": Tokenization("llama3"),
    "codellama": Tokenization("codellama"),
    "mistral-7b-v0.1": Tokenization("mistral_v1"),
    "mistral-nemo": Tokenization("mistral_v3"),
    "qwen2": Tokenization("qwen2.5"),
    "qwen3": Tokenization("qwen3"),
    "qwen-3": Tokenization("qwen3"),
    "deepseek-chat": Tokenization("deepseek_v3"),
    "deepseek-v3": Tokenization("deepseek_v3"),
    "deepseek-r1": Tokenization("deepseek_v3"),
    "deepseek-r1-distill-llama": Tokenization("llama3"),
    "deepseek-r1-distill-qwen": Tokenization("qwen2.5"),
    "kimi-k2": Tokenization("kimi_k2"),
    "glm-4": Tokenization("glm4"),
    "phi-4": Tokenization("phi4"),
    "olmo-2": Tokenization("olmo2"),
}

# Models whose names begin like one above, but whose vocabulary is another one that is not here.
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
    if name in ENCODINGS or name in _VOCABULARIES or name.endswith(".json"):
        return Tokenization(name)
    folded = _BEFORE_THE_NAME.sub("", name.lower())
    fitting = [prefix for prefix in _MODELS if _names(prefix, folded)]
    if not fitting or folded.startswith(_OTHER_VOCABULARIES):
        near = get_close_matches(folded, [*ENCODINGS, *_MODELS], n=2, cutoff=0.5)
        raise UnknownTokenizer(name, near)
    return _MODELS[max(fitting, key=len)]


def _names(prefix: str, model: str) -> bool:
    """Whether the model is of this family: `o1-mini` is an `o1`, `o1000` is not."""
    rest = model.removeprefix(prefix)
    return model.startswith(prefix) and (not rest or not rest[0].isalnum() or not prefix[-1].isdigit())


_VOCABULARIES: Final = frozenset(t.vocabulary for t in _MODELS.values()) - frozenset(ENCODINGS)


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


def known_models() -> dict[str, Tokenization]:
    """Every model family that has a row here."""
    return dict(_MODELS)
