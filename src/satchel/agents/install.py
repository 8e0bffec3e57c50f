"""`satchel install` and `satchel uninstall`: make coding agents start and use Satchel's MCP server, or undo it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import click

from satchel.agents.catalog import AGENTS, Agent, Scope, own_command, server_command, this_machine
from satchel.agents.guides import USUAL_PARTS, Part
from satchel.agents.plan import (
    SESSION_NOTE,
    Patch,
    Result,
    Target,
    carry_out,
    guide_targets,
    holds_entry,
    plan_guide,
    plan_install,
    plan_uninstall,
    target_for,
)
from satchel.agents.settings_file import CannotEdit
from satchel.cli.exits import Exit
from satchel.cli.output import write_output
from satchel.errors import InvalidOption
from satchel.text.visible import make_visible, make_visible_line

# Unchanged lines around a change: enough to recognise the place, and a diff still fits the terminal.
_CONTEXT_LINES: Final = 2
# Characters: a few lines of a terminal. Settings that a program writes on one line have thousands.
_LONG_LINE: Final = 300
# Characters that stay on either side of a change in a long line.
_NEAR: Final = 60


def difference(name: str, before: bytes | None, after: bytes | None) -> str:
    """Unified diff with visible hidden characters and shortened long lines. None means no file."""
    from difflib import unified_diff

    shown_name = make_visible_line(name).text
    old_name, new_name = ("/dev/null" if data is None else shown_name for data in (before, after))
    texts = [(data or b"").decode("utf-8", "replace").removeprefix("\ufeff") for data in (before, after)]
    if any(len(line) > _LONG_LINE for text in texts for line in text.split("\n")):
        texts = _cut_long_lines(*texts)
    old, new = (text.removesuffix("\n").split("\n") if text else [] for text in texts)
    lines = unified_diff(old, new, old_name, new_name, n=_CONTEXT_LINES, lineterm="")
    visible = (make_visible(line.removesuffix("\r")).text for line in lines)
    return "\n".join(text if len(text) <= 2 * _LONG_LINE else f"{text[: 2 * _LONG_LINE]}…" for text in visible)


def _cut_long_lines(old: str, new: str) -> list[str]:
    """Both texts; the lines where the change begins and ends are cut to the characters near the change."""
    start = _common_start(old, new)
    same_end = _common_start(old[start:][::-1], new[start:][::-1])
    head, tail = old[:start], old[len(old) - same_end :]
    line_before, line_after = head.rpartition("\n")[2], tail.partition("\n")[0]
    if len(line_before) > _NEAR:
        head = f"{head[: len(head) - len(line_before)]}…{line_before[-_NEAR:]}"
    if len(line_after) > _NEAR:
        tail = f"{line_after[:_NEAR]}…{tail[len(line_after) :]}"
    return [head + text[start : len(text) - same_end] + tail for text in (old, new)]


def _common_start(old: str, new: str) -> int:
    return len(os.path.commonprefix([old, new]))  # noqa: RUF071 - characters are to be compared, not folders


_FOLDER: Final = click.Path(exists=True, file_okay=False)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RESULTS: Final = {
    Result.INSTALLED: "installed in",
    Result.REPLACED: "replaced another entry in",
    Result.REMOVED: "removed from",
    Result.UNCHANGED: "is already installed in",
    Result.ABSENT: "is not in",
}
_DRY_RUN_RESULTS: Final = {
    **_RESULTS,
    Result.INSTALLED: "would be installed in",
    Result.REPLACED: "would replace another entry in",
    Result.REMOVED: "would be removed from",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Options shared by both commands."""

    agents: tuple[str, ...]
    path: str | None
    user: bool
    project: bool
    name: str
    parts: tuple[Part, ...]
    dry_run: bool
    yes: bool
    as_json: bool


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the result for each file as JSON."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation."),
        click.option("--dry-run", is_flag=True, help="Show the changes without writing them."),
        click.option("--name", default="satchel", show_default=True, help="Name of the entry in the agent's settings."),
        click.option(
            "--part",
            "parts",
            multiple=True,
            type=click.Choice([str(part) for part in Part]),
            callback=lambda _, __, parts: tuple(map(Part, parts)),
            help="Only this part; may be repeated.  [default: all but hook; for uninstall, all]",
        ),
        click.option("--project", is_flag=True, help="Change the project's settings instead of the user's."),
        click.option("--user", is_flag=True, help="Change the user's settings.  [default]"),
        click.argument("agents", metavar="[AGENT]...", nargs=-1),
    ):
        command = option(command)
    return command


