"""Tokenizers of other families, and anyone's tokenizer.json, through splintr (the extra `tokenizers`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from satchel.errors import TokenizerUnavailable
from satchel.text.visible import show_lone_bytes
from satchel.tokens.counter import CountingByCalls


class FamilyCounter(CountingByCalls):
    """Counts with a loaded tokenizer, special tokens as the ordinary text they are in a context."""

    exact = True

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name = name
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        """How many tokens the text has; a lone surrogate counts as the mark that would be shown for it."""
        try:
            return len(self._tokenizer.encode_ordinary(text))
        except UnicodeEncodeError:
            return self.count(show_lone_bytes(text).text)


def bundled(name: str, vocabulary: str) -> FamilyCounter:
    """The counter for a vocabulary that comes with splintr."""
    return FamilyCounter(name, _splintr(name).Tokenizer.from_pretrained(vocabulary))


def from_file(path: str) -> FamilyCounter:
    """The counter for a Hugging Face tokenizer.json."""
    splintr = _splintr(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TokenizerUnavailable(path, f"cannot be read ({error.strerror})") from error
    try:
        return FamilyCounter(path, splintr.from_json_bytes(data))
    except Exception as error:
        raise TokenizerUnavailable(path, f"is no tokenizer.json that can be used ({error})") from error


def _splintr(name: str) -> Any:
    try:
        import splintr
    except ImportError:
        raise TokenizerUnavailable(name, "needs the extra: pip install '.[tokenizers]' in Satchel's checkout") from None
    return splintr
