"""NAME=VALUE flags of the command line: a configuration to evaluate, and minimum values of figures."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.evaluation.judging import BUDGET_FIGURES, RANK_FIGURES
from satchel.evaluation.outcome import Evaluation
from satchel.service.question import Kind, Option, Question, Surface, options_of
from satchel.service.settings import Settings
from satchel.tokens.registry import describe_tokenizer

_OF_QUESTIONS: Final = {option.name: option for option in options_of(Surface.EVAL)}
_OF_INDEXES: Final = frozenset(
    "embedder embedder_url max_file_bytes max_document_bytes documents ocr ocr_languages history_commits".split()
)
_NOT_HERE: Final = frozenset({"token_budget", "index_dir", "store", "workers", "ingest_on"})
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# How a value is read from a text, and what to say where it is none.
_CONVERSIONS: Final[dict[Kind, tuple[Callable[[str], Any], str]]] = {
    Kind.FLAG: (lambda value: _TRUTHS[value.strip().lower()], "true or false"),
    Kind.COUNT: (int, "a whole number"),
    Kind.SHARE: (float, "a number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Settings of the workspace and options of every question, for one side of a comparison."""

    name: str
    settings: dict[str, Any]
    options: dict[str, Any]

    @property
    def needs_own_index(self) -> bool:
        """True if a setting changes how the index is made: the user's own index must stay as is."""
        return bool(_OF_INDEXES & self.settings.keys())


def configuration_from(flags: Sequence[str]) -> Configuration:
    """The configuration from `NAME=VALUE` flags; a question option takes precedence over a setting of the same name."""
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for flag in flags:
        name, sign, value = flag.partition("=")
        name = name.strip()
        if not sign or not name:
            raise InvalidOption("set", flag, "must be NAME=VALUE, e.g. min_relevance=0.2")
        if name in _OF_QUESTIONS:
            options[name] = _typed(_OF_QUESTIONS[name], value)
        elif name in Settings.__slots__ and name not in _NOT_HERE:
            settings[name] = value
        else:
            raise InvalidOption("set", flag, _unknown(name))
    # Whatever is wrong with it is said before anything is asked.
    Question(query="?", **options)
    if "model" in options:
        describe_tokenizer(options["model"])
    return Configuration(name=", ".join(flags) or "satchel", settings=settings, options=options)


def _unknown(name: str) -> str:
    if name == "token_budget":
        return "use --budgets 1000,2000 to choose the budgets"
    known = sorted({*_OF_QUESTIONS, *Settings.__slots__} - _NOT_HERE)
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no such setting; {hint}known settings: {', '.join(known)}"


def _typed(option: Option, value: str) -> Any:
    if option.kind in (Kind.TEXTS, Kind.GLOBS):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if option.kind is Kind.LINES and value.isdecimal():
        return int(value)
    convert, expected = _CONVERSIONS.get(option.kind, (str, ""))
    try:
        return convert(value)
    except (KeyError, ValueError):
        raise InvalidOption(option.name, value, f"must be {expected}") from None


def thresholds_from(flags: Sequence[str], budgets: Sequence[int]) -> dict[str, float]:
    """Minimum value by figure; a number alone applies to the coverage at the largest budget."""
    known = [*(f"{name}@{budget}" for name in BUDGET_FIGURES for budget in budgets), *RANK_FIGURES]
    thresholds = {}
    for flag in flags:
        name, sign, value = flag.rpartition("=")
        name = name.strip() if sign else f"cover@{budgets[-1]}"
        if name not in known:
            raise InvalidOption("fail_under", flag, f"there is no such figure; known figures: {', '.join(known)}")
        try:
            thresholds[name] = float(value)
        except ValueError:
            thresholds[name] = -1.0
        if not 0 <= thresholds[name] <= 1:
            raise InvalidOption("fail_under", flag, "must end in a number from 0 to 1")
    return thresholds


def failures(evaluation: Evaluation, thresholds: dict[str, float]) -> list[str]:
    """A line for each figure below the minimum, and for each figure without a value."""
    figures = evaluation.figures()
    lines = []
    for name, least in thresholds.items():
        if name not in figures:
            lines.append(f"{name} could not be measured; at least {least:g} is required")
        elif figures[name].mean < least:
            lines.append(f"{name} is {figures[name].mean:.3f}; at least {least:g} is required")
    return lines
