"""Registry of token counters by model, encoding and estimation method.

A name is an encoding (`o200k_base`), a model (`gpt-5-mini`, `llama-3.1-70b`), or the path of a tokenizer.json.
Where a maker publishes no tokenizer, the count is another tokenizer's plus the margin declared in `models.toml`: a
number chosen to be on the safe side of what has been reported, never a silent guess.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from satchel.errors import InvalidOption, TokenizerUnavailable, UnknownTokenizer
from satchel.models.options import TokenEstimationMethod
from satchel.text.visible import show_lone_bytes
from satchel.tokens.counter import CountingByCalls, TokenCounter
from satchel.tokens.openai import ENCODINGS, OpenAICounter


@dataclass(eq=False)
class FamilyCounter(CountingByCalls):
    """Counts with a loaded tokenizer; special tokens count as the ordinary text they are in a context."""

    name: str
    tokenizer: Any
    exact = True

    def count(self, text: str) -> int:
        """Number of tokens in the text; a lone surrogate counts as the visible mark in its place."""
        try:
            return len(self.tokenizer.encode_ordinary(text))
        except UnicodeEncodeError:
            return self.count(show_lone_bytes(text).text)


def bundled(name: str, vocabulary: str) -> FamilyCounter:
    """The counter for a vocabulary bundled with splintr."""
    return FamilyCounter(name, _splintr(name).Tokenizer.from_pretrained(vocabulary))


def from_file(path: str) -> FamilyCounter:
    """The counter for a Hugging Face tokenizer.json."""
    splintr = _splintr(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TokenizerUnavailable(path, f"the file cannot be read ({error.strerror})") from error
    try:
        return FamilyCounter(path, splintr.from_json_bytes(data))
    except Exception as error:
        raise TokenizerUnavailable(path, f"the file is not a usable tokenizer.json ({error})") from error


def _splintr(name: str) -> Any:
    try:
        import splintr
    except ImportError:
        raise TokenizerUnavailable(
            name,
            "needs the package splintr-rs, which is missing: install Satchel again (pip install . in its checkout)",
        ) from None
    return splintr


@dataclass(eq=False)
class MarginCounter:
    """Counts with `inner` and adds `margin_percent`, rounded up."""

    name: str
    inner: TokenCounter
    margin_percent: int
    exact = False

    def count(self, text: str) -> int:
        """The inner counter's count plus the margin, rounded up."""
        return self._with_margin(self.inner.count(text))

    def count_joined(self, parts: Sequence[str], known: dict[str, int]) -> int:
        """The count of the parts joined, plus the margin."""
        return self._with_margin(self.inner.count_joined(parts, known))

    def fits(self, text: str, limit: int) -> bool:
        """True if the text has at most `limit` tokens, margin included."""
        return limit >= 0 and self.inner.fits(text, self._without_margin(limit))

    def prefix(self, text: str, limit: int) -> str:
        """A longest prefix within `limit` tokens, margin included."""
        return self.inner.prefix(text, self._without_margin(limit))

    def suffix(self, text: str, limit: int) -> str:
        """A longest suffix within `limit` tokens, margin included."""
        return self.inner.suffix(text, self._without_margin(limit))

    def _with_margin(self, count: int) -> int:
        return -(-count * (100 + self.margin_percent) // 100)

    def _without_margin(self, limit: int) -> int:
        return max(limit, 0) * 100 // (100 + self.margin_percent)


@dataclass(frozen=True, slots=True)
class Tokenization:
    """The vocabulary and margin for counting a model's tokens."""

    vocabulary: str
    margin_percent: int = 0
    note: str = ""

    @property
    def exact(self) -> bool:
        """True if the count is the model's own."""
        return self.margin_percent == 0


# Models with a prefix from `models.toml`, but with a vocabulary that is not bundled.
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
        return from_file(name)
    return _counter_named(name)


def describe_tokenizer(name: str) -> Tokenization:
    """The vocabulary and margin for counting the tokens of a model, encoding or tokenizer.json."""
    models = known_models()
    vocabularies = {tokenization.vocabulary for tokenization in models.values()}
    if name in vocabularies or name in ENCODINGS or name.endswith(".json"):
        return Tokenization(name)
    folded = _BEFORE_THE_NAME.sub("", name.lower())
    fitting = [prefix for prefix in models if _is_in_family(prefix, folded)]
    if not fitting or folded.startswith(_OTHER_VOCABULARIES):
        near = get_close_matches(folded, [*ENCODINGS, *models], n=2, cutoff=0.5)
        raise UnknownTokenizer(name, near)
    return models[max(fitting, key=len)]


def _is_in_family(prefix: str, model: str) -> bool:
    """True if the model belongs to the family: `o1-mini` is an `o1`, `o1000` is not."""
    rest = model.removeprefix(prefix)
    return model.startswith(prefix) and (not rest or not rest[0].isalnum() or not prefix[-1].isdigit())


@cache
def _counter_named(name: str) -> TokenCounter:
    tokenization = describe_tokenizer(name)
    if tokenization.vocabulary in ENCODINGS:
        counter: TokenCounter = OpenAICounter(tokenization.vocabulary)
    else:
        counter = bundled(name, tokenization.vocabulary)
    if tokenization.margin_percent:
        return MarginCounter(name, counter, tokenization.margin_percent)
    return counter


@cache
def known_models() -> dict[str, Tokenization]:
    """Tokenization of every model family in `models.toml`."""
    table = tomllib.loads(resources.files("satchel.tokens").joinpath("models.toml").read_text("utf-8"))
    return {model: Tokenization(**row) for row in table["tokenization"] for model in row.pop("models")}


CHARS_PER_TOKEN: Final = 4.0  # required by the specification (S1.tokens.constants)
WORDS_PER_TOKEN: Final = 0.75  # required by the specification (S1.tokens.constants)
SPECIAL_CHARS_PER_TOKEN: Final = 3  # required by the specification (S1.tokens.special-characters)
LONG_WORD_CHARS: Final = 10  # required by the specification (S1.tokens.long-words)

_LETTER_OR_DIGIT: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"})
_ASCII_ORDINARY: Final = bytes(c for c in range(128) if chr(c).isalnum() or c in b"\t\n\x0b\x0c\r ")
# Python calls the four separators U+001C to U+001F white space; Unicode and the specification's language do not.
_NO_SPACES: Final = "\x1c\x1d\x1e\x1f"
_WHITE_SPACE: Final = re.compile(rf"[^\S{_NO_SPACES}]+")


def character_based(text: str) -> int:
    """Token estimate: a token per four characters, plus a token per three that are neither letter, digit nor space."""
    return math.ceil(len(text) / CHARS_PER_TOKEN) + special_characters(text) // SPECIAL_CHARS_PER_TOKEN


def word_based(text: str) -> int:
    """Token estimate: a token per 0.75 words; a word over ten characters counts twice, mixed case counts once more."""
    count = 0
    for word in _WHITE_SPACE.split(text):
        if word:
            count += 1 + (len(word) > LONG_WORD_CHARS) + has_mixed_case(word)
    return math.ceil(count / WORDS_PER_TOKEN)


def special_characters(text: str) -> int:
    """Number of characters except letters, digits and white space."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_ORDINARY))
    return sum(times for char, times in Counter(text).items() if _is_special(char))


def has_mixed_case(word: str) -> bool:
    """True if the word has both an upper-case and a lower-case letter."""
    return not (word.islower() or word.isupper()) and any(map(str.isupper, word)) and any(map(str.islower, word))


def _is_special(char: str) -> bool:
    return (not char.isspace() or char in _NO_SPACES) and unicodedata.category(char) not in _LETTER_OR_DIGIT


@dataclass(eq=False)
class FormulaCounter(CountingByCalls):
    """Estimates tokens by a formula."""

    name: str
    formula: Callable[[str], int]
    max_chars_per_token: int | None = None
    exact = False

    def count(self, text: str) -> int:
        """The estimated number of tokens."""
        return self.formula(text)


_CHARACTERS = FormulaCounter("character_based", character_based, max_chars_per_token=4)
_WORDS = FormulaCounter("word_based", word_based)

DEFAULT_TOKENIZER = "o200k_base"


def counter_for_method(method: TokenEstimationMethod, tokenizer: str | None = None) -> TokenCounter:
    """The counter for a method; `tokenizer` names the tokenizer for the exact method."""
    if method is TokenEstimationMethod.CHARACTER_BASED:
        return _CHARACTERS
    if method is TokenEstimationMethod.WORD_BASED:
        return _WORDS
    return counter_for(tokenizer or DEFAULT_TOKENIZER)


def estimate_tokens(
    text: str,
    method: TokenEstimationMethod = TokenEstimationMethod.CHARACTER_BASED,
    tokenizer: str | None = None,
) -> int:
    """Number of tokens in the text, by the given method or the named tokenizer."""
    if tokenizer is not None and method == TokenEstimationMethod.WORD_BASED:
        raise InvalidOption("tokenizer", tokenizer, "cannot be combined with the method word_based")
    if tokenizer is not None:
        method = TokenEstimationMethod.TOKENIZER
    return counter_for_method(TokenEstimationMethod(method), tokenizer).count(text)
