"""A configuration to evaluate: settings of the workspace, and what is said with every question."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.service.question import Kind, Option, Question, Surface, options_of
from satchel.service.settings import Settings
from satchel.tokens.registry import describe_tokenizer

_OF_QUESTIONS: Final = {option.name: option for option in options_of(Surface.EVAL)}
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
            told[name] = _typed(_OF_QUESTIONS[name], value)
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


def _typed(option: Option, value: str) -> Any:
    try:
        match option.kind:
            case Kind.FLAG:
                return _TRUTHS[value.strip().lower()]
            case Kind.TEXTS | Kind.GLOBS:
                return tuple(part.strip() for part in value.split(",") if part.strip())
            case Kind.COUNT:
                return int(value)
            case Kind.SHARE:
                return float(value)
            case Kind.LINES if value.isdecimal():
                return int(value)
            case _:
                return value
    except (KeyError, ValueError):
        expected = {Kind.FLAG: "true or false", Kind.COUNT: "a whole number", Kind.SHARE: "a number"}
        raise InvalidOption(option.name, value, f"must be {expected[option.kind]}") from None
