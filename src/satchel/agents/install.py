"""`satchel install` and `satchel uninstall`: the entry that makes an agent start Satchel's MCP server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from satchel.cli.exits import Exit
from satchel.cli.output import write_output

if TYPE_CHECKING:
    from satchel.agents.catalog import Agent, Scope
    from satchel.agents.machine import Machine
    from satchel.agents.plan import Change, Target

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER: Final = click.Path(exists=True, file_okay=False)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


# fmt: off
def _flags(command: F) -> F:
    """What both commands can be told."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print what became of each file as JSON."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
        click.option("--name", default="satchel", show_default=True, help="The name of the entry."),
        click.option("--project", is_flag=True, help="In the settings of a project instead of the user's."),
        click.option("--user", is_flag=True, help="In the user's settings.  [default]"),
        click.argument("agents", metavar="[AGENT]...", nargs=-1),
    ):
        command = option(command)
    return command
# fmt: on


@click.command("install", short_help="Make coding agents start Satchel's MCP server.")
@_flags
@click.option("--path", type=_FOLDER, help="The folder to serve; with --project, the project (this one by default).")
@click.option("--list", "list_agents", is_flag=True, help="List the agents, their files and whether it is there.")
def install_command(agents: tuple[str, ...], path: str | None, **flags: Any) -> None:
    """Write the entry that makes each AGENT start `satchel mcp` into its settings.

    Without AGENT: those that seem to be in use on this machine. The rest of a file stays as it is, to the byte. What
    would change is shown first, and asked about.
    """
    from satchel.agents.command import server_command
    from satchel.agents.plan import plan_install

    asked = _Asked(agents, path, flags)
    if flags["list_agents"]:
        _list(asked, as_json=flags["as_json"])
        return
    folder = asked.project if path is not None or asked.in_project else None
    command = server_command(folder)
    changes = []
    for target in asked.targets():
        if target.agent.needs_folder and folder is None:
            changes.append(_without_folder(asked, target))
        else:
            changes.append(plan_install(target, target.agent.entry(target.scope, command, target.name)))
    if not any(change.writes or not change.problem for change in changes) and not _failed(changes):
        _report(changes, flags)
        _say("no agent was found whose settings can be changed (`satchel install --list` lists those it knows)")
        sys.exit(Exit.NOTHING_FOUND)
    if find_spec("mcp") is None:
        from satchel.cli.packages import pip_install

        _say(f"agents start `satchel mcp`, which needs packages that are not installed; first: {pip_install('mcp')}")
    _finish(changes, flags)


@click.command("uninstall", short_help="Remove what `satchel install` has written.")
@_flags
@click.option("--path", type=_FOLDER, help="With --project, the project (this one by default).")
def uninstall_command(agents: tuple[str, ...], path: str | None, **flags: Any) -> None:
    """Remove the entry from the settings of each AGENT. Without AGENT: from all that have it."""
    from satchel.agents.plan import Action, plan_uninstall

    asked = _Asked(agents, path, flags)
    changes = [plan_uninstall(target) for target in asked.targets(every=True)]
    if not agents:
        changes = [change for change in changes if change.action is not Action.ABSENT]
    if not any(change.writes for change in changes) and not _failed(changes):
        _report(changes, flags)
        _say(f"{flags['name']} is not installed in the settings of {'a project' if asked.in_project else 'the user'}")
        sys.exit(Exit.NOTHING_FOUND)
    _finish(changes, flags)


class _Asked:
    """What the command line asks for."""

    def __init__(self, keys: tuple[str, ...], path: str | None, flags: dict[str, Any]) -> None:
        from satchel.agents.catalog import Scope
        from satchel.agents.machine import this_machine
        from satchel.errors import InvalidOption

        if flags["user"] and flags["project"]:
            raise InvalidOption("project", True, "is not to be used together with --user")
        if not _NAME.fullmatch(flags["name"]):
            raise InvalidOption("name", flags["name"], "must be up to 64 letters, digits, - and _")
        self.name: str = flags["name"]
        self.scope: Scope = Scope.PROJECT if flags["project"] else Scope.USER
        self.machine: Machine = this_machine()
        self.project: Path = Path(path or ".").resolve()
        self.named: list[Agent] = [_agent(key) for key in dict.fromkeys(keys)]

    @property
    def in_project(self) -> bool:
        """Whether the settings of a project are meant."""
        return self.scope == "project"

    def target(self, agent: Agent, scope: Scope) -> Target | None:
        """An agent's settings in a scope."""
        from satchel.agents.plan import target_for

        return target_for(agent, scope, self.machine, self.project, self.name)

    def targets(self, *, every: bool = False) -> list[Target]:
        """The settings of the agents that were named; else of those in use, or of every one."""
        from satchel.agents.catalog import AGENTS
        from satchel.errors import InvalidOption

        agents = self.named or [
            agent for agent in AGENTS if every or agent.in_use(self.scope, self.machine, self.project, self.name)
        ]
        found = []
        for agent in agents:
            target = self.target(agent, self.scope)
            if target is not None:
                found.append(target)
            elif self.named:
                raise InvalidOption(
                    "project", True, f"{agent.title} has no settings for a project; leave out --project"
                )
        return found


