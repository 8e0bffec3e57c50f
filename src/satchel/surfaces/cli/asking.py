"""The request that flags stand for: who asks, from where, for what."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from satchel.config import Settings
    from satchel.engine import ContextEngine
    from satchel.model.request import ContextHints, ContextRequest, ConversationMessage, Focus, User
    from satchel.ports.store import Filters

_HINTS: Final = "type=todo, since=2026-11-01, until=2026-11-30, include=ID, exclude=ID, depth=N"
_NOT_FOR_REQUESTS: Final = (
    "expand",
    "sources",
    "scores",
    "compact",
    "types",
    "languages",
    "include",
    "exclude",
    "since",
    "until",
)
ASKING: Final = ("focus", "user", "request_type", "hints", "history", "truncation", "system")
"""Flags that make a question a request."""


# fmt: off
def request_flags(command: Any) -> Any:
    """Who asks, from where, for what."""
    for option in (
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
    ):
        command = option(command)
    return command
# fmt: on


def is_request(engine: ContextEngine, flags: dict[str, Any]) -> bool:
    """Whether a workspace's context is asked for: by a flag, or because there are blocks beside the files."""
    asked = any(flags.get(name) for name in ASKING) or engine.store.holds_blocks()
    if asked:
        for name in _NOT_FOR_REQUESTS:
            if flags.get(name):
                raise _unusable(name, flags[name])
    return asked


def _unusable(name: str, value: Any) -> Exception:
    from satchel.errors import InvalidOption

    instead = " (use --hint type=…)" if name == "types" else ""
    flag = {"types": "block-type", "languages": "lang"}.get(name, name)
    return InvalidOption(flag, value, f"is not for the context of a workspace{instead}")


def changed_by_flags(settings: Settings, flags: dict[str, Any]) -> Settings:
    """The settings with what the flags say about how a workspace's context is built."""
    from dataclasses import replace

    from satchel.model.request import RequestType

    semantic: dict[str, Any] = {"top_k": flags["most"]} if flags["most"] else {}
    if flags["min_relevance"] is not None:
        semantic |= {"min_threshold": flags["min_relevance"], "keep_best": 0}
    changes = {
        "truncation": {"default_strategy": flags["truncation"]} if flags["truncation"] else {},
        # For each type, so that they win over what a type changes.
        "by_type": {kind: {"collectors": {"semantic": semantic}} for kind in RequestType} if semantic else {},
    }
    return replace(settings, context=_joined(settings.context, changes))


def _joined(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(before)
    for name, value in changes.items():
        if isinstance(value, dict):
            value = _joined(before.get(name, {}), value)  # noqa: PLW2901 - the same value, joined with what is there
            if not value:
                continue
        joined[name] = value
    return joined


def request_from(engine: ContextEngine, question: str, settings: Settings, flags: dict[str, Any]) -> ContextRequest:
    """The request."""
    from satchel.config import Settings
    from satchel.model.context_config import DEFAULT_CONTEXT_CONFIG, with_changes
    from satchel.model.request import ContextRequest, RequestType

    usual = "chat" if flags.get("history") else "assist" if flags.get("focus") else "search"
    kind = RequestType(flags.get("request_type") or usual)
    budget = with_changes(DEFAULT_CONTEXT_CONFIG, settings.context).for_type(kind).token_budget
    if settings.token_budget != Settings().token_budget or flags.get("token_budget"):
        budget = budget.scaled(settings.token_budget)
    user = asking_user(engine, flags)
    return ContextRequest(
        query=question,
        user=user,
        type=kind,
        focus=_focus(engine, user, flags.get("focus")),
        conversation_history=_history(flags.get("history")),
        token_budget=budget,
        hints=_hints(flags.get("hints") or ()),
        format=settings.format,  # type: ignore[arg-type]  # checked by the request
        system_prompt=flags.get("system") or "",
    )


def asking_user(engine: ContextEngine, flags: dict[str, Any]) -> User:
    """The user who asks; in a workspace of one's own, whoever is at the keyboard."""
    from satchel.errors import InvalidOption
    from satchel.model.access import DefaultAccess
    from satchel.model.request import User

    if flags.get("user"):
        return User(id=flags["user"])
    if engine.store.default_access() is not DefaultAccess.OWNER:
        raise InvalidOption("user", "", "this workspace has several users: say who asks with --user")
    try:
        return User(id=getpass.getuser())
    except (OSError, KeyError):
        return User(id="owner")


def seen_by(engine: ContextEngine, filters: Filters, flags: dict[str, Any]) -> Filters:
    """The filters, and who asks where that matters."""
    from dataclasses import replace

    from satchel.model.access import DefaultAccess

    if not flags.get("user") and engine.store.default_access() is DefaultAccess.OWNER:
        return filters
    return replace(filters, readers=engine.filters_for(asking_user(engine, flags)).readers)


def _focus(engine: ContextEngine, user: User, focus: str | None) -> Focus | None:
    from satchel.model.block import BlockType
    from satchel.model.request import Focus

    if not focus:
        return None
    block = engine.store.block(focus, engine.filters_for(user))
    if block is None or not block.is_page:
        return Focus(block_id=focus)
    return Focus(database_id=focus) if block.type == BlockType.DATABASE else Focus(page_id=focus)


def _hints(given: tuple[str, ...]) -> ContextHints:
    from satchel.errors import InvalidOption
    from satchel.model.request import ContextHints, TimeRange

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
    from satchel.ingest.sources.conversations import read_conversations
    from satchel.model.block import Block, BlockType
    from satchel.model.request import ConversationMessage

    return tuple(
        ConversationMessage(
            role=str(one.metadata.get("role") or "user"), content=one.content, timestamp=one.last_modified
        )
        for one in read_conversations(path)
        if isinstance(one, Block) and one.type == BlockType.MESSAGE
    )