@click.command("install", short_help="Make coding agents start and use Satchel's MCP server.")
@_with_options
@click.option("--path", type=_FOLDER, help="Folder to serve; with --project, the project.  [default: .]")
@click.option(
    "--allow",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Let the agent search any folder in this one; may be repeated.",
)
@click.option("--list", "list_agents", is_flag=True, help="List the agents and whether Satchel is installed.")
def install_command(list_agents: bool, allow: tuple[str, ...], **options: Any) -> None:
    """Make each AGENT start `satchel mcp`, and tell it when to ask: its settings, instructions, a skill, a sub-agent.

    Without AGENT: those that seem to be in use on this machine. The rest of a file stays as it is, to the byte. What
    would change is shown first, and asked about; `satchel uninstall` undoes it.
    """
    selection = _Selection(_Options(**options))
    if list_agents:
        _list_agents(selection)
        return
    folder = selection.project if selection.options.path is not None or selection.options.project else None
    command = server_command(folder, allow)
    parts = selection.options.parts or USUAL_PARTS
    targets = selection.targets()
    changes = [plan_install(target, target.agent.entry(target.scope, command, target.name)) for target in targets]
    changes = changes if Part.SERVER in parts else []
    for target in selection.guide_targets(targets, parts):
        changes.append(plan_guide(target, own_command(SESSION_NOTE)))
    if not changes:
        what = "agent" if not targets else f"file for {', '.join(parts)}"
        _say(f"no supported {what} found (`satchel install --list` lists the supported agents)")
        sys.exit(Exit.NOTHING_FOUND)
    if find_spec("mcp") is None:
        from satchel.cli.packages import pip_install

        _say(f"`satchel mcp`, which agents start, needs packages that are not installed: {pip_install('mcp')}")
    homeless = [target.agent.title for target in targets if target.agent.needs_folder]
    if homeless and folder is None and not allow and Part.SERVER in parts:
        where = "they search the folders that you have open, if they tell them; --allow FOLDER lets them name others"
        _say(f"{', '.join(homeless)} may start servers outside the project: {where}")
    _finish(changes, selection.options)


@click.command("uninstall", short_help="Remove the entries written by `satchel install`.")
@_with_options
@click.option("--path", type=_FOLDER, help="With --project, the project folder.  [default: the current folder]")
def uninstall_command(**options: Any) -> None:
    """Remove what `satchel install` wrote for each AGENT. Without AGENT: for all that have it."""
    selection = _Selection(_Options(**options))
    parts = selection.options.parts or tuple(Part)
    targets = selection.targets(in_use_only=False)
    written = [*(targets if Part.SERVER in parts else ()), *selection.guide_targets(targets, parts)]
    changes = [plan_uninstall(target) for target in written]
    if not selection.agents:
        changes = [change for change in changes if change.action is not Result.ABSENT]
    if not any(change.writes for change in changes) and not _failed(changes):
        _report(changes, selection.options)
        owner = "a project" if selection.options.project else "the user"
        _say(f"{selection.options.name} is not installed in the settings of {owner}")
        sys.exit(Exit.NOTHING_FOUND)
    _finish(changes, selection.options)


class _Selection:
    """The agents and the settings files selected by the options."""

    def __init__(self, options: _Options) -> None:
        if options.user and options.project:
            raise InvalidOption("project", True, "cannot be used together with --user")
        if not _NAME.fullmatch(options.name):
            raise InvalidOption("name", options.name, "must be 1 to 64 letters, digits, - or _")
        self.options = options
        self.scope = Scope.PROJECT if options.project else Scope.USER
        self.project = Path(options.path or ".").resolve()
        self.where = (this_machine(), self.project, options.name)
        self.agents = [_agent(key) for key in dict.fromkeys(options.agents)]

    def targets(self, *, in_use_only: bool = True) -> list[Target]:
        """The settings of the agents on the command line; without any, of those in use or of all."""
        if not self.agents:
            known = [agent for agent in AGENTS if not in_use_only or agent.in_use(self.scope, *self.where)]
            return [target for agent in known if (target := target_for(agent, self.scope, *self.where))]
        targets = []
        for agent in self.agents:
            target = target_for(agent, self.scope, *self.where)
            if target is None:
                reason = f"{agent.title} has no project settings; omit --project"
                raise InvalidOption("project", True, reason)
            targets.append(target)
        return targets

    def guide_targets(self, targets: Sequence[Target], parts: tuple[Part, ...]) -> list[Target]:
        """The files in which the agents of the targets read the parts beside the server."""
        machine, project, _ = self.where
        return [each for target in targets for each in guide_targets(target, parts, machine, project)]


