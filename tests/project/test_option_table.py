"""The table of options: every surface takes what it says, and nothing else."""

from __future__ import annotations

import html.parser
import inspect
import re
from dataclasses import fields
from typing import Any

import click
import pytest

from satchel.cli.main import cli
from satchel.evaluation.configuration import configuration_from
from satchel.http.schemas import ContextBody, SearchBody
from satchel.mcp.tools import BUILD_CONTEXT, SEARCH
from satchel.service.async_client import AsyncSatchel
from satchel.service.client import Satchel
from satchel.service.local_client import LocalSatchel
from satchel.service.question import (
    OPTIONS,
    Kind,
    Option,
    OptionScope,
    Question,
    QuestionOptions,
    ResearchOptions,
    ResearchQuestion,
    Surface,
    options_of,
)
from satchel.service.remote_client import RemoteSatchel
from tests.support.places import ROOT

WEB = ROOT / "src" / "satchel" / "web"
NAMES = {option.name for option in OPTIONS[Question]}
COMMANDS = {
    "build": Surface.BUILD,
    "explain": Surface.BUILD,
    "ask": Surface.ASK,
    "search": Surface.SEARCH,
    "research": Surface.RESEARCH,
}


def names_of(surface: Surface) -> set[str]:
    return {option.name for option in options_of(surface)}


def test_a_question_has_every_option_and_no_other() -> None:
    assert {field.name for field in fields(Question)} == NAMES | {"query"}
    assert set(QuestionOptions.__annotations__) == NAMES
    assert {field.name for field in fields(ResearchQuestion)} == set(ResearchOptions.__annotations__) | {"query"}


def test_no_surface_has_an_option_twice() -> None:
    for surface in Surface:
        assert len(options_of(surface)) == len(names_of(surface))


@pytest.mark.parametrize("client", [Satchel, LocalSatchel, RemoteSatchel, AsyncSatchel])
@pytest.mark.parametrize("method", ["build", "search"])
def test_help_names_every_option(client: type, method: str) -> None:
    text = inspect.getdoc(getattr(client, method)) or ""
    assert all(f"{name}: " in text for name in NAMES)


@pytest.mark.parametrize("client", [Satchel, LocalSatchel, RemoteSatchel, AsyncSatchel])
@pytest.mark.parametrize("method", ["research", "ask"])
def test_help_names_every_option_of_research(client: type, method: str) -> None:
    text = inspect.getdoc(getattr(client, method)) or ""
    assert all(f"{option.name}: " in text for option in OPTIONS[ResearchQuestion])


@pytest.mark.parametrize(("name", "surface"), COMMANDS.items())
def test_flags_are_the_tables(name: str, surface: Surface) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    flags = {flag: parameter for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for option in OPTIONS[ResearchQuestion if surface is Surface.RESEARCH else Question]:
        for flag in (part for spelling in option.flags for part in spelling.split("/")):
            assert (flag in flags and flags[flag].name == option.name) == (option.name in names_of(surface)), flag


def test_bodies_and_tools_are_the_tables() -> None:
    assert ContextBody.model_fields.keys() == names_of(Surface.HTTP_CONTEXT) | {"query"}
    assert SearchBody.model_fields.keys() == names_of(Surface.HTTP_SEARCH) | {"query"}
    assert BUILD_CONTEXT.arguments.model_fields.keys() == names_of(Surface.MCP_BUILD) | {"question", "path", "cursor"}
    assert SEARCH.arguments.model_fields.keys() == names_of(Surface.MCP_SEARCH) | {"question", "path", "cursor"}


def test_evaluations_take_every_option_that_the_table_gives_them() -> None:
    examples: dict[Kind, tuple[str, Any]] = {
        Kind.COUNT: ("3", 3),
        Kind.SHARE: ("0.5", 0.5),
        Kind.FLAG: ("yes", True),
        Kind.TEXTS: ("a, b", ("a", "b")),
        Kind.GLOBS: ("a, b", ("a", "b")),
        Kind.LINES: ("symbol", "symbol"),
        Kind.MODEL: ("gpt-4o", "gpt-4o"),
    }
    for option in options_of(Surface.EVAL):
        written, value = examples.get(option.kind, (option.choices[0] if option.choices else "x",) * 2)
        assert configuration_from([f"{option.name}={written}"]).options == {option.name: value}


class _Form(html.parser.HTMLParser):
    """The controls of the inspector's form that have a name, and the choices of each."""

    def __init__(self) -> None:
        super().__init__()
        self.controls: dict[str, list[str]] = {}
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("input", "select", "textarea") and values.get("name"):
            self._select = values["name"] or ""
            self.controls[self._select] = []
        elif tag == "option" and values.get("value"):
            self.controls[self._select].append(values["value"] or "")


def test_the_inspectors_form_is_the_tables() -> None:
    form = _Form()
    form.feed((WEB / "index.html").read_text(encoding="utf-8"))
    assert form.controls.keys() == names_of(Surface.INSPECTOR) | {"query"}
    for option in options_of(Surface.INSPECTOR):
        assert form.controls[option.name] == [str(choice) for choice in option.choices]
    lists = re.findall(r"^const (?:TEXTS|COUNTS|LISTS) = \[(.*?)\];", (WEB / "ask.js").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r'"(\w+)"', " ".join(lists))) == names_of(Surface.INSPECTOR)


@pytest.mark.parametrize("name", ["build", "ask", "search", "research"])
def test_the_page_on_the_command_line_has_the_defaults_and_choices(name: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.split(f"## satchel {name}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section.splitlines() if "| `-" in line]
    for option in options_of(COMMANDS[name]):
        flag = option.flags[-1].split("/")[0]
        row = next(row for row in rows if f"`{flag}`" in row[0])
        if option.default is not None:
            assert row[1] == str(option.default), flag
        if name == "build":
            assert all(f"`{choice}`" in row[-1] for choice in option.choices), flag


def row_of(option: Option) -> str:
    is_flag = any(option.surfaces & surface for surface in COMMANDS.values())
    flags = ", ".join(f"`{flag}`" for flag in option.flags[::-1]) if is_flag else ""
    kinds = {
        OptionScope.CHUNKS | OptionScope.WORKSPACE: "both",
        OptionScope.CHUNKS: "files",
        OptionScope.WORKSPACE: "workspaces",
        OptionScope.RESEARCH: "documents",
    }
    default = "" if option.default is None else f"`{option.default}`"
    choices = f" {', '.join(f'`{choice}`' for choice in option.choices)}." if option.choices else ""
    text = (option.help + choices).replace("|", "\\|")
    return f"| `{option.name}` | {kinds[option.recipes]} | {flags} | {default} | {text} |"


def test_the_page_on_options_has_the_table() -> None:
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    for option in (*options_of(Surface.HTTP_CONTEXT), *options_of(Surface.HTTP_RESEARCH)):
        assert row_of(option) in page
