"""Flags shared by commands, passed to each command as typed values: a `Question`, and `WorkspaceFlags`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.output import ProgressBar, say
from satchel.service.question import HINTS, Kind, Option, Question, ResearchQuestion, Surface, options_of

if TYPE_CHECKING:
    from satchel.models.request import ContextHints
    from satchel.service.auto_index import IndexState, Report, Watch
    from satchel.service.client import Caller
    from satchel.service.local_client import LocalSatchel
    from satchel.service.open_roots import LocalClient

Command = Callable[..., Any]

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
OUTPUT = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of stdout."
)
QUICK = click.option("--quick", is_flag=True, help="Answer from the index as it is, without a refresh.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr.")
USER = click.option("--user", metavar="USER", help="User who asks, in a workspace with several users.")
_PATH = click.argument("path", type=click.Path(), default=".")
_PATHS = click.argument("paths", metavar="[PATH]...", type=click.Path(), nargs=-1)
_WITH = click.option(
    "--with",
    "with_packages",
    metavar="PACKAGE",
    multiple=True,
    help="Also ask this installed Python or npm package, in the version of PATH's environment; may be repeated.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFlags:
    """The workspace of a command: its path, settings changed by flags, and `quiet` for no messages.

    `paths` are all folders of a command that takes several, and `path` is the first.
    """

    path: str
    paths: tuple[str, ...]
    with_packages: tuple[str, ...] = ()
    index_dir: str | None = None
    store: str | None = None
    embedder: str | None = None
    quiet: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The settings changed by flags."""
        flags = {"index_dir": self.index_dir, "store": self.store, "embedder": self.embedder}
        return {name: value for name, value in (flags | {"with_packages": self.with_packages}).items() if value}

    def say(self, text: str) -> None:
        """Print a line on stderr, unless the command is to be quiet."""
        if not self.quiet:
            say(text)