def _agent(key: str) -> Agent:
    agents = {agent.key: agent for agent in AGENTS}
    if key.lower() in agents:
        return agents[key.lower()]
    from difflib import get_close_matches

    near = get_close_matches(key.lower(), agents, n=2)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    raise InvalidOption("agent", key, f"unknown agent; {guess}known agents: {', '.join(agents)}")


def _finish(changes: list[Patch], options: _Options) -> None:
    """Show the planned changes, ask for confirmation, write the files and report the results."""
    # Two agents that read the same file want the same in it.
    to_write = list({change.target.file: change for change in changes if change.writes}.values())
    if options.dry_run:
        _show(to_write, to_stdout=not options.as_json)
    else:
        if to_write and not options.yes and not _confirm(to_write):
            _say("nothing was changed")
            if options.as_json:
                write_output("[]", None)
            return
        changes = carry_out(changes)
    _report(changes, options)
    if _failed(changes):
        sys.exit(Exit.ERROR)


def _confirm(changes: Sequence[Patch]) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("no terminal for the confirmation: use --yes to write, or --dry-run to see the changes")
    _show(changes, to_stdout=False)
    files = "this file" if len(changes) == 1 else f"these {len(changes)} files"
    return click.confirm(f"Change {files}?", err=True)


def _show(changes: Sequence[Patch], *, to_stdout: bool) -> None:

    for change in changes:
        click.echo(difference(str(change.target.file), change.before, change.after), err=not to_stdout)


def _failed(changes: list[Patch]) -> bool:
    return any(change.action is Result.FAILED for change in changes)


def _report(changes: list[Patch], options: _Options) -> None:
    if options.as_json:
        rows = [{**_row(change.target), "action": str(change.action), "problem": change.problem} for change in changes]
        write_output(json.dumps(rows, indent=2), None)
        return
    results = _DRY_RUN_RESULTS if options.dry_run else _RESULTS
    for change in changes:
        title, file = change.target.agent.title, change.target.file
        if change.action is Result.FAILED:
            _say(f"{title}: {file} was not changed: {change.problem}")
        else:
            problem = f" ({change.problem})" if change.problem else ""
            part = "" if change.target.guide is None else f" ({change.target.part})"
            _say(f"{title}: {change.target.name}{part} {results[change.action]} {file}{problem}")
    if _failed(changes):
        _say("correct the problem and run the command again, or add the entry by hand (docs/agents.md)")
    if any(change.writes for change in changes) and not options.dry_run:
        _say("restart running agents: they read their settings at start")


def _list_agents(selection: _Selection) -> None:
    """Print every agent with files, whether the agent is in use and whether the entry is present."""
    rows = list[dict[str, Any]]()
    parts = selection.options.parts or (Part.SERVER,)
    for agent in selection.agents or AGENTS:
        servers = list(filter(None, (target_for(agent, scope, *selection.where) for scope in Scope)))
        for target in (*(servers if Part.SERVER in parts else ()), *selection.guide_targets(servers, parts)):
            installed, problem = False, ""
            try:
                installed = holds_entry(target)
            except CannotEdit as error:
                problem = str(error)
            in_use = agent.in_use(target.scope, *selection.where)
            rows.append({**_row(target), "in_use": in_use, "installed": installed, "problem": problem})
    if selection.options.as_json:
        write_output(json.dumps(rows, indent=2), None)
        return
    width = max(len(agent.key) for agent in AGENTS)
    for row in rows:
        state = "installed" if row["installed"] else "unreadable" if row["problem"] else "-"
        used = "in use" if row["in_use"] else "-"
        part = f"{row['part']:12}  " if parts != (Part.SERVER,) else ""
        line = f"{row['agent']:{width}}  {row['scope']:7}  {part}{used:6}  {state:10}  {row['file']}"
        click.echo(make_visible_line(line).text)


def _row(target: Target) -> dict[str, Any]:
    return {
        "agent": target.agent.key,
        "scope": str(target.scope),
        "part": str(target.part),
        "file": str(target.file),
    }


def _say(line: str) -> None:
    click.echo(f"satchel: {make_visible_line(line).text}", err=True)


@click.command(SESSION_NOTE, short_help="Print what a session hook tells an agent.")
def session_note_command() -> None:
    """Print, as the JSON that agents expect from a hook at the start of a session, when to ask Satchel."""
    from satchel.agents.guides import text_of

    output = {"hookEventName": "SessionStart", "additionalContext": text_of(Part.INSTRUCTIONS)}
    write_output(json.dumps({"hookSpecificOutput": output}), None)