def _agent(key: str) -> Agent:
    from difflib import get_close_matches

    from satchel.agents.catalog import AGENTS
    from satchel.errors import InvalidOption

    agents = {agent.key: agent for agent in AGENTS}
    if key.lower() in agents:
        return agents[key.lower()]
    near = get_close_matches(key.lower(), agents, n=2)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    raise InvalidOption("agent", key, f"is not known; {guess}known are {', '.join(agents)}")


def _without_folder(asked: _Asked, target: Target) -> Change:
    """An agent that starts servers elsewhere needs to be told the folder: an error if it was named, else left out."""
    from satchel.agents.plan import Action, Change, plan_uninstall
    from satchel.errors import InvalidOption

    agent = target.agent
    told = f"{agent.title} does not start servers in the project's folder: say --path FOLDER"
    told += " or --project" if agent.project else ""
    if asked.named:
        raise InvalidOption("agent", agent.key, told)
    there = plan_uninstall(target).writes
    return Change(target=target, action=Action.UNCHANGED if there else Action.ABSENT, problem=told)


def _finish(changes: list[Change], flags: dict[str, Any]) -> None:
    """Show what is to change, ask, change it, and tell what became of it."""
    from satchel.agents.plan import carry_out

    to_write = [change for change in changes if change.writes]
    if flags["dry_run"]:
        _show(to_write, to_stdout=not flags["as_json"])
    elif to_write and not flags["yes"]:
        if not sys.stdin.isatty():
            raise click.UsageError("there is nobody to ask: use --yes to write, or --dry-run to see what would change")
        _show(to_write, to_stdout=False)
        files = len({change.target.file for change in to_write})
        if not click.confirm(f"Change {'this file' if files == 1 else f'these {files} files'}?", err=True):
            _say("nothing was changed")
            if flags["as_json"]:
                write_output("[]", None)
            return
        changes = carry_out(changes)
    else:
        changes = carry_out(changes)
    _report(changes, flags)
    if _failed(changes):
        sys.exit(Exit.ERROR)


def _show(changes: list[Change], *, to_stdout: bool) -> None:
    from satchel.agents.difference import difference

    seen = set()
    for change in changes:
        if change.target.file not in seen:
            seen.add(change.target.file)
            click.echo(difference(str(change.target.file), change.before, change.after), err=not to_stdout)


def _failed(changes: list[Change]) -> bool:
    return any(change.action == "failed" for change in changes)


def _report(changes: list[Change], flags: dict[str, Any]) -> None:
    if flags["as_json"]:
        told = [
            {
                "agent": change.target.agent.key,
                "scope": str(change.target.scope),
                "file": str(change.target.file),
                "action": str(change.action),
                "problem": change.problem,
            }
            for change in changes
        ]
        write_output(json.dumps(told, indent=2), None)
        return
    words = {
        "installed": "would be installed in" if flags["dry_run"] else "installed in",
        "replaced": "would replace another entry in" if flags["dry_run"] else "replaced another entry in",
        "removed": "would be removed from" if flags["dry_run"] else "removed from",
        "unchanged": "is already installed in",
        "absent": "is not in",
    }
    for change in changes:
        title, file = change.target.agent.title, change.target.file
        if change.action == "failed":
            _say(f"{title}: {file} was left alone: {change.problem}")
        else:
            problem = f" ({change.problem})" if change.problem else ""
            _say(f"{title}: {change.target.name} {words[change.action]} {file}{problem}")
    if _failed(changes):
        _say("correct what is named and run this again, or write the entry by hand (docs/agents.md)")
    if any(change.writes for change in changes) and not flags["dry_run"]:
        _say("agents read their settings when they start: restart those that are running")


def _list(asked: _Asked, *, as_json: bool) -> None:
    """Every agent with its files, in use or not, and whether the entry is there."""
    from satchel.agents.catalog import AGENTS, Scope
    from satchel.agents.plan import holds_entry
    from satchel.agents.refusal import CannotEdit
    from satchel.text.visible import make_visible_line

    told = list[dict[str, Any]]()
    for agent in asked.named or AGENTS:
        for target in filter(None, (asked.target(agent, scope) for scope in Scope)):
            installed, problem = False, ""
            try:
                installed = holds_entry(target)
            except CannotEdit as error:
                problem = str(error)
            in_use = agent.in_use(target.scope, asked.machine, asked.project, asked.name)
            told.append(
                {
                    "agent": agent.key,
                    "scope": str(target.scope),
                    "file": str(target.file),
                    "in_use": in_use,
                    "installed": installed,
                    "problem": problem,
                }
            )
    if as_json:
        write_output(json.dumps(told, indent=2), None)
        return
    width = max(len(agent.key) for agent in AGENTS)
    for one in told:
        state = "installed" if one["installed"] else "unreadable" if one["problem"] else "-"
        used = "in use" if one["in_use"] else "-"
        line = f"{one['agent']:{width}}  {one['scope']:7}  {used:6}  {state:10}  {one['file']}"
        click.echo(make_visible_line(line).text)


def _say(line: str) -> None:
    from satchel.text.visible import make_visible_line

    click.echo(f"satchel: {make_visible_line(line).text}", err=True)