def with_workspace(path: Callable[[Command], Command] = _PATH) -> Callable[[Command], Command]:
    """Add flags for the location of the index and for the embedder; the command gets `WorkspaceFlags`."""
    flags = (
        path,
        click.option("--index-dir", help="Store indexes in this folder instead of the OS's cache folder."),
        click.option(
            "--store", metavar="URL", help="Store the index in a database: postgresql://host/db?workspace=name."
        ),
        click.option(
            "--embedder",
            help="Embedder: static (built in), sentence-transformers:MODEL, fastembed:MODEL, openai:MODEL, "
            "or what a plug-in adds.",
        ),
        QUIET,
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(*args: Any, path: str = ".", paths: tuple[str, ...] = (), **values: Any) -> Any:
            names = ("index_dir", "store", "embedder", "quiet", "with_packages")
            given = {name: values.pop(name) for name in names if name in values}
            paths = paths or (path,)
            workspace = WorkspaceFlags(path=paths[0], paths=paths, **given)
            return command(*args, workspace=workspace, **values)

        return _with_flags(wrapped, flags)

    return decorate


def with_roots(command: Command) -> Command:
    """Add PATH..., --with and the flags of `with_workspace`; the command gets `WorkspaceFlags` with all paths."""
    return with_workspace(lambda command: _PATHS(_WITH(command)))(command)


def with_question(surface: Surface) -> Callable[[Command], Command]:
    """Add the argument QUESTION and a flag for each option of the surface; the command gets a question."""
    options = options_of(surface)
    kind: type[Question | ResearchQuestion] = ResearchQuestion if surface is Surface.RESEARCH else Question

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(*args: Any, question: str | None, **values: Any) -> Any:
            flag_values = {option.name: values.pop(option.name) for option in options}
            if flag_values.get("diff") or flag_values.get("trace"):
                question = _about_change(question, flag_values, values)
            elif question is None:
                raise click.UsageError("Missing argument 'QUESTION'.")
            return command(*args, question=_question(kind, _asked(question), flag_values), **values)

        flags = (click.option(*option.flags, option.name, **_click_settings(option)) for option in options)
        is_optional = any(option.kind is Kind.DIFF for option in options)
        return _with_flags(wrapped, (click.argument("question", required=not is_optional), *flags))

    return decorate


def _about_change(question: str | None, flag_values: dict[str, Any], values: dict[str, Any]) -> str:
    """The question about a change; it may be left out, so that the first argument is a folder.

    Reads the diff and the stack trace that are in files, or on stdin.
    """
    diff, trace = flag_values["diff"], flag_values["trace"]
    paths = values.get("paths", ())
    if diff and os.path.isdir(diff):  # `--diff FOLDER`, without a revision
        flag_values["diff"], paths = "HEAD", (diff, *paths)
    if question and os.path.isdir(question):  # not of Path, which fails on long questions
        question, paths = "", (question, *paths)
    values["paths"] = paths
    if diff == "-" and trace == "-":
        raise click.UsageError("only one of --diff and --trace can be read from stdin")
    if diff == "-":
        flag_values["diff"] = _read_stdin("--diff -", "git diff | satchel build --diff -") + "\n"
    if trace == "-":
        flag_values["trace"] = _read_stdin("--trace -", "pytest 2>&1 | satchel build --trace -")
    elif trace:
        try:
            flag_values["trace"] = Path(trace).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise click.BadParameter(f"{trace} cannot be read: {error.strerror}", param_hint="--trace") from None
    return question or ""


def _read_stdin(what: str, example: str) -> str:
    if sys.stdin.isatty():
        raise click.UsageError(f"{what} is read from stdin: {example}")
    text = sys.stdin.read()
    if not text.strip():
        raise click.UsageError(f"{what} is empty: nothing came on stdin")
    return text


def _with_flags(command: Command, flags: tuple[Callable[[Command], Command], ...]) -> Command:
    for flag in reversed(flags):  # decorators are applied from below
        command = flag(command)
    return command


def _click_settings(option: Option) -> dict[str, Any]:
    default = "" if option.default is None else f"  [default: {option.default}]"
    settings: dict[str, Any] = {"help": option.help + default, "metavar": option.metavar}
    match option.kind:
        case Kind.BUDGET | Kind.COUNT:
            settings["type"] = click.IntRange(option.least)
        case Kind.SHARE:
            settings["type"] = click.FloatRange(0, 1)
        case Kind.CHOICE:
            settings["type"] = click.Choice([str(choice) for choice in option.choices])
        case Kind.FLAG:
            settings |= {"is_flag": True, "default": False}
        case Kind.DIFF:
            settings |= {"is_flag": False, "flag_value": "HEAD"}
        case Kind.TEXTS | Kind.GLOBS | Kind.HINTS:
            settings |= {"multiple": True, "help": f"{option.help.removesuffix('.')}; may be repeated."}
        case Kind.MESSAGES:
            settings["type"] = click.Path(exists=True, dir_okay=False, path_type=Path)
    return settings


def _asked(question: str) -> str:
    """The question, from stdin for `-`."""
    if question != "-":
        return question
    return _read_stdin("the question -", "echo 'how …?' | satchel build -").strip()


def _question(
    kind: type[Question | ResearchQuestion], query: str, flag_values: Mapping[str, Any]
) -> Question | ResearchQuestion:
    """Create the question from the values of flags; the settings decide the missing options."""
    values = {name: value for name, value in flag_values.items() if value not in (None, ())}
    if "hints" in values:
        values["hints"] = _hints(values["hints"])
    if "conversation_history" in values:
        from satchel.service.importing import read_history

        values["conversation_history"] = read_history(values["conversation_history"])
    return kind(query=query, **values)


def _hints(flag_values: tuple[str, ...]) -> ContextHints:
    from satchel.errors import InvalidOption
    from satchel.models.request import ContextHints, TimeRange

    values: dict[str, list[str]] = {}
    for hint in flag_values:
        name, sign, value = hint.partition("=")
        if not sign or not value or name not in ("type", "since", "until", "include", "exclude", "depth"):
            raise InvalidOption("hint", hint, f"must be one of {HINTS}")
        values.setdefault(name, []).append(value.lower() if name == "type" else value)
    depth = values.get("depth", [""])[-1]
    if depth and not depth.isdecimal():
        raise InvalidOption("hint", f"depth={depth}", "must be a whole number")
    until = values.get("until", [None])[-1]
    if until and len(until) == len("2026-11-01"):
        until = f"{until}T23:59:59"  # `until` a day includes the whole day
    times = TimeRange(start=values.get("since", [None])[-1], end=until)  # type: ignore[arg-type]
    return ContextHints(
        prioritize_types=tuple(values.get("type", ())),
        time_range=times if times.start or times.end else None,
        include_blocks=tuple(values.get("include", ())),
        exclude_blocks=tuple(values.get("exclude", ())),
        max_depth=int(depth) if depth else None,
    )


@contextmanager
def open_client(
    workspace: WorkspaceFlags, *, user: str | None = None, quick: bool = False, **settings: Any
) -> Iterator[LocalSatchel]:
    """Open the client of a workspace and close the client at the end; index runs report progress on stderr.

    `settings` apply to this command only. With `quick` an existing index is not refreshed.
    """
    from satchel.service.local_client import open_local

    changed = workspace.settings | {name: value for name, value in settings.items() if value}
    with (
        _reporting(workspace) as (watch, report),
        open_local(workspace.path, caller=_caller(user), busy_wait_s=0.0, **changed) as client,
    ):
        yield replace(client, watch=watch, report=report, quick=quick)


@contextmanager
def open_asked(
    workspace: WorkspaceFlags,
    *,
    user: str | None = None,
    quick: bool = False,
    encoding: Any = None,
    **settings: Any,
) -> Iterator[LocalClient]:
    """Open the client of the folders and packages that a command asks, as `open_client` does.

    `encoding` is an already loaded tokenizer.
    """
    from satchel.service.open_roots import open_roots

    changed = workspace.settings | {name: value for name, value in settings.items() if value}
    with (
        _reporting(workspace) as (watch, report),
        open_roots(workspace.paths, caller=_caller(user), busy_wait_s=0.0, encoding=encoding, **changed) as client,
    ):
        yield replace(client, watch=watch, report=report, quick=quick)


def _caller(user: str | None) -> Caller:
    """The person at the machine, who may ask as any user."""
    from satchel.models.request import User
    from satchel.service.client import Caller

    return Caller(user=User(id=user) if user else None, is_owner=True)


@contextmanager
def _reporting(workspace: WorkspaceFlags) -> Iterator[tuple[Watch, Report]]:
    """Callbacks that show the progress and the messages of index runs on stderr."""
    bar = ProgressBar(quiet=workspace.quiet)

    def watch(state: IndexState) -> None:
        if state.running:
            bar.show(state.doing, state.done, state.of)
        else:
            bar.stop()

    def report(sentence: str, is_problem: bool) -> None:
        bar.stop()
        if is_problem or not workspace.quiet:
            say(sentence)

    with bar:
        yield watch, report
