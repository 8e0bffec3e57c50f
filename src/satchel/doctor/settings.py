"""The settings: where each comes from, and everything that is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import InvalidOption, shown

_MAY_HOLD_A_PASSWORD: Final = ("store", "url", "key", "password", "secret")


def settings(path: str) -> Iterator[Finding]:
    """What is set, by whom, and what nobody reads."""
    from satchel.service.factory.locations import is_database
    from satchel.service.factory.opening import workspace
    from satchel.service.settings import configure, doubts

    heed_project = not is_database(path)
    root = workspace(path) if heed_project else Path(os.curdir)
    wrong = doubts(root, heed_project=heed_project)
    for doubt in wrong:
        yield problem("settings", f"{_named(doubt)}: {_short(doubt.problem)}", _what_to_do(doubt))
    if not wrong:
        origins = configure(root, heed_project=heed_project).origins
        told = ", ".join(f"{name} ({origin})" for name, origin in origins.items())
        yield ok("settings", told or "all defaults")
    yield from _user_file()
    yield from _variables()


def _named(doubt: InvalidOption) -> str:
    """The setting, with its value where that cannot be a secret."""
    name = str(doubt.field)
    is_secret = any(part in name.lower() for part in _MAY_HOLD_A_PASSWORD) or any(
        sign in str(doubt.value) for sign in ("://", "@")
    )
    is_unknown = "no such setting" in doubt.problem
    return name if is_secret or is_unknown else f"{name}={shown(doubt.value)}"


def _short(told: str) -> str:
    return told.partition("; known are")[0].partition("known are")[0].rstrip(" ;")


def _what_to_do(doubt: InvalidOption) -> str:
    if doubt.field == "config":
        return "correct the file at the line that is named; it is written in TOML, as: token_budget = 2000"
    if "a project may not set this" in doubt.problem:
        return f"remove {doubt.field} from the project's file; if you want it: export SATCHEL_{doubt.field.upper()}=…"
    if "no such setting" in doubt.problem:
        return "correct or remove the name; docs/search.md lists all settings"
    if "(environment)" in doubt.problem:
        return f"unset SATCHEL_{doubt.field.upper()}, or give it a value as described"
    return "correct the value"


def _user_file() -> Iterator[Finding]:
    """A file that is named, or is in the place of one, and that nobody reads."""
    from satchel.service.settings import MAX_CONFIG_BYTES, user_file

    named = os.environ.get("SATCHEL_CONFIG", "")
    file = Path(named) if named else user_file()
    if named and not file.exists():
        yield problem("user file", f"SATCHEL_CONFIG names {file}, which is not there", "unset SATCHEL_CONFIG")
    elif file.is_dir():
        yield problem("user file", f"{file} is a folder; settings are read from a file", f"rmdir {file}")
    elif file.is_file() and file.stat().st_size > MAX_CONFIG_BYTES:
        yield problem("user file", f"{file} is larger than {MAX_CONFIG_BYTES:,} bytes and is not read", "shorten it")


def _variables() -> Iterator[Finding]:
    """Variables that look like ours and that nobody reads."""
    from satchel.service.settings import strangers

    for name, near in strangers().items():
        if near:
            yield problem(
                "environment", f"nobody reads {name}; did you mean {near}?", f'export {near}="${name}"; unset {name}'
            )
        else:
            yield note("environment", f"nobody reads {name}", f"unset {name}")
