"""The question that flags stand for: who asks, from where, for what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from satchel.models.request import ContextHints, ConversationMessage, User
    from satchel.service.question import Question

_HINTS: Final = "type=todo, since=2026-11-01, until=2026-11-30, include=ID, exclude=ID, depth=N"


# fmt: off
def request_flags(command: Any) -> Any:
    """Who asks, from where, for what."""
    for option in reversed((  # decorators are applied from below
        click.option("--focus", metavar="ID|PATH:LINE", help="What the user looks at: a block, page or line of code."),
        click.option("--user", metavar="USER", help="Who asks; only what they may read is shown."),
        click.option("--type", "request_type", type=click.Choice(["assist", "chat", "search", "automate"]),
                     help="What the context is for; it decides the defaults."),
        click.option("--hint", "hints", multiple=True, metavar="NAME=VALUE", help=f"What to prefer: {_HINTS}."),
        click.option("--history", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                     help="The conversation so far: JSON lines with role and content."),
        click.option("--truncation", type=click.Choice(["keep_start", "keep_end", "extractive", "summarize"]),
                     help="What is kept of a text that is too long.  [default: extractive]"),
        click.option("--system", metavar="TEXT", help="Instructions to write first, within the budget."),
    )):
        command = option(command)
    return command
# fmt: on


def question_from(query: str, flags: dict[str, Any]) -> Question:
    """The question, with what the flags say about it; what they leave open the settings decide."""
    from satchel.service.question import Question

    return Question(
        query=query,
        token_budget=flags.get("token_budget"),
        format=flags.get("format"),
        model=flags.get("model"),
        top_k=flags.get("most") or flags.get("top_k"),
        min_relevance=flags.get("min_relevance"),
        include=tuple(flags.get("include") or ()),
        exclude=tuple(flags.get("exclude") or ()),
        languages=tuple(flags.get("languages") or ()),
        block_types=tuple(flags.get("types") or ()),
        since=flags.get("since"),
        until=flags.get("until"),
        expand=flags.get("expand"),
        include_sources=bool(flags.get("sources")),
        include_scores=bool(flags.get("scores")),
        compact=bool(flags.get("compact")),
        user=user_from(flags),
        type=flags.get("request_type"),
        focus=flags.get("focus"),
        hints=_hints(flags.get("hints") or ()),
        conversation_history=_history(flags.get("history")),
        truncation=flags.get("truncation"),
        system_prompt=flags.get("system") or "",
    )


def user_from(flags: dict[str, Any]) -> User | None:
    """Who asks, if that is said."""
    from satchel.models.request import User

    return User(id=flags["user"]) if flags.get("user") else None


def _hints(given: tuple[str, ...]) -> ContextHints:
    from satchel.errors import InvalidOption
    from satchel.models.request import ContextHints, TimeRange

    told: dict[str, list[str]] = {}
    for hint in given:
        name, sign, value = hint.partition("=")
        if not sign or not value or name not in ("type", "since", "until", "include", "exclude", "depth"):
            raise InvalidOption("hint", hint, f"must be one of {_HINTS}")
        told.setdefault(name, []).append(value.lower() if name == "type" else value)
    depth = told.get("depth", [""])[-1]
    if depth and not depth.isdecimal():
        raise InvalidOption("hint", f"depth={depth}", "must be a whole number")
    times = TimeRange(start=_moment(told, "since"), end=_moment(told, "until"))  # type: ignore[arg-type]
    return ContextHints(
        prioritize_types=tuple(told.get("type", ())),
        time_range=times if times.start or times.end else None,
        include_blocks=tuple(told.get("include", ())),
        exclude_blocks=tuple(told.get("exclude", ())),
        max_depth=int(depth) if depth else None,
    )


def _moment(told: dict[str, list[str]], name: str) -> str | None:
    given = told.get(name, [None])[-1]
    # A day that something lasts until is meant with all its hours.
    return f"{given}T23:59:59" if given and name == "until" and len(given) == len("2026-11-01") else given


def _history(path: Path | None) -> tuple[ConversationMessage, ...]:
    if path is None:
        return ()
    from satchel.service.importing import read_history

    return read_history(path)
