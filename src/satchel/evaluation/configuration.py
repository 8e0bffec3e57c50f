"""A configuration to evaluate: settings of the workspace, and what is said with every question."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.service.question import Question
from satchel.service.settings import Settings
from satchel.tokens.registry import describe_tokenizer

_OF_QUESTIONS: Final = {
    "format": str,
    "model": str,
    "top_k": int,
    "min_relevance": float,
    "include": tuple,
    "exclude": tuple,
    "languages": tuple,
    "block_types": tuple,
    "since": str,
    "until": str,
    "expand": str,
    "include_sources": bool,
    "include_scores": bool,
    "compact": bool,
    "user": str,
    "type": str,
    "truncation": str,
}
_OF_INDEXES: Final = frozenset(
    "embedder embedder_url max_file_bytes max_document_bytes documents ocr ocr_languages history_commits".split()
)
_NOT_HERE: Final = frozenset({"token_budget", "index_dir", "store", "workers", "ingest_on"})
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What is set for one side of a comparison."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def needs_own_index(self) -> bool:
        """Whether something is set that an index is made with: then it must not be the user's own."""
        return bool(_OF_INDEXES & self.settings.keys())


def configuration_from(given: Iterable[str], *, usual_name: str) -> Configuration:
    """The configuration that some `NAME=VALUE` stand for; what questions can say comes before what is set once."""
    settings: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise InvalidOption("set", one, "must be NAME=VALUE, as in min_relevance=0.2")
        name = name.strip()
        if name in _OF_QUESTIONS:
            told[name] = _typed(name, value)
        elif name in Settings.__slots__ and name not in _NOT_HERE:
            settings[name] = value
        else:
            raise InvalidOption("set", one, _unknown(name))
    # Whatever is wrong with it is said before anything is asked.
    Question(query="?", **told)
    if "model" in told:
        describe_tokenizer(told["model"])
    return Configuration(name=", ".join(given) or usual_name, settings=settings, told=told)


def _unknown(name: str) -> str:
    if name == "token_budget":
        return "say --budgets 1000,2000 to choose the budgets"
    known = sorted({*_OF_QUESTIONS, *Settings.__slots__} - _NOT_HERE)
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no such setting; {hint}known are {', '.join(known)}"


def _typed(name: str, value: str) -> Any:
    wanted = _OF_QUESTIONS[name]
    try:
        if wanted is bool:
            return _TRUTHS[value.strip().lower()]
        if wanted is tuple:
            return tuple(part.strip() for part in value.split(",") if part.strip())
        if name == "expand" and value.isdecimal():
            return int(value)
        return wanted(value)
    except (KeyError, ValueError):
        kinds = {bool: "true or false", int: "a whole number", float: "a number"}
        raise InvalidOption(name, value, f"must be {kinds[wanted]}") from None
